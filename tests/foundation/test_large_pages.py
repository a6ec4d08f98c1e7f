"""Large pages change where an array lies in memory, not what it holds."""

from __future__ import annotations

import mmap
import tempfile
from pathlib import Path

import numpy as np
import pytest

from evergrow.foundation import large_pages
from evergrow.foundation.large_pages import use_large_pages


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


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
def test_the_second_mapping_is_removed():
    array = shared_array(16 << 20)
    maps = Path("/proc/self/maps")
    n_before = len(maps.read_text().splitlines())
    for _ in range(20):
        use_large_pages(array)
    assert len(maps.read_text().splitlines()) < n_before + 10


def test_memory_of_its_own_stays_as_it_is():
    array = np.arange(3 << 20)
    use_large_pages(array)
    assert array.sum() == array[-1] * len(array) // 2


def test_a_system_without_these_calls_is_no_error(monkeypatch):
    monkeypatch.setattr(large_pages, "_c_library", lambda: None)
    use_large_pages(shared_array(8 << 20))
