"""Folders of shards as one matrix."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evergrow import ShardError, Shards, open_shards, write_shards
from evergrow.storage.shards import join_rows
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


def test_labels_are_those_given(tmp_path: Path) -> None:
    labels = folder_of_shards(tmp_path).labels
    assert labels is not None
    np.testing.assert_array_equal(np.asarray(labels), Y)
    assert (labels.dtype, labels.shape, len(labels)) == (Y.dtype, Y.shape, N_ROWS)
    assert labels[1] == Y[1]
    assert labels[[3, 5]].tolist() == Y[[3, 5]].tolist()
    np.testing.assert_array_equal(labels == "cat", Y == "cat")
    np.testing.assert_array_equal(labels != Y[::-1], Y[::-1] != Y)


@pytest.mark.parametrize("name", EVERY_INDEX)
def test_rows_in_memory_and_on_disk_are_joined(name: str, tmp_path: Path) -> None:
    joined = join_rows(X[:35].astype(np.float64), folder_of_shards(tmp_path).choose(range(35, 100)))
    found = joined[EVERY_INDEX[name]]
    np.testing.assert_array_equal(found, X[EVERY_INDEX[name]])
    assert found.dtype == np.float64


def test_a_shard_cut_short_while_it_is_mapped_does_not_end_the_process(
    shards: Shards, tmp_path: Path
) -> None:
    shards[:]
    os.truncate(tmp_path / "000001.npy", 200)
    with pytest.raises(ShardError, match=r"000001\.npy.*bytes"):
        shards[:]


def test_a_pickle_is_a_place_and_a_hash(shards: Shards) -> None:
    content = pickle.dumps(shards)
    assert len(content) < 1000
    np.testing.assert_array_equal(pickle.loads(content)[:], X)


def test_a_pickle_of_other_rows_is_refused(tmp_path: Path) -> None:
    content = pickle.dumps(folder_of_shards(tmp_path / "a"))
    (tmp_path / "a").rename(tmp_path / "b")
    write_shards(tmp_path / "a", [(X[::-1], Y)], rows_per_shard=30)
    with pytest.raises(ShardError, match="have changed"):
        pickle.loads(content)


def test_parts_are_small_and_read_by_themselves(shards: Shards) -> None:
    for part in pickle.loads(pickle.dumps(shards.parts)):
        np.testing.assert_array_equal(part.read(), X[part.first : part.last])
    assert [part.file for part in shards.parts] == [f"00000{i}.npy" for i in range(4)]


def test_one_part_is_found_by_its_index(shards: Shards) -> None:
    parts = shards.parts
    assert [shards.part(i) for i in range(len(parts))] == parts
    assert shards.part(-1) == parts[-1]
    with pytest.raises(IndexError):
        shards.part(len(parts))


def test_more_files_than_can_be_mapped_at_once(tmp_path: Path) -> None:
    many = np.arange(400.0, dtype=np.float32).reshape(-1, 1)
    shards = write_shards(tmp_path, [many], rows_per_shard=2)
    np.testing.assert_array_equal(shards[:], many)
    np.testing.assert_array_equal(shards[[399, 0, 200]], many[[399, 0, 200]])


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
