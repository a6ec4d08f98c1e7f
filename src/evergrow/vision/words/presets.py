"""Ready-made bags of words."""

from __future__ import annotations

from typing import Literal

import numpy as np

from evergrow.vision.descriptors.local import LocalFeatures
from evergrow.vision.descriptors.patches import DensePatches
from evergrow.vision.words.bag import BagOfWords
from evergrow.vision.words.kmeans import KMeansCodebook

__all__ = ["dense_sift_words"]


def dense_sift_words(
    n_words: int = 1000,
    *,
    pooling: Literal["binary", "counts", "sum", "sqrt", "mutual_information"] = "sum",
    n_training_descriptors: int = 100_000,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> BagOfWords:
    """The dense SIFT words that forests of class means were first tried on.

    Images are made at most 300 pixels long, SIFT describes patches of 20 pixels every 10 pixels,
    each patch counts for the nearest of ``n_words`` k-means centres, and the counts of an image are
    divided by their sum. The vectors are an ordinary matrix, as forests take it.

    Parameters
    ----------
    n_words : int, default=1000
        Number of words, which is the length of a vector.
    pooling : str, default="sum"
        What becomes of the counts, see :class:`BagOfWords`; ``"sqrt"`` is often better for
        classifiers that compare vectors by their distance.
    n_training_descriptors : int, default=100_000
        How many descriptors the centres are learnt from; some hundred per word are enough.
    random_state : int, RandomState or None, default=None
        Seed of the choice of descriptors and of the centres.
    n_jobs : int, default=None
        Number of threads; None for one, -1 for one per processor.
    verbose : int, default=0
        Show progress bars when positive.

    Returns
    -------
    bag : BagOfWords
        To be fitted with images; it needs no classes.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow.vision import dense_sift_words
    >>> images = np.random.default_rng(0).integers(0, 256, (3, 60, 80, 3), dtype=np.uint8)
    >>> vectors = dense_sift_words(10, random_state=0).fit_transform(images)
    >>> vectors.shape, vectors.sum(axis=1).round(3).tolist()
    ((3, 10), [1.0, 1.0, 1.0])
    """
    patches = DensePatches(step=10, size=20)
    return BagOfWords(
        KMeansCodebook(n_words),
        features=LocalFeatures("sift", patches=patches, max_side=300, n_jobs=n_jobs),
        pooling=pooling,
        n_training_descriptors=n_training_descriptors,
        sparse_output=False,
        random_state=random_state,
        n_jobs=n_jobs,
        verbose=verbose,
    )
