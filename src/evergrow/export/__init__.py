"""A model that answers without Evergrow.

A fitted estimator comes in, one file leaves that other software runs. ``onnx`` writes an ONNX
graph from pixels, or from vectors, to class probabilities: resizing, network and head are all
inside.

Nothing here learns, and nothing here knows of a workspace, which exports the model it has learnt.
Start reading with ``onnx.model_file``, then ``onnx.heads``.
"""

from evergrow.foundation.public_names import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__, __file__)
