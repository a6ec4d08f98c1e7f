"""Guesses that may contradict the coarse class that a person gave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evergrow
from tests.estimators.subcategory.levels import check_consistent, hidden, samples, small

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
    forest.forget(coarse=[0]).save(tmp_path / "model.evergrow")
    loaded = evergrow.load(tmp_path / "model.evergrow")
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
