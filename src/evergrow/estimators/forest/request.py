"""An estimator's parameters in the form that training needs them."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from joblib import effective_n_jobs

from evergrow.estimators.forest.strategies import NodeSampling, resolve_strategy
from evergrow.estimators.forest.value.fitted import FittedForest
from evergrow.foundation.params import bytes_of

SplitRules = Callable[[int, int], dict[str, Any]]


@dataclass(frozen=True)
class ForestRequest:
    """How to grow and update a forest, fixed for one call.

    ``split_rules`` takes the numbers of classes and features and gives what the core is told
    about splitting nodes.
    """

    proposer: str
    n_estimators: int
    split_rules: SplitRules
    max_samples: float | int | None
    bootstrap: bool
    standardize: bool
    strategy: str
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
    def of(cls, estimator: Any, proposer: str, split_rules: SplitRules) -> ForestRequest:
        """The parameters that all forests have."""
        strategy, share, nodes = resolve_strategy(
            estimator.update, estimator.update_fraction, estimator.node_sampling
        )
        limit = estimator.memory_limit
        return cls(
            proposer=proposer,
            n_estimators=estimator.n_estimators,
            split_rules=split_rules,
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

    def for_few(self, n_samples: int) -> ForestRequest:
        """The same where more samples may come: a tree cannot draw more than there are yet."""
        if isinstance(self.max_samples, numbers.Integral):
            return replace(self, max_samples=min(int(self.max_samples), n_samples))
        return self


def check_updates(estimator: Any, strategies: tuple[str, ...]) -> None:
    """Raise a ``ValueError`` if parameters that are right each do not go together."""
    strategy, _, _ = resolve_strategy(
        estimator.update, estimator.update_fraction, estimator.node_sampling
    )
    if strategy not in strategies:
        raise ValueError(
            f"update={strategy!r} adds class means to nodes, which {type(estimator).__name__} does "
            f"not have; use one of {sorted(strategies)}"
        )
    if estimator.keep_per_class is not None and (
        estimator.keep_per_class < estimator.min_samples_leaf
    ):
        raise ValueError(
            "keep_per_class must be at least min_samples_leaf, "
            f"{estimator.min_samples_leaf}, got {estimator.keep_per_class}"
        )


def check_growable(known: FittedForest, request: ForestRequest) -> None:
    """Raise a ``ValueError`` if a forest cannot be updated with these parameters."""
    if len(known.forest) != request.n_estimators:
        raise ValueError(
            f"n_estimators is {request.n_estimators} but the forest has {len(known.forest)} "
            "trees: fit again to change their number"
        )
    if known.has_training_rows and known.forest.samples.half != request.half_samples:
        wanted = "float16" if request.half_samples else "float32"
        raise ValueError(
            f"sample_dtype is {wanted!r} but the forest keeps samples of another "
            "precision: fit again to change it"
        )
    if request.strategy != "uls" or request.refresh > 0:
        check_has_rows(known, "update")


def check_has_rows(known: FittedForest, what: str) -> None:
    """Raise a ``ValueError`` if a forest has no training samples."""
    if not known.has_training_rows:
        raise ValueError(
            f"cannot {what}: the forest was saved with inference_only=True and has no training "
            "samples; update='uls' with refresh=0 needs none"
        )
