"""One vector per image, from a trained network.

``embedder`` has the public class. ``pipeline`` is where an image becomes a vector: it reads images
ahead in threads, looks each one up in the ``cache``, prepares the others by ``preprocessing`` and
runs the network (``networks``) in batches. ``model_zoo`` has the networks that are known by name;
``onnx_file`` checks ONNX files. ``shards`` embeds a folder of images into shards.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
