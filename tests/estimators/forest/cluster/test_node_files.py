"""Files of rows that the workers of a node share: none is removed while another uses it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evergrow.estimators.forest.cluster import node_files
from evergrow.estimators.forest.cluster.node_files import (
    NodeFile,
    open_node_samples,
    remove_node_file,
)
from evergrow.estimators.forest.value.standardization import ClassScatter, Standardization

_X = np.random.default_rng(0).normal(size=(200, 16)).astype(np.float32)
_CODES = np.arange(200, dtype=np.int32) % 5
_IDS = np.arange(200)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the files are."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def _rows() -> NodeFile:
    return NodeFile(_X, _whitened(), half=False)


def _whitened() -> Standardization:
    plain = Standardization.of_each(_X)
    return Standardization.whitened(plain, ClassScatter.of(_X, _CODES, _IDS, 5, plain.scale), 0.3)


def _mappings(name: str) -> list[str]:
    return [line for line in Path("/proc/self/maps").read_text().splitlines() if name in line]


def test_a_file_that_is_being_written_is_not_left_behind(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = node_files.os.replace

    def looked_at(aside: Path, path: Path) -> None:
        # Another program looks just before the file has its name, and just after.
        node_files._remove_stale_files(folder)
        replace(aside, path)
        node_files._remove_stale_files(folder)

    monkeypatch.setattr(node_files.os, "replace", looked_at)
    rows = _rows()
    samples = open_node_samples(rows, _CODES, _IDS, None)
    assert len(samples) == 200
    assert len(list(folder.glob(f"*{rows.name}*"))) == 1


def test_a_file_that_was_removed_before_it_was_locked_is_made_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock, left = node_files.fcntl.flock, [1]

    def late(descriptor: int, kind: int) -> None:
        # A new file has no lock yet: to another program it is left behind.
        if kind == node_files.fcntl.LOCK_SH and left:
            left.pop()
            node_files._remove_stale_files(folder)
        flock(descriptor, kind)

    monkeypatch.setattr(node_files.fcntl, "flock", late)
    rows = _rows()
    open_node_samples(rows, _CODES, _IDS, None)
    assert not left
    assert [path.name for path in folder.iterdir()] == [f"evergrow-rows-{rows.name}.bin"]


def test_only_files_that_no_process_reads_are_removed(folder: Path) -> None:
    (folder / "evergrow-rows-dead.bin").write_bytes(b"left by a program that was killed")
    rows = _rows()
    samples = open_node_samples(rows, _CODES, _IDS, None)
    node_files._remove_stale_files(folder)
    assert [path.name for path in folder.iterdir()] == [f"evergrow-rows-{rows.name}.bin"]
    del samples
    node_files._remove_stale_files(folder)
    assert list(folder.iterdir()) == []


def test_threads_read_for_forests_of_their_own(folder: Path) -> None:
    errors: list[BaseException] = []

    def work() -> None:
        for _ in range(40):
            rows = _rows()
            try:
                open_node_samples(rows, _CODES, _IDS, None)
                remove_node_file(rows.name)
            except BaseException as error:  # noqa: BLE001
                errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert list(folder.iterdir()) == []


def test_others_on_a_node_cannot_read_the_rows(folder: Path) -> None:
    open_node_samples(_rows(), _CODES, _IDS, None)
    (path,) = folder.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
def test_a_finished_task_keeps_no_disk(folder: Path) -> None:
    rows = _rows()
    samples: Any = open_node_samples(rows, _CODES, _IDS, None)
    assert _mappings(rows.name)
    del samples
    assert not _mappings(rows.name)
