"""Tables of columns: Parquet, Arrow, datasets, pandas and polars, with rows that are named."""

from __future__ import annotations

import json
import struct
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evergrow import RaggedArray, ShardError, open_shards, write_shards
from evergrow.storage import shard_table, write_parquet
from evergrow.storage.shards.importers import find_table_files, read_table

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

X = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
NAMES = ["ant", "bee", "cat"]
Y = [NAMES[i % 3] for i in range(50)]


def lists(rows: Any = X, kind: str = "fixed", dtype: str = "float32") -> Any:
    values = pa.array(np.asarray(rows, dtype).ravel())
    if kind == "fixed":
        return pa.FixedSizeListArray.from_arrays(values, rows.shape[1])
    offsets = np.arange(0, rows.size + 1, rows.shape[1])
    make = pa.ListArray if kind == "list" else pa.LargeListArray
    return make.from_arrays(pa.array(offsets, pa.int32() if kind == "list" else pa.int64()), values)


def table(**columns: Any) -> Any:
    return pa.table({"vector": lists(), "label": Y, **columns})


def import_datasets() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library = pytest.importorskip("datasets", reason="datasets is not installed")
        library.disable_progress_bars()
    return library


def dataset() -> Any:
    library = import_datasets()
    features = library.Features(
        {
            "vector": library.Sequence(library.Value("float32"), length=4),
            "label": library.ClassLabel(names=NAMES),
        }
    )
    columns = {"vector": X.tolist(), "label": [NAMES.index(one) for one in Y]}
    return library.Dataset.from_dict(columns, features=features)


def check(folder: Path, n_times: int = 1) -> None:
    shards = open_shards(folder)
    np.testing.assert_array_equal(shards[:], np.tile(X, (n_times, 1)))
    assert shards.labels.tolist() == Y * n_times


