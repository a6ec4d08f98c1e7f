"""From pictures to numbers, and a classifier of images.

``images`` finds and reads images, each checked before it is decoded. ``embedding`` turns an image
into one vector with a trained network, and folders of images into shards of vectors.
``descriptors`` describes patches of an image (HSL, Haar wavelets, SIFT) and has Fisher vectors of
them. ``words`` learns codebooks of such descriptors and counts words per image. ``classifier`` puts
features and a learner of :mod:`evergrow.estimators` into one estimator and one file.

Sources (paths, bytes, arrays) come in, become pixels, then rows of numbers. Start reading with
``images.reading`` and ``embedding.embedder``.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
