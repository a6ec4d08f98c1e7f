"""The nearest-centroid kernel on every instruction set this processor runs."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evergrow import NCMForestClassifier, _core
from tests.budget import budget
from tests.conftest import FORESTS, Arrays

KERNELS = _core.available_kernels()


def nearest(rows: np.ndarray[Any, Any], centroids: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    distances = ((rows[:, None] - centroids[None]) ** 2).sum(axis=2)
    return distances.argmin(axis=1)


@pytest.mark.parametrize("isa", KERNELS)
@settings(max_examples=budget(60))
@given(seed=st.integers(0, 2**32), n=st.integers(1, 40), d=st.integers(1, 70), k=st.integers(1, 40))
def test_the_nearest_centroid_is_found_ties_to_the_lowest(
    isa: str, seed: int, n: int, d: int, k: int
) -> None:
    rng = np.random.default_rng(seed)
    # Small integers: every sum is exact and ties are common.
    rows = rng.integers(-4, 5, (n, d)).astype(np.float32)
    centroids = rng.integers(-4, 5, (k, d)).astype(np.float32)
    order = rng.permutation(n).astype(np.int32)
    found = _core.nearest_centroids(rows, order, centroids, isa)
    np.testing.assert_array_equal(found, nearest(rows[order], centroids))


@pytest.mark.parametrize("isa", KERNELS)
def test_wide_rows_are_added_up_accurately(isa: str) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(64, 5000)).astype(np.float32)
    centroids = rng.normal(size=(11, 5000)).astype(np.float32)
    expected = nearest(rows.astype(np.float64), centroids.astype(np.float64))
    found = _core.nearest_centroids(rows, np.arange(64, dtype=np.int32), centroids, isa)
    np.testing.assert_array_equal(found, expected)


SCORES_OF_ALL_FORESTS = """
import sys, numpy as np, evergrow
from evergrow import _core
X, X_test, y, y_test = np.load(sys.argv[1]).values()
print(_core.chosen_kernel())
for kind in sys.argv[2:]:
    forest = getattr(evergrow, kind)(10, random_state=0).fit(X, y)
    one_by_one = np.concatenate([forest.predict_proba(x[None]) for x in X_test])
    assert (one_by_one == forest.predict_proba(X_test)).all()
    print(kind, forest.score(X_test, y_test))
"""


@pytest.fixture(scope="module", params=KERNELS)
def scores_by_isa(
    request: pytest.FixtureRequest, digits: Arrays, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, float]:
    """Scores of all kinds of forests, from one process that uses one instruction set."""
    data = tmp_path_factory.mktemp("digits") / "digits.npz"
    np.savez(data, *digits)
    names = [kind.__name__ for kind in FORESTS]
    done = subprocess.run(
        [sys.executable, "-c", SCORES_OF_ALL_FORESTS, str(data), *names],
        env={**os.environ, "EVERGROW_ISA": request.param},
        capture_output=True,
        text=True,
        check=True,
    )
    chosen, *scores = done.stdout.splitlines()
    assert chosen == request.param
    return {kind: float(score) for kind, score in (line.split() for line in scores)}


DIGEST_OF_A_FOREST = """
import sys
from tests.estimators.forest.twins import core_forest, digest, small_integers
from tests.reference.ncm_forest import Rules
X, y = small_integers(5, 300, 6, 12)
print(digest(core_forest(X, y, 3, 1, Rules(12, 5, 40, min_samples_leaf=3))))
"""


def test_every_instruction_set_rounds_and_stores_the_same_means() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", DIGEST_OF_A_FOREST],
            env={**os.environ, "EVERGROW_ISA": isa},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for isa in KERNELS
    }
    assert len(found) == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORESTS)
def test_every_instruction_set_trains_and_reads_the_same_kind_of_forest(
    kind: Any, scores_by_isa: dict[str, float], digits: Arrays
) -> None:
    X, X_test, y, y_test = digits
    here = kind(10, random_state=0).fit(X, y).score(X_test, y_test)
    assert scores_by_isa[kind.__name__] == pytest.approx(here, abs=0.02)


def test_wrong_shapes_are_refused() -> None:
    rows, order = np.zeros((3, 2), np.float32), np.arange(3, dtype=np.int32)
    with pytest.raises(ValueError, match="same width"):
        _core.nearest_centroids(rows, order, np.zeros((2, 3), np.float32), "portable")
    with pytest.raises(ValueError, match="numbers of rows"):
        _core.nearest_centroids(rows, order + 1, rows, "portable")
    with pytest.raises(ValueError, match="cannot run mmx"):
        _core.nearest_centroids(rows, order, rows, "mmx")


def test_means_far_out_are_finite_and_still_route() -> None:
    # One class far out: with steps of the size that the other means need, its mean would not fit.
    rng = np.random.default_rng(0)
    X, y = rng.normal(scale=1e-3, size=(10**5, 1)), np.zeros(10**5, dtype=int)
    X[:2], y[:2] = 1e6, 1
    X[2:40], y[2:40] = 50.0, 2
    forest = NCMForestClassifier(3, standardize=False, min_samples_leaf=1, random_state=0)
    assert forest.fit(X, y).score(X, y) == 1.0
