"""The parameters of one call, checked and frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from evergrow.estimators.forest.request import ClassWeight, ForestRequest
from evergrow.estimators.forest.splits import Regularised
from evergrow.estimators.subcategory.guessers import Guesser, guesser_of
from evergrow.estimators.subcategory.label_tree import LabelTree
from evergrow.estimators.subcategory.methods import METHODS, Method
from evergrow.estimators.subcategory.value.fitted import PROPOSER
from evergrow.foundation.errors import InvalidInputError

AUTO_SPLITS = Regularised(scoring_samples=1024)


@dataclass(frozen=True)
class GuessRequest:
    """How to guess missing fine labels."""

    guesser: Guesser
    seed: int
    n_jobs: int | None
    verbose: int


@dataclass(frozen=True)
class SplitsOfTrees:
    """Splits by means of coarse and fine classes of known trees, by their number of classes."""

    splits: Regularised
    class_means: str
    coarse_weight: str | float
    method: Method
    trees: Mapping[int, LabelTree] = field(default_factory=dict)

    _proposer: ClassVar[str] = PROPOSER
    _has_class_means: ClassVar[bool] = True

    @property
    def min_gain(self) -> float:
        """Information gain that a split must exceed."""
        return self.splits.min_gain

    def _options(self, n_classes: int, n_features: int, class_size: float) -> dict[str, Any]:  # noqa: ARG002
        """What the core needs to find splits, for the tree with this number of classes."""
        tree, method = self.trees[n_classes], self.method
        coarse_means = method.coarse_means and self.class_means == "both"
        n_means = int(tree.is_finest.sum()) + (int(tree.is_divided.sum()) if coarse_means else 0)
        weight = method.coarse_weight if self.coarse_weight == "auto" else self.coarse_weight
        return {
            **self.splits._subsets(n_means),
            "objective": method.objective,
            "coarse_weight": float(weight),
            "coarse_means": coarse_means,
            "parents": tree.parents.tolist(),
        }


@dataclass(frozen=True)
class SubcategoryRequest:
    """How to learn, fixed for one call; ``guess`` is None if the method does not guess."""

    method_name: str
    forest: ForestRequest
    splits: SplitsOfTrees
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
        chosen = AUTO_SPLITS if isinstance(estimator.splits, str) else estimator.splits
        splits = SplitsOfTrees(
            chosen, estimator.class_means, estimator.coarse_weight, METHODS[estimator.method]
        )
        return cls(
            method_name=estimator.method,
            forest=ForestRequest.of(estimator, splits),
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
            splits=replace(self.splits, trees=by_size),
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
