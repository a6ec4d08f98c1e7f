"""The parameters of one call, checked and frozen."""

from __future__ import annotations

import numbers
import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from evergrow.estimators.forest.splits import SplitParameters
from evergrow.estimators.forest.strategies import (
    NODE_RULES,
    STRATEGIES,
    NodeSampling,
    Strategy,
    strategy_of,
    usable_strategies,
)
from evergrow.estimators.forest.value.fitted import FittedForest
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
    bytes_of,
)

_MAX_JOBS = 2**15


@dataclass(frozen=True)
class StrategyValue:
    """Rule of a parameter that takes an update strategy as a value."""

    def admits(self, value: object) -> bool:
        """Whether the value is allowed."""
        return isinstance(value, tuple(STRATEGIES.values()))

    def __str__(self) -> str:
        """Describe the allowed values."""
        return "a value such as RTST(share=0.5)"


# Rules of the parameters that all forests have.
FOREST_RULES: dict[str, list[Rule]] = {
    "n_estimators": [Integer(1, 2**16)],
    "min_samples_leaf": [Integer(1, 2**28)],
    "min_gain": [Number(0.0)],
    "max_samples": [Nothing(), Fraction(), Integer(1, 2**28)],
    "bootstrap": [Flag()],
    "standardize": [Flag()],
    "update": [Choice(tuple(STRATEGIES)), StrategyValue()],
    "update_fraction": NODE_RULES["share"],
    "node_sampling": NODE_RULES["nodes"],
    "refresh": [Number(0.0, 1.0)],
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
    standardize: bool
    strategy: Strategy
    share: float
    node_sampling: NodeSampling
    refresh: float
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
        share, nodes = strategy.chosen_nodes(estimator.update_fraction, estimator.node_sampling)
        if strategy.needs_class_means and not splits.has_class_means:
            raise InvalidInputError(_without_means(strategy, type(estimator).__name__))
        _check_eviction(estimator.keep_per_class, estimator.min_samples_leaf)
        limit = estimator.memory_limit
        return cls(
            n_estimators=estimator.n_estimators,
            splits=splits,
            max_samples=estimator.max_samples,
            bootstrap=bool(estimator.bootstrap),
            standardize=bool(estimator.standardize),
            strategy=strategy,
            share=share,
            node_sampling=nodes,
            refresh=float(estimator.refresh),
            half_samples=estimator.sample_dtype == "float16",
            memory=estimator.memory,
            memory_limit=None if limit is None else bytes_of(limit),
            keep_per_class=estimator.keep_per_class,
            n_threads=effective_n_jobs(estimator.n_jobs),
            verbose=estimator.verbose,
        )

    def limited_to(self, n_samples: int) -> ForestRequest:
        """The same, with trees that draw at most as many samples as there are so far."""
        if isinstance(self.max_samples, numbers.Integral):
            return replace(self, max_samples=min(int(self.max_samples), n_samples))
        return self

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


def _without_means(strategy: Strategy, estimator: str) -> str:
    usable = sorted(usable_strategies(has_class_means=False))
    return (
        f"update={strategy.name!r} adds class means to nodes, which {estimator} does not have; "
        f"use one of {usable}"
    )


def _check_eviction(keep_per_class: int | None, min_samples_leaf: int) -> None:
    if keep_per_class is not None and keep_per_class < min_samples_leaf:
        raise InvalidInputError(
            f"keep_per_class must be at least min_samples_leaf, {min_samples_leaf}, "
            f"got {keep_per_class}"
        )


def check_growable(known: FittedForest, request: ForestRequest) -> None:
    """Raise a ``ValueError`` if a forest cannot be updated with these parameters."""
    if len(known.forest) != request.n_estimators:
        raise InvalidInputError(
            f"n_estimators is {request.n_estimators} but the forest has {len(known.forest)} "
            "trees: fit again to change their number"
        )
    if known.has_training_rows and known.forest.samples.half != request.half_samples:
        wanted = "float16" if request.half_samples else "float32"
        raise InvalidInputError(
            f"sample_dtype is {wanted!r} but the forest stores samples of another "
            "precision: fit again to change it"
        )
    if request.strategy.needs_rows or request.refresh > 0:
        check_has_rows(known, "update")


def check_has_rows(known: FittedForest, action: str) -> None:
    """Raise a ``ValueError`` if a forest has no training samples."""
    if not known.has_training_rows:
        raise InvalidInputError(
            f"cannot {action}: the forest was saved with inference_only=True and has no training "
            "samples; update='uls' with refresh=0 needs none"
        )
