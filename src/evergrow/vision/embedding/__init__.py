"""One vector per image, from a trained network.

``embedder`` has the public class. ``pipeline`` is where an image becomes a vector: it reads images
ahead in threads, looks each one up in the ``cache``, prepares the others by ``preprocessing`` and
runs the network in batches: ``networks`` has those of ONNX files and functions, ``torch_module``
those of PyTorch, and ``joined_network`` puts several next to each other. ``network_loader`` makes
them from the parameters of an embedder. ``model_zoo`` has the networks that are known by name,
``efficientnet`` how they are converted; ``pretrained`` converts folders of transformers and timm;
``onnx_file`` checks ONNX files. ``shards`` embeds a folder of images into shards.
"""

from evergrow.foundation.public_names import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__, __file__)
