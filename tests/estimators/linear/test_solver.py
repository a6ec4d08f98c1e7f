"""Updates of the Cholesky factor, on every instruction set that this processor has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from evergrow import _core
from tests.reference.least_squares import cholesky_update, random_projection

SHAPES = [(d, m) for d in (1, 2, 3, 4, 5, 7, 8, 9, 12, 17, 33, 64, 101) for m in (1, 2, 3, 5, 8)]


def check_shape(d: int, m: int) -> None:
    rng = np.random.default_rng(100 * d + m)
    X = rng.normal(size=(2 * d + 3, d))
    A = X.T @ X + 0.1 * np.eye(d)
    factor = np.ascontiguousarray(np.linalg.cholesky(A).T)
    below = np.tril(rng.normal(size=(d, d)), -1)
    factor += below
    rows = rng.normal(size=(m, d))
    gains = _core.update_factor(factor, rows, np.ones(m))
    grown = A + rows.T @ rows
    np.testing.assert_array_equal(np.tril(factor, -1), below)
    np.testing.assert_allclose(np.triu(factor).T @ np.triu(factor), grown, atol=1e-9 * grown.max())
    assert gains is not None
    np.testing.assert_allclose(gains, np.linalg.solve(grown, rows.T).T, rtol=1e-6, atol=1e-12)
    # Half of them leave while new ones come.
    signs = np.where(np.arange(m) % 2 == 0, -1.0, 1.0)
    gains = _core.update_factor(factor, rows, signs)
    changed = grown + (rows * signs[:, None]).T @ rows
    np.testing.assert_allclose(
        np.triu(factor).T @ np.triu(factor), changed, atol=1e-8 * changed.max()
    )
    assert gains is not None
    np.testing.assert_allclose(gains, np.linalg.solve(changed, rows.T).T, rtol=1e-5, atol=1e-10)
    check_weights(rng, d, m)


def check_weights(rng: np.random.Generator, d: int, m: int) -> None:
    n_classes = 6
    old, rows, gains = (
        rng.normal(size=(n_classes, d)),
        rng.normal(size=(m, d)),
        rng.normal(size=(m, d)),
    )
    signs = np.where(rng.random(m) < 0.5, -1.0, 1.0)
    codes, targets = rng.integers(0, n_classes, m).astype(np.int32), rng.random(m)
    coded = np.zeros((m, n_classes))
    coded[np.arange(m), codes] = targets
    expected = old + (signs[:, None] * (coded - rows @ old.T)).T @ gains
    found = np.empty_like(old)
    errors = _core.update_weights(old, rows, signs, gains, codes, targets, found)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(errors, (signs[:, None] * (coded - rows @ old.T)).T, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("isa", _core.available_kernels())
def test_factor_gains_and_weights_follow_rows_of_any_number_and_width(isa: str) -> None:
    code = (
        "from tests.estimators.linear.test_solver import SHAPES, check_shape\n"
        "from evergrow import _core\n"
        f"assert _core.chosen_kernel() == {isa!r}\n"
        "for d, m in SHAPES: check_shape(d, m)\n"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "EVERGROW_ISA": isa},
        cwd=Path(__file__).parents[3],
        check=True,
    )


def test_the_factor_is_the_one_of_the_twin() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 11))
    factor = np.ascontiguousarray(np.linalg.cholesky(X.T @ X + np.eye(11)).T)
    row = rng.normal(size=11)
    for sign in (1, -1):
        expected = cholesky_update(np.triu(factor), row, sign)
        _core.update_factor(factor, row[None], np.array([float(sign)]))
        np.testing.assert_allclose(np.triu(factor), expected, rtol=1e-10, atol=1e-12)


def test_subtracting_a_row_that_was_never_added_is_noticed() -> None:
    factor = np.eye(5)
    assert _core.update_factor(factor, np.full((1, 5), 2.0), np.array([-1.0])) is None


@pytest.mark.parametrize(
    ("rows", "signs", "message"),
    [
        (np.ones((9, 3)), np.ones(9), "1 to 8 rows"),
        (np.ones((0, 3)), np.ones(0), "1 to 8 rows"),
        (np.ones((2, 4)), np.ones(2), "width of the rows"),
        (np.ones((2, 3)), np.ones(3), "sign per row"),
    ],
)
def test_the_core_refuses_rows_that_do_not_fit(
    rows: np.ndarray, signs: np.ndarray, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        _core.update_factor(np.eye(3), rows, signs)


def test_random_directions_are_a_function_of_the_seed_alone() -> None:
    found = _core.random_projection(12345, 4, 7)
    np.testing.assert_array_equal(found, random_projection(12345, 4, 7))
    # More features begin with the same ones.
    np.testing.assert_array_equal(_core.random_projection(12345, 9, 7, n_threads=3)[:4], found)
