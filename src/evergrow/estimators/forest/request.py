"""The parameters of one call, checked and frozen."""

from __future__ import annotations

import math
import numbers
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, Self, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs

from evergrow._core import SplitRules
from evergrow.estimators.forest.strategy import (
    STRATEGY_RULES,
    Strategy,
    strategy_of,
    usable_strategies,
)
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.params import (
    Choice,
    FilePath,
    Flag,
    Fraction,
    Integer,
    MemorySize,
    Nothing,
    Number,
    RandomState,
    Rule,
    Satisfies,
    bytes_of,
)

# With min_samples_leaf="auto", a class could fill this many leaves, as long as leaves are not
# larger than those of the paper.
_LEAVES_PER_CLASS, _LARGEST_LEAF = 50, 10

Standardize: TypeAlias = Literal["auto", "whiten", "scale", "none"]
ClassWeight: TypeAlias = Mapping[Any, float] | Literal["balanced"] | None


class SplitParameters(ABC):
    """Parameters that decide how nodes are split, frozen.

    Attributes
    ----------
    proposer : str
        Name of what finds the splits, in the table of the core and in model files.
    has_class_means : bool
        Nodes compare with class means.
    """

    has_class_means: ClassVar[bool] = False

    proposer: str

    @abstractmethod
    def rules(self, n_classes: int, n_features: int) -> SplitRules:
        """The rules that the core follows for these numbers of classes and features."""

    @abstractmethod
    def sized(self, class_size: float) -> Self:
        """The same for classes of this size: samples of a class that a tree sees, the median."""


@dataclass(frozen=True)
class BasicSplits(SplitParameters):
    """Parameters that all kinds of splits have."""

    proposer: str
    min_samples_leaf: str | int
    min_gain: float
    class_size: float = field(default=math.inf, kw_only=True)

    @classmethod
    def of(cls, estimator: Any, proposer: str) -> Self:
        """Copy the parameters from an estimator; ``proposer`` names what finds the splits."""
        own = {"proposer", "class_size"}
        names = [field.name for field in fields(cls) if field.name not in own]
        return cls(proposer=proposer, **{name: getattr(estimator, name) for name in names})

    def sized(self, class_size: float) -> Self:
        """The same for classes of this size."""
        return replace(self, class_size=class_size)

    def _rules(self, *, n_candidates: int, **rules: Any) -> SplitRules:
        common = {"proposer": self.proposer, "n_centroids": 0}
        return SplitRules(
            n_candidates=n_candidates,
            min_samples_leaf=leaf_size(self.min_samples_leaf, self.class_size),
            min_gain=self.min_gain,
            **{**common, **rules},
        )


def leaf_size(min_samples_leaf: str | int, class_size: float) -> int:
    """Fewest samples in a leaf; ``"auto"`` is a share of the size of a class, 1 to 10.

    >>> [leaf_size("auto", size) for size in (1, 60, 150, 500, 6000)]
    [1, 1, 3, 10, 10]
    """
    if not isinstance(min_samples_leaf, str):
        return int(min_samples_leaf)
    return max(1, int(min(_LARGEST_LEAF, class_size / _LEAVES_PER_CLASS)))


def median_class_size(sizes: npt.NDArray[np.int64], keep_per_class: int | None) -> float:
    """Samples of a class: the median over the classes that have samples.

    Of each class at most ``keep_per_class`` samples count.

    >>> median_class_size(np.array([3, 0, 2, 0, 0, 1]), None)
    2.0
    """
    sizes = sizes[sizes > 0]
    if not len(sizes):
        return math.inf
    median = float(np.median(sizes))
    return median if keep_per_class is None else min(median, float(keep_per_class))


def named_size(name: str, number: int) -> int:
    """Square root ("sqrt") or binary logarithm ("log2") of a number, rounded up."""
    return math.ceil(math.sqrt(number) if name == "sqrt" else math.log2(number))


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
# Rules of how leaves vote, and of the parameters that all forests have.
VOTING_RULES: dict[str, list[Rule]] = {"balance": [Choice(("auto",)), Number(0.0, 1.0)]}
FOREST_RULES: dict[str, list[Rule]] = {
    "n_estimators": [Integer(1, 2**16)],
    "min_samples_leaf": [Choice(("auto",)), Integer(1, 2**28)],
    "min_gain": [Number(0.0)],
    "class_weight": [Nothing(), Choice(("balanced",)), _CLASS_WEIGHT],
    "max_samples": [Nothing(), Fraction(), Integer(1, 2**28)],
    "bootstrap": [Flag()],
    "standardize": [Choice(("auto", "whiten", "scale", "none")), Flag()],
    "update": STRATEGY_RULES,
    "sample_dtype": [Choice(("float32", "float16"))],
    "memory": [Nothing(), FilePath()],
    "memory_limit": [Nothing(), MemorySize()],
    "keep_per_class": [Nothing(), Integer(1, 2**28)],
    "n_jobs": [Nothing(), Integer(-_MAX_JOBS, -1), Integer(1, _MAX_JOBS)],
    "random_state": [Nothing(), RandomState()],
    "verbose": [Integer(0, 2**31 - 1), Flag()],
}


