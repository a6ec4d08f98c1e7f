"""The sums over parts, computed by any engine, add up to the sums over all examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import evergrow
from evergrow import NCMClassifier, RLSClassifier, Shards
from evergrow.estimators import RFF, LeaveOneOut, ReLU
from evergrow.estimators.sums import accumulation
from evergrow.foundation.engine import LocalEngine, use_engine
from evergrow.foundation.errors import ShardError
from evergrow.storage.models.codec import encode
from evergrow.storage.shards import StoredRows
from evergrow.storage.shards import parts as row_parts
from tests.foundation.engines import Shuffled

MODELS = [
    RLSClassifier(random_state=0),
    RLSClassifier(random_state=0, standardize=True),
    RLSClassifier(random_state=0, regularization=1.0, recoding=0.5, keep_class_statistics=True),
    RLSClassifier(random_state=0, features=ReLU(50), fit_intercept=False),
    RLSClassifier(random_state=0, features=RFF(50)),
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


def test_the_held_out_examples_do_not_depend_on_the_parts(digits: Any) -> None:
    X, y, X_test = sorted_digits(digits)
    far = [fitted(RLSClassifier(random_state=0), X + 1e9, y, one) for one in (None, Shuffled())]
    check_same(*far, X_test + 1e9)
    model = RLSClassifier(random_state=0, selection=LeaveOneOut(60))
    here, there = fitted(model, X, y), fitted(model, X, y, Shuffled())
    found = encode(there._fitted.holdout)[1]
    for name, array in encode(here._fitted.holdout)[1].items():
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


def test_stopped_work_resumes_with_the_finished_parts(
    digits: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, X_test = sorted_digits(digits)
    model = RLSClassifier(features=ReLU(30))
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


ENGINES = [None, Shuffled()]


@pytest.fixture(scope="module")
def stored(digits: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Shards, Any, Any]:
    """Shards of digits, and the same as arrays."""
    X, _, y, _ = digits
    X = X.astype(np.float32)
    names = np.array([f"digit {k}" for k in range(10)])[y]
    folder = tmp_path_factory.mktemp("shards") / "digits"
    return evergrow.write_shards(folder, [(X, names)], rows_per_shard=100), X, names


@pytest.fixture
def rows_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of rows that were asked for, and a failure where all are asked for at once."""
    counts: list[int] = []
    plain, plain_at = Shards._span, Shards._at

    def span(self: Shards, first: int, last: int, step: int) -> Any:
        counts.append(last - first)
        return plain(self, first, last, step)

    def at(self: Shards, numbers: Any) -> Any:
        counts.append(len(numbers))
        return plain_at(self, numbers)

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("all rows were read into memory")

    monkeypatch.setattr(Shards, "_span", span)
    monkeypatch.setattr(Shards, "_at", at)
    monkeypatch.setattr(StoredRows, "__array__", refuse)
    return counts


@pytest.mark.parametrize("engine", ENGINES, ids=["none", "shuffled"])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_model_of_shards_is_that_of_the_array(model: Any, engine: Any, stored: Any) -> None:
    shards, X, y = stored
    check_same(fitted(model, shards, shards.labels, engine), fitted(model, X, y), X)


@pytest.mark.parametrize("engine", ENGINES, ids=["none", "shuffled"])
def test_a_damaged_shard_is_named_and_leaves_the_model_as_it_was(
    engine: Any, stored: Any, tmp_path: Path
) -> None:
    _, X, y = stored
    shards = evergrow.write_shards(tmp_path / "shards", [(X, y)], rows_per_shard=100)
    model = NCMClassifier().fit(X, y)
    before = model.means_
    damaged = tmp_path / "shards" / shards.parts[5].file
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)
    with use_engine(engine), pytest.raises(ShardError, match=damaged.name):
        model.partial_fit(shards, shards.labels)
    np.testing.assert_array_equal(model.means_, before)


def test_chosen_rows_of_a_part_are_read_a_block_at_a_time(
    stored: Any, rows_read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    shards, X, y = stored
    chosen = np.random.default_rng(0).permutation(len(X))[:1000]
    monkeypatch.setattr("evergrow.estimators.sums.core_accumulator._READ_BYTES", 50 * 64 * 8)
    monkeypatch.setattr(row_parts, "_PART_BYTES", 400 * 64 * 4)
    with use_engine(Shuffled()):
        found = NCMClassifier().fit(shards.choose(chosen), y[chosen])
    # After the first ones, which decide on the shift.
    assert (max(rows_read[1:]), sum(rows_read[1:])) == (50, 1000)
    np.testing.assert_allclose(found.means_, NCMClassifier().fit(X[chosen], y[chosen]).means_)
