"""Files of features into shards."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evergrow import ShardError, open_shards
from evergrow.storage import Sharded, shard_table
from evergrow.storage.shards.manifest import Manifest
from evergrow.storage.shards.writer import ShardWriter
from tests.storage.shards.folders import X, Y, files_of

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")


def npz(folder: Path) -> tuple[Path, dict[str, Any]]:
    np.savez(folder / "a.npz", X=X, y=Y)
    return folder / "a.npz", {}


def compressed(folder: Path) -> tuple[Path, dict[str, Any]]:
    np.savez_compressed(folder / "a.npz", rows=X, names=Y, other=np.zeros(3))
    return folder / "a.npz", {"features_key": "rows", "labels_key": "names"}


def by_columns(folder: Path) -> tuple[Path, dict[str, Any]]:
    np.savez(folder / "a.npz", X=np.asfortranarray(X), y=Y)
    return folder / "a.npz", {}


def npy(folder: Path) -> tuple[Path, dict[str, Any]]:
    np.save(folder / "a.npy", X)
    np.save(folder / "labels.npy", Y)
    return folder / "a.npy", {"labels": folder / "labels.npy"}


def parquet_of(folder: Path, columns: dict[str, Any]) -> Path:
    pq.write_table(pa.table(columns), folder / "a.parquet", row_group_size=17)
    return folder / "a.parquet"


def parquet_lists(folder: Path) -> tuple[Path, dict[str, Any]]:
    lists = pa.array([row.tolist() for row in X], pa.list_(pa.float32()))
    number = np.arange(len(X))
    return parquet_of(folder, {"number": number, "vector": lists, "label": Y.tolist()}), {}


def parquet_fixed(folder: Path) -> tuple[Path, dict[str, Any]]:
    lists = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])
    dictionary = pa.array(Y.tolist()).dictionary_encode()
    columns = {"vector": lists, "again": lists, "kind": dictionary}
    return parquet_of(folder, columns), {"features_key": "vector", "labels_key": "kind"}


def parquet_numbers(folder: Path) -> tuple[Path, dict[str, Any]]:
    columns: dict[str, Any] = {f"x{i}": X[:, i] for i in range(X.shape[1])}
    return parquet_of(folder, {"y": Y.tolist(), "text": Y.tolist(), **columns}), {}


KINDS: list[Callable[[Path], tuple[Path, dict[str, Any]]]] = [
    npz,
    compressed,
    by_columns,
    npy,
    parquet_lists,
    parquet_fixed,
    parquet_numbers,
]
every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
def test_rows_and_labels_are_those_of_the_file(kind: Any, tmp_path: Path) -> None:
    file, options = kind(tmp_path)
    done = shard_table(tmp_path / "shards", file, rows_per_shard=30, **options)
    assert done == Sharded(len(X), 0)
    shards = open_shards(tmp_path / "shards")
    np.testing.assert_array_equal(shards[:], X)
    np.testing.assert_array_equal(np.asarray(shards.labels), Y)
    assert shards.dtype == X.dtype


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows at a time, each time committed."""
    monkeypatch.setattr("evergrow.storage.shards.importers.source._COMMIT_SECONDS", 0.0)
    monkeypatch.setattr(
        "evergrow.storage.shards.importers.npy_stream._BLOCK_BYTES", 20 * X[:1].nbytes
    )
    monkeypatch.setattr("evergrow.storage.shards.importers.columns._MOST_TOGETHER", 20)


