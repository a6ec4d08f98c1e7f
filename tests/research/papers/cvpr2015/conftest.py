"""A small data set of coarse and fine classes."""

import pytest

from evergrow.research import mixture
from evergrow.research.papers.cvpr2015.levels import TwoLevels


@pytest.fixture(scope="session")
def data():
    return TwoLevels.of(mixture(6, 24, 40, 10, distance=0.8, n_groups=3))
