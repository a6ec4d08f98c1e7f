"""Linear algebra, threads, memory, engines and files."""

from __future__ import annotations

import errno
import mmap
import os
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from scipy.linalg import blas, lapack
from threadpoolctl import threadpool_info, threadpool_limits

from evergrow import DiskFullError
from evergrow.estimators.forest.cluster.worker_grow import use_large_pages
from evergrow.foundation.engine import Job, LocalEngine, current_engine, use_engine
from evergrow.foundation.files import atomic_write, name_full_disk
from evergrow.foundation.lapack import (
    add_gram,
    cholesky,
    solve_both,
    solve_plain,
    solve_transposed,
)
from evergrow.foundation.threads import one_blas_thread

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


def shared_array(n_bytes):
    """An array over a file that this process maps as shared memory."""
    with tempfile.TemporaryFile() as file:
        file.truncate(n_bytes)
        return np.frombuffer(mmap.mmap(file.fileno(), n_bytes), dtype=np.uint32)


@pytest.mark.parametrize("n_bytes", [4096, 4 << 20, (9 << 20) + 4096])
def test_a_shared_array_holds_what_it_held(n_bytes):
    array = shared_array(n_bytes)
    array[:] = np.arange(len(array))
    use_large_pages(array[100:])
    assert np.array_equal(array, np.arange(len(array)))
    array[7] = 1
    assert array[7] == 1


def test_memory_of_its_own_stays_as_it_is():
    array = np.arange(3 << 20)
    use_large_pages(array)
    assert array.sum() == array[-1] * len(array) // 2


def _with_offset(part, offset):
    return {"parts": np.array([part + offset])}


def _bracketed(first, second):
    return {"text": np.array(f"({first['text']}{second['text']})")}


def _letter(part):
    return {"text": np.array(part)}


def test_parts_run_in_order_with_what_is_shared():
    engine = LocalEngine()
    results = engine.run(Job(_with_offset, [1, 2, 3], [engine.share(10)]))
    assert [(place, int(found["parts"][0])) for place, found in results] == [
        (0, 11),
        (1, 12),
        (2, 13),
    ]


@pytest.mark.parametrize(
    ("letters", "joined"),
    [
        ("a", "a"),
        ("ab", "(ab)"),
        ("abc", "((ab)c)"),
        ("abcdefg", "(((ab)(cd))((ef)g))"),
        ("abcdefgh", "(((ab)(cd))((ef)(gh)))"),
    ],
)
def test_neighbours_are_joined_two_at_a_time(letters, joined):
    found = LocalEngine().reduce(Job(_letter, list(letters)), _bracketed)
    assert str(found["text"]) == joined


def test_a_block_that_fails_leaves_no_engine_behind():
    with pytest.raises(ZeroDivisionError), use_engine(LocalEngine()):
        raise ZeroDivisionError
    assert current_engine() is None


posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes of files")


def test_a_folder_that_takes_no_files_is_an_error_that_names_the_target(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", "temporary")

    monkeypatch.setattr("builtins.open", refuse)
    refused = pytest.raises(PermissionError, match=r"cannot write '.*model': permission to create")
    with refused, atomic_write(tmp_path / "model"):
        pass


@posix
def test_a_private_file_replaces_a_link_and_is_for_its_owner_only(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with atomic_write(tmp_path / "link", private=True) as file:
        assert stat.S_IMODE(os.stat(file.name).st_mode) == 0o600
        file.write(b"new")
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "link").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "link").stat().st_mode) == 0o600
    assert (tmp_path / "file").read_bytes() == b"old"


@posix
def test_a_private_file_is_private_even_if_the_one_before_was_not(tmp_path):
    (tmp_path / "file").touch(0o644)
    with atomic_write(tmp_path / "file", private=True) as file:
        file.write(b"new")
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_names_the_file_and_leaves_the_old_one(tmp_path, number):
    (tmp_path / "file").write_bytes(b"old")

    def write():
        with atomic_write(tmp_path / "file"):
            raise OSError(number, "no space")

    with pytest.raises(DiskFullError) as caught:
        write()
    assert caught.value.filename == str(tmp_path / "file")
    assert os.path.ismount(caught.value.disk)
    assert str(tmp_path / "file") in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"


def test_the_innermost_file_is_the_one_that_is_named(tmp_path):
    with (
        pytest.raises(DiskFullError, match="inner"),
        name_full_disk(tmp_path / "outer"),
        name_full_disk(tmp_path / "inner"),
    ):
        raise OSError(errno.ENOSPC, "no space")
