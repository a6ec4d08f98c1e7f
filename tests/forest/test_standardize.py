"""The scale of the features, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from evergrow import blocks
from evergrow.forest.standardize import Standardization


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 7, 9, 70])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
def test_mean_and_scale_are_numpys(n: int, dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_BLOCK_BYTES", 8 * 3 * 11)  # eleven rows: several blocks
    X = (100 * np.random.default_rng(n).normal(size=(n, 3)) + 7).astype(dtype)
    wide = X.astype(np.float64)
    each = Standardization.of(X, each=True)
    np.testing.assert_allclose(each.mean, wide.mean(axis=0))
    np.testing.assert_allclose(each.scale, 1 / wide.std(axis=0))
    common = Standardization.of(X, each=False)
    np.testing.assert_allclose(common.mean, each.mean)
    np.testing.assert_allclose(common.scale, 1 / np.sqrt(wide.var(axis=0).mean()))


def test_a_constant_feature_is_only_centred() -> None:
    X = np.column_stack([np.full(50, 0.1), np.arange(50.0)])
    assert Standardization.of(X, each=True).scale[0] == 1.0
    assert Standardization.of(X[:, :1], each=False).scale[0] == 1.0


def test_undoing_gives_the_input_back() -> None:
    X = np.random.default_rng(0).normal(size=(20, 4)) * 50 + 3
    scale = Standardization.of(X, each=True)
    np.testing.assert_allclose(scale.undo((X - scale.mean) * scale.scale), X)
