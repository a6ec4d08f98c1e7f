"""Least squares and class means from shards: one pass and the same model with any engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evergrow
from evergrow import NCMClassifier, NCMMetric, RaggedArray, RLSClassifier, Shards
from evergrow.foundation.engine import use_engine
from evergrow.foundation.errors import ShardError
from evergrow.storage.shards import StoredRows
from evergrow.storage.shards import parts as row_parts
from evergrow.vision import KMeansCodebook
from tests.estimators.sums.test_accumulation import MODELS, check_same, fitted
from tests.foundation.engines import Shuffled

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


def test_rows_of_weight_zero_are_left_out_of_shards(stored: Any) -> None:
    shards, X, y = stored
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    model = RLSClassifier(random_state=0)
    found = fitted(model, shards, shards.labels, Shuffled(), sample_weight=weights)
    check_same(found, fitted(model, X, y, sample_weight=weights), X)


@pytest.mark.parametrize("model", [m for m in MODELS if "RFF" not in str(m)], ids=str)
def test_every_row_is_read_once(model: Any, stored: Any, rows_read: list[int]) -> None:
    shards, _, _ = stored
    fitted(model, shards, shards.labels)
    assert sum(rows_read) == len(shards)


def test_rows_of_shards_are_read_by_the_tasks_alone(stored: Any, rows_read: list[int]) -> None:
    shards, X, _ = stored
    engine = Shuffled()
    model = fitted(RLSClassifier(random_state=0), shards, shards.labels, engine)
    with use_engine(engine):
        answers = model.predict_proba(shards)
    assert rows_read == []
    np.testing.assert_allclose(answers, model.predict_proba(X), atol=1e-12)


def test_more_shards_join_what_was_known(stored: Any, tmp_path: Path) -> None:
    shards, X, y = stored
    more = evergrow.write_shards(
        tmp_path / "more", [(X[:500] + 1, ["new"] * 500)], rows_per_shard=99
    )
    expected = RLSClassifier(random_state=0).fit(X, y).partial_fit(X[:500] + 1, ["new"] * 500)
    model = RLSClassifier(random_state=0)
    with use_engine(Shuffled()):
        model.fit(shards, shards.labels).partial_fit(more, more.labels)
    check_same(model, expected, X)


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


def test_a_checkpoint_of_shards_is_named_by_their_digest(stored: Any, tmp_path: Path) -> None:
    shards, X, y = stored
    same = evergrow.write_shards(tmp_path / "same", [(X, y)], rows_per_shard=100)
    other = evergrow.write_shards(tmp_path / "other", [(X + 1, y)], rows_per_shard=100)
    engine = Shuffled(has_checkpoints=True)
    for given in (shards, same, other):
        fitted(NCMClassifier(), given, given.labels, engine)
    names = [job.name for job in engine.jobs]
    assert names[0] == names[1] != names[2]


@pytest.fixture(scope="module", params=["first", "middle", "last", "everywhere"])
def with_empty(
    request: pytest.FixtureRequest, digits: Any, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Shards, Any, Any]:
    """Shards of images of several rows, some of which have images without any; rows and labels."""
    X, _, y, _ = digits
    empty = RaggedArray(X[:0], [0, 0, 0])
    full = [RaggedArray(X[a : a + 300], [0, 0, 100, 300]) for a in range(0, 900, 300)]
    places = {"first": (0,), "middle": (1, 2), "last": (3,), "everywhere": (0, 1, 2, 3)}
    folder = tmp_path_factory.mktemp("empty") / "shards"
    for place in range(4):
        if place in places[request.param]:
            evergrow.write_shards(folder, [(empty, ["a", "b"])])
        if place < 3:
            evergrow.write_shards(folder, [(full[place], ["a", "b", "a"])])
    return evergrow.open_shards(folder), X[:900], y[:900]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_shards_without_rows_are_passed_over(model: Any, with_empty: Any) -> None:
    shards, X, y = with_empty
    found, expected = fitted(model, shards, y, Shuffled()), fitted(model, X, y)
    check_same(found, expected, X)
    with use_engine(Shuffled()):
        answers = found.predict_proba(shards)
    np.testing.assert_allclose(answers, expected.predict_proba(X), rtol=1e-9, atol=1e-9)


def test_shards_without_rows_are_projected_and_coded(with_empty: Any) -> None:
    shards, X, y = with_empty
    metric = NCMMetric(5, max_iter=2, random_state=0).fit(X, y)
    codebook = KMeansCodebook(9, random_state=0).fit(X)
    expected = codebook.encode(RaggedArray(X, shards.offsets))
    with use_engine(Shuffled()):
        np.testing.assert_allclose(metric.transform(shards), metric.transform(X), atol=1e-9)
        np.testing.assert_array_equal(codebook.transform(shards), codebook.transform(X))
        assert (codebook.encode(shards) != expected).nnz == 0


def test_chosen_rows_of_a_part_are_read_a_block_at_a_time(
    stored: Any, rows_read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    shards, X, y = stored
    chosen = np.random.default_rng(0).permutation(len(X))[:1000]
    monkeypatch.setattr("evergrow.estimators.sums.core_accumulator._READ_BYTES", 50 * 64 * 8)
    monkeypatch.setattr(row_parts, "_PART_BYTES", 400 * 64 * 4)
    with use_engine(Shuffled()):
        found = NCMClassifier().fit(shards.choose(chosen), y[chosen])
    assert (max(rows_read), sum(rows_read)) == (50, 1000)
    np.testing.assert_allclose(found.means_, NCMClassifier().fit(X[chosen], y[chosen]).means_)


def test_parts_of_wide_rows_are_no_larger_than_others() -> None:
    wide = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (100_000, 20_000), (0, 0))
    parts = row_parts.row_parts(wide)
    assert max(part.last - part.first for part in parts) * 20_000 * 4 <= row_parts._PART_BYTES
    # Of sums that are a square of features fewer and larger ones come back.
    squared = row_parts.row_parts(wide, squared=True)
    assert min(part.last - part.first for part in squared) > 2 * 20_000
