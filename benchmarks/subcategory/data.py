"""The data sets of the experiments of Ristin et al. (CVPR 2015), whole."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from evergrow.experiments import Lab
from evergrow.experiments.cvpr2015.levels import TwoLevels
from evergrow.experiments.cvpr2015.sources import SOURCES
from evergrow.streams import mixture

__all__ = ["DATA_SETS", "TwoLevels", "data_sets", "generated"]

# By short name: the experiments' name, and what tables call it.
DATA_SETS = {
    "cifar": ("features", "CIFAR-100 features"),
    "cub": ("birds", "CUB-200 features"),
    "words": ("words", "CIFAR-100 words"),
}

_LAB = Lab(SOURCES)


def generated(
    n_each: int, n_features: int, n_coarse: int, n_children: int, n_test_each: int = 20
) -> TwoLevels:
    """Gaussian fine classes around the centres of coarse ones, the same for every run."""
    n_fine = n_coarse * n_children
    data = mixture(n_fine, n_features, n_each, n_test_each, distance=0.75, n_groups=n_coarse)
    return replace(TwoLevels.of(data), name=f"generated, {n_coarse} to {n_fine} classes")


@cache
def _whole(key: str) -> TwoLevels:
    source, name = DATA_SETS[key]
    levels = TwoLevels.of(_LAB.dataset(source))
    built_in = f"generated, {len(levels.parents)} classes"
    return replace(levels, name=built_in if _LAB.is_built_in(source) else name)


def data_sets(names: tuple[str, ...] = (), *, quick: bool = False) -> list[TwoLevels]:
    """The data sets of these names, all by default; a small generated one if quick."""
    if quick:
        return [generated(60, 16, 5, 4)]
    return [_whole(name) for name in names or DATA_SETS]
