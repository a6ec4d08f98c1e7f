"""Training a forest: from scratch."""

from __future__ import annotations

import os
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
from evergrow.forest.growth import rows_per_tree
from evergrow.forest.history import History
from evergrow.forest.standardize import Standardization
from evergrow.forest.strategies import NodeSampling, Strategy
from evergrow.labels import ClassList, check_label_types
from evergrow.params import check_parameters
from evergrow.progress import progress_bar

__all__ = ["GrowingForest"]


class GrowingForest(ForestClassifier):
    """Fitting; subclasses add parameters and the way nodes are split."""

    # Name of what proposes splits, in the core's table.
    _proposer: ClassVar[str]

    def __init__(
        self,
        n_estimators: int,
        *,
        min_samples_leaf: int,
        min_gain: float,
        max_samples: float | int | None,
        bootstrap: bool,
        standardize: bool,
        update: str | Strategy,
        update_fraction: float,
        node_sampling: NodeSampling,
        refresh: float,
        sample_dtype: Literal["float32", "float16"],
        memory: str | os.PathLike[str] | None,
        keep_per_class: int | None,
        n_jobs: int | None,
        random_state: int | np.random.RandomState | None,
        verbose: int,
    ) -> None:
        self.n_estimators = n_estimators
        self.min_samples_leaf = min_samples_leaf
        self.min_gain = min_gain
        self.max_samples = max_samples
        self.bootstrap = bootstrap
        self.standardize = standardize
        self.update = update
        self.update_fraction = update_fraction
        self.node_sampling = node_sampling
        self.refresh = refresh
        self.sample_dtype = sample_dtype
        self.memory = memory
        self.keep_per_class = keep_per_class
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _split_rules(self, n_classes: int, n_features: int) -> dict[str, Any]:
        """What the core is told about splitting nodes."""
        raise NotImplementedError

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
        self : estimator
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
        samples = _core.Samples(X.shape[1])
        numbers = samples.add(X.shape[0])
        ids = np.arange(X.shape[0], dtype=np.int64)
        for rows, block in float_blocks(X):
            samples.write(numbers[rows], block, codes[rows], ids[rows], standardization.core)
        seed = int(check_random_state(self.random_state).randint(2**63 - 1, dtype=np.int64))
        n_drawn = rows_per_tree(self.max_samples, len(samples))
        history = History(seed, 0, len(ids), n_drawn / len(ids), np.bincount(codes))
        forest = self._grow(samples, len(labels), seed, n_drawn)
        fitted = FittedForest(labels, standardization, forest, history, self._proposer)
        self._become(fitted, getattr(learner, "feature_names_in_", None))
        return self

    def _grow(
        self, samples: _core.Samples, n_classes: int, seed: int, n_drawn: int
    ) -> _core.Forest:
        with progress_bar("growing trees", self.n_estimators, self.verbose) as progress:
            return _core.Forest.grow(
                samples=samples,
                n_trees=self.n_estimators,
                n_classes=n_classes,
                seed=seed,
                rows_per_tree=n_drawn,
                bootstrap=bool(self.bootstrap),
                rules=self._split_rules(n_classes, samples.n_features),
                n_threads=effective_n_jobs(self.n_jobs),
                progress=progress,
            )
