"""A small data set of coarse and fine classes."""

from evergrow.experiments.cvpr2015.levels import TwoLevels
from evergrow.streams import mixture


def small_levels() -> TwoLevels:
    return TwoLevels.of(mixture(6, 24, 40, 10, distance=0.8, n_groups=3))
