"""Appending that is interrupted or fails at any step: the folder stays one that can be read."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evergrow import RaggedArray, ShardError, open_shards, write_shards
from evergrow.storage.shards.batches import RowBatch
from evergrow.storage.shards.manifest import Manifest
from evergrow.storage.shards.staging import StagedFiles, stage_files
from evergrow.storage.shards.writer import ShardWriter, open_writer
from tests.storage.shards.folders import (
    N_ROWS,
    X,
    Y,
    check_nothing_is_lost,
    files_of,
    folder_of_shards,
)

NEW = (np.ones((30, X.shape[1]), dtype=np.float32), ["new"] * 30)


class FailingSteps:
    """Counts what changes the disk, and fails before or after the step of a number."""

    def __init__(self, last: int, error: BaseException, *, after: bool) -> None:
        self.n_done = 0
        self._last, self._error, self._after = last, error, after

    def counted(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **options: Any) -> Any:
            self.n_done += 1
            fails = self.n_done == self._last
            if fails and not self._after:
                raise self._error
            try:
                return plain(*arguments, **options)
            finally:
                if fails:
                    raise self._error

        return step


def append_with(steps: FailingSteps, append: Callable[[], Any]) -> bool:
    """Whether appending came to its end."""
    with pytest.MonkeyPatch.context() as patched:
        for name in ("replace", "unlink"):
            patched.setattr(os, name, steps.counted(getattr(os, name)))
        # No power fails here, and waiting for the disk takes most of the time.
        patched.setattr(os, "fsync", steps.counted(lambda descriptor: None))
        try:
            append()
        except (KeyboardInterrupt, OSError):
            return False
        return True


ERRORS = {"Ctrl-C": KeyboardInterrupt(), "a full disk": OSError(28, "No space left on device")}


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("n_before", [0, N_ROWS])
def test_an_append_that_fails_at_any_step_is_done_or_not_done(
    n_before: int, error: str, after: bool, tmp_path: Path
) -> None:
    folder_of_shards(tmp_path / "before")
    for last in itertools.count(1):
        folder = tmp_path / str(last)
        if n_before:
            shutil.copytree(tmp_path / "before", folder)
        steps = FailingSteps(last, ERRORS[error], after=after)
        if append_with(steps, lambda to=folder: write_shards(to, [NEW], rows_per_shard=20)):
            assert last > 10
            return
        check_nothing_is_lost(folder, n_before)


@pytest.mark.parametrize("after", [False, True])
def test_taking_rows_back_that_is_interrupted_leaves_none_or_all(
    after: bool, tmp_path: Path
) -> None:
    def take_back(folder: Path) -> None:
        with open_writer(folder) as writer:
            writer.add(RowBatch.of(NEW, "rows"), "rows")
            writer.commit()
            writer.roll_back()

    folder_of_shards(tmp_path / "before")
    for last in itertools.count(1):
        folder = tmp_path / str(last)
        shutil.copytree(tmp_path / "before", folder)
        if append_with(
            FailingSteps(last, KeyboardInterrupt(), after=after), lambda to=folder: take_back(to)
        ):
            assert len(open_shards(folder)) == N_ROWS
            return
        check_nothing_is_lost(folder, N_ROWS)


def fail_once_to_write_a_manifest(patched: pytest.MonkeyPatch) -> None:
    plain, n_calls = Manifest.write, itertools.count()

    def write(self: Manifest, folder: Path) -> None:
        if not next(n_calls):
            raise OSError(28, "No space left on device")
        plain(self, folder)

    patched.setattr(Manifest, "write", write)


def add_and_commit(writer: ShardWriter, label: str) -> None:
    writer.add(RowBatch.of((X[:20], [label] * 20), "rows"), "rows")
    writer.commit()


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_commit_that_failed_is_not_tried_again_and_its_files_are_removed(
    goes_on: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder_of_shards(tmp_path)
    fail_once_to_write_a_manifest(monkeypatch)
    with open_writer(tmp_path, rows_per_shard=10) as writer:
        with pytest.raises(OSError, match="No space"):
            add_and_commit(writer, "lost")
        writer.commit(all_rows=False)
        assert writer.manifest is not None
        assert len(writer.manifest.shards) == 4
        if goes_on:
            add_and_commit(writer, "stored")
    shards = open_shards(tmp_path)
    shards.verify()
    assert shards.labels[N_ROWS:].tolist() == 20 * goes_on * ["stored"]
    named = {name for shard in shards.manifest.shards for name in shard.names}
    assert set(files_of(tmp_path)) == {*named, "shards.json"}


def test_the_number_of_a_file_that_is_missing_is_not_given_again(tmp_path: Path) -> None:
    folder_of_shards(tmp_path)
    for kind in ("", ".labels"):
        (tmp_path / f"000003{kind}.npy").unlink()
    with pytest.raises(ShardError, match=r"000003\.npy' is missing"):
        write_shards(tmp_path, [(X[:5], Y[:5])])
    assert (tmp_path / "000004.npy").exists()


def aside(folder: Path) -> StagedFiles:
    """Files of rows that stand for themselves, as a task on another machine writes them."""
    return stage_files(folder, X.dtype, [RowBatch(X[:4], None, None)])


def test_rows_do_not_go_into_a_folder_of_images_of_several_rows(tmp_path: Path) -> None:
    write_shards(tmp_path, [RaggedArray.of([X[:3], X[:2]])])
    with open_writer(tmp_path) as writer, pytest.raises(ShardError, match="images of several rows"):
        writer.adopt(aside(tmp_path), n_features=X.shape[1], dtype="float32")
    assert len(open_shards(tmp_path).images) == 2


def test_a_manifest_that_could_not_be_read_is_not_written(tmp_path: Path) -> None:
    plain = folder_of_shards(tmp_path / "plain").manifest
    ragged = write_shards(tmp_path / "ragged", [RaggedArray.of([X[:3], X[:2]])]).manifest
    mixed = Manifest(plain.dtype, plain.n_features, plain.classes, plain.shards[1:] + ragged.shards)
    with pytest.raises(ShardError, match="would be invalid: some shards have several rows"):
        mixed.write(tmp_path / "plain")
    assert len(open_shards(tmp_path / "plain")) == N_ROWS
