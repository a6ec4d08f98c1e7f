"""An estimator's parameters in the form that training needs them."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from evergrow.forest.strategies import NodeSampling

__all__ = ["Recipe"]


@dataclass(frozen=True)
class Recipe:
    """How to grow and update a forest, fixed for one call.

    ``split_rules`` takes the numbers of classes and features and gives what the core is told
    about splitting nodes.
    """

    proposer: str
    n_estimators: int
    split_rules: Callable[[int, int], dict[str, Any]]
    max_samples: float | int | None
    bootstrap: bool
    standardize: bool
    strategy: str
    share: float
    node_sampling: NodeSampling
    refresh: float
    half_samples: bool
    memory: str | os.PathLike[str] | None
    keep_per_class: int | None
    n_threads: int
    verbose: int

    def for_few(self, n_samples: int) -> Recipe:
        """The same where more samples may come: a tree cannot draw more than there are yet."""
        if isinstance(self.max_samples, numbers.Integral):
            return replace(self, max_samples=min(int(self.max_samples), n_samples))
        return self
