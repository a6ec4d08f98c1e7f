"""Folders of shards as one matrix."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evergrow
from evergrow import ShardError, Shards, open_shards, write_shards
from evergrow.storage.shards import array_files, join_rows
from tests.storage.shards.folders import N_ROWS, X, Y, folder_of_shards


@pytest.fixture
def shards(tmp_path: Path) -> Shards:
    return folder_of_shards(tmp_path)


EVERY_INDEX = {
    "all": slice(None),
    "within a shard": slice(3, 20),
    "across shards": slice(29, 62),
    "steps": slice(5, 99, 7),
    "steps over whole shards": slice(0, None, 50),
    "backwards": slice(None, None, -1),
    "backwards in steps": slice(90, 3, -13),
    "nothing": slice(40, 40),
    "one": 31,
    "from the end": -1,
    "numbers": [99, 0, 31, 31, -2],
    "no numbers": [],
    "mask": np.arange(N_ROWS) % 3 == 0,
    "column": (slice(10, 50), 2),
    "as scikit-learn asks": (np.array([4, 60]), ...),
    "numpy integer": np.int32(7),
    "a number in an array": np.array(7),
    "pairs": ([1, 40], [0, 3]),
    "a row with several columns": ([40], [0, 3]),
    "rows of a mask with columns": (np.arange(N_ROWS) < 6, [5, 4, 3, 2, 1, 0]),
    "a mask of columns": ([3, 50], np.arange(6) % 3 == 0),
    "rows by columns": (slice(29, 32), [3, 0]),
    "numbers and a column": ([1, 40], 3),
    "numbers and a slice": ([1, 40], slice(1, 3)),
    "one row and columns": (31, [3, 0]),
    "a column of all": (..., 1),
    "everything": (),
}


@pytest.mark.parametrize("name", EVERY_INDEX)
def test_rows_are_those_of_the_array(name: str, shards: Shards) -> None:
    index = EVERY_INDEX[name]
    found = shards[index]
    np.testing.assert_array_equal(found, X[index])
    assert type(found) is np.ndarray
    assert found.dtype == X.dtype


WRONG_INDICES = [100, -101, [0, 100], [True, False], "a", [[0]], [0.5], None]
# Columns that an array would not give.
WRONG_INDICES += [([0, 1, 2], [0, 1]), (0, 0, 0), (..., 0, 0)]


@pytest.mark.parametrize("index", WRONG_INDICES)
def test_a_wrong_index_is_an_index_error(shards: Shards, index: Any) -> None:
    with pytest.raises(IndexError):
        shards[index]


def test_shape_type_and_content_are_those_of_the_array(shards: Shards) -> None:
    assert (shards.shape, shards.dtype, shards.ndim) == (X.shape, X.dtype, 2)
    assert (len(shards), shards.nbytes, shards.size) == (N_ROWS, X.nbytes, X.size)
    np.testing.assert_array_equal(np.asarray(shards), X)
    np.testing.assert_array_equal(np.array(list(shards)), X)
    assert np.asarray(shards, dtype=np.float64).dtype == np.float64
    np.testing.assert_array_equal(np.asarray(shards, dtype=np.str_), X.astype(np.str_))


def test_an_array_of_all_rows_is_made_once(shards: Shards, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evergrow.storage.shards.rows._BLOCK_BYTES", 10 * X[0].nbytes)
    asked, plain = list[int](), type(shards)._span

    def noted(self: Any, first: int, last: int, step: int) -> Any:
        asked.append(last - first)
        return plain(self, first, last, step)

    monkeypatch.setattr(type(shards), "_span", noted)
    np.testing.assert_array_equal(np.asarray(shards, dtype=np.float64), X)
    assert max(asked) == 10


def test_blocks_go_through_all_rows(shards: Shards) -> None:
    blocks = list(shards.blocks(max_rows=13))
    np.testing.assert_array_equal(np.concatenate([block for _, block in blocks]), X)
    assert [rows.start for rows, _ in blocks] == list(range(0, N_ROWS, 13))


def test_rows_of_one_shard_are_mapped_and_not_copied(shards: Shards) -> None:
    assert np.shares_memory(shards[0:10], shards[5:12])
    assert not shards[0:10].flags.writeable


def test_labels_are_those_given(tmp_path: Path) -> None:
    labels = folder_of_shards(tmp_path).labels
    assert labels is not None
    np.testing.assert_array_equal(np.asarray(labels), Y)
    assert (labels.dtype, labels.shape, len(labels)) == (Y.dtype, Y.shape, N_ROWS)
    assert labels[1] == Y[1]
    assert labels[[3, 5]].tolist() == Y[[3, 5]].tolist()
    np.testing.assert_array_equal(labels == "cat", Y == "cat")
    np.testing.assert_array_equal(labels != Y[::-1], Y[::-1] != Y)


def test_chosen_rows_stay_on_disk(shards: Shards) -> None:
    rows = np.array([70, 3, 40, 99, 8])
    chosen = shards.choose(rows)
    assert chosen.shape == (5, X.shape[1])
    np.testing.assert_array_equal(chosen[1:4], X[rows][1:4])
    np.testing.assert_array_equal(chosen.choose([2, 0])[:], X[[40, 70]])


@pytest.mark.parametrize("name", EVERY_INDEX)
def test_rows_in_memory_and_on_disk_are_joined(name: str, tmp_path: Path) -> None:
    joined = join_rows(X[:35].astype(np.float64), folder_of_shards(tmp_path).choose(range(35, 100)))
    found = joined[EVERY_INDEX[name]]
    np.testing.assert_array_equal(found, X[EVERY_INDEX[name]])
    assert found.dtype == np.float64


def test_opening_reads_no_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder_of_shards(tmp_path)

    def read(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(array_files, "check_content", read)
    assert open_shards(tmp_path).shape == X.shape


def test_a_shard_is_checked_once_in_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder_of_shards(tmp_path)
    checked = []
    plain = array_files.check_content

    def counting(file: Any) -> None:
        checked.append(file.path.name)
        plain(file)

    monkeypatch.setattr(array_files, "check_content", counting)
    shards = open_shards(tmp_path)
    for _ in range(3):
        shards[:40]
        open_shards(tmp_path)[:40]
    assert sorted(checked) == ["000000.npy", "000001.npy"]


def test_a_shard_that_changes_while_it_is_in_use_is_named(shards: Shards, tmp_path: Path) -> None:
    shards[:]
    file = tmp_path / "000002.npy"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    np.testing.assert_array_equal(shards[:60], X[:60])
    with pytest.raises(ShardError, match=r"000002\.npy.*SHA-256"):
        shards[:]


def test_a_shard_cut_short_while_it_is_mapped_does_not_end_the_process(
    shards: Shards, tmp_path: Path
) -> None:
    shards[:]
    os.truncate(tmp_path / "000001.npy", 200)
    with pytest.raises(ShardError, match=r"000001\.npy.*bytes"):
        shards[:]


def test_verify_reads_what_was_checked_before(shards: Shards, tmp_path: Path) -> None:
    shards[:]
    file = tmp_path / "000000.npy"
    times = os.stat(file)
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    with open(file, "r+b") as same:
        same.write(content)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(ShardError, match=r"000000\.npy"):
        shards.verify()


def test_a_pickle_is_a_place_and_a_hash(shards: Shards) -> None:
    content = pickle.dumps(shards)
    assert len(content) < 1000
    np.testing.assert_array_equal(pickle.loads(content)[:], X)


def test_a_pickle_opens_what_it_was_even_if_more_was_appended(
    shards: Shards, tmp_path: Path
) -> None:
    content = pickle.dumps(shards)
    write_shards(tmp_path, [(X, ["new"] * N_ROWS)])
    again = pickle.loads(content)
    assert (again.shape, again.digest) == (X.shape, shards.digest)
    assert len(again.classes) == 4


def test_a_pickle_of_other_rows_is_refused(tmp_path: Path) -> None:
    content = pickle.dumps(folder_of_shards(tmp_path / "a"))
    (tmp_path / "a").rename(tmp_path / "b")
    write_shards(tmp_path / "a", [(X[::-1], Y)], rows_per_shard=30)
    with pytest.raises(ShardError, match="have changed"):
        pickle.loads(content)


def test_parts_are_small_and_read_by_themselves(shards: Shards) -> None:
    for part in pickle.loads(pickle.dumps(shards.parts)):
        np.testing.assert_array_equal(part.read(), X[part.first : part.last])
        codes = part.read_codes()
        np.testing.assert_array_equal(shards.classes[codes], Y[part.first : part.last])
    assert [part.file for part in shards.parts] == [f"00000{i}.npy" for i in range(4)]


def test_one_part_is_found_by_its_index(shards: Shards) -> None:
    parts = shards.parts
    assert [shards.part(i) for i in range(len(parts))] == parts
    assert shards.part(-1) == parts[-1]
    with pytest.raises(IndexError):
        shards.part(len(parts))


def test_the_digest_names_rows_and_labels_and_not_the_folder(tmp_path: Path) -> None:
    first = folder_of_shards(tmp_path / "a").digest
    assert folder_of_shards(tmp_path / "b").digest == first
    assert write_shards(tmp_path / "c", [(X, Y[::-1])], rows_per_shard=30).digest != first
    assert write_shards(tmp_path / "d", [(X + 1, Y)], rows_per_shard=30).digest != first


def test_more_files_than_can_be_mapped_at_once(tmp_path: Path) -> None:
    many = np.arange(400.0, dtype=np.float32).reshape(-1, 1)
    shards = write_shards(tmp_path, [many], rows_per_shard=2)
    np.testing.assert_array_equal(shards[:], many)
    np.testing.assert_array_equal(shards[[399, 0, 200]], many[[399, 0, 200]])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_every_type_is_learnt_from_as_from_an_array(dtype: str, tmp_path: Path) -> None:
    shards = write_shards(tmp_path, [(X, Y)], dtype=dtype, rows_per_shard=30)
    assert shards.dtype == dtype
    from_array = evergrow.NCMClassifier().fit(X.astype(dtype), Y)
    from_shards = evergrow.NCMClassifier().fit(shards, shards.labels)
    np.testing.assert_array_equal(from_shards.means_, from_array.means_)


def test_a_missing_folder_and_a_missing_manifest_give_different_errors(
    tmp_path: Path,
) -> None:
    with pytest.raises(FileNotFoundError, match="no such folder"):
        open_shards(tmp_path / "nowhere")
    with pytest.raises(ShardError, match=r"no shards\.json"):
        open_shards(tmp_path)


def test_a_file_in_place_of_a_folder_is_named(tmp_path: Path) -> None:
    file = tmp_path / "rows.npy"
    np.save(file, X)
    for use in (open_shards, lambda path: write_shards(path, [X])):
        with pytest.raises(NotADirectoryError, match=r"rows\.npy' is not a folder"):
            use(file)
