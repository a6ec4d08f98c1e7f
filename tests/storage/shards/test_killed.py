"""Appending that is killed at any step: the folder is as before or as after, never between."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evergrow import ShardError, open_shards, write_shards
from evergrow.foundation.locks import lock_or_wait
from tests.storage.shards.folders import N_ROWS, X, Y, check_nothing_is_lost, folder_of_shards

# Counts what changes the disk and kills itself before the n-th such step.
_KILLED = """
import os, signal, sys
import numpy as np
from evergrow.storage import write_shards

folder, last = sys.argv[1], int(sys.argv[2])
steps = 0

def counted(plain):
    def step(*arguments, **options):
        global steps
        steps += 1
        if steps == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return plain(*arguments, **options)
    return step

for name in ("replace", "fsync", "unlink"):
    setattr(os, name, counted(getattr(os, name)))
rows = np.ones((30, 6), dtype=np.float32)
write_shards(folder, [(rows, ["new"] * 30)], rows_per_shard=20)
print(steps)
"""


def append_until(folder: Path, step: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _KILLED, str(folder), str(step)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("is_new", [False, True])
def test_an_append_killed_at_any_step_is_done_or_not_done(is_new: bool, tmp_path: Path) -> None:
    whole = append_until(tmp_path / "whole", 0)
    assert whole.returncode == 0, whole.stderr
    n_steps = int(whole.stdout)
    # Neighbouring steps are much alike; the two folders take turns.
    for step in range(1 + is_new, n_steps + 1, 4):
        folder = tmp_path / f"killed {step}"
        if not is_new:
            folder_of_shards(folder)
        assert append_until(folder, step).returncode == -9
        check_nothing_is_lost(folder, 0 if is_new else N_ROWS)


def test_appends_wait_for_each_other(tmp_path: Path) -> None:
    folder_of_shards(tmp_path)
    done = threading.Event()

    def append() -> None:
        write_shards(tmp_path, [(X[:5], Y[:5])])
        done.set()

    with lock_or_wait(tmp_path / "shards.json", lambda: None):
        other = threading.Thread(target=append)
        other.start()
        assert not done.wait(0.2)
    other.join()
    assert len(open_shards(tmp_path)) == N_ROWS + 5


def test_appending_from_many_threads_loses_nothing(tmp_path: Path) -> None:
    def append(number: int) -> None:
        write_shards(tmp_path, [np.full((3, 2), number, dtype=np.float32)])

    threads = [threading.Thread(target=append, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shards = open_shards(tmp_path)
    assert sorted(shards[:, 0].tolist()) == sorted(3 * list(range(8)))


def test_a_batch_that_appends_to_its_own_folder_is_refused(tmp_path: Path) -> None:
    def batches() -> Iterator[Any]:
        yield X
        write_shards(tmp_path, [X])

    with pytest.raises(ShardError, match="already being appended to"):
        write_shards(tmp_path, batches())
    assert len(write_shards(tmp_path, [X])) == N_ROWS


def test_a_batch_may_append_to_another_folder(tmp_path: Path) -> None:
    def batches() -> Iterator[Any]:
        yield write_shards(tmp_path / "another", [X])

    assert len(write_shards(tmp_path / "one", batches())) == N_ROWS


def test_a_caller_that_does_not_want_to_wait_need_not(tmp_path: Path) -> None:
    folder_of_shards(tmp_path)

    def on_wait() -> None:
        raise TimeoutError("another is appending")

    with (
        lock_or_wait(tmp_path / "shards.json", lambda: None),
        pytest.raises(TimeoutError, match="another is appending"),
    ):
        write_shards(tmp_path, [(X, Y)], on_wait=on_wait)
    assert len(open_shards(tmp_path)) == N_ROWS
