"""Bags of words with the settings of a paper."""

from __future__ import annotations

from typing import Literal

import numpy as np

from evergrow.vision.descriptors.local_features import LocalFeatures
from evergrow.vision.descriptors.patches import DensePatches
from evergrow.vision.words.bag.bag_of_words import BagOfWords
from evergrow.vision.words.codebooks.kmeans_codebook import KMeansCodebook


def dense_sift_words(
    n_words: int = 1000,
    *,
    pooling: Literal["binary", "counts", "sum", "sqrt", "mutual_information"] = "sum",
    n_training_descriptors: int = 100_000,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> BagOfWords:
    """A bag of dense SIFT words, as in the experiments of the first paper on NCM forests.

    Images are reduced to at most 300 pixels per side, SIFT describes patches of 20 pixels every 10
    pixels, each patch counts for the nearest of ``n_words`` k-means centres, and the counts of an
    image are divided by their sum. The vectors are a dense matrix, as forests need it.

    Parameters
    ----------
    n_words : int, default=1000
        Number of words, the length of a vector.
    pooling : str, default="sum"
        How counts become a vector, see :class:`BagOfWords`; ``"sqrt"`` is often better for
        classifiers that use distances between vectors.
    n_training_descriptors : int, default=100_000
        Number of descriptors that the centres are learnt from; a few hundred per word are enough.
    random_state : int, RandomState or None, default=None
        Seed of the sample of descriptors and of the centres.
    n_jobs : int, default=None
        Number of threads: None is 1, -1 uses all processors.
    verbose : int, default=0
        Show progress bars when positive.

    Returns
    -------
    bag : BagOfWords
        Not fitted yet; fitting needs images but no classes.

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
