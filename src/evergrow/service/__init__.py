"""A workspace over HTTP: the server, its web page, and a Python client.

``wire`` declares the JSON records that the server sends and the client returns. Records of the
workspace that are sent unchanged are not repeated there. ``http`` is the server; only it imports
FastAPI. ``decoding`` decodes untrusted images in separate processes. ``page`` is the web page for
teaching: plain ES modules without a build step. ``client`` is the Python client; it needs only
``wire``, the records of the workspace, :mod:`evergrow.foundation` and the standard library.

A request passes the middleware (log, security headers, limits, tokens, rate limit) and reaches a
function in ``http.routes``. Images are queued fairly, decoded by ``decoding``, and embedded in
batches by ``http.images``. Reads run in a few threads; every change goes through the queue of
``http.writer``, whose thread is the only one that changes the workspace. A refusal becomes a 4xx,
503 or 507 problem in ``http.responses``; any other exception is logged and answered with a 500.

Start reading with ``http.app``, then ``http.routes.examples`` and ``http.service``.
"""

from evergrow.foundation.public_names import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__, __file__)
