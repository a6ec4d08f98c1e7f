"""The NCM forest of Ristin, Guillaumin, Gall and Van Gool (CVPR 2014) as an estimator."""

from __future__ import annotations

import os
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from evergrow import _core
from evergrow.blocks import float_blocks
from evergrow.forest.explain import Explanation, explain_row
from evergrow.forest.fitted import FittedForest
from evergrow.forest.growth import FOREST_RULES, centroids_per_node, rows_per_tree
from evergrow.forest.modelfile import forest_from_file, forest_to_file
from evergrow.forest.standardize import Standardization
from evergrow.labels import ClassList, check_label_types
from evergrow.params import Integer, check_parameters
from evergrow.progress import progress_bar

__all__ = ["NCMForestClassifier"]

# What fitting adds to an estimator's parameters.
_LEARNT = ("_fitted", "feature_names_in_", "n_features_in_")


class NCMForestClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A random forest whose nodes send a sample to the side of the nearest class mean.

    Each splitting node compares a sample with the means of a few random classes and sends it
    left or right with the nearest one. On image features this is more accurate than a forest of
    axis-aligned thresholds and an order of magnitude faster to train, and a class is known by its
    mean alone, which is what lets such a forest grow new classes.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of trees. More are more accurate, with less and less to gain.
    n_centroids : {"sqrt", "log2"}, float or int, default="sqrt"
        Classes whose means a node compares with: the square root or binary logarithm of the
        number of classes, a fraction of it, or a fixed number. More means are slower and a
        little more accurate.
    n_assignments : int, default=1024
        Ways of sending the means left or right that a node tries. All ways are tried when there
        are no more than this.
    min_samples_leaf : int, default=10
        Fewest training samples in a leaf. Smaller leaves make deeper, larger, slightly more
        accurate trees.
    min_gain : float, default=1e-7
        A split must gain more information than this, in nats.
    max_samples : float or int, default=None
        Share or number of the samples that each tree sees; None for all. Fewer make smaller and
        more different trees.
    bootstrap : bool, default=False
        Draw the samples of each tree with replacement.
    standardize : bool, default=True
        Centre each feature and divide it by its standard deviation, as measured on the first
        data. Switch it off for features that already share a scale that matters, such as pixels:
        they are then centred and divided by one common number, which changes no split.
    n_jobs : int, default=None
        Threads, as in scikit-learn: None is 1, -1 all processors. The forest does not depend
        on it.
    random_state : int, RandomState or None, default=None
        Seed. The same seed gives the same forest.
    verbose : int, default=0
        Show a progress bar when positive.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of :meth:`predict_proba`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training data had any.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from evergrow import NCMForestClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> forest = NCMForestClassifier(min_samples_leaf=1, random_state=0)
    >>> bool(forest.fit(X_train, y_train).score(X_test, y_test) > 0.97)
    True
    """

    _fitted: FittedForest

    def __init__(
        self,
        n_estimators: int = 50,
        *,
        n_centroids: Literal["sqrt", "log2"] | float | int = "sqrt",
        n_assignments: int = 1024,
        min_samples_leaf: int = 10,
        min_gain: float = 1e-7,
        max_samples: float | int | None = None,
        bootstrap: bool = False,
        standardize: bool = True,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.n_centroids = n_centroids
        self.n_assignments = n_assignments
        self.min_samples_leaf = min_samples_leaf
        self.min_gain = min_gain
        self.max_samples = max_samples
        self.bootstrap = bootstrap
        self.standardize = standardize
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Train on samples and their classes, forgetting whatever was learnt before.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features: floating point or integers of any size, in any memory order; a DataFrame;
            a memory-mapped or read-only array.
        y : array-like of shape (n_samples,)
            Classes: integers or strings.

        Returns
        -------
        self : NCMForestClassifier
            The fitted estimator. If training fails or is interrupted it stays as it was.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> X = [[0, 0], [0, 1], [9, 8], [9, 9]]
        >>> forest = NCMForestClassifier(5, min_samples_leaf=1, random_state=0)
        >>> forest.fit(X, ["cat", "cat", "dog", "dog"]).predict([[8, 8]])
        array(['dog'], dtype='<U3')
        """
        check_parameters(self.get_params(deep=False), FOREST_RULES)
        check_label_types(y)
        # Validation records names and number of features on the estimator it is given: a clone,
        # so that a failure below leaves this one untouched.
        learner = clone(self)
        checked: tuple[npt.NDArray[Any], npt.NDArray[Any]] = validate_data(
            learner, X, y, ensure_min_samples=2, ensure_min_features=1
        )
        X, y = checked
        check_classification_targets(y)
        labels, codes = ClassList.of(y)
        standardization = Standardization.of(X, each=bool(self.standardize))
        samples = _core.Samples(X.shape[1], X.shape[0])
        for rows, block in float_blocks(X):
            samples.append(block, codes[rows], standardization.core)
        fitted = FittedForest(labels, standardization, self._grow(samples, len(labels)))
        self._become(fitted, getattr(learner, "feature_names_in_", None))
        return self

    def _become(self, fitted: FittedForest, names: npt.NDArray[Any] | None) -> None:
        learnt = {"_fitted": fitted, "n_features_in_": fitted.n_features}
        if names is not None:
            learnt["feature_names_in_"] = names
        kept = {name: value for name, value in vars(self).items() if name not in _LEARNT}
        # One assignment: another thread sees all of the old or all of the new.
        self.__dict__ = kept | learnt

    def _grow(self, samples: _core.Samples, n_classes: int) -> _core.Forest:
        seed = check_random_state(self.random_state).randint(2**63 - 1, dtype=np.int64)
        with progress_bar("growing trees", self.n_estimators, self.verbose) as progress:
            return _core.Forest.grow(
                samples=samples,
                n_trees=self.n_estimators,
                n_classes=n_classes,
                seed=int(seed),
                rows_per_tree=rows_per_tree(self.max_samples, len(samples)),
                bootstrap=bool(self.bootstrap),
                n_centroids=centroids_per_node(self.n_centroids, n_classes),
                n_assignments=self.n_assignments,
                min_samples_leaf=self.min_samples_leaf,
                min_gain=self.min_gain,
                n_threads=effective_n_jobs(self.n_jobs),
                progress=progress,
            )

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn whether there is anything to predict with."""
        return "_fitted" in vars(self)

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The classes, in the order of the columns of :meth:`predict_proba`."""
        return self._learnt("classes_").labels.classes

    @property
    def nbytes(self) -> int:
        """Bytes the trees hold: nodes, centroids, class counts and training row numbers.

        The training samples they refer to are not counted: 4 bytes per sample and feature, the
        features rounded up to a multiple of 16.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(5, min_samples_leaf=1, random_state=0)
        >>> forest.fit([[0], [1], [8], [9]], [0, 0, 1, 1]).nbytes < 2000
        True
        """
        return self._learnt("nbytes").forest.nbytes

    def _learnt(self, name: str) -> FittedForest:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet, so it has no {name}. "
                "Call 'fit' first."
            )
        return self._fitted

    def _checked(self, X: npt.ArrayLike) -> tuple[FittedForest, npt.NDArray[Any], int]:
        # One look at what is learnt, which another thread may replace at any moment.
        reader = object.__new__(type(self))
        reader.__dict__ = self.__dict__
        check_is_fitted(reader)
        checked: npt.NDArray[Any] = validate_data(reader, X, reset=False)
        return reader._fitted, checked, effective_n_jobs(self.n_jobs)

    def predict_proba(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Class probabilities: the mean class frequencies of the leaves (Eq. 4).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features as in :meth:`fit`.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            One column per class, in the order of ``classes_``.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(5, min_samples_leaf=1, random_state=0)
        >>> forest.fit([[0], [1], [8], [9]], [0, 0, 1, 1]).predict_proba([[9]])
        array([[0., 1.]])
        """
        fitted, X, n_threads = self._checked(X)
        return fitted.probabilities(X, n_threads)

    def predict_log_proba(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Logarithm of the class probabilities; minus infinity where they are zero.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(5, min_samples_leaf=1, random_state=0)
        >>> forest.fit([[0], [1], [8], [9]], [0, 0, 1, 1]).predict_log_proba([[9]])
        array([[-inf,   0.]])
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Most probable class of each sample; of equals the one with the lowest column.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(5, min_samples_leaf=1, random_state=0)
        >>> forest.fit([[0], [1], [8], [9]], [0, 0, 1, 1]).predict([[2], [7]])
        array([0, 1])
        """
        fitted, X, n_threads = self._checked(X)
        best = [block.argmax(axis=1) for _, block in fitted.probability_blocks(X, n_threads)]
        labels: npt.NDArray[Any] = fitted.labels.classes[np.concatenate(best)]
        return labels

    def predict_top_k(self, X: npt.ArrayLike, k: int = 5) -> npt.NDArray[Any]:
        """The ``k`` most probable classes of each sample, best first.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features as in :meth:`fit`.
        k : int, default=5
            How many, at most the number of classes.

        Returns
        -------
        labels : ndarray of shape (n_samples, k)
            Of equally probable classes the one with the lower column comes first.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(5, min_samples_leaf=1, random_state=0)
        >>> forest = forest.fit([[0], [1], [8], [9]], ["a", "a", "b", "b"])
        >>> forest.predict_top_k([[9]], k=2)
        array([['b', 'a']], dtype='<U1')
        """
        fitted, X, n_threads = self._checked(X)
        check_parameters({"k": k}, {"k": [Integer(1, len(fitted.labels))]})
        best = [
            np.argsort(-block, axis=1, kind="stable")[:, :k]
            for _, block in fitted.probability_blocks(X, n_threads)
        ]
        labels: npt.NDArray[Any] = fitted.labels.classes[np.concatenate(best)]
        return labels

    def apply(self, X: npt.ArrayLike) -> npt.NDArray[np.int32]:
        """Leaf that each sample reaches in each tree.

        Returns
        -------
        leaves : ndarray of shape (n_samples, n_estimators)
            Node numbers, counted per tree.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(3, min_samples_leaf=1, random_state=0)
        >>> forest.fit([[0], [1], [8], [9]], [0, 0, 1, 1]).apply([[0], [9]]).shape
        (2, 3)
        """
        fitted, X, n_threads = self._checked(X)
        return fitted.leaves(X, n_threads)

    def comparisons(self, X: npt.ArrayLike) -> float:
        """Mean number of distances computed per tree and sample, the papers' measure of cost.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(3, min_samples_leaf=1, random_state=0)
        >>> forest.fit([[0], [1], [8], [9]], [0, 0, 1, 1]).comparisons([[0], [9]])
        2.0
        """
        fitted, X, n_threads = self._checked(X)
        n_descents = int(X.shape[0]) * len(fitted.forest)
        return fitted.comparisons(X, n_threads) / n_descents

    def explain(self, x: npt.ArrayLike) -> Explanation:
        """Follow one sample through every tree.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (1, n_features)
            One sample.

        Returns
        -------
        explanation : Explanation
            Per tree the path: the classes each node compared with, which mean was nearest and
            how far, and the class counts of the leaf. ``print`` shows it as text.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(1, min_samples_leaf=1, random_state=0)
        >>> print(forest.fit([[0], [1], [8], [9]], ["a", "a", "b", "b"]).explain([7]))
        tree 0
        node 0: nearest of 2 means is 'b' at 0.372, goes left
        leaf 1: 'b': 2
        """
        if hasattr(x, "to_frame"):  # a row of a DataFrame
            x = x.to_frame().T.infer_objects()
        elif not hasattr(x, "columns") and not issparse(x):
            x = np.atleast_2d(np.asarray(x))
        fitted, X, _ = self._checked(x)
        if X.shape[0] != 1:
            raise ValueError(f"explain takes one sample, got {X.shape[0]}")
        row = np.ascontiguousarray(X[0], dtype=np.float64)
        return explain_row(fitted.forest, fitted.labels.classes, fitted.standardization, row)

    def save(self, path: str | os.PathLike[str], *, inference_only: bool = False) -> None:
        """Write the model to a file that :func:`evergrow.load` reads.

        The file is written aside, synced and renamed: whatever happens, the old or the new one
        is there whole.

        Parameters
        ----------
        path : path
            File to write; an existing one is replaced.
        inference_only : bool, default=False
            Leave out the training samples that predicting does not need. The file is smaller and
            predicts the same, but the model cannot be updated after loading.

        Examples
        --------
        >>> import evergrow, tempfile, os
        >>> forest = evergrow.NCMForestClassifier(3, min_samples_leaf=1, random_state=0)
        >>> forest = forest.fit([[0], [1], [8], [9]], [0, 0, 1, 1])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "model.evergrow")
        ...     forest.save(path)
        ...     evergrow.load(path).predict([[9]])
        array([1])
        """
        fitted = self._learnt("model to save")
        if type(self) is not NCMForestClassifier:
            raise TypeError(
                f"only NCMForestClassifier itself can be saved, got its subclass "
                f"{type(self).__name__}: load would not find it"
            )
        forest_to_file(self, fitted, path, inference_only=inference_only)

    @classmethod
    def _from_file(cls, header: dict[str, Any], tensors: dict[str, npt.NDArray[Any]]) -> Self:
        fitted, parameters, names = forest_from_file(header, tensors)
        check_parameters({**cls().get_params(), **parameters}, FOREST_RULES)
        forest = cls(**parameters)
        forest._become(fitted, names)
        return forest
