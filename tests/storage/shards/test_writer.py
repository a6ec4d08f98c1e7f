"""Writing shards, and what is refused."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evergrow import RaggedArray, ShardError, open_shards, write_shards
from tests.budget import budget
from tests.storage.shards.folders import N_ROWS, X, Y, files_of, folder_of_shards


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


def test_a_batch_may_be_used_again_by_the_caller(tmp_path: Path) -> None:
    def batches() -> Iterator[Any]:
        buffer = np.zeros((4, 2), dtype=np.float32)
        for number in range(5):
            buffer[:] = number
            yield buffer

    shards = write_shards(tmp_path, batches(), rows_per_shard=7)
    np.testing.assert_array_equal(shards[:, 0], np.repeat(np.arange(5), 4))


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


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (np.float16, "float16"),
        (np.float64, "float64"),
        (np.uint8, "float16"),
        (np.int16, "float32"),
        (np.int64, "float64"),
    ],
)
def test_a_new_folder_gets_the_type_that_holds_its_rows(
    given: Any, expected: str, tmp_path: Path
) -> None:
    assert write_shards(tmp_path, [np.ones((3, 2), dtype=given)]).dtype == expected


def test_numbers_are_rounded_only_where_that_is_asked_for(tmp_path: Path) -> None:
    folder_of_shards(tmp_path)
    with pytest.raises(ValueError, match=r"batch 1 is of type float64.*float32"):
        write_shards(tmp_path, [X, X.astype(np.float64)])
    assert len(write_shards(tmp_path, [X.astype(np.float64)], dtype="float32")) == 2 * N_ROWS


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


@pytest.mark.parametrize("given", [np.int64, np.uint64, np.longdouble])
def test_numbers_that_the_widest_type_holds_are_kept(given: Any, tmp_path: Path) -> None:
    rows = np.array([[2**60], [3]], dtype=given)
    assert write_shards(tmp_path, [rows, rows])[:, 0].tolist() == [2.0**60, 3.0] * 2


def test_a_first_batch_says_nothing_of_how_later_ones_are_rounded(tmp_path: Path) -> None:
    first = np.ones((1, 1), dtype=np.longdouble)
    with pytest.raises(ValueError, match="batch 1 holds numbers of type int64"):
        write_shards(tmp_path, [first, INEXACT["int64"]])


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


def test_the_manifest_says_what_is_in_the_folder(tmp_path: Path) -> None:
    folder_of_shards(tmp_path)
    content = json.loads((tmp_path / "shards.json").read_text())
    assert (content["dtype"], content["n_features"]) == ("float32", 6)
    assert [entry["rows"] for entry in content["shards"]] == [30, 30, 30, 10]
    assert content["classes"]["values"] == ["ant", "bee", "cat", "dog"]


def test_features_are_plain_npy_files(tmp_path: Path) -> None:
    folder_of_shards(tmp_path)
    np.testing.assert_array_equal(np.load(tmp_path / "000001.npy"), X[30:60])
    assert open_shards(tmp_path).shape == X.shape
