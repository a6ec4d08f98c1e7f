"""Extremely randomised clustering forests: trees whose leaves are visual words."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from sklearn.utils import check_random_state

from evergrow.estimators.classifier.learner import validate_rows
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.labels import ClassList, as_classes
from evergrow.foundation.locks import exclusive
from evergrow.foundation.progress import progress_bar
from evergrow.vision.words.codebooks.vocabulary import as_images, as_rows, is_ragged, load_single
from evergrow.vision.words.erc.fitted import DescriptorBatch, ERCRequest, FittedERC
from evergrow.vision.words.erc.predictor import ERCPredictor

_FACTORS = (0.25, 0.5, 1, 2, 4)
_HOLDOUT_SHARE = 0.25


@dataclass(eq=False, repr=False)
class ERCForest(ERCPredictor):
    """Extremely randomised clustering (ERC) forest: trees whose leaves are visual words.

    A visual word is a group of similar local descriptors. The trees compare single features with
    random thresholds and are grown to separate the classes. Each leaf of each tree is a word. This
    takes a fraction of the time of k-means, because a descriptor needs about a dozen comparisons
    per tree instead of its distances from all words. :class:`evergrow.vision.BagOfWords` applies
    the forest to images. See :doc:`/codebooks`.

    Parameters
    ----------
    n_estimators : int, default=5
        Number of trees. More are better up to about five. Each tree makes the histogram longer.
    n_words : int or None, default=1000
        Number of leaves per tree. Trees are grown fully and then pruned from the leaves, the least
        informative test first. None keeps all leaves, which is as good or better if there are many
        training images.
    min_score : float, default=0.5
        A node accepts the first test with at least this score, from 0 to 1 [Moosmann2006 Sec. 2].
        With 0 it accepts any test, with 1 it makes all trials. The value is not critical.
    max_trials : int, "sqrt" or "auto", default="sqrt"
        Maximum number of tests that a node tries. With more, trees separate the classes better but
        are more similar to each other. ``"sqrt"`` is the square root of the length of a descriptor.
        ``"auto"`` compares six values on a quarter of the images. This takes about six times as
        long and helps if descriptors have many useless features.
    supervised : bool, default=True
        Whether tests are scored by their information about the class. With False, they are scored
        by how evenly they split the descriptors, which needs no labels.
    min_gain : float, default=0.0
        Tests with less information than this are pruned, even if the tree then has fewer than
        `n_words` leaves. The unit is bits, averaged over all training descriptors.
    stop_early : bool, default=False
        Whether to stop growing at the first test below `min_gain`. This is faster, but good tests
        below a weak one are not found.
    keep_descriptors : bool, default=True
        Whether to keep the training descriptors, which :meth:`partial_fit` needs to learn words for
        new classes. They take 4 bytes per number. To leave them out of a model file only, use
        ``save(path, inference_only=True)``.
    n_jobs : int or None, default=None
        Number of threads: None is 1, -1 uses all processors. The result is the same for any number.
    random_state : int, RandomState or None, default=None
        Seed of the random tests. The same integer gives the same forest.
    verbose : int, default=0
        Show a progress bar if positive.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of :meth:`predict_proba`. Only present if the
        forest was fitted with labels.
    words_per_tree_ : ndarray of shape (n_estimators,)
        Number of leaves of each tree.
    n_words_ : int
        Number of words of all trees, which is the length of an image's histogram.
    word_columns_ : ndarray of shape (``n_words_``,)
        The column of each word in a histogram, tree by tree.
    word_shares_ : ndarray of shape (``n_words_``, n_classes)
        The share of each class among the training descriptors of each word, one row per column of
        a histogram.
    max_trials_ : int
        The maximum number of tests that was used.
    n_features_in_ : int
        Length of a descriptor.

    See Also
    --------
    evergrow.vision.BagOfWords : Histograms of words, from images.
    evergrow.vision.KMeansCodebook : Words by k-means, without labels.

    References
    ----------
    F. Moosmann, B. Triggs, F. Jurie: *Fast Discriminative Visual Codebooks using Randomized
    Clustering Forests*, NIPS 2006. See :doc:`/papers`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from evergrow import ERCForest
    >>> X, y = load_digits(return_X_y=True)
    >>> forest = ERCForest(n_words=50, random_state=0).fit(X, y)
    >>> forest.transform(X[:2]).shape, forest.n_words_
    ((2, 5), 250)

    Count the words of images, each given as a matrix of descriptors:

    >>> images = [X[:30], X[30:100]]
    >>> forest.encode(images).shape
    (2, 250)
    """

    n_estimators: int = 5
    _: KW_ONLY
    n_words: int | None = 1000
    min_score: float = 0.5
    max_trials: int | Literal["sqrt", "auto"] = "sqrt"
    supervised: bool = True
    min_gain: float = 0.0
    stop_early: bool = False
    keep_descriptors: bool = True
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

    @exclusive
    def fit(self, D: Any, y: npt.ArrayLike | None = None) -> Self:
        """Grow trees on descriptors; earlier training is discarded.

        Parameters
        ----------
        D : array-like of shape (n_descriptors, n_features), or descriptors of each image
            Descriptors; per image, as a :class:`evergrow.RaggedArray` or a list of matrices.
            :class:`evergrow.Shards` are read once into a matrix in single precision.
        y : array-like of shape (n_descriptors,) or (n_images,)
            Class of each descriptor, or of each image. Optional with ``supervised=False``.

        Returns
        -------
        self : estimator
            The fitted estimator. If fitting fails or is interrupted, it is unchanged.

        Examples
        --------
        >>> from evergrow import ERCForest
        >>> D = [[0, 3], [1, 2], [8, 3], [9, 2]]
        >>> ERCForest(2, random_state=0).fit(D, ["cat", "cat", "dog", "dog"]).predict([[7, 3]])
        array(['dog'], dtype='<U3')
        """
        self._check_parameters()
        self._fit(D, y, None)
        return self

    def _fit(self, D: Any, y: npt.ArrayLike | None, classes: npt.ArrayLike | None) -> None:
        labels, batch, images, names = self._check_input(D, y, classes)
        seed = int(check_random_state(self.random_state).randint(2**63 - 1, dtype=np.int64))
        request = self._request(self._choose_trials(labels, batch, images, seed))
        with progress_bar("growing trees", int(self.n_estimators), int(self.verbose)) as progress:
            fitted = FittedERC.grow(
                labels,
                batch,
                request,
                n_trees=int(self.n_estimators),
                seed=seed,
                keep_descriptors=bool(self.keep_descriptors),
                progress=progress,
            )
        self._set_fitted(fitted, names)

    @exclusive
    def partial_fit(self, D: Any, y: npt.ArrayLike, classes: npt.ArrayLike | None = None) -> Self:
        """Add descriptors of known and new classes; new classes get new words.

        If there are new classes, leaves that their descriptors reach are split further, and the
        least informative of the new tests are pruned. The number of words grows in proportion to
        the number of classes. When a word is split, the part with most of its descriptors keeps the
        column of the word. The other parts get new columns at the end, so a column never changes
        its meaning. Without new classes, only the class shares of the words change.

        Parameters
        ----------
        D : array-like of shape (n_descriptors, n_features), or descriptors of each image
            Descriptors, as in :meth:`fit`.
        y : array-like of shape (n_descriptors,) or (n_images,)
            Class of each descriptor, or of each image.
        classes : array-like, default=None
            Classes that get a column before their first descriptor. Not needed, because new classes
            may come in any call.

        Returns
        -------
        self : estimator
            The updated estimator. If the update fails or is interrupted, it is unchanged.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from evergrow import ERCForest
        >>> X, y = load_digits(return_X_y=True)
        >>> forest = ERCForest(n_words=40, random_state=0).fit(X[y < 8], y[y < 8])
        >>> forest = forest.partial_fit(X[y >= 8], y[y >= 8])
        >>> forest.words_per_tree_, forest.classes_
        (array([50, 50, 50, 50, 50]), array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]))
        """
        self._check_parameters()
        if not self.__sklearn_is_fitted__():
            self._fit(D, y, classes)
            return self
        known = self._fitted
        if known.labels is None:
            raise InvalidInputError(
                "the forest was fitted without labels, but an update needs classes: call fit with "
                "labels"
            )
        n_trees = len(known.words_per_tree)
        if self.n_estimators != n_trees:
            raise InvalidInputError(
                f"n_estimators was changed to {self.n_estimators}, but the forest has {n_trees} "
                "trees: fit it again, or change it back"
            )
        rows, per_row = as_rows(D, y)
        checked, per_row = self._checked_more(rows, per_row)
        labels, codes = known.labels.extend_with(per_row, as_classes(classes))
        request = self._request(known.max_trials)
        with progress_bar("growing trees", int(self.n_estimators), int(self.verbose)) as progress:
            batch = DescriptorBatch(load_single(checked), codes)
            fitted = known.update(labels, batch, request, progress)
        self._set_fitted(fitted, getattr(self, "feature_names_in_", None))
        return self

    def _check_input(
        self, D: Any, y: npt.ArrayLike | None, classes: npt.ArrayLike | None
    ) -> tuple[ClassList | None, DescriptorBatch, npt.NDArray[np.int64], npt.NDArray[Any] | None]:
        """Classes, descriptors, the image of each descriptor, and the feature names."""
        rows, per_row = as_rows(D, y)
        if y is None and not self.supervised:
            validated = self._frozen_copy()
            rows = validate_rows(validated, rows, ensure_min_features=1)
            names = getattr(validated, "feature_names_in_", None)
            labels, codes = None, np.zeros(len(rows), dtype=np.int32)
        else:
            rows, per_row, names = self._checked_first(rows, per_row, min_samples=1)
            labels, codes = self._first_labels(per_row, classes)
        batch = DescriptorBatch(load_single(rows), codes)
        images = np.arange(len(codes))
        if is_ragged(D):
            lengths = as_images(D).lengths
            images = np.repeat(np.arange(len(lengths)), lengths)
        return labels, batch, images, names

    def _choose_trials(
        self,
        labels: ClassList | None,
        batch: DescriptorBatch,
        images: npt.NDArray[np.int64],
        seed: int,
    ) -> int:
        if not isinstance(self.max_trials, str):
            return int(self.max_trials)
        root = _square_root(batch.rows.shape[1])
        if self.max_trials == "sqrt":
            return root
        if labels is None:
            raise InvalidInputError('max_trials="auto" needs labels')
        n_trees = int(self.n_estimators)
        return _choose_max_trials(
            labels, batch, images, self._request(root), n_trees=n_trees, seed=seed
        )

    def _request(self, max_trials: int) -> ERCRequest:
        return ERCRequest(
            supervised=bool(self.supervised),
            max_trials=max_trials,
            min_score=float(self.min_score),
            max_words=None if self.n_words is None else int(self.n_words),
            min_gain=float(self.min_gain),
            stop_early=bool(self.stop_early),
            n_threads=effective_n_jobs(self.n_jobs),
        )


def _square_root(n_features: int) -> int:
    """The default number of trials for descriptors of this length."""
    return math.ceil(math.sqrt(n_features))


def _choose_max_trials(
    labels: ClassList,
    batch: DescriptorBatch,
    images: npt.NDArray[np.int64],
    request: ERCRequest,
    *,
    n_trees: int,
    seed: int,
) -> int:
    """The number of trials with the smallest loss on a holdout [Moosmann2006 Sec. 3].

    The holdout is a quarter of the images; ties go to the least number. ``images`` is the image of
    each descriptor. The descriptors of one image are held out together,
    because they are more similar to each other than to those of other images of the class. If no
    class has two images, the result is the square root.
    """
    n_features = batch.rows.shape[1]
    root = _square_root(n_features)
    holdout = _draw_holdout(batch.codes, images, seed)
    if not holdout.any():
        return root
    candidates = {min(n_features, max(1, round(factor * root))) for factor in _FACTORS}
    training = DescriptorBatch(batch.rows[~holdout], batch.codes[~holdout])
    losses: dict[int, float] = {}
    for n_trials in sorted(candidates | {1}):
        trial = replace(request, max_trials=n_trials)
        forest = FittedERC.grow(
            labels, training, trial, n_trees=n_trees, seed=seed, keep_descriptors=False
        )
        votes = forest.probabilities(batch.rows[holdout], request.n_threads)
        losses[n_trials] = _loss(votes, batch.codes[holdout], images[holdout])
    return min(losses, key=lambda n_trials: losses[n_trials])


def _draw_holdout(
    codes: npt.NDArray[np.int32], images: npt.NDArray[np.int64], seed: int
) -> npt.NDArray[np.bool_]:
    random = np.random.default_rng(seed)
    chosen: list[Any] = []
    for code in np.unique(codes):
        own = np.unique(images[codes == code])
        n_holdout = min(len(own) - 1, max(1, round(_HOLDOUT_SHARE * len(own))))
        chosen.extend(random.permutation(own)[:n_holdout])
    return np.isin(images, chosen)


def _loss(
    votes: npt.NDArray[np.float64],
    codes: npt.NDArray[np.int32],
    images: npt.NDArray[np.int64],
) -> float:
    """Brier score of the mean votes of the images, with equal weight for every class."""
    _, first, inverse, sizes = np.unique(
        images, return_index=True, return_inverse=True, return_counts=True
    )
    mean = np.zeros((len(first), votes.shape[1]))
    np.add.at(mean, inverse, votes)
    mean /= sizes[:, None]
    truth = codes[first]
    mean[np.arange(len(first)), truth] -= 1
    distances = (mean**2).sum(axis=1)
    return float(np.mean([distances[truth == code].mean() for code in np.unique(truth)]))