@every_kind
@pytest.mark.usefixtures("busy")
def test_an_interrupted_run_goes_on_where_it_was(
    kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, options = kind(tmp_path)
    plain = ShardWriter.add

    def interrupted(self: ShardWriter, batch: Any, what: str, source: str) -> None:
        if "rows 0" not in what:
            raise KeyboardInterrupt
        plain(self, batch, what, source)
        if kind is by_columns:
            self.commit(all_rows=False)
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ShardWriter, "add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            shard_table(tmp_path / "shards", file, rows_per_shard=8, **options)
    n_before = len(open_shards(tmp_path / "shards"))
    assert 0 < n_before < len(X)
    done = shard_table(tmp_path / "shards", file, rows_per_shard=8, **options)
    assert done == Sharded(len(X) - n_before, n_before)
    shards = open_shards(tmp_path / "shards")
    np.testing.assert_array_equal(shards[:], X)
    np.testing.assert_array_equal(np.asarray(shards.labels), Y)


def with_parquet(**columns: Any) -> Callable[[Path], Path]:
    return lambda folder: parquet_of(folder, columns)


def saved(name: str, *arrays: Any, **named: Any) -> Callable[[Path], Path]:
    def save(folder: Path) -> Path:
        if arrays:
            np.save(folder / name, arrays[0], allow_pickle=True)
        else:
            np.savez(folder / name, **named)
        return folder / name

    return save


def written(name: str, content: bytes) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return write


def cut(name: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        file = saved(name, X)(folder)
        file.write_bytes(file.read_bytes()[:-5])
        return file

    return write


def stored_header_that_lies(folder: Path) -> Path:
    content = saved("plain.npy", X)(folder).read_bytes()
    with zipfile.ZipFile(folder / "a.npz", "w") as archive:
        archive.writestr("X.npy", content.replace(b"(100, 6)", b"(999, 6)"))
    return folder / "a.npz"


def header_of(shape: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        content = saved("a.npy", X)(folder).read_bytes()
        return written("a.npy", content.replace(b"(100, 6)", shape.encode().ljust(8)))(folder)

    return write


# More than archives read ahead.
MANY = np.random.default_rng(1).normal(size=(1500, 6)).astype(np.float32)


def spoilt(file: Path, at: int, change: int = 1) -> Path:
    """A file with another byte at a place."""
    content = bytearray(file.read_bytes())
    content[at] ^= change
    file.write_bytes(content)
    return file


def spoilt_npz(folder: Path) -> Path:
    np.savez(folder / "a.npz", X=MANY)
    return spoilt(folder / "a.npz", (folder / "a.npz").read_bytes().index(MANY[10].tobytes()))


def spoilt_compressed(folder: Path, member: str = "X.npy") -> Path:
    np.savez_compressed(folder / "a.npz", y=np.arange(len(MANY)), X=MANY)
    with zipfile.ZipFile(folder / "a.npz") as archive:
        first = archive.getinfo(member).header_offset
    header = (folder / "a.npz").read_bytes()[first : first + 30]
    lengths = (int.from_bytes(header[i : i + 2], "little") for i in (26, 28))
    # The bits that say how a block is packed: there is no such way.
    return spoilt(folder / "a.npz", first + 30 + sum(lengths), 2)


def unchecked_compressed(folder: Path) -> Path:
    """Numbers that can be unpacked, and are not those that were packed."""
    np.savez_compressed(folder / "a.npz", X=MANY)
    with zipfile.ZipFile(folder / "a.npz") as archive:
        crc = archive.getinfo("X.npy").CRC.to_bytes(4, "little")
    content = (folder / "a.npz").read_bytes()
    return written("a.npz", content.replace(crc, bytes(4)))(folder)


def spoilt_parquet(**options: Any) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        columns = {f"x{i}": MANY[:, i] for i in range(MANY.shape[1])}
        plain: dict[str, Any] = {"use_dictionary": False, "row_group_size": 500, **options}
        pq.write_table(pa.table(columns), folder / "a.parquet", **plain)
        content = (folder / "a.parquet").read_bytes()
        place = content.find(MANY[1100:1110, 3].tobytes())
        return spoilt(folder / "a.parquet", place if place > 0 else len(content) // 2, 0xFF)

    return write


_NAN = X.copy()
_NAN[77, 2] = np.nan
_LISTS = pa.array([[1.0, 2.0], [3.0]])
BAD: dict[str, tuple[Callable[[Path], Path], dict[str, Any], str]] = {
    "no such array": (saved("a.npz", rows=X), {}, r"no array 'X', it has \['rows'\]"),
    "no such labels": (saved("a.npz", X=X), {"labels_key": "y"}, "no array 'y'"),
    "too few labels": (saved("a.npz", X=X, y=Y[:5]), {}, "100 rows but there are 5 labels"),
    "labels of objects": (saved("a.npz", X=X, y=Y.astype(object)), {}, "Python objects"),
    "measured labels": (saved("a.npz", X=X, y=X[:, 0]), {}, "integers or strings"),
    "two columns of labels": (saved("a.npz", X=X, y=X), {}, "flat list of labels"),
    "objects": (saved("a.npy", np.array([None, 1])), {}, "Python objects"),
    "NaN": (saved("a.npz", X=_NAN), {}, "rows .* of .*NaN"),
    "a flat array": (saved("a.npy", X[0]), {}, "must be a matrix"),
    "text": (saved("a.npy", Y.reshape(-1, 1)), {}, "must be a matrix of numbers"),
    "nothing": (saved("a.npy", X[:0]), {}, "has no rows"),
    "no zip": (written("a.npz", b"PK no"), {}, "not an .npz file"),
    "no array": (written("a.npy", b"text"), {}, "not in NumPy's .npy format"),
    "cut short": (cut("a.npy"), {}, "ends early"),
    "a header that lies": (stored_header_that_lies, {}, "ends early"),
    "a header of too few": (header_of("(50, 6)"), {}, "has more data than its header declares"),
    "fewer rows than none": (header_of("(-9, 6)"), {}, r"a\.npy.* shape is \(-9, 6\)"),
    "a truth as a length": (header_of("(True,6)"), {}, "shape is"),
    "no columns": (saved("a.npy", X[:, :0]), {}, r"a\.npy.* has no features"),
    "another byte": (spoilt_npz, {}, r"a\.npz.* is damaged .*CRC-32"),
    "bytes that cannot be unpacked": (spoilt_compressed, {}, r"a\.npz.* is damaged .*Error -3"),
    "another checksum": (unchecked_compressed, {}, r"a\.npz.* is damaged .*CRC-32"),
    "damaged labels": (
        lambda folder: spoilt_compressed(folder, "y.npy"),
        {},
        r"'y' in .*a\.npz.* is damaged",
    ),
    "damaged Parquet": (
        spoilt_parquet(compression="gzip"),
        {},
        r"a\.parquet.* is damaged",
    ),
    "a damaged page": (
        spoilt_parquet(compression="none", write_page_checksum=True),
        {},
        r"a\.parquet.* is damaged .*CRC",
    ),
    "no Parquet": (written("a.parquet", b"text"), {}, "not a Parquet file"),
    "no such column": (with_parquet(v=X[:, 0]), {"features_key": "w"}, "no column 'w'"),
    "a column of no lists": (with_parquet(v=X[:, 0]), {"features_key": "v"}, "lists of numbers"),
    "several lists": (with_parquet(a=_LISTS, b=_LISTS), {}, "several columns of lists"),
    "unequal lists": (
        with_parquet(a=_LISTS),
        {},
        "row 1 of .* has 1 numbers",
    ),
    "missing lists": (with_parquet(a=pa.array([[1.0], None])), {}, "row 1 of .* has no value"),
    "missing numbers": (with_parquet(a=pa.array([1.0, None])), {}, "row 1 of .* has no value"),
    "no numbers": (with_parquet(a=["x", "y"]), {}, "no columns of numbers"),
    "labels for a table": (
        saved("a.npz", X=X),
        {"labels": "y.npy"},
        "can only be used with an .npy",
    ),
    "names for an array": (saved("a.npy", X), {"features_key": "X"}, "which has no name"),
    "another ending": (written("a.csv", b"1,2"), {}, "has an unknown type"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_named_and_leaves_nothing(name: str, tmp_path: Path) -> None:
    make, options, message = BAD[name]
    file = make(tmp_path)
    with pytest.raises((ShardError, ValueError, TypeError), match=message):
        shard_table(tmp_path / "shards", file, rows_per_shard=60, **options)
    assert not (tmp_path / "shards").exists()


DAMAGED = ["NaN", "another byte", "another checksum", "damaged Parquet", "a damaged page"]


@pytest.mark.usefixtures("busy")
@pytest.mark.parametrize("name", DAMAGED)
def test_a_bad_file_takes_back_what_was_committed_of_it(name: str, tmp_path: Path) -> None:
    make, options, message = BAD[name]
    folder = tmp_path / "shards"
    shard_table(folder, saved("good.npy", X)(tmp_path))
    before = {name: (folder / name).read_bytes() for name in files_of(folder)}
    with pytest.raises(ValueError, match=message):
        shard_table(folder, make(tmp_path), rows_per_shard=60, **options)
    assert {name: (folder / name).read_bytes() for name in files_of(folder)} == before


@pytest.mark.usefixtures("busy")
def test_rows_of_a_bad_file_from_an_interrupted_run_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, plain = spoilt_npz(tmp_path), ShardWriter.add

    def interrupted(self: ShardWriter, batch: Any, what: str, source: str) -> None:
        if "rows 600 " in what:
            raise KeyboardInterrupt
        plain(self, batch, what, source)

    with monkeypatch.context() as patch:
        patch.setattr(ShardWriter, "add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            shard_table(tmp_path / "shards", file, rows_per_shard=60)
    with pytest.raises(ShardError, match=r"damaged .*600 rows of this file .* interrupted"):
        shard_table(tmp_path / "shards", file, rows_per_shard=60)


@pytest.mark.usefixtures("busy")
@pytest.mark.parametrize("n_written", [0, 2])
def test_a_full_disk_is_reported_and_the_next_run_continues(
    n_written: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, folder = saved("a.npy", X)(tmp_path), tmp_path / "shards"
    plain, written = Manifest.write, []

    def full(self: Manifest, folder: Path) -> None:
        if len(written) == n_written:
            raise OSError(28, "No space left on device")
        written.append(1)
        plain(self, folder)

    with monkeypatch.context() as patch:
        patch.setattr(Manifest, "write", full)
        with pytest.raises(OSError, match="No space left") as caught:
            shard_table(folder, file, rows_per_shard=10)
    # One error, not another that came of trying again.
    assert caught.value.__context__ is None
    assert folder.exists() == bool(n_written)
    done = shard_table(folder, file, rows_per_shard=10)
    assert done == Sharded(100 - 20 * n_written, 20 * n_written)
    np.testing.assert_array_equal(open_shards(folder)[:], X)
    assert len(files_of(folder)) == 11


def test_rows_of_another_width_or_type_are_refused(tmp_path: Path) -> None:
    shard_table(tmp_path / "shards", saved("a.npy", X)(tmp_path))
    with pytest.raises(ValueError, match="3 features, the shards have 6"):
        shard_table(tmp_path / "shards", saved("b.npy", X[:, :3])(tmp_path))
    with pytest.raises(ValueError, match="does not hold it exactly"):
        shard_table(tmp_path / "shards", saved("c.npy", X.astype(np.float64))(tmp_path))


def test_without_pyarrow_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, _ = parquet_numbers(tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install .pyarrow>="):
        shard_table(tmp_path / "shards", file)
    assert not (tmp_path / "shards").exists()


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no\.npz"):
        shard_table(tmp_path / "shards", tmp_path / "no.npz")
