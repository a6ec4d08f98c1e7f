"""The same numbers as SciPy's own functions, and other threads go on meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
from scipy.linalg import blas, lapack

from evergrow.foundation.lapack import (
    add_gram,
    cholesky,
    solve_both,
    solve_plain,
    solve_transposed,
)

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(("n", "n_rows"), [(1, 1), (5, 3), (130, 400)])
def test_all_functions_give_what_scipy_gives(n: int, n_rows: int) -> None:
    rows, right = RNG.normal(size=(n_rows, n)), RNG.normal(size=(7, n))
    expected, gram = np.zeros((2, n, n))
    blas.dsyrk(-1.0, rows.T, beta=1.0, c=expected.T, lower=1, overwrite_c=1)
    add_gram(gram, rows, -1.0)
    np.testing.assert_array_equal(gram, expected)
    factor = np.eye(n) * n_rows * n - np.triu(gram)
    theirs = factor.copy()
    lapack.dpotrf(theirs.T, lower=1, clean=0, overwrite_a=1)
    assert cholesky(factor)
    np.testing.assert_array_equal(factor, theirs)
    solved, expected = right.copy(), right.copy()
    solve_both(factor, solved)
    lapack.dpotrs(theirs.T, expected.T, lower=1, overwrite_b=1)
    np.testing.assert_array_equal(solved, expected)
    theirs_both = expected
    solved, expected = right.copy(), right.copy()
    solve_transposed(factor, solved)
    blas.dtrsm(1.0, theirs.T, expected.T, lower=1, overwrite_b=1)
    np.testing.assert_array_equal(solved, expected)
    one = right[:1].copy()
    solve_transposed(factor, one)
    np.testing.assert_allclose(one, expected[:1], rtol=1e-12)
    solve_plain(factor, one)
    np.testing.assert_allclose(one, theirs_both[:1], rtol=1e-12)


def test_matrices_that_are_not_definite_or_empty() -> None:
    assert not cholesky(-np.eye(3))
    assert cholesky(np.zeros((0, 0)))
    gram = np.zeros((2, 2))
    add_gram(gram, np.zeros((0, 2)), 1.0)
    assert not gram.any()


def test_a_result_is_never_lost_in_a_copy() -> None:
    with pytest.raises(ValueError, match="contiguous"):
        cholesky(np.eye(4)[::2, ::2])
    with pytest.raises(ValueError, match="64-bit"):
        cholesky(np.eye(3, dtype=np.float32))  # type: ignore[arg-type]
    fixed = np.eye(3)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        cholesky(fixed)


def test_shapes_are_checked_before_memory_is_touched() -> None:
    for call in (solve_both, solve_plain, solve_transposed):
        with pytest.raises(ValueError, match="do not fit"):
            call(np.eye(3), np.ones((2, 2)))
        with pytest.raises(ValueError, match="do not fit"):
            call(np.eye(3), np.ones(3))
    with pytest.raises(ValueError, match="one row"):
        solve_plain(np.eye(3), np.ones((2, 3)))
    with pytest.raises(ValueError, match="do not fit"):
        cholesky(np.ones((3, 2)))
    with pytest.raises(ValueError, match="do not fit"):
        add_gram(np.eye(3), np.ones((5, 4)), 1.0)


def longest_pause(work: Callable[[], object]) -> float:
    """How long another thread had to wait at most while a function ran."""
    ended, longest = threading.Event(), 0.0

    def tick() -> None:
        nonlocal longest
        last = time.perf_counter()
        while not ended.is_set():
            time.sleep(0.0005)
            now = time.perf_counter()
            longest, last = max(longest, now - last), now

    thread = threading.Thread(target=tick)
    thread.start()
    work()
    ended.set()
    thread.join()
    return longest


def test_other_threads_go_on_while_a_matrix_is_factorised() -> None:
    matrix = 2000 * np.eye(2000) + RNG.normal(size=(2000, 1))
    theirs = matrix.copy()
    held = longest_pause(lambda: lapack.dpotrf(theirs.T, lower=1, clean=0, overwrite_a=1))
    copies = [matrix.copy() for _ in range(3)]
    ours = min(longest_pause(lambda one=one: cholesky(one)) for one in copies)  # type: ignore[misc]
    assert ours < held / 2
    np.testing.assert_array_equal(np.triu(copies[0]), np.triu(theirs))
