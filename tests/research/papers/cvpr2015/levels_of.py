"""A small data set of coarse and fine classes."""

from evergrow.research import mixture
from evergrow.research.papers.cvpr2015.levels import TwoLevels


def small_levels() -> TwoLevels:
    return TwoLevels.of(mixture(6, 24, 40, 10, distance=0.8, n_groups=3))
