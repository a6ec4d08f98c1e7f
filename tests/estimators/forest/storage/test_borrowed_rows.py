"""Samples that borrow an array grow the same forests and never change the array."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from evergrow import _core
from evergrow.estimators.forest.strategy import STRATEGIES
from tests.estimators.forest.blobs import N_FEATURES, Array, blobs
from tests.estimators.forest.cores import (
    RULES,
    aligned,
    equal_trees,
    grow,
    plan,
    standardizer,
    written,
)

N_ROWS = 200
X, Y = blobs(N_ROWS, range(6))
CODES, IDS = Y.astype(np.int32), np.arange(N_ROWS, dtype=np.int64)
BY_CLASS = np.argsort(Y, kind="stable")
# Where each row lies in an array that is in the order of the classes.
PLACES = np.argsort(BY_CLASS).astype(np.int32)


def padded(X: Array, *, half: bool = False) -> Array:
    """Standardised rows of the padded width."""
    out = aligned((len(X), _core.padded_width(X.shape[1])), np.uint16 if half else np.float32)
    _core.standardize_rows(X, standardizer(N_FEATURES), out)
    return out


def over(*, half: bool = False, by_class: bool = False) -> _core.Samples:
    """The rows as a read-only array."""
    rows = padded(X[BY_CLASS] if by_class else X, half=half)
    rows.flags.writeable = False
    places = PLACES if by_class else None
    return _core.Samples.over(rows, CODES, IDS, n_features=N_FEATURES, places=places)


@pytest.mark.parametrize("proposer", RULES)
@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("by_class", [False, True])
def test_a_forest_over_an_array_is_that_of_rows_written_one_by_one(
    proposer: str, half: bool, by_class: bool
) -> None:
    plain = grow(written(X, CODES, half=half), proposer)
    foreign = grow(over(half=half, by_class=by_class), proposer)
    foreign.check()
    equal_trees(foreign, plain)


# In bytes of a row: none fits, some subtrees do, the whole tree does.
BUDGETS = [1, 64 * 3, 64 * 50, 64 * N_ROWS]


@pytest.mark.parametrize("proposer", RULES)
@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("bootstrap", [False, True])
def test_a_forest_does_not_depend_on_how_many_rows_may_be_copied(
    proposer: str, half: bool, bootstrap: bool
) -> None:
    plain = grow(written(X, CODES, half=half), proposer, bootstrap=bootstrap)
    samples = over(half=half, by_class=True)
    for budget in BUDGETS:
        options = {"row_budget": budget, "bootstrap": bootstrap}
        for n_threads in (1, 3):
            forest = grow(samples, proposer, n_threads=n_threads, **options)
            forest.check()
            equal_trees(forest, plain)


@pytest.mark.parametrize("half", [False, True])
def test_rows_over_an_array_are_those_that_were_written(half: bool) -> None:
    numbers = np.arange(N_ROWS, dtype=np.int32)
    plain, foreign = written(X, CODES, half=half), over(half=half, by_class=True)
    np.testing.assert_array_equal(foreign.take(numbers), plain.take(numbers))
    np.testing.assert_array_equal(foreign.classes, plain.classes)
    np.testing.assert_array_equal(foreign.ids, plain.ids)
    assert foreign.half == plain.half
    assert foreign.width == plain.width


MORE, MORE_Y = blobs(60, [1, 6, 7], seed=1)
MORE_CODES, MORE_IDS = MORE_Y.astype(np.int32), N_ROWS + np.arange(60, dtype=np.int64)


def write_more(samples: _core.Samples) -> Array:
    numbers = samples.add(len(MORE))
    samples.write(numbers, MORE, MORE_CODES, MORE_IDS, standardizer(N_FEATURES))
    return numbers


def lay_more(samples: _core.Samples) -> Array:
    """The same rows as an array that is in the order of the classes."""
    order = np.argsort(MORE_Y, kind="stable")
    places = np.argsort(order).astype(np.int32)
    rows = padded(MORE[order], half=samples.half)
    rows.flags.writeable = False
    return samples.add_over(rows, MORE_CODES, MORE_IDS, places=places)


@pytest.mark.parametrize("by_class", [False, True])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("add", [write_more, lay_more])
def test_rows_can_be_added_and_removed_after(
    by_class: bool, strategy: str, add: Callable[[_core.Samples], Array]
) -> None:
    forests = []
    for first in (written(X, CODES), over(by_class=by_class)):
        forest, samples = grow(first, "ncm"), first.copy()
        is_plain = not forests
        numbers = write_more(samples) if is_plain else add(samples)
        none = np.zeros(0, dtype=np.int32)
        forest, _ = forest.update(
            samples=samples,
            rows=numbers,
            evicted=none,
            plan=plan("ncm", strategy=strategy, n_classes=8, row_budget=0 if is_plain else 900),
            n_threads=1,
            progress=None,
        )
        gone = np.arange(0, N_ROWS + len(MORE), 7, dtype=np.int32)
        forest, _ = forest.forget(
            rows=gone,
            classes=[],
            plan=plan("ncm", update=2, n_classes=8),
            n_threads=1,
            progress=None,
        )
        left = samples.copy()
        left.remove(gone)
        forest = forest.with_samples(left)
        forest.check()
        if is_plain:
            write_more(left)
        else:
            add(left)
        forests.append(forest)
    equal_trees(*forests)
    numbers = np.arange(len(forests[0].samples), dtype=np.int32)
    plain, foreign = (forest.samples for forest in forests)
    np.testing.assert_array_equal(foreign.take(numbers), plain.take(numbers))


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("by_class", [False, True])
def test_nothing_is_written_to_the_array(half: bool, by_class: bool) -> None:
    rows = padded(X[BY_CLASS], half=half)
    before = rows.copy()
    samples = _core.Samples.over(
        rows, CODES, IDS, n_features=N_FEATURES, places=PLACES if by_class else None
    )
    samples.remove(np.arange(0, N_ROWS, 3, dtype=np.int32))
    numbers = samples.add(N_ROWS)
    samples.write(numbers, X + 1, CODES, N_ROWS + IDS, standardizer(N_FEATURES))
    assert (samples.classes >= 0).all()
    np.testing.assert_array_equal(rows, before)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("by_class", [False, True])
def test_one_row_of_an_array_is_not_written_to_either(half: bool, by_class: bool) -> None:
    rows = padded(X[:1], half=half)
    before = rows.copy()
    places = np.zeros(1, np.int32) if by_class else None
    samples = _core.Samples.over(rows, CODES[:1], IDS[:1], n_features=N_FEATURES, places=places)
    samples.remove(np.zeros(1, np.int32))
    samples.write(samples.add(1), X[1:2], CODES[:1], IDS[1:2], standardizer(N_FEATURES))
    np.testing.assert_array_equal(rows, before)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("first", ["memory", "array", "array by class"])
def test_rows_of_an_array_take_the_numbers_of_removed_ones(half: bool, first: str) -> None:
    plain = written(X, CODES, half=half)
    by_class = first == "array by class"
    foreign = (
        written(X, CODES, half=half) if first == "memory" else over(half=half, by_class=by_class)
    )
    numbers = []
    for samples, add in ((plain, write_more), (foreign, lay_more)):
        samples.remove(np.arange(0, 160, 4, dtype=np.int32))
        numbers.append(add(samples))
    np.testing.assert_array_equal(*numbers)
    everything = np.arange(len(plain), dtype=np.int32)
    np.testing.assert_array_equal(foreign.take(everything), plain.take(everything))
    np.testing.assert_array_equal(foreign.classes, plain.classes)
    np.testing.assert_array_equal(foreign.ids, plain.ids)
    assert foreign.n_removed == plain.n_removed == 0


def test_own_bytes_are_those_of_rows_in_no_array() -> None:
    samples = over(by_class=True)
    assert samples.own_nbytes == 0
    assert written(X, CODES).own_nbytes >= N_ROWS * 64
    lay_more(samples)
    assert samples.own_nbytes == 0
    assert write_more(samples).tolist() == list(range(260, 320))
    assert samples.own_nbytes == 60 * 64


def test_an_array_of_another_precision_is_not_added() -> None:
    with pytest.raises(ValueError, match="precision"):
        over(half=True).add_over(padded(X), CODES, IDS)


class Owned(np.ndarray[Any, Any]):
    """An array that can be watched."""


@pytest.mark.parametrize("by_class", [False, True])
def test_the_array_lives_as_long_as_a_forest_over_it(by_class: bool) -> None:
    rows = padded(X).view(Owned)
    watched = weakref.ref(rows)
    places = PLACES if by_class else None
    forest = grow(_core.Samples.over(rows, CODES, IDS, n_features=6, places=places), "ncm")
    del rows
    gc.collect()
    assert watched() is not None
    del forest
    gc.collect()
    assert watched() is None


@pytest.mark.parametrize("by_class", [False, True])
def test_tidying_leaves_rows_where_they_are(by_class: bool) -> None:
    forests = []
    for samples in (written(X, CODES), over(by_class=by_class)):
        forest = grow(samples, "ncm")
        gone = np.arange(0, N_ROWS, 4, dtype=np.int32)
        forest, _ = forest.forget(
            rows=gone, classes=[], plan=plan("ncm"), n_threads=1, progress=None
        )
        left = samples.copy()
        left.remove(gone)
        forests.append(forest.with_samples(left).compact())
        forests[-1].check()
    equal_trees(*forests)
    plain, foreign = (forest.samples for forest in forests)
    numbers = np.arange(len(plain), dtype=np.int32)
    assert len(foreign) == len(plain) == N_ROWS - 50
    np.testing.assert_array_equal(foreign.take(numbers), plain.take(numbers))
    np.testing.assert_array_equal(foreign.ids, plain.ids)


def test_a_class_of_minus_one_is_a_removed_row() -> None:
    classes = CODES.copy()
    classes[5] = -1
    samples = _core.Samples.over(padded(X), classes, IDS, n_features=N_FEATURES)
    assert samples.n_removed == 1
    assert samples.add(1).tolist() == [5]


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "width": ({"rows": aligned((N_ROWS, 32), np.float32)}, "padded width, 16 columns, got 32"),
    "alignment": ({"rows": aligned((N_ROWS + 1, 16), np.float32).reshape(-1)[4:-12]}, "64 bytes"),
    "ids": ({"ids": IDS[1:]}, "differ in length"),
    "classes": ({"classes": CODES[1:]}, "differ in length"),
    "a class": ({"classes": CODES - 2}, "classes must be at least"),
    "places": ({"places": PLACES[1:]}, "differ in length"),
    "a place": ({"places": PLACES + 1}, "places must be from"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_does_not_fit_is_refused(case: str) -> None:
    values: dict[str, Any] = {"rows": padded(X), "classes": CODES, "ids": IDS, **BAD[case][0]}
    values["rows"] = values["rows"].reshape(-1, values["rows"].shape[-1] if case == "width" else 16)
    with pytest.raises(ValueError, match=BAD[case][1]):
        _core.Samples.over(**values, n_features=N_FEATURES)


@pytest.mark.parametrize(
    ("X", "out"), [(X[:, 1:].copy(), padded(X)), (X, padded(X)[:5]), (X, aligned((200, 6), "f4"))]
)
def test_rows_are_only_standardised_into_an_array_of_their_shape(X: Array, out: Array) -> None:
    with pytest.raises(ValueError, match=r"width|length"):
        _core.standardize_rows(X, standardizer(N_FEATURES), out)
