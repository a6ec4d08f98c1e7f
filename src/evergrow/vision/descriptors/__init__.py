"""Local descriptors: patches of images as vectors, and Fisher vectors of them.

``patches`` chooses where to look, ``kinds`` turns patches into vectors, ``describer`` does both for
images, and ``local_features`` is the transformer. ``fisher_vectors`` makes one vector per image.
"""

from evergrow.foundation.public_names import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__, __file__)
