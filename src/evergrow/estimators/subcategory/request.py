"""The parameters of one call, checked and frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from evergrow._core import SplitRules
from evergrow.estimators.forest.ncm_forest import (
    ClassMeanSplits,
    assignments_per_subset,
    largest_subset,
    scoring_samples,
    subsets_per_node,
)
from evergrow.estimators.forest.request import ClassWeight, ForestRequest, SplitParameters
from evergrow.estimators.subcategory.guessers import Guesser, guesser_of
from evergrow.estimators.subcategory.label_tree import LabelTree
from evergrow.estimators.subcategory.methods import METHODS, Method
from evergrow.estimators.subcategory.value.fitted import PROPOSER
from evergrow.foundation.errors import InvalidInputError


@dataclass(frozen=True)
class GuessRequest:
    """How to guess missing fine labels."""

    guesser: Guesser
    seed: int
    n_jobs: int | None
    verbose: int


@dataclass(frozen=True)
class SubcategorySplits(ClassMeanSplits):
    """Splits by means of coarse and fine classes."""

    class_means: str
    coarse_weight: str | float

    def rules_of(self, tree: LabelTree, method: Method) -> SplitRules:
        """The rules that the core follows for these classes."""
        coarse_means = method.coarse_means and self.class_means == "both"
        n_means = int(tree.is_finest.sum()) + (int(tree.is_divided.sum()) if coarse_means else 0)
        largest = largest_subset(self.n_centroids, self.subset_scale, n_means)
        weight = method.coarse_weight if self.coarse_weight == "auto" else self.coarse_weight
        return self._rules(
            n_centroids=largest,
            n_candidates=assignments_per_subset(self.n_assignments, self.n_subsets),
            n_subsets=subsets_per_node(self.n_subsets, largest, n_means),
            cost_weight=self.cost_weight,
            max_scoring_samples=scoring_samples(self.max_scoring_samples, n_means),
            objective=method.objective,
            coarse_weight=float(weight),
            coarse_means=coarse_means,
            parents=tree.parents.tolist(),
        )


@dataclass(frozen=True)
class SplitsOfTrees(SplitParameters):
    """Splits by class means of known trees of classes, by their number of classes."""

    has_class_means: ClassVar[bool] = True

    splits: SubcategorySplits
    method: Method
    trees: Mapping[int, LabelTree]
    proposer: str = PROPOSER

    def rules(self, n_classes: int, n_features: int) -> SplitRules:  # noqa: ARG002
        """The rules that the core follows for this number of classes."""
        return self.splits.rules_of(self.trees[n_classes], self.method)

    def sized(self, class_size: float) -> Self:
        """The same for classes of this size."""
        return replace(self, splits=self.splits.sized(class_size))


@dataclass(frozen=True)
class SubcategoryRequest:
    """How to learn, fixed for one call; ``guess`` is None if the method does not guess."""

    method_name: str
    forest: ForestRequest
    splits: SubcategorySplits
    guess: GuessRequest | None
    refine_share: float
    stack_scale: float

    @classmethod
    def of(cls, estimator: Any, seed: int) -> SubcategoryRequest:
        """Copy the parameters from an estimator.

        Raises a ``ValueError`` if parameters that are each valid do not go together.
        """
        guesser, own = estimator.guess, METHODS[estimator.method].guesser
        if guesser != "auto" and own is None:
            able = [name for name, method in METHODS.items() if method.guesser is not None]
            raise InvalidInputError(
                f"guess={guesser!r} but method={estimator.method!r} guesses nothing; "
                f"use guess='auto', or one of the methods {able}"
            )
        guess = None
        if own is not None:
            guesser = guesser_of(own if guesser == "auto" else guesser)
            guess = GuessRequest(guesser, seed, estimator.n_jobs, estimator.verbose)
        splits = SubcategorySplits.of(estimator, "regularised")
        no_trees = SplitsOfTrees(splits, METHODS[estimator.method], {})
        return cls(
            method_name=estimator.method,
            forest=ForestRequest.of(estimator, no_trees),
            splits=splits,
            guess=guess,
            refine_share=float(estimator.refine_share),
            stack_scale=float(estimator.stack_scale),
        )

    @property
    def method(self) -> Method:
        """What samples without a fine label are used for."""
        return METHODS[self.method_name]

    def forest_request(self, *trees: LabelTree) -> ForestRequest:
        """The parameters of the forest, for the classes of each of these trees."""
        by_size = {len(tree): tree for tree in trees}
        return replace(
            self.forest,
            splits=SplitsOfTrees(self.splits, self.method, by_size),
            class_weight=_weights_by_number(self.forest.class_weight, trees[0]),
        )


def _weights_by_number(class_weight: ClassWeight, tree: LabelTree) -> ClassWeight:
    """Weights by the numbers of classes in place of their names.

    The weight of a class is multiplied by those of all classes above it.
    """
    if class_weight is None or isinstance(class_weight, str):
        return class_weight
    own = [float(class_weight.get(name, 1.0)) for name in tree.names]
    parents, weights = tree.parents.tolist(), list(own)
    for number in np.argsort(tree.depths, kind="stable").tolist():
        if parents[number] != number:
            weights[number] *= weights[parents[number]]
    return dict(enumerate(weights))
