"""The methods of learning from coarse and fine labels together [Ristin2015 Sec. 4].

They are values; a :class:`SubcategoryRequest` has one and the other parameters of a call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np

from evergrow.estimators.forest.request import ClassWeight, ForestRequest
from evergrow.estimators.forest.splits import Regularised, Splits
from evergrow.estimators.subcategory.guessers import GUESSER_RULES, Guesser
from evergrow.estimators.subcategory.label_tree import LabelTree
from evergrow.foundation.params import Choice, Nothing, Number, OneOf, Rule, Value

# The kind of trees: nodes compare with class means.
PROPOSER = "ncm"

_GUESS_RULES: list[Rule] = [Nothing(), *GUESSER_RULES]
_WEIGHT_RULES: dict[str, list[Rule]] = {
    "coarse_weight": [Number(0.0)],
    "class_means": [Choice(("both", "fine"))],
}


@dataclass(frozen=True, repr=False)
class Method(Value):
    """How a method uses samples of which only the coarse class is known.

    Attributes
    ----------
    _objective : str
        What the core maximises when it splits a node.
    _reading : str
        How the core computes probabilities from the class counts of a leaf.
    _keeps_coarse_only : bool
        Train on samples without a fine label, given or guessed; otherwise they are left out.
    """

    _objective: ClassVar[str] = "gain"
    # If all samples have fine labels, this gives class frequencies.
    _reading: ClassVar[str] = "joint"
    _keeps_coarse_only: ClassVar[bool] = False

    @property
    def _guess(self) -> str | Guesser | None:
        """How missing fine labels are guessed, if at all."""
        found: str | Guesser | None = vars(self).get("guess")
        return found

    @property
    def _coarse_weight(self) -> float:
        """Weight of separating coarse classes, lambda in [Ristin2015 Eq. 6]."""
        return float(vars(self).get("coarse_weight", 0.0))

    @property
    def _coarse_means(self) -> bool:
        """Whether nodes may compare with means of coarse classes."""
        return vars(self).get("class_means") == "both"

    @property
    def _smoothing(self) -> float:
        """How leaves are smoothed, for methods that read them hierarchically."""
        return float(vars(self).get("smoothing", 3.0))

    @property
    def _can_refine(self) -> bool:
        """Whether samples without a fine label are stored and can get one later."""
        return self._keeps_coarse_only or self._guess is not None

    @property
    def _name(self) -> str:
        """The name of the first method that builds the same kind of forest."""
        return next(name for name, other in METHODS.items() if self._shares_forest_with(other))

    def _shares_forest_with(self, other: Method) -> bool:
        """Whether either method can update a forest of the other."""
        return (type(self), self._can_refine) == (type(other), other._can_refine)


@dataclass(frozen=True, repr=False)
class FineOnly(Method):
    """Learn from fine labels alone, given or guessed; other samples are left out.

    ``method="fine-only"`` is ``FineOnly()``, and ``"nn"`` is ``FineOnly(guess="nn")``
    [Ristin2015 Sec. 4.3].

    Parameters
    ----------
    guess : {"ridge", "nn"}, guesser or None, default=None
        How missing fine labels are guessed, as in :func:`~evergrow.estimators.guess_fine`. A value
        such as ``RidgeGuesser(scaling=1.0)`` sets its own options. None does not guess.
    """

    _rules: ClassVar[dict[str, list[Rule]]] = {"guess": _GUESS_RULES}

    guess: str | Guesser | None = None


@dataclass(frozen=True, repr=False)
class Stacked(Method):
    """Two forests: probabilities of coarse classes become features [Ristin2015 Sec. 4.1].

    A first forest learns coarse classes from the samples without a fine label, or from all samples
    if every one has a fine label. Its probabilities are appended to the features of a second
    forest, which learns from the samples with a fine label. An update with a new coarse class grows
    the second forest again. ``refine`` is not available. ``method="stacked"`` is ``Stacked()``.

    Parameters
    ----------
    scale : float, default=10.0
        Factor by which the probabilities of the first forest are multiplied. With 10, a certain
        coarse class counts like ten standard deviations of a feature.
    """

    _rules: ClassVar[dict[str, list[Rule]]] = {"scale": [Number(0.0)]}

    scale: float = 10.0


@dataclass(frozen=True, repr=False)
class Joint(Method):
    """Splits separate fine classes, and coarse classes of the other samples [Ristin2015 Sec. 4.2].

    ``method="joint"`` is ``Joint()``.

    Parameters
    ----------
    coarse_weight : float, default=0.1
        Weight of separating coarse classes relative to separating fine ones (lambda in
        [Ristin2015 Eq. 6]). Raise it, up to 100, for features of thousands of dimensions. With more
        levels, it is the weight of each level above the finest.
    class_means : {"both", "fine"}, default="both"
        Whether nodes compare with the means of coarse and fine classes, or of fine classes only.
        ``"fine"`` is a little faster and less accurate.
    """

    _rules: ClassVar[dict[str, list[Rule]]] = _WEIGHT_RULES
    _objective = "joint"
    _keeps_coarse_only = True

    coarse_weight: float = 0.1
    class_means: Literal["both", "fine"] = "both"


@dataclass(frozen=True, repr=False)
class Hierarchical(Method):
    """Splits separate the classes of all levels [Ristin2015 Sec. 4.4, 4.5].

    Leaves predict P(coarse) P(fine | coarse). ``method="hierarchical"`` is ``Hierarchical()``,
    ``"nn-h"`` is ``Hierarchical(guess="nn")`` and ``"ridge-h"``, the default, is
    ``Hierarchical(guess="ridge")``.

    Parameters
    ----------
    guess : {"ridge", "nn"}, guesser or None, default=None
        How missing fine labels are guessed, as in :class:`FineOnly`. Guesses are made from the
        features as given, whatever `standardize` is.
    coarse_weight : float, default=1.0
        Weight of separating coarse classes, as in :class:`Joint`.
    class_means : {"both", "fine"}, default="both"
        Classes whose means nodes compare with, as in :class:`Joint`.
    smoothing : float, default=3.0
        How much the fine class frequencies of a node are smoothed with those of its parent node,
        which count like this many samples. Raise it if few samples have fine labels. Can be changed
        at any time.
    """

    _rules: ClassVar[dict[str, list[Rule]]] = {
        "guess": _GUESS_RULES,
        **_WEIGHT_RULES,
        "smoothing": [Number(0.0)],
    }
    _objective = "hierarchical"
    _reading = "hierarchical"
    _keeps_coarse_only = True

    guess: str | Guesser | None = None
    coarse_weight: float = 1.0
    class_means: Literal["both", "fine"] = "both"
    smoothing: float = 3.0


METHODS: dict[str, Method] = {
    "fine-only": FineOnly(),
    "stacked": Stacked(),
    "joint": Joint(),
    "nn": FineOnly(guess="nn"),
    "hierarchical": Hierarchical(),
    "nn-h": Hierarchical(guess="nn"),
    "ridge-h": Hierarchical(guess="ridge"),
}
METHOD_KINDS: tuple[type[Method], ...] = (Hierarchical, Joint, Stacked, FineOnly)
METHOD_RULES: list[Rule] = [Choice(tuple(METHODS)), OneOf(METHOD_KINDS)]


def method_of(method: str | Method) -> Method:
    """The method with a name, or the given one."""
    return METHODS[method] if isinstance(method, str) else method


AUTO_SPLITS = Regularised(scoring_samples=1024)


@dataclass(frozen=True, repr=False)
class SplitsOfTrees(Splits):
    """Splits by means of coarse and fine classes of known trees, by their number of classes."""

    splits: Regularised
    method: Method
    trees: Mapping[int, LabelTree] = field(default_factory=dict)

    _proposer: ClassVar[str] = PROPOSER
    _has_class_means: ClassVar[bool] = True

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
        splits = SplitsOfTrees(chosen, method, min_gain=chosen.min_gain)
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
