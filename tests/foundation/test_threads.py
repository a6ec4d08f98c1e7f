"""Limits on the threads of libraries that several hold at once."""

from __future__ import annotations

import threading

import pytest
from threadpoolctl import threadpool_info

from evergrow.foundation.threads import one_blas_thread


def blas_threads() -> set[int]:
    return {entry["num_threads"] for entry in threadpool_info() if entry["user_api"] == "blas"}


@pytest.fixture
def usual() -> set[int]:
    """Threads that there are without a limit."""
    found = blas_threads()
    if not found or min(found) < 2:
        pytest.skip("the libraries of linear algebra have one thread anyway")
    return found


def test_one_holder_limits_and_lifts(usual: set[int]) -> None:
    with one_blas_thread():
        assert blas_threads() == {1}
    assert blas_threads() == usual


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
