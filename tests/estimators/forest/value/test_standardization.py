"""The scale of the features, against NumPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evergrow.estimators.forest.value import standardization
from evergrow.estimators.forest.value.standardization import Standardization
from evergrow.foundation import rows
from tests.reference import feature_scale as twin


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 7, 9, 70])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
def test_mean_and_scale_are_numpys(n: int, dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_BLOCK_BYTES", 8 * 3 * 11)  # eleven rows: several blocks
    X = (100 * np.random.default_rng(n).normal(size=(n, 3)) + 7).astype(dtype)
    wide = X.astype(np.float64)
    each = Standardization.of_each(X)
    np.testing.assert_allclose(each.mean, wide.mean(axis=0))
    np.testing.assert_allclose(each.scale, 1 / wide.std(axis=0))


def test_a_constant_feature_is_only_centred() -> None:
    X = np.column_stack([np.full(50, 0.1), np.arange(50.0)])
    assert Standardization.of_each(X).scale[0] == 1.0
    assert Standardization.common(X[:, :1]).scale[0] == 1.0


def test_undoing_gives_the_input_back() -> None:
    X = np.random.default_rng(0).normal(size=(20, 4)) * 50 + 3
    scale = Standardization.of_each(X)
    np.testing.assert_allclose(scale.undo((X - scale.mean) * scale.scale), X)


@pytest.mark.parametrize("whitened", [False, True])
def test_equal_lengths_are_undone(whitened: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 6)) * np.exp(rng.normal(size=(20, 1)))
    X[3] = X.mean(axis=0)
    scale = Standardization.of_each(X)
    if whitened:
        matrix = np.tril(rng.normal(size=(6, 6)), -1) + np.eye(6)
        scale = replace(scale, whitening=matrix.astype(np.float32), kind="whiten")
    equal = scale.with_equal_lengths(np.ones(6, dtype=bool))
    Z = equal.apply(X)
    np.testing.assert_allclose(equal.undo(Z), X, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(Z, twin.equal_lengths(scale.apply(X)), rtol=1e-4, atol=1e-6)


def test_one_common_number_scales_all_features(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).normal(size=(5000, 2)) * [1.0, 20.0] + [5.0, -7.0]
    for n_bytes in (16 << 20, 16 * 1000):  # of all rows, of some
        monkeypatch.setattr(standardization, "_QUANTILE_BYTES", n_bytes)
        common = Standardization.common(X)
        np.testing.assert_allclose(common.mean, [5.0, -7.0], atol=3.0)
        np.testing.assert_allclose(common.scale, 1 / (20.0 * 2.58), rtol=0.1)


def test_a_wild_value_moves_neither_centre_nor_scale() -> None:
    X = np.random.default_rng(0).normal(size=(500, 3))
    wild = X.copy()
    wild[7, 1] = 1e12
    calm = Standardization.common(X)
    np.testing.assert_allclose(Standardization.common(wild).mean, calm.mean, atol=0.01)
    np.testing.assert_allclose(Standardization.common(wild).scale, calm.scale, rtol=0.05)


def test_rare_values_give_the_scale_when_nearly_all_are_equal() -> None:
    X = np.zeros((1000, 2))
    X[:3, 0] = 50.0
    np.testing.assert_allclose(Standardization.common(X).scale, 1 / 50.0)
