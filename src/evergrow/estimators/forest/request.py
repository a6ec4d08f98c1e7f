"""The parameters of one call, checked and frozen."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs

from evergrow._core import SplitRules
from evergrow.estimators.forest.splits import Splits, leaf_size
from evergrow.estimators.forest.storage import Storage
from evergrow.estimators.forest.strategy import (
    STRATEGY_RULES,
    Strategy,
    strategy_of,
    usable_strategies,
)
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.params import (
    Choice,
    Flag,
    Fraction,
    Integer,
    Nothing,
    Number,
    OneOf,
    RandomState,
    Rule,
    Satisfies,
    Value,
)

Standardize: TypeAlias = Literal["auto", "whiten", "scale", "none"]
ClassWeight: TypeAlias = Mapping[Any, float] | Literal["balanced"] | None


@dataclass(frozen=True, repr=False)
class Bootstrap(Value):
    """Each tree of a forest draws its samples with replacement.

    Parameters
    ----------
    share : float, default=1.0
        Number of samples that a tree draws, as a share of all samples.

    Examples
    --------
    >>> from evergrow import NCMForestClassifier
    >>> from evergrow.estimators import Bootstrap
    >>> NCMForestClassifier(max_samples=Bootstrap()).max_samples
    Bootstrap()
    """

    share: float = 1.0

    _rules: ClassVar[dict[str, list[Rule]]] = {"share": [Fraction()]}


def median_class_size(sizes: npt.NDArray[np.int64], per_class: int | None) -> float:
    """Samples of a class: the median over the classes that have samples.

    Of each class at most ``per_class`` samples count.

    >>> median_class_size(np.array([3, 0, 2, 0, 0, 1]), None)
    2.0
    """
    sizes = sizes[sizes > 0]
    if not len(sizes):
        return math.inf
    median = float(np.median(sizes))
    return median if per_class is None else min(median, float(per_class))


def _is_class_weight(value: object) -> bool:
    """Whether a value maps classes to weights."""
    return isinstance(value, Mapping) and all(
        isinstance(weight, (int, float, np.integer, np.floating))
        and not isinstance(weight, bool)
        and np.isfinite(weight)
        and weight >= 0
        for weight in value.values()
    )


_MAX_JOBS = 2**15
_CLASS_WEIGHT = Satisfies(
    "a mapping from classes to weights, which are finite numbers of at least 0",
    _is_class_weight,
)
# Rules of the parameters that all forests have, and of those whose classes are of one level.
FOREST_RULES: dict[str, list[Rule]] = {
    "n_estimators": [Integer(1, 2**16)],
    "min_samples_leaf": [Choice(("auto",)), Integer(1, 2**28)],
    "class_weight": [Nothing(), Choice(("balanced",)), _CLASS_WEIGHT],
    "max_samples": [Nothing(), Fraction(), Integer(1, 2**28), OneOf((Bootstrap,))],
    "standardize": [Choice(("auto", "whiten", "scale", "none")), Flag()],
    "update": STRATEGY_RULES,
    "storage": [Nothing(), OneOf((Storage,))],
    "n_jobs": [Nothing(), Integer(-_MAX_JOBS, -1), Integer(1, _MAX_JOBS)],
    "random_state": [Nothing(), RandomState()],
    "verbose": [Integer(0, 2**31 - 1), Flag()],
}
BALANCE_RULES: list[Rule] = [Choice(("auto",)), Number(0.0, 1.0)]
FLAT_RULES: dict[str, list[Rule]] = {**FOREST_RULES, "balance": BALANCE_RULES}


def splits_rules(*kinds: type[Splits]) -> list[Rule]:
    """Rules of the parameter ``splits`` of a forest with these kinds of splits."""
    return [Choice(("auto",)), OneOf(kinds)]


@dataclass(frozen=True)
class ForestRequest:
    """How to grow and update a forest, fixed for one call.

    ``class_size`` is the number of samples of the median class that a tree sees.
    """

    n_estimators: int
    splits: Splits
    min_samples_leaf: int | str
    max_samples: float | int | Bootstrap | None
    class_weight: ClassWeight
    standardize: Standardize
    strategy: Strategy
    storage: Storage
    n_threads: int
    verbose: int
    class_size: float = math.inf

    @classmethod
    def of(cls, estimator: Any, splits: Splits) -> ForestRequest:
        """Copy the parameters from an estimator.

        Raises a ``ValueError`` if parameters that are each valid do not go together.
        """
        strategy, name = strategy_of(estimator.update), type(estimator).__name__
        if strategy._needs_class_means and not splits._has_class_means:
            usable = sorted(usable_strategies(has_class_means=False))
            raise InvalidInputError(
                f"update={strategy._name!r} adds class means to nodes, which {name} does not have; "
                f"use one of {usable}"
            )
        storage = estimator.storage or Storage()
        _check_eviction(storage.per_class, estimator.min_samples_leaf)
        weights = estimator.class_weight
        return cls(
            n_estimators=int(estimator.n_estimators),
            splits=splits,
            min_samples_leaf=estimator.min_samples_leaf,
            max_samples=estimator.max_samples,
            # A copy, because the caller may change it.
            class_weight=dict(weights) if isinstance(weights, Mapping) else weights,
            standardize=_standardize_of(estimator.standardize, splits, name),
            strategy=strategy,
            storage=storage,
            n_threads=effective_n_jobs(estimator.n_jobs),
            verbose=estimator.verbose,
        )

    def limited_to(self, n_samples: int) -> ForestRequest:
        """The same, with trees that draw at most as many samples as there are so far."""
        if self.has_fixed_rows:
            return replace(self, max_samples=min(int(cast(int, self.max_samples)), n_samples))
        return self

    @property
    def has_fixed_rows(self) -> bool:
        """Whether each tree draws a fixed number of samples, not a share of them."""
        return isinstance(self.max_samples, numbers.Integral)

    @property
    def bootstrap(self) -> bool:
        """Whether trees draw with replacement."""
        return isinstance(self.max_samples, Bootstrap)

    def sized_for(self, sizes: npt.NDArray[np.int64], row_rate: float) -> ForestRequest:
        """The same for classes of these sizes, of which a tree draws the share ``row_rate``."""
        class_size = row_rate * median_class_size(sizes, self.storage.per_class)
        return replace(self, class_size=class_size)

    def rules(self, n_classes: int, n_features: int) -> SplitRules:
        """The rules that the core follows for these numbers of classes and features."""
        options = {"proposer": self.splits._proposer, "n_centroids": 0}
        return SplitRules(
            min_samples_leaf=leaf_size(self.min_samples_leaf, self.class_size),
            min_gain=self.splits.min_gain,
            **{**options, **self.splits._options(n_classes, n_features, self.class_size)},
        )

    def rows_per_tree(self, n_rows: int) -> int:
        """Number of training rows that each tree sees."""
        wanted = self.max_samples
        if wanted is None:
            return n_rows
        if isinstance(wanted, Bootstrap):
            wanted = wanted.share
        if isinstance(wanted, (float, np.floating)):
            return max(1, round(wanted * n_rows))
        if wanted > n_rows:
            raise InvalidInputError(
                f"max_samples must be at most the number of samples, {n_rows}, got {wanted}"
            )
        return int(wanted)


def _standardize_of(named: str | bool, splits: Splits, estimator: str) -> Standardize:
    if not isinstance(named, str):
        return "scale" if named else "none"
    if named == "whiten" and splits._proposer == "axis":
        raise InvalidInputError(
            f"standardize='whiten' mixes features, but nodes of {estimator} compare single ones; "
            "use 'auto', 'scale' or 'none'"
        )
    # Whitening is chosen by distances from class means, which other splits do not use.
    if named == "auto" and not splits._has_class_means:
        return "scale"
    return cast(Standardize, named)


def _check_eviction(per_class: int | None, min_samples_leaf: str | int) -> None:
    # "auto" takes leaves that a class of per_class samples can fill.
    if per_class is None or isinstance(min_samples_leaf, str):
        return
    if per_class < min_samples_leaf:
        raise InvalidInputError(
            f"Storage.per_class must be at least min_samples_leaf, {min_samples_leaf}, "
            f"got {per_class}"
        )
