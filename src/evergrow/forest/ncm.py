"""The NCM forest of Ristin, Guillaumin, Gall and Van Gool (CVPR 2014) as an estimator."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from evergrow import _core
from evergrow.blocks import float_blocks
from evergrow.forest.estimator import ForestClassifier
from evergrow.forest.fitted import FittedForest
from evergrow.forest.growth import FOREST_RULES, centroids_per_node, rows_per_tree
from evergrow.forest.standardize import Standardization
from evergrow.labels import ClassList, check_label_types
from evergrow.params import Rule, check_parameters
from evergrow.progress import progress_bar

__all__ = ["NCMForestClassifier"]


class NCMForestClassifier(ForestClassifier):
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
        they are then centred and divided by one common number, which changes nothing but rounding.
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

    _rules: ClassVar[dict[str, list[Rule]]] = FOREST_RULES

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
        check_parameters({name: getattr(self, name) for name in self._rules}, self._rules)
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
        scaling = Standardization.of_each if self.standardize else Standardization.common
        standardization = scaling(X)
        samples = _core.Samples(X.shape[1], X.shape[0])
        for rows, block in float_blocks(X):
            samples.append(block, codes[rows], standardization.core)
        fitted = FittedForest(labels, standardization, self._grow(samples, len(labels)))
        self._become(fitted, getattr(learner, "feature_names_in_", None))
        return self

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
