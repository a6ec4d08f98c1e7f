"""From images to vectors, and a classifier of images.

Each folder uses only those before it:

- ``images`` reads files, bytes and arrays as upright 8-bit RGB, within limits.
- ``embedding`` computes one vector per image with a trained network.
- ``descriptors`` describes patches of an image (HSL, Haar wavelets, SIFT), and has Fisher vectors.
- ``words`` learns codebooks of descriptors and counts visual words per image.
- ``classifier`` combines features with a learner of :mod:`evergrow.estimators` in one estimator and
  one model file.

A JPEG becomes a vector in ``embedding.pipeline``: ``EmbeddingPipeline._read`` reads its bytes
(``images.sources``), looks them up in the cache, decodes them to pixels (``images.decoder``) and
prepares the pixels for the network (``embedding.preprocessing``); ``EmbeddingPipeline._compute``
runs the network. The service uses the same decoder, preprocessing and network, but decodes in
separate processes (``service.decoding``). Thumbnails are made in ``images.thumbnails``.

Many images are processed in the parts of a job on the engine in use: see ``images.parts``. An image
that cannot be read is an ``ImageError``, or with ``on_error="skip"`` a ``BadImage`` among the
problems of the result.

Start reading with ``images.reader``, then ``embedding.embedder``.
"""

from evergrow.foundation.public_names import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__, __file__)
