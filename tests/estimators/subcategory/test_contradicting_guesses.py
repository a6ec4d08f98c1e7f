"""Guesses that may contradict the coarse class that a person gave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.estimators.model_files import reload
from tests.estimators.subcategory.levels import (
    check_consistent,
    hidden,
    samples,
    small,
    stored_counts,
)

contradicting = pytest.mark.parametrize("guess", ["nn-unconstrained", "forest"])


def strays(**options: Any) -> tuple[Any, Any]:
    """A forest that has guessed many a sample into another coarse class, and the truth."""
    X, Y = samples(200, range(6))
    X = X + 6 * np.random.default_rng(1).normal(size=X.shape)
    forest = small("nn-h", **options).fit(X, hidden(Y))
    ids, guessed = forest.guesses()
    assert (guessed // 3 != Y[ids, 0]).sum() > 10
    return forest, Y


@contradicting
def test_a_forgotten_coarse_class_takes_all_its_samples_along(guess: str) -> None:
    forest, Y = strays(guess=guess)
    forest.forget(coarse=[0])
    check_consistent(forest)
    assert (Y[forest.stored_ids_, 0] == 1).all()
    assert forest._fitted.unconfirmed.coarse.tolist() == [0] * len(forest._fitted.unconfirmed.ids)


@contradicting
def test_a_model_that_forgot_a_coarse_class_is_loaded_again(guess: str, tmp_path: Path) -> None:
    forest, _ = strays(guess=guess)
    loaded = reload(forest.forget(coarse=[0]), tmp_path)
    assert loaded.stored_ids_.tolist() == forest.stored_ids_.tolist()


@contradicting
def test_several_guesses_of_other_coarse_classes_are_put_right_at_once(guess: str) -> None:
    forest, Y = strays(guess=guess)
    ids, guessed = forest.guesses()
    wrong = ids[guessed // 3 != Y[ids, 0]][:8]
    forest.refine(wrong, Y[wrong, 1])
    check_consistent(forest)
    assert not np.isin(wrong, forest.guesses()[0]).any()
    stored = forest._fitted.forest.forest.samples
    places = [stored.ids.tolist().index(number) for number in wrong.tolist()]
    names = [forest._fitted.tree.names[c] for c in stored.classes[places].tolist()]
    assert names == Y[wrong, 1].tolist()


def stray() -> tuple[Any, Any, Any]:
    """Samples, and a last one that lies among others of another coarse class."""
    X, Y = samples(100, range(6))
    there = X[Y[:, 1] == 4].mean(axis=0)
    return np.vstack([X, there]), np.vstack([Y, [0, -1]]), there


@pytest.mark.parametrize("at_once", [True, False])
def test_a_guess_that_contradicts_the_coarse_class_can_be_put_right(at_once: bool) -> None:
    X, Y, there = stray()
    forest = small(guess="nn-unconstrained").fit(X[:100], Y[:100])
    if at_once:
        forest.fit(X, Y)
    else:
        forest.partial_fit(X[100:], Y[100:])
    assert [found.tolist() for found in forest.guesses()] == [[100], [4]]
    with pytest.raises(ValueError, match="the fine class 4 belongs to two coarse classes, 1, 0"):
        forest.refine([100], [4])
    forest.refine([100], [2])
    check_consistent(forest)
    assert len(forest.guesses()[0]) == 0
    assert stored_counts(forest)[forest._fitted.tree.names.index(2)] > 0
    assert forest.predict([there]) == [4]


def test_a_guess_that_contradicts_the_coarse_class_may_be_thrown_away() -> None:
    X, Y, _ = stray()
    forest = small(guess="nn-discard").fit(X, Y)
    assert len(forest.guesses()[0]) == 0
    assert forest._fitted.unconfirmed.ids.tolist() == [100]
