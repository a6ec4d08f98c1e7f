"""The sums over parts, computed by any engine, add up to the sums over all examples."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import evergrow
from evergrow import NCMClassifier, NCMMetric, RLSClassifier
from evergrow.estimators import RFF, RebalancedRLSClassifier
from evergrow.estimators.sums import accumulation
from evergrow.estimators.sums.serialization import holdout_to_arrays
from evergrow.foundation.engine import LocalEngine, use_engine
from evergrow.storage.shards import parts as row_parts
from tests.foundation.engines import Shuffled

MODELS = [
    RLSClassifier(random_state=0),
    RLSClassifier(random_state=0, standardize=True, refit_held_out=False),
    RLSClassifier(random_state=0, regularization=1.0, recoding=0.5, keep_class_statistics=True),
    RLSClassifier(random_state=0, n_random_features=50, fit_intercept=False),
    RLSClassifier(random_state=0, n_random_features=50, feature_map=RFF()),
    RebalancedRLSClassifier(random_state=0),
    NCMClassifier(),
    NCMClassifier(metric="mahalanobis"),
    NCMClassifier(metric="mahalanobis", keep_class_statistics=True),
]
# Of a part: a few hundred digits.
SMALL = 200 * 64 * 8


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_parts, "_PART_BYTES", SMALL)


def sorted_digits(digits: Any) -> tuple[Any, Any, Any]:
    """Digits of which most parts have some classes only."""
    X, X_test, y, _ = digits
    order = np.argsort(y, kind="stable")
    return X[order], y[order], X_test


def fitted(model: Any, X: Any, y: Any, engine: Any = None, **options: Any) -> Any:
    with use_engine(engine):
        return clone(model).fit(X, y, **options)


def fitted_now(model: Any, X: Any, y: Any) -> Any:
    """A fit by whatever engine is in use."""
    return clone(model).fit(X, y)


def check_same(model: Any, expected: Any, X: Any) -> None:
    np.testing.assert_array_equal(model.classes_, expected.classes_)
    np.testing.assert_array_equal(model.class_counts_, expected.class_counts_)
    for name in ("coef_", "intercept_", "means_", "regularization_", "recoding_", "temperature_"):
        if hasattr(expected, name):
            np.testing.assert_allclose(
                getattr(model, name), getattr(expected, name), rtol=1e-9, atol=1e-9, err_msg=name
            )
    np.testing.assert_allclose(
        model.predict_proba(X), expected.predict_proba(X), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("engine", [LocalEngine(), Shuffled()], ids=["in process", "shuffled"])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_model_learnt_by_parts_is_the_one_learnt_at_once(
    model: Any, engine: Any, digits: Any
) -> None:
    X, y, X_test = sorted_digits(digits)
    check_same(fitted(model, X, y, engine), fitted(model, X, y), X_test)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_the_order_in_which_parts_finish_changes_nothing(model: Any, digits: Any) -> None:
    X, y, X_test = sorted_digits(digits)
    first, second = (fitted(model, X, y, Shuffled(seed)) for seed in (1, 2))
    np.testing.assert_array_equal(first.predict_proba(X_test), second.predict_proba(X_test))


@pytest.mark.parametrize("model", [m for m in MODELS if hasattr(m, "partial_fit")], ids=str)
def test_more_examples_by_parts_join_what_was_known(model: Any, digits: Any) -> None:
    X, y, X_test = sorted_digits(digits)
    old = y < 6
    expected = fitted(model, X[old], y[old]).partial_fit(X[~old], y[~old])
    grown = fitted(model, X[old], y[old])
    with use_engine(Shuffled()):
        grown.partial_fit(X[~old], y[~old])
    check_same(grown, expected, X_test)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_weights_are_sent_with_their_examples(model: Any, digits: Any) -> None:
    X, y, X_test = sorted_digits(digits)
    weights = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    by_parts = fitted(model, X, y, Shuffled(), sample_weight=weights)
    check_same(by_parts, fitted(model, X, y, sample_weight=weights), X_test)


def test_the_held_out_examples_do_not_depend_on_the_parts(digits: Any) -> None:
    X, y, _ = sorted_digits(digits)
    model = RLSClassifier(random_state=0, max_stored=60)
    here, there = fitted(model, X, y), fitted(model, X, y, Shuffled())
    found = holdout_to_arrays(there._fitted.holdout)
    for name, array in holdout_to_arrays(here._fitted.holdout).items():
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("n_times", [1, 8])
def test_what_a_part_sends_grows_with_features_and_not_with_rows(n_times: int) -> None:
    rng = np.random.default_rng(0)
    n, d, n_classes = 1600 * n_times, 64, 4
    X, y = rng.normal(size=(n, d)), rng.integers(0, n_classes, n)
    engine = Shuffled()
    fitted(RLSClassifier(regularization=1.0, recoding=0.0), X, y, engine)
    width = d + 1
    sums = 8 * (width * (width + 1) // 2 + n_classes * width)
    assert len(engine.sizes) > 1
    # And a few numbers per class.
    assert set(engine.sizes) == {sums + n_classes * 4 * 8}


def test_no_more_rows_are_sent_than_can_be_held_out() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(9000, 20)), rng.integers(0, 3, 9000)
    plain, choosing = Shuffled(), Shuffled()
    fitted(RLSClassifier(regularization=1.0, recoding=0.0), X, y, plain)
    fitted(RLSClassifier(random_state=0, max_stored=30), X, y, choosing)
    assert sum(choosing.sizes) - sum(plain.sizes) == 30 * 20 * 8


def test_classes_that_a_part_lacks_are_not_sent() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8000, 10)), np.repeat(np.arange(1000), 8)
    engine = Shuffled()
    fitted(NCMClassifier(), X, y, engine)
    assert max(engine.sizes) < 8 * 1000 * 10 / 2


def test_numbers_too_large_are_found_in_any_part_and_leave_the_model_as_it_was(
    digits: Any,
) -> None:
    X, y, X_test = sorted_digits(digits)
    model = fitted(RLSClassifier(regularization=1.0, recoding=0.0), X, y)
    before = model.predict_proba(X_test)
    broken = X.copy()
    broken[-1, 3] = 1e200
    with use_engine(Shuffled()), pytest.raises(ValueError, match="too large to add up"):
        model.partial_fit(broken, y)
    np.testing.assert_array_equal(model.predict_proba(X_test), before)


def test_a_checkpoint_is_named_by_all_inputs(digits: Any) -> None:
    X, y, _ = sorted_digits(digits)
    other_X, other_y = X.copy(), y.copy()
    other_X[7, 7] += 1
    other_y[7] = 9

    def name(X: Any, y: Any, **options: Any) -> str | None:
        engine = Shuffled(has_checkpoints=True)
        model = RLSClassifier(**{"random_state": 0, "max_stored": 50, **options})
        fitted(model, X, y, engine)
        return engine.jobs[-1].name

    names = [
        name(X, y),
        name(other_X, y),
        name(X, other_y),
        name(X, y, fit_intercept=False),
        name(X, y, n_random_features=9),
        name(X, y, random_state=1),
    ]
    assert None not in names
    assert len(set(names)) == len(names)
    assert name(X, y) == names[0]


def test_an_engine_without_checkpoints_needs_no_name(digits: Any) -> None:
    X, y, _ = sorted_digits(digits)
    engine = Shuffled()
    fitted(NCMClassifier(), X, y, engine)
    assert [job.name for job in engine.jobs] == [None]


def test_few_examples_are_not_sent_anywhere(digits: Any) -> None:
    X, y, _ = sorted_digits(digits)
    model, engine = fitted(NCMClassifier(), X, y), Shuffled()
    with use_engine(engine):
        model.partial_fit(X[:5], y[:5])
    assert not engine.sizes


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_many_rows_are_answered_part_by_part(model: Any, digits: Any) -> None:
    X, y, _ = sorted_digits(digits)
    known, engine = fitted(model, X, y), Shuffled()
    methods = ["predict", "predict_proba", "predict_log_proba", "decision_function"]
    for method in [*methods, "predict_top_k"]:
        answer = getattr(known, method)
        expected = answer(X)
        with use_engine(engine):
            found = answer(X)
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        else:
            np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype
    assert len(engine.jobs) == 5


def test_tasks_that_predict_get_weights_and_no_sums() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 60)), rng.integers(0, 3, 3000)
    model = RLSClassifier(random_state=0, keep_class_statistics=True).fit(X, y)
    assert len(pickle.dumps(model._portable_scores())) < 8 * 3 * 61 + 2000


def test_a_metric_projects_part_by_part(digits: Any) -> None:
    X, y, _ = sorted_digits(digits)
    metric, engine = NCMMetric(5, max_iter=2, random_state=0), Shuffled()
    with use_engine(engine):
        projected = metric.fit(X, y).transform(X)
    expected = NCMMetric(5, max_iter=2, random_state=0).fit(X, y).transform(X)
    np.testing.assert_allclose(projected, expected, rtol=1e-5, atol=1e-5)
    assert [job.description for job in engine.jobs] == ["adding examples", "projecting"]


def test_stopped_work_resumes_with_the_finished_parts(
    digits: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, X_test = sorted_digits(digits)
    model = RLSClassifier(n_random_features=30)
    plain, done = accumulation.sum_part, []

    def stopping(part: Any, *shared: Any) -> Any:
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(part)
        return plain(part, *shared)

    monkeypatch.setattr(accumulation, "sum_part", stopping)
    with pytest.raises(KeyboardInterrupt), evergrow.cluster(None, resume=tmp_path):
        fitted_now(model, X, y)
    n_parts = len(row_parts.row_parts(X, squared=True))

    def counting(part: Any, *shared: Any) -> Any:
        done.append(part)
        return plain(part, *shared)

    monkeypatch.setattr(accumulation, "sum_part", counting)
    with evergrow.cluster(None, resume=tmp_path):
        first = fitted_now(model, X, y)
    assert len(done) == n_parts

    def refuse(*_: Any) -> None:
        raise AssertionError("a part was done again")

    monkeypatch.setattr(accumulation, "sum_part", refuse)
    with evergrow.cluster(None, resume=tmp_path):
        second = fitted_now(model, X, y)
    np.testing.assert_array_equal(first.predict_proba(X_test), second.predict_proba(X_test))
