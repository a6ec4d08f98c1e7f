"""Sums do not depend on the order in which examples are added and subtracted."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from evergrow import InvalidInputError, _core
from evergrow.estimators.linear.feature_map import FeatureMap, FeatureRows
from evergrow.estimators.sums.accumulation import IDENTITY
from evergrow.estimators.sums.changes import ForgetError, move, subtract
from evergrow.estimators.sums.core_accumulator import CoreAccumulator, FeatureRule
from evergrow.estimators.sums.moments import FEW, WAITING, Batch, Moments
from evergrow.foundation.lapack import function_address
from evergrow.storage.models.codec import decode, encode


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


SHIFT = np.array([3.0, 0.0, -2.0, 1.0])


@pytest.mark.parametrize(
    "options",
    [
        {"gram": True},
        {"gram": False},
        {"gram": True, "per_class": True},
        {"gram": True, "per_class": True, "shift": SHIFT},
    ],
)
@pytest.mark.parametrize("sizes", [[1] * 300, [FEW - 1] * 12, [FEW] * 4, [500, 1, 1, 200, 3]])
def test_sums_are_those_of_all_examples(options: dict[str, Any], sizes: list[int]) -> None:
    moments = Moments.none(4, 3, **options)
    parts = [batch(n, seed) for seed, n in enumerate(sizes)]
    for part in parts:
        moments = moments.add(part)
        assert sum(len(few.rows) for few in moments.waiting) <= WAITING
    check(moments.about(None), joined(*parts))
    check(decode(Moments, *encode(moments)).about(None), joined(*parts))
    check(subtract(moments, parts[:2]).about(None), joined(*parts[2:]))
    both = moments.merged(Moments.none(4, 3, **options).about(2 * SHIFT).add(parts[0]), range(3), 3)
    check(both.about(None), joined(*parts, parts[0]))


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


Arrays = tuple[npt.NDArray[Any], npt.NDArray[np.int32], npt.NDArray[np.float64]]
N_CLASSES = 7


def examples(n: int, d: int, *, weighted: bool) -> Arrays:
    draw = np.random.default_rng(n + d)
    weights = draw.uniform(0.1, 3.0, n) if weighted else np.ones(n)
    return draw.normal(size=(n, d)), draw.integers(0, N_CLASSES, n).astype(np.int32), weights


def row_map(kind: str, d: int) -> Any:
    maps = {
        "inputs": FeatureMap.plain(d),
        "relu": FeatureMap("relu", d, 45, 3),
        "rff": FeatureMap("rff", d, 45, 3, gamma=0.1),
        "relu after inputs": FeatureMap("relu", d, 300, 3, with_inputs=True),
        "rff after inputs": FeatureMap("rff", d, 301, 3, gamma=0.1, with_inputs=True),
    }
    return IDENTITY if kind == "identity" else FeatureRows(maps[kind], constant=True)


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "kind", ["identity", "inputs", "relu", "rff", "relu after inputs", "rff after inputs"]
)
def test_the_core_adds_what_numpy_adds(kind: str, weighted: bool, per_class: bool) -> None:
    X, codes, weights = examples(700, 33, weighted=weighted)
    features = row_map(kind, 33)
    d = features.rule(33).n_features
    shift = np.linspace(-1.0, 1.0, d) if weighted else None
    before = Moments.none(d, N_CLASSES, gram=True, per_class=per_class, shift=shift)
    before = before.add_all([Batch(features(X[:50]), codes[:50], weights[:50])])
    expected = before.add_all([Batch(features(X[50:]), codes[50:], weights[50:])])
    sums = CoreAccumulator(before, features.rule(33))
    sums.add(X[50:300].astype(np.float64), codes[50:300], weights[50:300])
    sums.add(X[300:], codes[300:], weights[300:])
    found = sums.finish()
    for name in ("sums", "gram", "class_weights", "class_squares", "class_examples", "peak"):
        a, b = getattr(found, name), getattr(expected, name)
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-9, err_msg=name)
    if per_class:
        np.testing.assert_allclose(found.class_settled, expected.class_settled, atol=1e-9)
    assert before.n_examples == 50


def test_the_number_of_threads_changes_no_bit() -> None:
    X, codes, _ = examples(3000, 20, weighted=False)
    rule = row_map("relu after inputs", 20).rule(20)
    d, found = rule.n_features, []
    for n_threads in (1, 2, 5):
        gram, sums, squares = np.zeros((d, d)), np.zeros((N_CLASSES, d)), np.zeros(N_CLASSES)
        addresses = (function_address("dgemm"), function_address("dsyrk"))
        shape = (rule.n_copied, rule.kind, rule.directions, rule.n_random, rule.constant)
        outputs = (gram, sums, squares, n_threads, None)
        assert _core.add_examples(*addresses, X, codes, None, *shape, None, 1e140, *outputs)
        found.append(np.concatenate([gram.ravel(), sums.ravel(), squares]))
    assert (found[0] == found[1]).all()
    assert (found[0] == found[2]).all()


def test_too_large_numbers_and_bad_classes_are_refused() -> None:
    X, codes, weights = examples(40, 3, weighted=False)
    X[17, 1] = 2e140
    sums = CoreAccumulator(Moments.none(3, N_CLASSES, gram=True), FeatureRule(3, 3))
    with pytest.raises(InvalidInputError, match="too large to add up their squares"):
        sums.add(X, codes, weights)
    with pytest.raises(ValueError, match="a class is out of range"):
        sums.add(X, codes + N_CLASSES, weights)
    with pytest.raises(ValueError, match="one class and one weight per row"):
        sums.add(X, codes[1:], weights[1:])
