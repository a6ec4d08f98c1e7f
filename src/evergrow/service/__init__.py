"""A workspace over HTTP: the server, its page, and a client.

``http`` is the server: routes, limits, tokens, and the one thread that changes the workspace; only
it imports FastAPI. ``decoding`` decodes untrusted images in separate processes. ``page`` is the web
page for teaching, plain ES modules without a build step. ``client`` is the Python client; it needs
only the standard library and :mod:`evergrow.foundation`.

Requests come in as JSON or as forms with images, become embeddings, and reach the workspace through
``http.writing``. Start reading with ``http.app``, then ``http.routes``.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
