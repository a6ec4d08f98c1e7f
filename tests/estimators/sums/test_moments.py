"""Sums do not depend on the order in which examples are added and subtracted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evergrow.estimators.sums.changes import ForgetError, move, subtract
from evergrow.estimators.sums.moments import FEW, WAITING, Batch, Moments
from evergrow.estimators.sums.serialization import moments_from_arrays, moments_to_arrays


def batch(n: int, seed: int = 0, n_classes: int = 3) -> Batch:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_classes, n).astype(np.int32)
    return Batch(rng.normal(size=(n, 4)), codes, rng.random(n) + 0.5)


def check(moments: Moments, expected: Batch) -> None:
    rows, codes, weights = expected.rows, expected.codes, expected.weights
    one_hot = np.eye(moments.n_classes)[codes]
    np.testing.assert_allclose(moments.sums, (one_hot * weights[:, None]).T @ rows, atol=1e-9)
    np.testing.assert_allclose(moments.class_weights, weights @ one_hot, atol=1e-9)
    assert moments.class_examples.tolist() == one_hot.sum(axis=0).tolist()
    squares = (weights * (rows**2).sum(axis=1)) @ one_hot
    np.testing.assert_allclose(moments.class_squares, squares, atol=1e-9)
    if moments.settled is not None:
        gram = (rows * weights[:, None]).T @ rows
        np.testing.assert_allclose(np.triu(moments.gram), np.triu(gram), atol=1e-9)


def of_class(examples: Batch, column: int) -> Batch:
    mine = examples.codes == column
    return Batch(examples.rows[mine], examples.codes[mine], examples.weights[mine])


def joined(*batches: Batch) -> Batch:
    arrays = (
        np.concatenate([getattr(b, n) for b in batches]) for n in ("rows", "codes", "weights")
    )
    return Batch(*arrays)


@pytest.mark.parametrize(
    "options", [{"gram": True}, {"gram": False}, {"gram": True, "per_class": True}]
)
@pytest.mark.parametrize("sizes", [[1] * 300, [FEW - 1] * 12, [FEW] * 4, [500, 1, 1, 200, 3]])
def test_sums_are_those_of_all_examples(options: dict[str, Any], sizes: list[int]) -> None:
    moments = Moments.none(4, 3, **options)
    parts = [batch(n, seed) for seed, n in enumerate(sizes)]
    for part in parts:
        moments = moments.add(part)
        assert sum(len(few.rows) for few in moments.waiting) <= WAITING
    check(moments, joined(*parts))
    back = moments_from_arrays(moments_to_arrays(moments), 4, 3)
    check(back, joined(*parts))
    check(subtract(moments, parts[:2]), joined(*parts[2:]))


def test_nothing_changes_a_value() -> None:
    first = Moments.none(4, 3, gram=True, per_class=True).add(batch(100))
    copy = {name: array.copy() for name, array in moments_to_arrays(first).items()}
    second = subtract(first.add(batch(1, 1)).add(batch(100, 2)), [batch(100)])
    second.relabel([0, 0, 1], 2)
    first.merged(second, [2, 1, 0], 3)
    for name, array in moments_to_arrays(first).items():
        np.testing.assert_array_equal(array, copy[name])


def test_classes_are_joined_left_out_and_merged() -> None:
    parts = [batch(80, 1), batch(5, 2)]
    moments = Moments.none(4, 3, gram=True, per_class=True).add(parts[0]).add(parts[1])
    everything = joined(*parts)
    place = np.array([1, 0, 1], dtype=np.int32)
    renamed = Batch(everything.rows, place[everything.codes], everything.weights)
    check(moments.relabel([1, 0, 1], 2), renamed)
    kept = everything.codes != 1
    left = Batch(everything.rows[kept], everything.codes[kept] // 2, everything.weights[kept])
    check(moments.relabel([0, -1, 1], 2), left)
    check(moments.merged(moments, [1, 0, 1], 3), joined(everything, renamed))


def test_examples_added_since_a_token_can_be_followed() -> None:
    moments = Moments.none(4, 3, gram=True).add(batch(100))
    tokens = [moments.latest]
    for seed in range(3 * WAITING):
        moments = moments.add(batch(1, seed))
        tokens.append(moments.latest)
    assert moments.follow(moments.latest) == ()
    followed = moments.follow(tokens[-11])
    assert followed is not None
    assert [b.rows.tolist() for b in followed] == [
        batch(1, seed).rows.tolist() for seed in range(3 * WAITING - 10, 3 * WAITING)
    ]
    assert moments.follow(tokens[0]) is None
    assert moments.follow(object()) is None
    # Another branch of the same sums is not taken for this one.
    assert moments.add(batch(1, 1)).follow(moments.add(batch(1, 2)).latest) is None


@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0])
def test_examples_that_were_never_learnt_cannot_be_subtracted(scale: float) -> None:
    learnt = batch(12)
    moments = Moments.none(4, 3, gram=True).add(learnt)
    of_one = of_class(learnt, int(learnt.codes[0]))
    other = Batch(
        of_one.rows + 1 if scale == 1.0 else of_one.rows * scale, of_one.codes, of_one.weights
    )
    with pytest.raises(ForgetError, match="not the examples"):
        subtract(moments, [other])


def test_rounding_errors_of_a_large_example_do_not_block_forgetting_others() -> None:
    codes = np.zeros(1, dtype=np.int32)
    large, small, other = (
        Batch.of(np.array([[x]]), codes + k) for x, k in ((1e5 + 0.1, 0), (0.3, 0), (2.0, 1))
    )
    moments = Moments.none(1, 2, gram=True).add(large).add(small).add(other)
    left = subtract(subtract(moments, [large]), [small])
    assert left.class_examples.tolist() == [0, 1]
    assert left.sums[0].tolist() == [0.0]


@pytest.mark.parametrize(
    "options", [{"gram": True}, {"gram": False}, {"gram": True, "per_class": True}]
)
def test_moved_examples_give_the_sums_of_their_new_classes(options: dict[str, Any]) -> None:
    moments = Moments.none(4, 3, **options)
    parts = [batch(60), batch(5, 1), batch(7, 2)]
    for part in parts:
        moments = moments.add(part)
    moved = Batch(parts[1].rows, (parts[1].codes + 1) % 3, parts[1].weights)
    changed = move(moments, parts[1], moved.codes)
    everything = joined(parts[0], moved, parts[2])
    check(changed, everything)
    if changed.class_settled is not None:
        for k, gram in enumerate(changed.class_settled):
            mine = of_class(everything, k)
            expected = (mine.rows * mine.weights[:, None]).T @ mine.rows
            np.testing.assert_allclose(np.triu(gram), np.triu(expected), atol=1e-9)
    # A solver that followed the old sums must start again.
    assert changed.follow(moments.latest) is None


def test_more_examples_than_there_are_cannot_move() -> None:
    part = batch(5)
    with pytest.raises(ForgetError):
        move(Moments.none(4, 3, gram=True), part, part.codes)


def test_columns_without_examples_can_be_left_out() -> None:
    part = batch(40)
    moments = Moments.none(4, 5, gram=True).add(Batch(part.rows, part.codes * 2, part.weights))
    dense = moments.without_empty()
    check(dense, part)
    assert dense.without_empty() is dense
