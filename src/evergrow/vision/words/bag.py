"""Images as bags of words."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from evergrow.foundation.params import check_parameters
from evergrow.foundation.ragged import RaggedArray
from evergrow.storage.files import write_model
from evergrow.storage.shards import Shards
from evergrow.vision.images.extraction import Extraction
from evergrow.vision.images.many import ON_ERROR, check_sources
from evergrow.vision.words.bag_estimator import BagEstimator
from evergrow.vision.words.training import check_images, listed

__all__ = ["BagOfWords"]


class BagOfWords(BagEstimator):
    """Images as vectors that say which visual words occur in them.

    Descriptors of patches are drawn evenly over the training images and a codebook is learnt from
    them. Each image is then coded: its descriptors get their words, the words are counted and the
    counts pooled into one vector. A linear classifier on top completes the classifier of Moosmann,
    Triggs and Jurie (NIPS 2006).

    Images are coded one after the other, so that the descriptors of all never lie in memory
    together.

    Parameters
    ----------
    codebook : codebook, default=None
        What gives descriptors their words; it is cloned. None for ``ERCForest(
        keep_descriptors=False)``, which learns from the classes of the images and is the fastest.
    features : LocalFeatures, default=None
        What makes descriptors of images. None if the input is descriptors already, a matrix per
        image.
    pooling : {"binary", "counts", "sum", "sqrt", "mutual_information"}, default="binary"
        What becomes of the counts. ``"binary"`` asks whether a word occurs. Where images have so
        many patches that most words do, ``"mutual_information"`` asks whether it occurs often
        enough, by the number that says most about the classes of the training images. ``"sum"``
        divides by the sum over the image, for images of different numbers of patches; ``"sqrt"`` is
        its square root, which keeps frequent words from hiding others. ``"counts"`` changes
        nothing.
    n_training_descriptors : int, default=20_000
        How many descriptors the codebook is learnt from, about as many of each image. More allow
        for more words. With ``features``, no image gives more than its patches,
        ``features.patches.n`` of them at most.
    sparse_output : bool, default=True
        Give sparse vectors; False for an ordinary matrix. May be changed at any time.
    random_state : int, RandomState or None, default=None
        Seed of the choice of descriptors, and of the codebook if that has none of its own.
    n_jobs : int, default=None
        Number of threads that code; None for 1 or what joblib's context says, -1 for all
        processors. Codebook and features have their own.
    verbose : int, default=0
        Show a progress bar when positive.

    Attributes
    ----------
    codebook_ : codebook
        The fitted codebook.
    features_ : LocalFeatures or None
        What describes images.
    thresholds_ : ndarray of shape (``n_words_``,) or None
        How often each word must occur, with ``pooling="mutual_information"``.
    n_words_ : int
        Number of words, which is the length of a vector.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow.vision import BagOfWords, RandomKDTrees
    >>> random = np.random.default_rng(0)
    >>> images = [random.normal(size=(n, 8)) for n in (40, 70, 50)]
    >>> bag = BagOfWords(RandomKDTrees(2, n_words=10), random_state=0).fit(images)
    >>> bag.transform(images).shape
    (3, 20)
    """

    def __init__(
        self,
        codebook: Any = None,
        *,
        features: Any = None,
        pooling: Literal["binary", "counts", "sum", "sqrt", "mutual_information"] = "binary",
        n_training_descriptors: int = 20_000,
        sparse_output: bool = True,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.codebook = codebook
        self.features = features
        self.pooling = pooling
        self.n_training_descriptors = n_training_descriptors
        self.sparse_output = sparse_output
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        images: RaggedArray | Sequence[Any],
        y: npt.ArrayLike | None = None,
        *,
        masks: Sequence[Any] | None = None,
    ) -> Self:
        """Learn the words, and what else the pooling needs.

        Parameters
        ----------
        images : RaggedArray, Shards or sequence
            Descriptors of each image, arrays of shape (n_patches, n_features), of which some may
            be empty; with ``features`` the images themselves. Of :class:`evergrow.Shards` only the
            descriptors that the codebook is learnt from are read; ``"mutual_information"`` then
            goes through all of them once.
        y : array-like of shape (n_images,), default=None
            Class of each image, which its descriptors get too. Some codebooks and
            ``pooling="mutual_information"`` need it.
        masks : sequence of n_images bool arrays of shape (height, width) or None, default=None
            Where in each image the patches lie that the words are learnt from, such as on the
            object; None for everywhere. Only with ``features``.

        Returns
        -------
        self : estimator
            The fitted estimator. If learning fails or is interrupted it stays as it was.

        Examples
        --------
        >>> import numpy as np
        >>> from evergrow.vision import BagOfWords, KMeansCodebook
        >>> images = [np.zeros((3, 2)), np.ones((4, 2))]
        >>> BagOfWords(KMeansCodebook(2), random_state=0).fit(images).n_words_
        2
        """
        self._learn(listed(images, self.features), y, masks)
        return self

    def fit_transform(
        self,
        images: RaggedArray | Sequence[Any],
        y: npt.ArrayLike | None = None,
        *,
        masks: Sequence[Any] | None = None,
    ) -> sparse.csr_array | npt.NDArray[np.float32]:
        """Learn the words and code the same images; as :meth:`fit`, then :meth:`transform`.

        Examples
        --------
        >>> import numpy as np
        >>> from evergrow.vision import BagOfWords, KMeansCodebook
        >>> images = [np.zeros((3, 2)), np.ones((4, 2))]
        >>> BagOfWords(KMeansCodebook(2), random_state=0).fit_transform(images).sum(axis=1)
        array([1., 1.], dtype=float32)
        """
        every = listed(images, self.features)
        fitted, counts = self._learn(every, y, masks)
        if counts is None:
            counts = fitted.counts(every, n_jobs=self.n_jobs, verbose=self.verbose)
        return self._shaped(fitted.pooled(counts))

    def transform(self, images: Iterable[Any]) -> sparse.csr_array | npt.NDArray[np.float32]:
        """The vector of each image.

        Parameters
        ----------
        images : RaggedArray or iterable
            As in :meth:`fit`; they are taken one after the other, as they are needed.

        Returns
        -------
        vectors : sparse array or ndarray of shape (n_images, ``n_words_``), float32
            An image without descriptors is all zero.

        Examples
        --------
        >>> import numpy as np
        >>> from evergrow.vision import BagOfWords, KMeansCodebook
        >>> images = [np.zeros((3, 2)), np.ones((4, 2))]
        >>> bag = BagOfWords(KMeansCodebook(2), pooling="sum", sparse_output=False).fit(images)
        >>> bag.transform([np.array([[0, 0], [0, 1], [1, 1], [0.1, 0]]), np.zeros((0, 2))]).shape
        (2, 2)
        """
        fitted = self._learnt()
        self._check_parameters()
        check_images(images, fitted.features)
        if isinstance(images, Shards):
            images = images.images
        counts = fitted.counts(images, n_jobs=self.n_jobs, verbose=self.verbose)
        if not counts.shape[0]:
            raise ValueError("there must be at least one image")
        return self._shaped(fitted.pooled(counts))

    def extract(
        self, images: Iterable[Any], *, on_error: Literal["raise", "skip"] = "raise"
    ) -> Extraction:
        """The vectors of those images that can be read; only with ``features``.

        Parameters
        ----------
        images : iterable
            Images, taken one after the other.
        on_error : {"raise", "skip"}, default="raise"
            What to do about an image that cannot be read: raise an error, or leave it out, list it
            among the problems, and warn.

        Returns
        -------
        extraction : Extraction
            The vectors as of :meth:`transform`, the place of each one's image, and the problems.

        Examples
        --------
        >>> import numpy as np
        >>> from evergrow.vision import BagOfWords, LocalFeatures, RandomKDTrees
        >>> images = np.random.default_rng(0).integers(0, 256, (4, 40, 40, 3), dtype=np.uint8)
        >>> bag = BagOfWords(RandomKDTrees(2, n_words=10), features=LocalFeatures())
        >>> bag.fit(images).extract([images[0], images[1]], on_error="raise").kept
        array([0, 1])
        """
        fitted = self._learnt()
        self._check_parameters()
        check_parameters({"on_error": on_error}, {"on_error": ON_ERROR})
        check_sources(images)
        if fitted.features is None:
            raise ValueError(
                "extract reads images and needs features; give descriptors to transform"
            )
        options: dict[str, Any] = {"n_jobs": self.n_jobs, "verbose": self.verbose}
        counts, kept, problems = fitted.counts_of_readable(images, on_error=on_error, **options)
        return Extraction(self._shaped(fitted.pooled(counts)), kept, problems)

    @property
    def codebook_(self) -> Any:
        """The fitted codebook; do not train it on its own."""
        return self._learnt().codebook

    @property
    def features_(self) -> Any:
        """What describes images; None where the input is descriptors."""
        return self._learnt().features

    @property
    def thresholds_(self) -> npt.NDArray[np.int32] | None:
        """How often each word must occur; None where any number will do."""
        return self._learnt().thresholds

    @property
    def n_words_(self) -> int:
        """Number of words, which is the length of a vector."""
        return int(self._learnt().codebook.n_words_)

    def get_feature_names_out(
        self,
        input_features: Any = None,  # noqa: ARG002
    ) -> npt.NDArray[np.object_]:
        """Names of the columns: tree and word.

        Examples
        --------
        >>> import numpy as np
        >>> from evergrow.vision import BagOfWords, RandomKDTrees
        >>> bag = BagOfWords(RandomKDTrees(2, n_words=2)).fit([np.zeros((1, 2)), np.ones((1, 2))])
        >>> bag.get_feature_names_out().tolist()
        ['tree0_word0', 'tree0_word1', 'tree1_word0', 'tree1_word1']
        """
        words_per_tree = self._learnt().codebook.words_per_tree_
        names = [f"tree{t}_word{w}" for t, n in enumerate(words_per_tree) for w in range(n)]
        return np.array(names, dtype=object)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write codebook and features to a file that :func:`evergrow.load` reads.

        After loading, ``codebook`` has the parameters of ``codebook_``.

        Parameters
        ----------
        path : path
            File to write; an existing one is replaced, whole or not at all.

        Examples
        --------
        >>> import evergrow, tempfile, os
        >>> import numpy as np
        >>> from evergrow.vision import BagOfWords, KMeansCodebook
        >>> bag = BagOfWords(KMeansCodebook(2)).fit([np.zeros((3, 2)), np.ones((4, 2))])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     bag.save(os.path.join(folder, "bag.evergrow"))
        ...     evergrow.load(os.path.join(folder, "bag.evergrow")).n_words_
        2
        """
        write_model(path, *self._to_file())
