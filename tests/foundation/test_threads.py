"""Limits on the threads of libraries that several hold at once."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from evergrow.foundation.threads import one_blas_thread


def blas_threads() -> set[int]:
    return {entry["num_threads"] for entry in threadpool_info() if entry["user_api"] == "blas"}


def set_blas_threads(n_threads: int) -> None:
    # In a thread that ends: while the thread that set a limit lives, OpenBLAS ignores the limits of
    # other threads.
    thread = threading.Thread(target=threadpool_limits, args=(n_threads, "blas"))
    thread.start()
    thread.join()


@pytest.fixture
def usual() -> Iterator[set[int]]:
    """Two threads per library; the test run itself has one."""
    before = max(blas_threads(), default=1)
    set_blas_threads(2)
    found = blas_threads()
    if found != {2}:
        pytest.skip("the libraries of linear algebra have a single thread")
    yield found
    set_blas_threads(before)


def test_one_holder_limits_and_lifts(usual: set[int]) -> None:
    with one_blas_thread():
        assert blas_threads() == {1}
    assert blas_threads() == usual


def test_libraries_that_are_loaded_later_are_limited_too() -> None:
    script = """
import numpy
from evergrow.foundation.threads import blas_threads, one_blas_thread
with one_blas_thread():
    pass
import scipy.linalg
from threadpoolctl import threadpool_info
with one_blas_thread():
    print({e["num_threads"] for e in threadpool_info() if e["user_api"] == "blas"})
"""
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True
    )
    assert found.stdout.strip() == "{1}"


def test_the_limit_holds_inside_a_limit_of_another_thread(usual: set[int]) -> None:
    found = []

    def hold() -> None:
        with one_blas_thread():
            found.append(blas_threads())

    with threadpool_limits(2, "blas"):
        thread = threading.Thread(target=hold)
        thread.start()
        thread.join()
        found.append(blas_threads())
    assert found == [{1}, usual]


def test_holders_that_overlap_leave_the_threads_as_they_were(usual: set[int]) -> None:
    second_is_in, first_is_out = threading.Event(), threading.Event()

    def second() -> None:
        with one_blas_thread():
            second_is_in.set()
            first_is_out.wait()

    thread = threading.Thread(target=second, daemon=True)
    with one_blas_thread():
        thread.start()
        second_is_in.wait()
    assert blas_threads() == {1}
    first_is_out.set()
    thread.join()
    assert blas_threads() == usual


def test_a_holder_that_fails_lifts_its_limit(usual: set[int]) -> None:
    with pytest.raises(KeyError), one_blas_thread():
        raise KeyError
    assert blas_threads() == usual
