"""The parameters of one call, checked and frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from evergrow.estimators.forest.request import ClassWeight, ForestRequest
from evergrow.estimators.forest.splits import Regularised
from evergrow.estimators.subcategory.fitted import PROPOSER
from evergrow.estimators.subcategory.label_tree import LabelTree
from evergrow.estimators.subcategory.methods import Method, method_of

AUTO_SPLITS = Regularised(scoring_samples=1024)


@dataclass(frozen=True)
class SplitsOfTrees:
    """Splits by means of coarse and fine classes of known trees, by their number of classes."""

    splits: Regularised
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
        tree, coarse_means = self.trees[n_classes], self.method._coarse_means
        n_means = int(tree.is_finest.sum()) + (int(tree.is_divided.sum()) if coarse_means else 0)
        return {
            **self.splits._subsets(n_means),
            "objective": self.method._objective,
            "coarse_weight": self.method._coarse_weight,
            "coarse_means": coarse_means,
            "parents": tree.parents.tolist(),
        }


@dataclass(frozen=True)
class SubcategoryRequest:
    """How to learn, fixed for one call.

    ``guess`` are options of :func:`guess_fine`; None if the method does not guess.
    """

    method: Method
    forest: ForestRequest
    splits: SplitsOfTrees
    guess: dict[str, Any] | None

    @classmethod
    def of(cls, estimator: Any, seed: int) -> SubcategoryRequest:
        """Copy the parameters from an estimator.

        Raises a ``ValueError`` if parameters that are each valid do not go together.
        """
        method = method_of(estimator.method)
        guess: dict[str, Any] | None = None
        if method._guess is not None:
            guess = {"guesser": method._guess, "random_state": seed % 2**32}
            guess |= {"n_jobs": estimator.n_jobs, "verbose": estimator.verbose}
        chosen = AUTO_SPLITS if isinstance(estimator.splits, str) else estimator.splits
        splits = SplitsOfTrees(chosen, method)
        return cls(method, ForestRequest.of(estimator, splits), splits, guess)

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
