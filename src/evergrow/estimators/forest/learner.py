"""Training a forest: from scratch, with new samples and classes, and without old ones."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from evergrow.estimators.forest.change.addition import begin, extend
from evergrow.estimators.forest.change.removal import as_ids, forget, rename
from evergrow.estimators.forest.cluster.driver_grow import resumed_seed
from evergrow.estimators.forest.predictor import ForestPredictor
from evergrow.estimators.forest.request import (
    ForestRequest,
    check_growable,
    check_has_rows,
    check_updates,
)
from evergrow.estimators.forest.storage.compaction import gather_files
from evergrow.estimators.forest.storage.placement import ForestBatch
from evergrow.estimators.forest.strategies import NodeSampling, Strategy
from evergrow.estimators.forest.value.fitted import FittedForest
from evergrow.estimators.forest.value.report import UpdateReport
from evergrow.foundation.labels import ClassList, as_classes
from evergrow.foundation.turns import one_at_a_time


class ForestLearner(ForestPredictor):
    """Training and updating; subclasses add parameters and the way nodes are split."""

    # Names of the update strategies that make sense for this kind of split.
    _strategies: ClassVar[tuple[str, ...]]

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
        memory_limit: str | int | None,
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
        self.memory_limit = memory_limit
        self.keep_per_class = keep_per_class
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @abstractmethod
    def _split_rules(self, n_classes: int, n_features: int) -> dict[str, Any]:
        """What the core is told about splitting nodes."""

    @one_at_a_time
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
        self._check_parameters()
        X, y, names = self._checked_first(X, y, min_samples=2)
        labels, codes = ClassList.of(y)
        self._start(X, labels, codes, names)
        return self

    @one_at_a_time
    def partial_fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, classes: npt.ArrayLike | None = None
    ) -> Self:
        """Add samples, of known classes and of new ones, by the strategy ``update``.

        The first call on a new estimator trains it. Old classes keep their columns; new ones get
        the next, sorted within the call.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.
        y : array-like of shape (n_samples,)
            Classes, of the same kind (numbers or strings) as the known ones.
        classes : array-like, default=None
            Never needed. Classes to give a column now, before any sample of them is seen.

        Returns
        -------
        self : estimator
            The updated estimator. If the update fails or is interrupted it stays as it was.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(5, min_samples_leaf=1, random_state=0)
        >>> forest = forest.partial_fit([[0, 0], [0, 1], [9, 8], [9, 9]], ["b", "b", "c", "c"])
        >>> forest = forest.partial_fit([[0, 8], [0, 9]], ["a", "a"])
        >>> forest.classes_, forest.predict([[1, 9]])
        (array(['b', 'c', 'a'], dtype='<U1'), array(['a'], dtype='<U1'))
        """
        self._check_parameters()
        if not self.__sklearn_is_fitted__():
            X, y, names = self._checked_first(X, y, min_samples=1)
            self._start(X, *self._first_labels(y, classes), names, few=True)
            return self
        known = self._fitted
        X, y = self._checked_more(X, y)
        labels, codes = known.labels.extend_with(y, as_classes(classes))
        request = self._recipe()
        check_growable(known, request)
        ids = known.history.n_seen + np.arange(X.shape[0], dtype=np.int64)
        fitted, report = extend(known, labels, ForestBatch(X, codes, ids), request)
        self._trained(fitted, ids, report)
        return self

    @one_at_a_time
    def forget(
        self, *, classes: npt.ArrayLike | None = None, samples: npt.ArrayLike | None = None
    ) -> Self:
        """Take classes or single samples out of the forest.

        Leaves count what is left, and leaves that became too small are joined with their
        neighbours and grown again. A forgotten class loses its column and every mean of it; the
        other columns keep their order. A forgotten sample goes from memory and from nodes that
        compare with it alone; means of several samples stay as they are until their node changes.

        Parameters
        ----------
        classes : array-like, default=None
            Classes to forget.
        samples : array-like of int, default=None
            Ids of samples to forget; ``sample_ids_`` holds those of the last ``fit`` or
            ``partial_fit``.

        Returns
        -------
        self : estimator
            The estimator, unchanged if anything failed.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(5, min_samples_leaf=1, random_state=0)
        >>> forest = forest.fit([[0], [1], [5], [6], [8], [9]], ["a", "a", "b", "b", "c", "c"])
        >>> forest.forget(classes=["b"]).classes_
        array(['a', 'c'], dtype='<U1')
        >>> forest.forget(samples=[0]).predict([[1]])
        array(['a'], dtype='<U1')
        """
        self._check_parameters()
        known = self._learnt("samples to forget")
        if classes is None and samples is None:
            raise ValueError("forget needs classes, samples, or both")
        check_has_rows(known, "forget")
        codes = sorted(set(known.labels.columns_of(as_classes(classes).tolist())))
        ids = as_ids([] if samples is None else samples)
        fitted, report = forget(known, codes, ids, self._recipe())
        latest = getattr(self, "sample_ids_", None)
        if latest is not None:
            latest = latest[np.isin(latest, fitted.stored_ids)]
        self._trained(fitted, latest, report)
        return self

    @one_at_a_time
    def rename_classes(self, names: Mapping[Any, Any]) -> Self:
        """Give classes other names; classes that get one name become one class.

        Parameters
        ----------
        names : mapping
            From old to new names. A class that takes the name of another one joins it. The joint
            class has the first of their columns; if it has more samples than ``keep_per_class``,
            the next update lets some go.

        Returns
        -------
        self : estimator
            The estimator, unchanged if anything failed.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(5, min_samples_leaf=1, random_state=0)
        >>> forest = forest.fit([[0], [1], [5], [6], [8], [9]], ["a", "a", "b", "b", "c", "c"])
        >>> forest.rename_classes({"a": "x", "c": "x"}).classes_
        array(['x', 'b'], dtype='<U1')
        """
        known = self._learnt("classes to rename")
        self._replace(rename(known, names))
        return self

    @one_at_a_time
    def compact(self) -> Self:
        """Free what updates have left behind; answers stay the same.

        Trees tidy themselves when about a quarter of them is left behind. This tidies all of them
        now, and gives back the memory of samples that were forgotten; with a ``memory_limit`` also
        their places on the disk.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(5, min_samples_leaf=1, random_state=0)
        >>> forest = forest.fit([[0], [1], [8], [9]], [0, 0, 1, 1])
        >>> forest.compact().predict([[8]])
        array([1])
        """
        self._check_parameters()
        known = self._learnt("trees to tidy")
        forest = gather_files(known.forest, self._recipe().memory_limit).compact()
        self._replace(replace(known, forest=forest))
        return self

    def _replace(self, fitted: FittedForest) -> None:
        # Everything else that was learnt stays.
        ids, report = getattr(self, "sample_ids_", None), getattr(self, "update_report_", None)
        self._trained(fitted, ids, report)

    def _trained(
        self,
        fitted: FittedForest,
        ids: npt.NDArray[np.int64] | None,
        report: UpdateReport | None,
    ) -> None:
        names = getattr(self, "feature_names_in_", None)
        self._become(fitted, names, sample_ids_=ids, update_report_=report)

    def _start(
        self,
        X: npt.NDArray[Any],
        labels: ClassList,
        codes: npt.NDArray[np.int32],
        names: npt.NDArray[Any] | None,
        *,
        few: bool = False,
    ) -> None:
        request = self._recipe()
        if few:
            request = request.for_few(X.shape[0])
        seed = int(check_random_state(self.random_state).randint(2**63 - 1, dtype=np.int64))
        if self.random_state is None:
            seed = resumed_seed(seed, X, codes, request, len(labels))
        ids = np.arange(X.shape[0], dtype=np.int64)
        fitted, report = begin(labels, ForestBatch(X, codes, ids), seed, request)
        self._become(fitted, names, sample_ids_=ids, update_report_=report)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_updates(self, self._strategies)

    def _recipe(self) -> ForestRequest:
        return ForestRequest.of(self, self._proposer, self._split_rules)
