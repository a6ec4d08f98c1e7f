"""Saved forests of coarse and fine classes: exact, and closed to what does not fit together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evergrow
from evergrow import ModelFileError
from evergrow.estimators import Hierarchical, NearestGuesser, Storage
from tests.estimators.model_files import at, check_refused, forge, reload
from tests.estimators.subcategory.levels import (
    REFINABLE,
    every_method,
    hidden,
    samples,
    small,
)


@pytest.mark.parametrize("inference_only", [False, True])
@every_method
def test_a_loaded_forest_answers_bit_for_bit_the_same(
    method: str, inference_only: bool, tmp_path: Path
) -> None:
    X, Y = samples(120)
    names = [[f"c{c}", None if f < 0 else f] for c, f in hidden(Y).tolist()]
    forest = small(method).fit(X, [*names[:-1], ["c7", None]])
    loaded = reload(forest, tmp_path, inference_only=inference_only)
    np.testing.assert_array_equal(loaded.predict_proba(X), forest.predict_proba(X))
    np.testing.assert_array_equal(loaded.apply(X), forest.apply(X))
    assert loaded.get_params() == forest.get_params()
    assert loaded.classes_.tolist() == forest.classes_.tolist()
    assert loaded.coarse_classes_.dtype == forest.coarse_classes_.dtype
    assert loaded.hierarchy_ == forest.hierarchy_


@every_method
def test_saving_and_loading_between_updates_changes_nothing(method: str, tmp_path: Path) -> None:
    X, Y = samples(120)
    forest = small(method, storage=Storage(per_class=8)).fit(X, hidden(Y))
    more, Y_more = samples(90, seed=2)
    path = tmp_path / "forest.evergrow"
    for k in range(0, 90, 30):
        forest.save(path)
        loaded = evergrow.load(path)
        for model in (forest, loaded):
            model.partial_fit(more[k : k + 30], hidden(Y_more[k : k + 30]))
            if method in REFINABLE:
                ids = model._fitted.unconfirmed.ids[:3]
                owners = model._fitted.unconfirmed.coarse[:3]
                names = model.coarse_classes_[
                    np.searchsorted(model._fitted.tree.coarse_ids, owners)
                ]
                model.refine(ids, 3 * names + 1)
        np.testing.assert_array_equal(loaded.predict_proba(more), forest.predict_proba(more))
        assert loaded.guesses()[0].tolist() == forest.guesses()[0].tolist()
        assert loaded.guesses()[1].tolist() == forest.guesses()[1].tolist()
        forest = loaded


def test_a_file_for_inference_only_cannot_be_refined_or_updated(tmp_path: Path) -> None:
    X, Y = samples(120)
    loaded = reload(small().fit(X, hidden(Y)), tmp_path, inference_only=True)
    assert len(loaded.guesses()[0]) == 0
    for call in (
        lambda: loaded.partial_fit(X, Y),
        lambda: loaded.refine([0], [0]),
        lambda: loaded.forget(samples=[0]),
    ):
        with pytest.raises(ValueError, match="saved with inference_only=True"):
            call()
    loaded.set_params(update="uls").partial_fit(X, hidden(Y))
    assert loaded.score(X, Y) > 0.8


def test_stacked_forests_for_inference_only_learn_no_new_coarse_class(tmp_path: Path) -> None:
    X, Y = samples(120, range(9))
    loaded = reload(small("stacked").fit(X, hidden(Y)), tmp_path, inference_only=True)
    with pytest.raises(ValueError, match="saved with inference_only=True"):
        loaded.partial_fit(X, Y)
    loaded.set_params(update="uls").partial_fit(X, hidden(Y))
    with pytest.raises(ValueError, match="stacked forests cannot learn a new coarse class"):
        loaded.partial_fit(*samples(60, seed=1))
    assert loaded.score(X, Y) > 0.8


def test_the_first_of_two_forests_needs_its_samples(tmp_path: Path) -> None:
    X, Y = samples(120)
    forest = small("stacked").fit(X, hidden(Y))
    bare = reload(forest, tmp_path, inference_only=True)._fitted.stack
    forest._set_fitted(replace(forest._fitted, stack=bare), None)
    forest.save(tmp_path / "forest.evergrow")
    with pytest.raises(ModelFileError, match="lacks the samples of the first of its two forests"):
        evergrow.load(tmp_path / "forest.evergrow")


def test_ways_of_guessing_are_saved(tmp_path: Path) -> None:
    X, Y = samples(60)
    guess = NearestGuesser(scaling=np.float64(0.5))
    small(Hierarchical(guess=guess)).fit(X, hidden(Y)).save(tmp_path / "forest.evergrow")
    assert evergrow.load(tmp_path / "forest.evergrow").method.guess == guess


FORGED: list[tuple[str, Any]] = [
    ("fitted/forest/history/n_seen", 2),
    ("fitted/forest/proposer", "axis"),
    ("fitted/forest/labels/values", lambda old: old[::-1]),
    ("forest.n_comparisons", np.full(2, 2**63 - 1)),
    ("tree.parents", lambda old: old * 0),
    ("tree.parents", lambda old: old[:2]),
    ("tree.parents", at(0, -1)),
    ("tree.columns", at(0, 99)),
    ("fitted/method", "best"),
    ("fitted/method", "stacked"),
    ("parameters/method", {"kind": "os.system"}),
    ("parameters/method", {"kind": "NearestGuesser"}),
    ("parameters/method", {"kind": "Hierarchical", "smoothing": -1.0}),
    ("parameters/method", {"kind": "Hierarchical", "guess": {"kind": "Stacked"}}),
    ("parameters/method", {"kind": "FineOnly", "guess": {"kind": "NearestGuesser", "x": 1}}),
    ("unconfirmed.ids", np.arange(10**6, 10**6 + 5)),
    ("unconfirmed.ids", lambda old: old[::-1].copy()),
    ("unconfirmed.coarse", lambda old: np.full_like(old, 9)),
    ("unconfirmed.coarse", lambda old: old[::-1].copy()),
]
FORGED_STACKS: list[tuple[str, Any]] = [
    ("fitted/stack", None),
    ("fitted/stack/first", {}),
    ("fitted/stack/first/proposer", "axis"),
    ("fitted/stack/n_learnt", 2**53 + 1),
    ("stack.features.mean", np.zeros(3)),
    ("stack.features.scale", np.zeros(5)),
]


@pytest.mark.parametrize(
    ("method", "path", "value"),
    [*(("ridge-h", *each) for each in FORGED), *(("stacked", *each) for each in FORGED_STACKS)],
)
def test_a_forged_file_is_refused(method: str, path: str, value: Any, tmp_path: Path) -> None:
    X, Y = samples(80)
    reload(small(method, n_estimators=2).fit(X, hidden(Y)), tmp_path)
    check_refused(tmp_path / "model.evergrow", forge(path, value))
