"""Forests whose nodes try some random splits, as many as one parameter says."""

from __future__ import annotations

import os
from typing import Any, ClassVar, Literal

import numpy as np

from evergrow.estimators.forest.learner import ForestLearner
from evergrow.estimators.forest.splits import CANDIDATE_RULES, FOREST_RULES, candidates_per_node
from evergrow.estimators.forest.strategies import NodeSampling, Strategy
from evergrow.foundation.params import Rule


class CandidateForest(ForestLearner):
    """Parameters of such a forest; subclasses say what a candidate is."""

    _rules: ClassVar[dict[str, list[Rule]]] = {**FOREST_RULES, **CANDIDATE_RULES}
    # RUST moves class means, and these nodes have none.
    _strategies: ClassVar[tuple[str, ...]] = ("uls", "igt", "rtst")

    def __init__(
        self,
        n_estimators: int = 50,
        *,
        n_candidates: Literal["sqrt", "log2"] | float | int = "sqrt",
        min_samples_leaf: int = 10,
        min_gain: float = 1e-7,
        max_samples: float | int | None = None,
        bootstrap: bool = False,
        standardize: bool = True,
        update: str | Strategy = "igt",
        update_fraction: float = 0.8,
        node_sampling: NodeSampling = "size",
        refresh: float = 0.0,
        sample_dtype: Literal["float32", "float16"] = "float32",
        memory: str | os.PathLike[str] | None = None,
        memory_limit: str | int | None = None,
        keep_per_class: int | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            n_estimators,
            min_samples_leaf=min_samples_leaf,
            min_gain=min_gain,
            max_samples=max_samples,
            bootstrap=bootstrap,
            standardize=standardize,
            update=update,
            update_fraction=update_fraction,
            node_sampling=node_sampling,
            refresh=refresh,
            sample_dtype=sample_dtype,
            memory=memory,
            memory_limit=memory_limit,
            keep_per_class=keep_per_class,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )
        self.n_candidates = n_candidates

    def _split_rules(self, n_classes: int, n_features: int) -> dict[str, Any]:  # noqa: ARG002
        return {
            "proposer": self._proposer,
            "n_centroids": 0,
            "n_candidates": candidates_per_node(self.n_candidates, n_features),
            "min_samples_leaf": self.min_samples_leaf,
            "min_gain": self.min_gain,
            "regularization": 0.0,
        }
