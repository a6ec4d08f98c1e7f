"""Bag of words: the visual words of an image as one vector."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import check_random_state

from evergrow.estimators.classifier.learner import replace_fitted
from evergrow.foundation.errors import InvalidInputError, ModelFileError
from evergrow.foundation.locks import exclusive
from evergrow.foundation.params import (
    Choice,
    Flag,
    Integer,
    Nothing,
    RandomState,
    Rule,
    check_parameters,
)
from evergrow.storage.ragged import RaggedArray
from evergrow.storage.shards import Shards
from evergrow.vision.descriptors.local_features import IS_LOCAL_FEATURES
from evergrow.vision.images.parameters import JOBS, ON_ERROR, VERBOSE
from evergrow.vision.images.reader import check_sources
from evergrow.vision.images.results import Extraction
from evergrow.vision.images.transformer import FittedTransformer, fitted_attribute
from evergrow.vision.words.bag.fitted import IS_CODEBOOK, FittedBag
from evergrow.vision.words.bag.pooling import POOLINGS
from evergrow.vision.words.bag.training_set import (
    check_images,
    class_codes,
    draw_descriptors,
    image_labels,
    list_images,
)
from evergrow.vision.words.erc.erc_forest import ERCForest

# A bag is never updated, so its codebook does not need the training descriptors.
_DEFAULT_CODEBOOK = ERCForest(keep_descriptors=False)
# Parameters that are models; their files are included in the file of the bag.
_MODEL_PARAMETERS = ("codebook", "features")


@dataclass(eq=False, repr=False)
class BagOfWords(FittedTransformer[FittedBag]):
    """Turn each image into a vector that tells which visual words occur in it.

    A visual word is a group of similar patches. The words are learnt from the descriptors of
    patches of the training images. To code an image, its descriptors are assigned to words, the
    words are counted, and the counts are pooled into one vector. With a linear classifier, this is
    the method of Moosmann, Triggs and Jurie (NIPS 2006). See :doc:`/codebooks`.

    Parameters
    ----------
    codebook : codebook, default=None
        Assigns descriptors to words; it is cloned. None is ``ERCForest(keep_descriptors=False)``,
        which is the fastest and learns from the classes of the images.
    features : LocalFeatures, default=None
        Computes descriptors of images. With None, the input is descriptors, one matrix per image.
    pooling : {"binary", "counts", "sum", "sqrt", "mutual_information"}, default="binary"
        How counts become a vector:

        - ``"binary"``: 1 if the word occurs, otherwise 0;
        - ``"mutual_information"``: 1 if the word occurs at least as often as a threshold, which is
          chosen for each word from the training classes. Use it for images with so many patches
          that most words occur;
        - ``"sum"``: counts divided by their sum, for images with different numbers of patches;
        - ``"sqrt"``: the square root of ``"sum"``, so that frequent words dominate less;
        - ``"counts"``: the counts.
    n_training_descriptors : int, default=20_000
        Number of descriptors from which the codebook is learnt, about equally many per image. More
        words need more descriptors. With `features`, an image contributes at most
        ``features.patches.n``.
    sparse_output : bool, default=True
        Whether vectors are sparse. False gives a dense matrix. Can be changed at any time.
    random_state : int, RandomState or None, default=None
        Seed of the sample of descriptors, and of a codebook that has no seed.
    n_jobs : int, default=None
        Number of threads: None is 1 unless joblib is set otherwise, -1 uses all processors. The
        codebook and the features have their own parameter.
    verbose : int, default=0
        Show a progress bar if positive.

    Attributes
    ----------
    codebook_ : codebook
        The fitted codebook.
    features_ : LocalFeatures or None
        The local features.
    thresholds_ : ndarray of shape (``n_words_``,) or None
        How often each word must occur; None without ``pooling="mutual_information"``.
    n_words_ : int
        Number of words, the length of a vector.

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

    _kind = FittedBag
    _rules: ClassVar[dict[str, list[Rule]]] = {
        "codebook": [Nothing(), IS_CODEBOOK],
        "features": [Nothing(), IS_LOCAL_FEATURES],
        "pooling": [Choice(tuple(POOLINGS))],
        "n_training_descriptors": [Integer(1, 1 << 40)],
        "sparse_output": [Flag()],
        "random_state": [Nothing(), RandomState()],
        "n_jobs": JOBS,
        "verbose": VERBOSE,
    }

    codebook: Any = None
    _: KW_ONLY
    features: Any = None
    pooling: Literal["binary", "counts", "sum", "sqrt", "mutual_information"] = "binary"
    n_training_descriptors: int = 20_000
    sparse_output: bool = True
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = None
    verbose: int = 0

    def fit(
        self,
        images: RaggedArray | Sequence[Any],
        y: npt.ArrayLike | None = None,
        *,
        masks: Sequence[Any] | None = None,
    ) -> Self:
        """Learn the words and the pooling.

        Parameters
        ----------
        images : RaggedArray, Shards or sequence
            Descriptors of each image, arrays of shape (n_patches, n_features), some of which may
            be empty; with ``features``, the images. Of :class:`evergrow.Shards` only the sample for
            the codebook is read; ``"mutual_information"`` then reads all descriptors once.
        y : array-like of shape (n_images,), default=None
            Class of each image and of its descriptors. Some codebooks and
            ``pooling="mutual_information"`` need it.
        masks : sequence of n_images bool arrays of shape (height, width) or None, default=None
            Where the centres of training patches may lie in each image, for example on the object;
            None for anywhere. Only with ``features``.

        Returns
        -------
        self : estimator
            The fitted estimator. If fitting fails or is interrupted, it is unchanged.

        Examples
        --------
        >>> import numpy as np
        >>> from evergrow.vision import BagOfWords, KMeansCodebook
        >>> images = [np.zeros((3, 2)), np.ones((4, 2))]
        >>> BagOfWords(KMeansCodebook(2), random_state=0).fit(images).n_words_
        2
        """
        self._learn(list_images(images, self.features), y, masks)
        return self

    def fit_transform(
        self,
        images: RaggedArray | Sequence[Any],
        y: npt.ArrayLike | None = None,
        *,
        masks: Sequence[Any] | None = None,
    ) -> sparse.csr_array | npt.NDArray[np.float32]:
        """Learn the words and code the same images, as :meth:`fit` and :meth:`transform`.

        Examples
        --------
        >>> import numpy as np
        >>> from evergrow.vision import BagOfWords, KMeansCodebook
        >>> images = [np.zeros((3, 2)), np.ones((4, 2))]
        >>> BagOfWords(KMeansCodebook(2), random_state=0).fit_transform(images).sum(axis=1)
        array([1., 1.], dtype=float32)
        """
        every = list_images(images, self.features)
        fitted, counts = self._learn(every, y, masks)
        if counts is None:
            counts = fitted.count(every, n_jobs=self.n_jobs, verbose=self.verbose).counts
        return self._to_output(fitted.pool(counts))

    def transform(self, images: Iterable[Any]) -> sparse.csr_array | npt.NDArray[np.float32]:
        """Compute the vector of each image.

        Parameters
        ----------
        images : RaggedArray or iterable
            As in :meth:`fit`; an iterator is consumed one image at a time.

        Returns
        -------
        vectors : sparse array or ndarray of shape (n_images, ``n_words_``), float32
            An image without descriptors has zeros.

        Examples
        --------
        >>> import numpy as np
        >>> from evergrow.vision import BagOfWords, KMeansCodebook
        >>> images = [np.zeros((3, 2)), np.ones((4, 2))]
        >>> bag = BagOfWords(KMeansCodebook(2), pooling="sum", sparse_output=False).fit(images)
        >>> bag.transform([np.array([[0, 0], [0, 1], [1, 1], [0.1, 0]]), np.zeros((0, 2))]).shape
        (2, 2)
        """
        fitted = self._require_fitted()
        self._check_parameters()
        check_images(images, fitted.features)
        if isinstance(images, Shards):
            images = images.images
        counts = fitted.count(images, n_jobs=self.n_jobs, verbose=self.verbose).counts
        if not counts.shape[0]:
            raise InvalidInputError("there must be at least one image")
        return self._to_output(fitted.pool(counts))

    def extract(
        self, images: Iterable[Any], *, on_error: Literal["raise", "skip"] = "raise"
    ) -> Extraction:
        """Compute the vectors of those images that can be read; only with ``features``.

        Parameters
        ----------
        images : iterable
            Images; an iterator is consumed one image at a time.
        on_error : {"raise", "skip"}, default="raise"
            What to do if an image cannot be read: raise an error, or leave it out, list it among
            the problems, and warn.

        Returns
        -------
        extraction : Extraction
            The vectors as from :meth:`transform`, the indices of their images, and the problems.

        Examples
        --------
        >>> import numpy as np
        >>> from evergrow.vision import BagOfWords, LocalFeatures, RandomKDTrees
        >>> images = np.random.default_rng(0).integers(0, 256, (4, 40, 40, 3), dtype=np.uint8)
        >>> bag = BagOfWords(RandomKDTrees(2, n_words=10), features=LocalFeatures())
        >>> bag.fit(images).extract([images[0], images[1]], on_error="raise").kept
        array([0, 1])
        """
        fitted = self._require_fitted()
        self._check_parameters()
        check_parameters({"on_error": on_error}, {"on_error": ON_ERROR})
        check_sources(images)
        if fitted.features is None:
            raise InvalidInputError(
                "extract reads images and needs features; use transform for descriptors"
            )
        found = fitted.count(images, n_jobs=self.n_jobs, verbose=self.verbose, on_error=on_error)
        return Extraction(self._to_output(fitted.pool(found.counts)), found.kept, found.problems)

    codebook_ = fitted_attribute(
        "The fitted codebook; do not train it directly.", lambda fitted: fitted.codebook
    )
    features_ = fitted_attribute(
        "The local features; None if the input is descriptors.", lambda fitted: fitted.features
    )
    thresholds_ = fitted_attribute(
        'How often each word must occur; None without ``pooling="mutual_information"``.',
        lambda fitted: fitted.thresholds,
    )
    n_words_ = fitted_attribute(
        "Number of words, the length of a vector.", lambda fitted: int(fitted.codebook.n_words_)
    )

    def get_feature_names_out(
        self,
        input_features: Any = None,  # noqa: ARG002
    ) -> npt.NDArray[np.object_]:
        """Names of the columns, by tree and word.

        Examples
        --------
        >>> import numpy as np
        >>> from evergrow.vision import BagOfWords, RandomKDTrees
        >>> bag = BagOfWords(RandomKDTrees(2, n_words=2)).fit([np.zeros((1, 2)), np.ones((1, 2))])
        >>> bag.get_feature_names_out().tolist()
        ['tree0_word0', 'tree0_word1', 'tree1_word0', 'tree1_word1']
        """
        words_per_tree = self._require_fitted().codebook.words_per_tree_
        names = [f"tree{t}_word{w}" for t, n in enumerate(words_per_tree) for w in range(n)]
        return np.array(names, dtype=object)

    def _stored_parameters(self, inference_only: bool) -> dict[str, Any]:
        parameters = super()._stored_parameters(inference_only)
        return {name: parameters[name] for name in parameters if name not in _MODEL_PARAMETERS}

    @classmethod
    def _read_parameters(cls, entries: dict[str, Any], fitted: FittedBag) -> dict[str, Any]:
        if entries.keys() & {*_MODEL_PARAMETERS}:
            raise ModelFileError("the model file has a codebook or features among its parameters")
        features = None if fitted.features is None else clone(fitted.features)
        return {**entries, "codebook": clone(fitted.codebook), "features": features}

    @exclusive
    def _learn(
        self, images: Sequence[Any], y: npt.ArrayLike | None, masks: Sequence[Any] | None
    ) -> tuple[FittedBag, sparse.csr_array | None]:
        """Fit the codebook and the pooling; return counts of the images if they were needed."""
        self._check_parameters()
        pooling = POOLINGS[self.pooling]
        labels = image_labels(images, y)
        codes = class_codes(labels) if pooling.learns else None
        features = None if self.features is None else clone(self.features)
        random = check_random_state(self.random_state)
        total = int(self.n_training_descriptors)
        drawn, places = draw_descriptors(features, images, total, random, masks=masks)
        codebook = self._make_codebook(random)
        codebook.fit(drawn, None if labels is None else labels[places])
        fitted, counts = FittedBag(codebook, features, self.pooling), None
        if codes is not None:
            counts = fitted.count(images, n_jobs=self.n_jobs, verbose=self.verbose).counts
            fitted = fitted.with_thresholds(counts, codes)
        replace_fitted(self, {"_fitted": fitted})
        return fitted, counts

    def _make_codebook(self, random: np.random.RandomState) -> Any:
        codebook: Any = clone(_DEFAULT_CODEBOOK if self.codebook is None else self.codebook)
        if codebook.get_params(deep=False).get("random_state", 0) is None:
            codebook.set_params(random_state=int(random.randint(np.iinfo(np.int32).max)))
        return codebook

    def _to_output(self, vectors: sparse.csr_array) -> sparse.csr_array | npt.NDArray[np.float32]:
        return vectors if self.sparse_output else vectors.toarray()

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that the output type does not depend on the input type."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags
