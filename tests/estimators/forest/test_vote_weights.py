"""The votes of trees that were grown before a class came count less for it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evergrow import _core
from tests.budget import budget
from tests.estimators.forest.twins import assert_same_forest, plain, small_integers
from tests.reference import ncm_forest as twin

N_TREES, N_CLASSES = 3, 5


@settings(max_examples=budget(60))
@given(
    seed=st.integers(0, 2**32),
    grown=st.lists(st.integers(0, 4), min_size=N_TREES, max_size=N_TREES),
    came=st.lists(st.integers(-1, 5), min_size=N_CLASSES, max_size=N_CLASSES),
    older=st.sampled_from([0.05, 0.25, 1.0]),
    gain=st.sampled_from([1.0, 3.0, 10.0]),
)
def test_the_core_weighs_votes_as_the_twin_does(
    seed: int, grown: list[int], came: list[int], older: float, gain: float
) -> None:
    X, y = small_integers(seed, 60, 3, N_CLASSES)
    rules = twin.Rules(N_CLASSES, 3, 8, min_samples_leaf=8)
    forest, trees = assert_same_forest(X, y, seed, rules, "ncm", N_TREES)
    queries, _ = small_integers(seed + 1, 20, 3, N_CLASSES)
    votes = _core.VoteWeights(grown, came, older, gain)
    found = forest.predict_proba(queries, plain(3), 1, None, votes)
    expected = twin.predict_proba_by_age(trees, queries, N_CLASSES, grown, came, older, gain)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(forest.predict_proba(queries, plain(3), 2, None, votes), expected)


def test_a_class_that_no_tree_knows_keeps_its_share_of_the_votes() -> None:
    X, y = small_integers(1, 60, 3, N_CLASSES)
    rules = twin.Rules(N_CLASSES, 3, 8, min_samples_leaf=8)
    forest, _ = assert_same_forest(X, y, 1, rules, "ncm", N_TREES)
    votes = _core.VoteWeights([0, 1, 1], [0, 0, 0, 0, 2], 0.05)
    np.testing.assert_allclose(
        forest.predict_proba(X, plain(3), 1, None, votes), forest.predict_proba(X, plain(3), 1)
    )


@pytest.mark.parametrize("older", [0.0, -1.0, 1.5, float("nan")])
def test_the_weight_of_older_trees_is_a_share(older: float) -> None:
    with pytest.raises(ValueError, match="older must be above 0"):
        _core.VoteWeights([0], [0], older)


@pytest.mark.parametrize("gain", [0.5, float("inf"), float("nan")])
def test_votes_of_older_trees_do_not_shrink(gain: float) -> None:
    with pytest.raises(ValueError, match="gain must be at least 1"):
        _core.VoteWeights([0], [0], 0.5, gain)


def test_votes_belong_to_one_forest() -> None:
    X, y = small_integers(1, 60, 3, N_CLASSES)
    forest, _ = assert_same_forest(X, y, 1, twin.Rules(N_CLASSES, 3, 8), "ncm", N_TREES)
    for votes in (
        _core.VoteWeights([0, 0], [0] * N_CLASSES, 0.5),
        _core.VoteWeights([0] * N_TREES, [0], 0.5),
    ):
        with pytest.raises(ValueError, match="every tree and class"):
            forest.predict_proba(X, plain(3), 1, None, votes)
    with pytest.raises(ValueError, match="must not be empty"):
        _core.VoteWeights([], [0], 0.5)
