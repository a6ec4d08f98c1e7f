"""The learners that can be planned, and the sizes of data that each is calibrated by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from evergrow.distributed.planning.terms import TERMS, Term, centroids
from evergrow.distributed.planning.workload import Workload

__all__ = ["FAMILIES", "Family", "family_named"]


@dataclass(frozen=True)
class Family:
    """A learner that can be planned.

    ``make`` gives an estimator of so many trees; ``sizes`` are the rows, features, classes and
    trees of the runs that it is calibrated by, and the rows of a leaf where they are not ten.
    ``has_shape`` tells that its trees are those of the core, which can be looked at, and
    ``most_vectors`` how many vectors a node of theirs stores at most.
    """

    name: str
    make: Callable[[int], Any]
    sizes: tuple[tuple[int, ...], ...]
    has_trees: bool = True
    has_shape: bool = True
    most_vectors: Callable[[Workload], int] = lambda _: 1

    @property
    def terms(self) -> tuple[Term, ...]:
        """The parts of its work."""
        return TERMS[self.name]

    def calibrated_by(self) -> list[Workload]:
        """The sizes as workloads."""
        found = []
        for rows, features, classes, trees, *leaf in self.sizes:
            work = Workload(rows, features, classes, trees)
            found.append(replace(work, min_samples_leaf=leaf[0]) if leaf else work)
        return found


# Widths whose rows begin at the same place of every page crowd into few lines of the cache, which
# makes threshold trees of 1024 features twice as slow as those of 960: such widths are left out.
# All sizes together take about half a minute.
_FOREST_SIZES = (
    (4000, 64, 20, 6),
    (32000, 64, 20, 2),
    (64000, 64, 100, 1),
    (6000, 64, 100, 4),
    (24000, 64, 100, 2),
    (4000, 480, 100, 4),
    (16000, 480, 100, 1),
    (16000, 480, 100, 4),
    (8000, 64, 500, 2),
    (32000, 64, 500, 1),
    (12000, 480, 500, 1),
    (8000, 960, 300, 2),
    (24000, 256, 300, 2),
    (32000, 960, 100, 1),
    (32000, 960, 100, 4),
    (64000, 480, 300, 1),
    (64000, 256, 100, 1),
    (64000, 128, 300, 1),
    (16000, 128, 100, 2, 2),
    (16000, 128, 100, 2, 50),
    (32000, 64, 400, 1, 40),
    (16000, 64, 400, 1, 3),
    (32000, 128, 100, 1, 100),
    (16000, 480, 100, 1, 80),
)
_SLOW_SIZES = (
    (1500, 32, 20, 1),
    (6000, 32, 20, 1),
    (3000, 256, 20, 1),
    (2000, 64, 100, 1),
    (6000, 64, 100, 1),
    (4000, 256, 100, 1),
    (2000, 256, 50, 1),
    (1000, 256, 50, 1),
    (4000, 64, 50, 1),
    (3000, 32, 100, 1),
    (1000, 64, 20, 1),
    (6000, 64, 50, 1),
    (4000, 64, 50, 1, 3),
    (6000, 64, 50, 1, 40),
)
_SUM_SIZES = (
    (1000, 128, 10, 1),
    (1000, 384, 10, 1),
    (1000, 560, 10, 1),
    (1000, 768, 10, 1),
    (4000, 64, 50, 1),
    (20000, 64, 50, 1),
    (20000, 64, 500, 1),
    (3000, 256, 20, 1),
    (20000, 256, 50, 1),
    (12000, 256, 500, 1),
    (2000, 768, 20, 1),
    (20000, 768, 100, 1),
    (6000, 768, 500, 1),
    (4000, 512, 200, 1),
    (40000, 256, 500, 1),
    (40000, 512, 50, 1),
    (20000, 512, 20, 1),
    (2000, 512, 500, 1),
)
_WORD_SIZES = (
    (4000, 32, 20, 4),
    (64000, 128, 100, 1),
    (32000, 32, 20, 4),
    (8000, 128, 20, 4),
    (32000, 128, 100, 1),
    (32000, 128, 20, 4),
    (8000, 480, 100, 2),
    (32000, 480, 100, 1),
    (64000, 480, 100, 1),
    (64000, 240, 50, 2),
    (64000, 32, 100, 2),
    (16000, 240, 20, 2),
    (16000, 32, 100, 2),
    (32000, 240, 50, 1),
)


def _ncm_forest(n_trees: int) -> Any:
    from evergrow.estimators.forest import NCMForestClassifier

    return NCMForestClassifier(n_trees, random_state=0)


def _axis_forest(n_trees: int) -> Any:
    from evergrow.estimators.forest import AxisForestClassifier

    return AxisForestClassifier(n_trees, random_state=0)


def _linear_forest(n_trees: int) -> Any:
    from evergrow.estimators.forest import LinearForestClassifier

    return LinearForestClassifier(n_trees, random_state=0)


def _svm_forest(n_trees: int) -> Any:
    from evergrow.estimators.forest import SVMForestClassifier

    return SVMForestClassifier(n_trees, random_state=0)


def _least_squares(_: int) -> Any:
    from evergrow.estimators.linear import RLSClassifier

    return RLSClassifier(random_state=0)


def _means(_: int) -> Any:
    from evergrow.estimators.means import NCMClassifier

    return NCMClassifier()


def _erc(n_trees: int) -> Any:
    from evergrow.vision.words import ERCForest

    return ERCForest(n_trees, random_state=0)


FAMILIES = {
    family.name: family
    for family in (
        Family("ncm_forest", _ncm_forest, _FOREST_SIZES, most_vectors=centroids),
        Family("axis", _axis_forest, _FOREST_SIZES),
        Family("linear", _linear_forest, _FOREST_SIZES),
        Family("svm", _svm_forest, _SLOW_SIZES),
        Family("least_squares", _least_squares, _SUM_SIZES, False, False),
        Family("means", _means, _SUM_SIZES, False, False),
        Family("erc", _erc, _WORD_SIZES, True, False),
    )
}


def family_named(name: object) -> Family:
    """The learner of that name; a ``ValueError`` that lists them if there is none."""
    if not isinstance(name, str) or name not in FAMILIES:
        raise ValueError(f"estimator must be one of {sorted(FAMILIES)}, got {name!r}")
    return FAMILIES[name]
