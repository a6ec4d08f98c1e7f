"""Writing shards: what is refused, and what is left when it is interrupted or killed."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evergrow import RaggedArray, ShardError, open_shards, write_shards
from evergrow.storage.shards.batches import RowBatch
from evergrow.storage.shards.manifest import Manifest
from evergrow.storage.shards.staging import StagedFiles, stage_files
from evergrow.storage.shards.writer import ShardWriter, open_writer
from tests.budget import budget
from tests.storage.shards.folders import (
    N_ROWS,
    X,
    Y,
    check_nothing_is_lost,
    files_of,
    folder_of_shards,
)

pytestmark = pytest.mark.slow


@settings(max_examples=budget(20))
@given(st.lists(st.integers(0, 40), min_size=1, max_size=8), st.integers(1, 50))
def test_batches_of_any_sizes_make_shards_of_one_size(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], rows_per_shard: int
) -> None:
    n_rows = sum(sizes)
    rows = np.arange(2.0 * n_rows, dtype=np.float32).reshape(-1, 2)
    ends = np.cumsum([0, *sizes]).tolist()
    batches = [rows[a:b] for a, b in itertools.pairwise(ends)]
    folder = tmp_path_factory.mktemp("shards")
    if not n_rows:
        with pytest.raises(ValueError, match="no rows to write"):
            write_shards(folder, batches, rows_per_shard=rows_per_shard)
        return
    shards = write_shards(folder, batches, rows_per_shard=rows_per_shard)
    np.testing.assert_array_equal(shards[:], rows)
    lengths = [part.last - part.first for part in shards.parts]
    assert set(lengths[:-1]) <= {rows_per_shard}
    assert 0 < lengths[-1] <= rows_per_shard


def test_appending_keeps_all_rows_and_the_places_of_classes(tmp_path: Path) -> None:
    first = folder_of_shards(tmp_path)
    known = first.classes.tolist()
    more = write_shards(tmp_path, [(X[:5], ["aaa", "cat", "zzz", None, "dog"])])
    np.testing.assert_array_equal(more[:], np.concatenate([X, X[:5]]))
    assert more.classes.tolist() == [*known, "aaa", "zzz"]
    assert more.labels[-5:].tolist() == ["aaa", "cat", "zzz", None, "dog"]
    assert first.shape == (N_ROWS, X.shape[1])


def test_rows_without_labels_may_go_before_and_after_those_with(tmp_path: Path) -> None:
    shards = write_shards(tmp_path, [X[:3]])
    assert shards.classes is None
    with pytest.raises(ShardError, match="has no labels"):
        _ = shards.labels
    write_shards(tmp_path, [(X[:2], [7, 5])])
    shards = write_shards(tmp_path, [X[:1]])
    assert shards.labels.tolist() == [None, None, None, 7, 5, None]
    assert shards.labels.n_unlabelled == 4
    with pytest.raises(ValueError, match="4 of 6 labels are missing"):
        np.asarray(shards.labels)


def test_images_of_several_rows_stay_together(tmp_path: Path) -> None:
    lengths = [3, 0, 9, 1, 1, 4, 0]
    images = [X[: length + 0] + i for i, length in enumerate(lengths)]
    labels = ["a", "b", None, "a", "c", "c", "b"]
    shards = write_shards(tmp_path, [(RaggedArray.of(images), labels)], rows_per_shard=4)
    assert shards.offsets.tolist() == np.cumsum([0, *lengths]).tolist()
    assert shards.labels.tolist() == labels
    assert len(shards.images) == shards.n_items == 7
    for found, image in zip(shards.images, images, strict=True):
        np.testing.assert_array_equal(found, image)
    np.testing.assert_array_equal(shards.images[5], images[5])
    np.testing.assert_array_equal(shards.images[[2, 0]].values, np.concatenate([images[2], X[:3]]))
    shards.verify()


# Each holds more than float64 does, if the system has it at all.
INEXACT = {
    "int64": np.array([[2**53 + 1]]),
    "the largest int64": np.array([[2**63 - 1]]),
    "the largest uint64": np.array([[2**64 - 1]], dtype=np.uint64),
    "longdouble": np.nextafter(np.ones((1, 1), dtype=np.longdouble), np.longdouble(2)),
}


@pytest.mark.parametrize("name", INEXACT)
@pytest.mark.parametrize("before", [[], [np.zeros((1, 1))]])
def test_numbers_that_the_widest_type_does_not_hold_are_refused(
    before: list[Any], name: str, tmp_path: Path
) -> None:
    rows = INEXACT[name]
    if rows.dtype == np.float64:
        pytest.skip("long doubles are doubles here")
    with pytest.raises(ValueError, match=r"does not hold exactly: use dtype='float64'"):
        write_shards(tmp_path, [*before, rows])
    assert len(write_shards(tmp_path, [*before, rows], dtype="float64")) == len(before) + 1


def test_what_pandas_calls_missing_is_a_missing_label(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    batches = [
        (X[:3], pandas.Series(["cat", np.nan, None])),
        (X[:3], pandas.Series(["cat", pandas.NA, "dog"], dtype="string")),
        (X[:2], np.array(["dog", np.nan], dtype=object)),
    ]
    labels = write_shards(tmp_path, batches).labels.tolist()
    assert labels == ["cat", None, None, "cat", None, "dog", "dog", None]
    shards = write_shards(tmp_path / "numbers", [(X[:2], pandas.Series([7, None], dtype="Int64"))])
    assert shards.labels.tolist() == [7, None]


def test_images_of_other_shards_are_written_as_images(tmp_path: Path) -> None:
    first = write_shards(
        tmp_path / "first", [(RaggedArray.of([X[:3], X[:0], X[:2]]), [1, 2, None])]
    )
    again = write_shards(tmp_path / "again", [(first.images, first.labels)])
    assert again.digest == first.digest


BAD_BATCHES: dict[str, tuple[Any, type[Exception], str]] = {
    "width": (X[:, :3], ValueError, "batch 1 has 3 features, the shards have 6"),
    "NaN": (np.full((2, 6), np.nan, np.float32), ValueError, "batch 1 holds numbers that are NaN"),
    "infinity": (np.full((2, 6), -np.inf, np.float32), ValueError, "NaN or infinite"),
    "no matrix": (X[0], ValueError, "batch 1 must be a matrix"),
    "text": (np.full((2, 6), "a"), ValueError, "batch 1 must be a matrix of numbers"),
    "complex": (X[:2] * 1j, ValueError, "matrix of numbers"),
    "too few labels": ((X[:3], ["cat"]), ValueError, "batch 1 has 3 rows but 1 labels"),
    "numbers as labels": ((X[:2], [1, 2]), TypeError, "batch 1: labels must be strings"),
    "mixed labels": ((X[:2], ["cat", 2]), TypeError, "all strings or all numbers"),
    "measured labels": ((X[:2], [0.5, 1.5]), TypeError, "batch 1: labels .* missing one, got 0.5"),
    "flags as labels": ((X[:2], [True, False]), TypeError, "integers or strings"),
    "labels that end in nothing": ((X[:2], ["cat", "cat\0"]), ValueError, "batch 1 has a label"),
    "ragged": (RaggedArray.of([X[:2]]), ValueError, "batch 1 has images of several rows"),
    "a list in place of a pair": (
        [X[:2], ["cat"]],
        ValueError,
        r"batch 1 must .* pair \(rows, lab",
    ),
    "matrices": ([X[:2], X[:3]], ValueError, "batch 1 must be a matrix of numbers.*got a list"),
    "lists as labels": ((X[:2], [["cat"], ["dog"]]), TypeError, "batch 1: labels must be"),
    "no features": (np.zeros((2, 0), np.float32), ValueError, "no features"),
}


@pytest.mark.parametrize("name", BAD_BATCHES)
def test_a_bad_batch_is_named_and_leaves_the_folder_as_it_was(name: str, tmp_path: Path) -> None:
    batch, kind, message = BAD_BATCHES[name]
    folder_of_shards(tmp_path)
    before = {file: (tmp_path / file).read_bytes() for file in files_of(tmp_path)}
    with pytest.raises(kind, match=message):
        write_shards(tmp_path, [(X[:40], Y[:40]), batch], rows_per_shard=10)
    assert {file: (tmp_path / file).read_bytes() for file in files_of(tmp_path)} == before


@pytest.mark.parametrize(
    ("batches", "options", "message"),
    [
        ([X * 1e6], {"dtype": "float16"}, "too large for float16"),
        ([(X[:1], [2**70])], {}, "64 bits"),
        (X, {}, "batch 0 must be a matrix"),
        ([X], {"dtype": "int8"}, "dtype"),
        ([X], {"rows_per_shard": 0}, "rows_per_shard"),
        ([X], {"rows_per_shard": 2.5}, "rows_per_shard"),
    ],
)
def test_wrong_rows_and_parameters_are_named_before_a_folder_is_made(
    batches: Any, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        write_shards(tmp_path / "new", batches, **options)
    assert not (tmp_path / "new").exists()


def test_another_type_cannot_be_appended(tmp_path: Path) -> None:
    folder_of_shards(tmp_path)
    with pytest.raises(ShardError, match="float64 cannot be appended"):
        write_shards(tmp_path, [X], dtype="float64")


def test_files_of_others_in_the_folder_stay(tmp_path: Path) -> None:
    mine = tmp_path / "000000.npy"
    np.save(mine, np.zeros(3))
    content = mine.read_bytes()
    shards = write_shards(tmp_path, [X])
    assert mine.read_bytes() == content
    assert shards.parts[0].file == "000001.npy"
    np.testing.assert_array_equal(write_shards(tmp_path, [X])[:], np.concatenate([X, X]))


def test_features_are_plain_npy_files(tmp_path: Path) -> None:
    folder_of_shards(tmp_path)
    np.testing.assert_array_equal(np.load(tmp_path / "000001.npy"), X[30:60])
    assert open_shards(tmp_path).shape == X.shape


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
