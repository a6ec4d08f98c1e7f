"""Class means take one byte per feature."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evergrow import NCMForestClassifier
from evergrow.estimators import ClassMeans
from tests.budget import budget
from tests.conftest import Arrays
from tests.estimators.forest.twins import core_forest, stored_vectors
from tests.estimators.model_files import reload
from tests.reference import ncm_forest as twin


@settings(max_examples=budget(60))
@given(
    seed=st.integers(0, 2**32),
    d=st.integers(1, 40),
    exponent=st.sampled_from([-80, -60, -20, 0, 3, 30, 35]),
)
def test_means_are_stored_as_the_twin_rounds_them(seed: int, d: int, exponent: int) -> None:
    rng = np.random.default_rng(seed)
    # Two equal samples per class: their mean is exact, so only its rounding is compared. Samples
    # themselves are limited to 1e15.
    rows = np.ldexp(rng.integers(-(2**14), 2**14, (2, d)).astype(np.float32), exponent)
    X, y = np.repeat(rows, 2, axis=0), np.array([0, 0, 1, 1])
    forest = core_forest(X, y, 1, 0, twin.Rules(2, 2, min_samples_leaf=1))
    arrays = forest.tree_arrays(0)
    if not len(arrays["centroid_source"]):
        return
    expected = [twin.to_bytes(row) for row in rows]
    np.testing.assert_array_equal(
        stored_vectors(arrays, forest.samples)[~arrays["centroid_source"]],
        [steps for steps, _ in expected],
    )
    assert arrays["exponent"].tolist() == [exponent for _, exponent in expected]
    norms = [0.5 * (twin.rounded(row).astype(np.float64) ** 2).sum() for row in rows]
    np.testing.assert_array_equal(arrays["half_norm"], np.array(norms, np.float32))


def test_a_mean_takes_one_byte_per_feature() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 512)), rng.integers(0, 20, 1000)
    splits = ClassMeans("sqrt")
    forest = NCMForestClassifier(3, splits=splits, min_samples_leaf=10, random_state=0)
    core = forest.fit(X, y)._fitted.forest
    arrays = [core.tree_arrays(t) for t in range(3)]
    n_vectors = sum(len(set(a["centroid_source"][a["centroid_source"] < 0])) for a in arrays)
    assert sum(a["bytes"].nbytes for a in arrays) == n_vectors * 512
    assert core.nbytes < 1.3 * n_vectors * 512


@pytest.mark.parametrize("update", ["igt", "rtst", "rust"])
def test_means_of_very_different_features_keep_half_precision(
    update: str, digits: Arrays, tmp_path: Path
) -> None:
    X, X_test, y, _ = digits
    scale = np.where(np.arange(X.shape[1]) == 30, 1e4, 1.0)
    sizes: dict[str, Any] = {"standardize": "none", "update": update, "random_state": 0}
    forest = NCMForestClassifier(3, **sizes).fit(X[:600] * scale, y[:600])
    again = reload(forest, tmp_path)
    for one in (forest, again):
        one.partial_fit(X[600:800] * scale, y[600:800] + 1)
        one.forget(samples=one._fitted.forest.samples.ids[:50])
        one._fitted.forest.check()
        assert all("halves" in one._fitted.forest.tree_arrays(tree) for tree in range(3))
    found = [one.predict_proba(X_test * scale) for one in (forest, again)]
    np.testing.assert_array_equal(*found)
