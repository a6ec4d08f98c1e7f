"""A model that answers without Evergrow.

A fitted estimator comes in, one file leaves that other software runs. ``onnx`` writes an ONNX
graph from pixels, or from vectors, to class probabilities: resizing, network and head are all
inside. ``html`` writes a page that answers and learns in a browser.

Nothing here knows of a workspace, which exports the model it has learnt. Start reading with
``onnx.model_file``, then ``onnx.heads``; or with ``html.page_file``, then ``html.head``.
"""

from evergrow.foundation.public_names import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__, __file__)
