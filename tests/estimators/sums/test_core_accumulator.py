"""Sums by the core, against the same sums in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from evergrow import InvalidInputError, _core
from evergrow.estimators.linear.feature_map import FeatureMap, FeatureRows
from evergrow.estimators.sums.accumulation import IDENTITY
from evergrow.estimators.sums.core_accumulator import CoreAccumulator, FeatureRule
from evergrow.estimators.sums.moments import Batch, Moments
from evergrow.foundation.lapack import function_address

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
    before = Moments.none(d, N_CLASSES, gram=True, per_class=per_class)
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


def test_single_precision_is_added_in_double_precision() -> None:
    X, codes, weights = examples(300, 12, weighted=False)
    single, found = X.astype(np.float32), []
    for rows in (single, single.astype(np.float64)):
        sums = CoreAccumulator(Moments.none(12, N_CLASSES, gram=True), FeatureRule(12, 12))
        sums.add(rows, codes, weights)
        found.append(sums.finish())
    assert (found[0].gram == found[1].gram).all()
    assert (found[0].sums == found[1].sums).all()


def test_the_number_of_threads_changes_no_bit() -> None:
    X, codes, _ = examples(3000, 20, weighted=False)
    rule = row_map("relu after inputs", 20).rule(20)
    d, found = rule.n_features, []
    for n_threads in (1, 2, 5):
        gram, sums, squares = np.zeros((d, d)), np.zeros((N_CLASSES, d)), np.zeros(N_CLASSES)
        addresses = (function_address("dgemm"), function_address("dsyrk"))
        shape = (rule.n_copied, rule.kind, rule.directions, rule.n_random, rule.constant)
        outputs = (gram, sums, squares, n_threads, None)
        assert _core.add_examples(*addresses, X, codes, None, *shape, 1e140, *outputs)
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


def test_progress_is_reported_and_can_stop_the_work() -> None:
    X, codes, weights = examples(40, 3, weighted=False)
    sums, seen = CoreAccumulator(Moments.none(3, N_CLASSES, gram=True), FeatureRule(3, 3)), []
    sums.add(X, codes, weights, seen.append)
    assert seen[-1] == 40

    def stop(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sums.add(X, codes, weights, stop)