@dataclass(frozen=True)
class ForestRequest:
    """How to grow and update a forest, fixed for one call."""

    n_estimators: int
    splits: SplitParameters
    max_samples: float | int | None
    bootstrap: bool
    class_weight: ClassWeight
    standardize: Standardize
    strategy: Strategy
    half_samples: bool
    memory: str | os.PathLike[str] | None
    memory_limit: int | None  # bytes
    keep_per_class: int | None
    n_threads: int
    verbose: int

    @classmethod
    def of(cls, estimator: Any, splits: SplitParameters) -> ForestRequest:
        """Copy the parameters from an estimator.

        Raises a ``ValueError`` if parameters that are each valid do not go together.
        """
        strategy = strategy_of(estimator.update)
        if strategy._needs_class_means and not splits.has_class_means:
            raise InvalidInputError(_without_means(strategy, type(estimator).__name__))
        _check_eviction(estimator.keep_per_class, estimator.min_samples_leaf)
        limit = estimator.memory_limit
        return cls(
            n_estimators=estimator.n_estimators,
            splits=splits,
            max_samples=estimator.max_samples,
            bootstrap=bool(estimator.bootstrap),
            class_weight=_class_weight_of(estimator.class_weight),
            standardize=_standardize_of(estimator.standardize, splits, type(estimator).__name__),
            strategy=strategy,
            half_samples=estimator.sample_dtype == "float16",
            memory=estimator.memory,
            memory_limit=None if limit is None else bytes_of(limit),
            keep_per_class=estimator.keep_per_class,
            n_threads=effective_n_jobs(estimator.n_jobs),
            verbose=estimator.verbose,
        )

    def limited_to(self, n_samples: int) -> ForestRequest:
        """The same, with trees that draw at most as many samples as there are so far."""
        if self.max_samples is not None and self.has_fixed_rows:
            return replace(self, max_samples=min(int(self.max_samples), n_samples))
        return self

    @property
    def has_fixed_rows(self) -> bool:
        """Whether each tree draws a fixed number of samples, not a share of them."""
        return isinstance(self.max_samples, numbers.Integral)

    def sized_for(self, sizes: npt.NDArray[np.int64], row_rate: float) -> ForestRequest:
        """The same for classes of these sizes, of which a tree draws the share ``row_rate``."""
        class_size = row_rate * median_class_size(sizes, self.keep_per_class)
        return replace(self, splits=self.splits.sized(class_size))

    def rows_per_tree(self, n_rows: int) -> int:
        """Number of training rows that each tree sees."""
        if self.max_samples is None:
            return n_rows
        if isinstance(self.max_samples, (float, np.floating)):
            return max(1, round(self.max_samples * n_rows))
        if self.max_samples > n_rows:
            raise InvalidInputError(
                f"max_samples must be at most the number of samples, {n_rows}, "
                f"got {self.max_samples}"
            )
        return int(self.max_samples)


def _class_weight_of(named: ClassWeight) -> ClassWeight:
    # A copy, because the caller may change it.
    return dict(named) if isinstance(named, Mapping) else named


def _standardize_of(named: str | bool, splits: SplitParameters, estimator: str) -> Standardize:
    if not isinstance(named, str):
        return "scale" if named else "none"
    if named == "whiten" and splits.proposer == "axis":
        raise InvalidInputError(
            f"standardize='whiten' mixes features, but nodes of {estimator} compare single ones; "
            "use 'auto', 'scale' or 'none'"
        )
    # Whitening is chosen by distances from class means, which other splits do not use.
    if named == "auto" and not splits.has_class_means:
        return "scale"
    return cast(Standardize, named)


def _without_means(strategy: Strategy, estimator: str) -> str:
    usable = sorted(usable_strategies(has_class_means=False))
    return (
        f"update={strategy._name!r} adds class means to nodes, which {estimator} does not have; "
        f"use one of {usable}"
    )


def _check_eviction(keep_per_class: int | None, min_samples_leaf: str | int) -> None:
    # "auto" takes leaves that a class of keep_per_class samples can fill.
    if keep_per_class is None or isinstance(min_samples_leaf, str):
        return
    if keep_per_class < min_samples_leaf:
        raise InvalidInputError(
            f"keep_per_class must be at least min_samples_leaf, {min_samples_leaf}, "
            f"got {keep_per_class}"
        )