@pytest.mark.parametrize("kind", ["fixed", "list", "large"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_lists_of_any_kind(kind: str, dtype: str, tmp_path: Path) -> None:
    rows = X.astype(dtype)
    pq.write_table(table(vector=lists(rows, kind, dtype)), tmp_path / "a.parquet")
    shard_table(tmp_path / "shards", tmp_path / "a.parquet")
    shards = open_shards(tmp_path / "shards")
    assert shards.dtype == dtype
    np.testing.assert_array_equal(shards[:], rows)


@pytest.mark.parametrize("indexed", [True, False])
def test_arrow_files(indexed: bool, tmp_path: Path) -> None:
    path, found = tmp_path / "a.arrow", table()
    make = pa.ipc.new_file if indexed else pa.ipc.new_stream
    with make(str(path), found.schema) as writer:
        writer.write_table(found, max_chunksize=7)
    assert shard_table(tmp_path / "shards", path).n_added == 50
    check(tmp_path / "shards")
    rows, labels = read_table(path)
    np.testing.assert_array_equal(rows, X)
    assert labels == Y


def test_damaged_arrow_files(tmp_path: Path) -> None:
    path, found = tmp_path / "a.arrow", table(vector=lists(kind="list"))
    with pa.ipc.new_stream(str(path), found.schema) as writer:
        writer.write_table(found)
    content = path.read_bytes()
    # The offsets of the lists: one beyond the values.
    place = content.index(struct.pack("<3i", 0, 4, 8))
    path.write_bytes(content[: place + 4] + struct.pack("<i", 1 << 30) + content[place + 8 :])
    for damaged in (path.read_bytes(), content[: len(content) // 2], b"", b"text"):
        path.write_bytes(damaged)
        with pytest.raises(ShardError, match="damaged or cannot be read"):
            shard_table(tmp_path / "shards", path)
        assert not (tmp_path / "shards").exists()


def test_folders_of_parquet_files(tmp_path: Path) -> None:
    source = tmp_path / "parts"
    source.mkdir()
    for number, rows in enumerate((slice(0, 20), slice(20, 50))):
        pq.write_table(
            table().slice(rows.start, rows.stop - rows.start), source / f"{number}.parquet"
        )
    (source / "_SUCCESS").touch()
    assert shard_table(tmp_path / "shards", source).n_added == 50
    check(tmp_path / "shards")
    again = shard_table(tmp_path / "shards", source)
    assert (again.n_added, again.n_present) == (0, 50)


@pytest.mark.slow
def test_datasets_on_disk(tmp_path: Path) -> None:
    library, found = import_datasets(), dataset()
    found.save_to_disk(tmp_path / "saved", num_shards=3)
    assert shard_table(tmp_path / "shards", tmp_path / "saved").n_added == 50
    check(tmp_path / "shards")
    library.DatasetDict(train=found, test=found).save_to_disk(tmp_path / "splits")
    with pytest.raises(ShardError, match=r"several splits: name one, such as .*train"):
        shard_table(tmp_path / "shards", tmp_path / "splits")
    found.to_parquet(str(tmp_path / "a.parquet"))
    shard_table(tmp_path / "more", tmp_path / "a.parquet")
    check(tmp_path / "more")


@pytest.mark.parametrize("form", ["python", "torch", "numpy", "shuffled"])
def test_datasets_in_memory(form: str, tmp_path: Path) -> None:
    found = dataset()
    if form == "shuffled":
        order = np.random.default_rng(1).permutation(50)
        found = found.select(order).select(np.argsort(order))
    elif form != "python":
        if form == "torch":
            pytest.importorskip("torch")
        found = found.with_format(form)
    assert shard_table(tmp_path, found, labels_key="label").n_added == 50
    check(tmp_path)
    assert shard_table(tmp_path, found, labels_key="label").n_present == 50


def test_tables_of_other_libraries(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"vector": list(X), "label": pandas.Categorical(Y)})
    assert shard_table(tmp_path / "pandas", frame).n_added == 50
    check(tmp_path / "pandas")
    wide = pandas.DataFrame(X, columns=list("abcd")).assign(label=Y)
    shard_table(tmp_path / "wide", wide)
    check(tmp_path / "wide")
    polars = pytest.importorskip("polars", reason="polars is not installed")
    shard_table(tmp_path / "polars", polars.DataFrame({"vector": X, "label": Y}))
    check(tmp_path / "polars")


@pytest.mark.parametrize("labels", [["ant", None, "bee"], [3, None, 5], None])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_shards_go_out_and_come_back(labels: Any, dtype: str, tmp_path: Path) -> None:
    rows = X[:3].astype(dtype)
    batch = rows if labels is None else (rows, labels)
    shards = write_shards(tmp_path / "shards", [batch])
    write_parquet(shards, tmp_path / "rows.parquet")
    shard_table(tmp_path / "again", tmp_path / "rows.parquet")
    again = open_shards(tmp_path / "again")
    np.testing.assert_array_equal(again[:], rows)
    assert again.dtype == dtype
    assert (None if labels is None else again.labels.tolist()) == labels


def test_images_of_several_rows_stay_in_shards(tmp_path: Path) -> None:
    shards = write_shards(tmp_path / "shards", [RaggedArray.of([np.ones((2, 3))])])
    with pytest.raises(ShardError, match="images of several rows"):
        write_parquet(shards, tmp_path / "rows.parquet")
    assert not (tmp_path / "rows.parquet").exists()


def test_what_is_not_a_table(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="a table of pyarrow, pandas or polars, got list"):
        shard_table(tmp_path, [1, 2])
    with pytest.raises(ValueError, match="file of labels"):
        shard_table(tmp_path, table(), labels=tmp_path / "y.npy")


def spoilt(row: int, value: float) -> Any:
    rows = X.copy()
    rows[row, 2] = value
    return lists(rows)


_COARSE = pa.array([*X[:2].tolist(), [1.0], *X[3:].tolist()])
_GAP = pa.array([*X[:7].tolist(), None, *X[8:].tolist()])
_HOLE = pa.array([*X[:9].tolist(), [1.0, None, 2.0, 3.0], *X[10:].tolist()])


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (spoilt(31, np.nan), r"row 31 of .* holds nan at place 2"),
        (spoilt(32, np.inf), r"row 32 of .* holds inf at place 2"),
        (_COARSE, r"row 2 of .* has 1 numbers in column 'vector', the rows before it have 4"),
        (_GAP, r"row 7 of .* has no value in column 'vector'"),
        (_HOLE, r"row 9 of .* lacks a number in column 'vector'"),
    ],
)
@pytest.mark.parametrize("together", [5, 8192])
def test_bad_rows_are_named_and_nothing_is_written(
    column: Any, message: str, together: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evergrow.storage.shards.importers.columns._MOST_TOGETHER", together)
    found = table(vector=column)
    pq.write_table(found, tmp_path / "a.parquet", row_group_size=11)
    for source in (tmp_path / "a.parquet", found):
        with pytest.raises(ShardError, match=message):
            shard_table(tmp_path / "shards", source)
        assert not (tmp_path / "shards").exists()


def test_rows_that_repeat_a_value_a_billion_times(tmp_path: Path) -> None:
    """Such a file is small; its rows would fill the memory."""
    wide = pa.ListArray.from_arrays([0, 1 << 21], pa.array(np.zeros(1 << 21, np.float32)))
    pq.write_table(pa.table({"vector": wide}), tmp_path / "a.parquet")
    assert (tmp_path / "a.parquet").stat().st_size < 10_000
    with pytest.raises(ShardError, match=r"a\.parquet' has rows of 2097152 values"):
        shard_table(tmp_path / "shards", tmp_path / "a.parquet")
    assert not (tmp_path / "shards").exists()


def test_classes_by_number(tmp_path: Path) -> None:
    described = {"info": {"features": {"label": {"names": NAMES, "_type": "ClassLabel"}}}}
    for codes, labels in (([0, 2, -1], ["ant", "cat", None]), ([0, 3, 1], None)):
        found = pa.table({"vector": lists(X[:3]), "label": codes})
        found = found.replace_schema_metadata({"huggingface": json.dumps(described)})
        if labels is None:
            with pytest.raises(ShardError, match=r"row 1 of .* has the class 3, there are 3"):
                shard_table(tmp_path / "bad", found)
        else:
            shard_table(tmp_path / "good", found)
            assert open_shards(tmp_path / "good").labels.tolist() == labels
    # What describes something else is ignored.
    for text in ("{", '{"info": []}', '{"info": {"features": {"label": {"names": 3}}}}'):
        found = pa.table({"vector": lists(X[:3]), "label": [5, 6, 7]})
        shard_table(tmp_path / text[:9], found.replace_schema_metadata({"huggingface": text}))
        assert open_shards(tmp_path / text[:9]).labels.tolist() == [5, 6, 7]


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("{", "does not list"),
        ("[]", "does not list"),
        ({"_data_files": [{"filename": "../secret.arrow"}]}, "not a file of the folder"),
        ({"_data_files": [{"filename": "/etc/passwd"}]}, "not a file of the folder"),
        ({"_data_files": [{"filename": 3}]}, "not a file of the folder"),
        ({"_data_files": []}, "no rows"),
        ({"_data_files": [], "_indices_data_files": [1]}, "selection of rows"),
    ],
)
def test_hostile_lists_of_files(state: Any, message: str, tmp_path: Path) -> None:
    text = state if isinstance(state, str) else json.dumps(state)
    (tmp_path / "state.json").write_text(text)
    with pytest.raises(ShardError, match=message):
        find_table_files(tmp_path)
