"""Penalty, recoding and temperature are selected on held-out examples, when that is due."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evergrow import RLSClassifier
from evergrow.estimators import HoldOut, LeaveOneOut
from evergrow.estimators.linear.equations import Ridge
from evergrow.estimators.linear.selection import SelectionRequest, penalty_unit
from evergrow.estimators.sums.holdout import Holdout
from evergrow.estimators.sums.moments import Batch
from tests.conftest import Arrays
from tests.reference.least_squares import held_out


def noisy(n: int, n_classes: int = 4, d: int = 30, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    centres = np.random.default_rng(99).normal(size=(n_classes, d))
    return rng.normal(size=(n, d)) * 3 + centres[y], y


def test_a_selected_penalty_beats_an_arbitrary_one() -> None:
    X, y = noisy(200)
    X_test, y_test = noisy(3000, seed=1)
    chosen = RLSClassifier(random_state=0).fit(X, y)
    careless = RLSClassifier(regularization=1e-6, recoding=0.0).fit(X, y)
    assert chosen.score(X_test, y_test) > careless.score(X_test, y_test)
    assert chosen.regularization_ > 1


@pytest.mark.parametrize("labels", [np.arange(60), np.r_[0, 0, 1, 1, 2:10]])
def test_nothing_is_selected_with_too_few_examples_to_leave_out(labels: Any) -> None:
    X, _ = noisy(len(labels))
    model = RLSClassifier(random_state=0).fit(X, labels)
    assert model.n_stored_.sum() == len(labels)
    assert model.recoding_ == 0.0
    # A power of two: it stays the same while single examples come.
    assert np.log2(model.regularization_) == round(np.log2(model.regularization_))


@pytest.mark.parametrize("batches", [[500], [1] * 60 + [440], [7] * 71 + [3]])
def test_every_sixth_example_of_each_class_is_held_out_however_they_come(
    batches: list[int],
) -> None:
    X, y = noisy(500)
    model, first = RLSClassifier(selection=HoldOut(max_stored=10**6), random_state=0), 0
    for size in batches:
        model.partial_fit(X[first : first + size], y[first : first + size])
        first += size
    held = model._fitted.holdout.batch
    rows, codes = held.rows, held.codes
    expected = held_out(y, 6)
    found = {(int(model.classes_[c]), *row.tolist()) for row, c in zip(rows, codes, strict=True)}
    assert found == {
        (int(c), *row.tolist()) for row, c in zip(X[expected], y[expected], strict=True)
    }


def test_the_kept_sample_is_uniform_and_does_not_depend_on_the_calls() -> None:
    places = np.zeros(120)
    X = np.arange(120.0)[:, None]
    codes, ones = np.zeros(120, dtype=np.int32), np.ones(120)
    for seed in range(400):
        options: dict[str, Any] = {"names": ["a"], "every": 2, "max_held_out": 10}
        at_once, _ = Holdout.none(10, seed).add(Batch(X, codes, ones), **options)
        split = Holdout.none(10, seed)
        for part in (slice(0, 33), slice(33, 34), slice(34, 120)):
            split, _ = split.add(Batch(X[part], codes[part], ones[part]), **options)
        assert at_once.batch.rows.tolist() == split.batch.rows.tolist()
        places[at_once.batch.rows[:, 0].astype(int)] += 1
    assert (places[::2] == 0).all()
    # Each of the 60 offered is there in 400 / 6 of the trials, give or take.
    assert abs(places[1::2] - 400 / 6).max() < 5 * np.sqrt(400 / 6)


def test_held_out_examples_are_learnt_too_unless_that_is_switched_off() -> None:
    X, y = noisy(300)
    held = held_out(y, 6)
    model = RLSClassifier(regularization=2.0, selection=HoldOut(), random_state=0).fit(X, y)
    everything = RLSClassifier(regularization=2.0, recoding=model.recoding_).fit(X, y)
    np.testing.assert_allclose(model.coef_, everything.coef_, atol=1e-10)
    model.set_params(selection__refit=False)
    others = RLSClassifier(regularization=2.0, recoding=model.recoding_).fit(X[~held], y[~held])
    ratio = model.coef_ / others.coef_
    # Recoding counts all examples; the weights before it are those of the others.
    np.testing.assert_allclose(ratio, ratio[:, :1] * np.ones(ratio.shape[1]), rtol=1e-6)


@pytest.mark.parametrize("selection", [LeaveOneOut(), HoldOut()])
def test_classes_with_few_examples_have_no_vote(digits: Arrays, selection: Any) -> None:
    X, _, y, _ = digits
    few = np.concatenate([np.flatnonzero(y != 8), np.flatnonzero(y == 8)[:12]])
    model = RLSClassifier(selection=selection, random_state=0).fit(X[few], y[few])
    stream = model._fitted._validation(SelectionRequest(None, None, rule=selection.rule))
    held = stream.held
    assert not stream.votes[held.codes == 8].any()
    assert stream.votes[held.codes != 8].all()


def test_a_model_of_which_only_held_out_examples_are_left_still_answers() -> None:
    X, y = noisy(60, n_classes=2)
    for standardize in (False, True):
        model = RLSClassifier(
            selection=HoldOut(every=2, refit=False),
            standardize=standardize,
            random_state=0,
        ).fit(X, y)
        held = model._fitted.holdout.batch
        gone = ~(X[:, None] == held.rows).all(axis=2).any(axis=1)
        model.forget(X[gone], y[gone])
        assert np.isfinite(model.predict_proba(X)).all()


def test_the_search_for_a_penalty_goes_on_as_far_as_it_helps() -> None:
    X, y = noisy(3000, d=5)
    # Most features are tiny, so that the default penalty is much too large for the rest.
    X = np.column_stack([1e-3 * X, 50 * np.random.default_rng(0).normal(size=(3000, 3))])
    model = RLSClassifier(random_state=0).fit(X, y)
    careless = RLSClassifier(regularization=2.0**12, recoding=0.0).fit(X, y)
    assert model.regularization_ < 1
    assert model.score(X, y) > careless.score(X, y) + 0.05


def test_the_rule_of_the_paper_selects_a_penalty_for_each_recoding() -> None:
    X, y = noisy(900)
    rare = (y == 3) & (np.arange(900) > 100)
    X, y = X[~rare], y[~rare]
    for given in (None, 0.4):
        model = RLSClassifier(
            recoding="auto" if given is None else given, selection=HoldOut(), random_state=0
        ).fit(X, y)
        stream = model._fitted._validation(SelectionRequest(None, None, rule="hold-out"))
        unit = penalty_unit(stream.trained, Ridge(1.0))
        grid = unit * 10.0 ** np.arange(-5, 2)
        plain = max(stream.accuracy(stream.scores(Ridge(p))) for p in grid)
        scores = stream.scores(Ridge(model.regularization_))
        found = stream.accuracy(stream.recoded(scores, model.recoding_))
        assert given is not None or found >= plain
        assert given is None or model.recoding_ == given
        others = [
            stream.accuracy(stream.recoded(stream.scores(Ridge(p)), model.recoding_)) for p in grid
        ]
        assert found >= max(others)


@pytest.mark.parametrize("share", [0.5, 0.1, 0.03])
def test_the_boundary_between_two_classes_of_any_sizes_is_between_them(share: float) -> None:
    rng = np.random.default_rng(0)
    y = (rng.random(2000) < share).astype(int)
    X = rng.normal(size=(2000, 5)) + 4.0 * y[:, None] * np.eye(5)[0]
    model = RLSClassifier(random_state=0).fit(X[:1000], y[:1000])
    right = model.predict(X[1000:]) == y[1000:]
    assert right[y[1000:] == 0].mean() > 0.9
    assert right[y[1000:] == 1].mean() > 0.9


def test_a_large_class_next_to_small_ones_keeps_its_examples(digits: Arrays) -> None:
    X, X_test, y, y_test = digits
    sizes = {1: 130, 3: 13, 8: 13}
    places = np.concatenate([np.flatnonzero(y == c)[:n] for c, n in sizes.items()])
    model = RLSClassifier(random_state=0).fit(X[places], y[places])
    right = model.predict(X_test) == y_test
    assert right[y_test == 1].mean() > 0.9
    assert min(right[y_test == c].mean() for c in (3, 8)) > 0.6


@pytest.mark.parametrize("unit", [1e-15, 1e-8, 1e8])
def test_the_unit_of_the_features_does_not_matter(digits: Arrays, unit: float) -> None:
    X, X_test, y, _ = digits
    for n in (8, 400):
        plain, scaled = (
            RLSClassifier(random_state=0).fit(X[:n] * one, y[:n]).predict(X_test * one)
            for one in (1.0, unit)
        )
        assert (plain == scaled).mean() > 0.95
