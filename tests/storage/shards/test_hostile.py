"""Manifests that lie and files that are damaged: an error that names them, and nothing else."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evergrow import NCMClassifier, NCMForestClassifier, ShardError, open_shards, write_shards
from tests.budget import budget
from tests.storage.shards.folders import X, Y, folder_of_shards, rewrite

LIES: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "more rows": (lambda m: m["shards"][1].update(rows=31), r"000001\.npy"),
    "fewer rows": (lambda m: m["shards"][1].update(rows=29), r"000001\.npy"),
    "no rows": (lambda m: m["shards"][1].update(rows=0), "rows must be an integer"),
    "negative rows": (lambda m: m["shards"][1].update(rows=-30), "rows must be an integer"),
    "huge rows": (lambda m: m["shards"][1].update(rows=2**63), "rows must be an integer"),
    "many rows": (lambda m: m["shards"][1].update(rows=2**39), "bytes"),
    "rows of another type": (lambda m: m["shards"][1].update(rows=30.0), "rows must be"),
    "a flag for rows": (lambda m: m["shards"][1].update(rows=True), "rows must be"),
    "text for rows": (lambda m: m["shards"][1].update(rows="30"), "rows must be"),
    "another width": (lambda m: m.update(n_features=5), r"000000\.npy"),
    "a huge width": (lambda m: m.update(n_features=2**62), "n_features must be"),
    "another type": (lambda m: m.update(dtype="float64"), r"000000\.npy"),
    "a type of the same size": (lambda m: m.update(dtype="int32"), "dtype must be one of"),
    "objects": (lambda m: m.update(dtype="object"), "dtype must be one of"),
    "a path": (lambda m: m["shards"][0].update(file="../000000.npy"), "six digits"),
    "an absolute path": (lambda m: m["shards"][0].update(file="/etc/passwd"), "six digits"),
    "a backslash": (lambda m: m["shards"][0].update(file="..\\0.npy"), "six digits"),
    "a name with a line": (lambda m: m["shards"][0].update(file="000000.npy\n"), "six digits"),
    "other digits": (lambda m: m["shards"][0].update(file="\u0660" * 6 + ".npy"), "six digits"),
    "a number for a name": (lambda m: m["shards"][0].update(file=0), "six digits"),
    "a file twice": (lambda m: m["shards"][1].update(file="000000.npy"), r"'000000\.npy' twice"),
    "a file that is not there": (lambda m: m["shards"][0].update(file="000009.npy"), "missing"),
    "another hash": (lambda m: m["shards"][0].update(sha256="0" * 64), r"000000\.npy.*SHA-256"),
    "half a hash": (lambda m: m["shards"][0].update(sha256="0" * 32), "sha256 must be"),
    "no hash": (lambda m: m["shards"][0].pop("sha256"), "sha256 must be"),
    "another hash of labels": (
        lambda m: m["shards"][0].update(labels_sha256="0" * 64),
        r"000000\.labels\.npy.*SHA-256",
    ),
    "offsets that are not there": (
        lambda m: m["shards"][0].update(offsets_sha256="0" * 64, items=30),
        "several rows per image",
    ),
    "no shards": (lambda m: m.update(shards=[]), "no shards"),
    "shards that are not a list": (lambda m: m.update(shards={"a": 1}), "must be a list"),
    "a shard that is not an entry": (lambda m: m.update(shards=[3]), "must be a list of objects"),
    "no classes": (lambda m: m.update(classes=None), "labels but no classes"),
    "a class twice": (lambda m: m["classes"]["values"].append("cat"), "twice"),
    "fewer classes": (lambda m: m["classes"]["values"].pop(), r"labels\.npy.*from -1 to 2"),
    "a name without end": (
        lambda m: m["classes"]["values"].append("x" * 20_000),
        "a name has 20000 characters, the limit is 10000",
    ),
    "mixed classes": (lambda m: m["classes"]["values"].append(3), "mixed"),
    "classes by number with a point": (
        lambda m: m["classes"].update(dtype="<f8", values=[0.0, 1.0, 2.0, 3.0]),
        "integers or strings",
    ),
    "another format": (lambda m: m.update(format="else"), "its format is not"),
    "a later version": (lambda m: m.update(format_version=2), r"version 2, and .* reads 1"),
    "an earlier version": (
        lambda m: m.update(format_version=0),
        "format version 0, and .* reads 1",
    ),
    "a version of text": (
        lambda m: m.update(format_version="1"),
        "its format is not",
    ),
    "sources that are not entries": (lambda m: m.update(sources=[{"sha256": 1}]), "sha256 must be"),
}


def read_all(path: Path) -> None:
    shards = open_shards(path)
    shards[:]
    _ = shards.labels


def verify(path: Path) -> None:
    open_shards(path).verify()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of shards."""
    folder_of_shards(tmp_path)
    return tmp_path


@pytest.mark.parametrize("check", [read_all, verify])
@pytest.mark.parametrize("name", LIES)
def test_a_wrong_manifest_is_found_out(name: str, check: Any, folder: Path) -> None:
    change, message = LIES[name]
    rewrite(folder, change)
    with pytest.raises(ShardError, match=message):
        check(folder)


BROKEN = {
    "empty": b"",
    "no JSON": b"shards",
    "not text": b"\xff\xfe\x00",
    "a list": b"[]",
    "deep": b"[" * 200_000,
    "a number too long": b'{"format_version": ' + b"1" * 10_000 + b"}",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_is_not_a_manifest_is_an_error(name: str, folder: Path) -> None:
    (folder / "shards.json").write_bytes(BROKEN[name])
    with pytest.raises(ShardError, match=r"shards\.json.*damaged"):
        open_shards(folder)


def test_a_manifest_whose_own_hash_is_wrong_is_an_error(folder: Path) -> None:
    rewrite(folder, lambda m: m["classes"]["values"].reverse(), honest=False)
    with pytest.raises(ShardError, match="SHA-256"):
        open_shards(folder)


@contextlib.contextmanager
def restored(file: Path) -> Iterator[bytes]:
    """The content of a file of shards, which is written again after the block."""
    if not file.parent.exists():
        folder_of_shards(file.parent)
    original = file.read_bytes()
    try:
        yield original
    finally:
        file.write_bytes(original)


@settings(max_examples=budget(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_content_of_a_manifest_raises_nothing_but_a_shard_error(
    tmp_path: Path, data: st.DataObject
) -> None:
    scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
    values = st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner)
    )

    def change(manifest: dict[str, Any]) -> None:
        place: Any = manifest
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            key = data.draw(st.sampled_from(keys))
            if isinstance(place[key], (dict, list)) and place[key] and data.draw(st.booleans()):
                place = place[key]
                continue
            place[key] = data.draw(values)
            return

    with restored(tmp_path / "shards" / "shards.json"):
        rewrite(tmp_path / "shards", change)
        with contextlib.suppress(ShardError):
            read_all(tmp_path / "shards")


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def _pickled(path: Path) -> None:
    np.save(path, np.array([Bomb()] * 20, dtype=object), allow_pickle=True)


class Bomb:
    """Leaves a mark if it is ever unpickled."""

    exploded = False

    def __reduce__(self) -> Any:
        return (setattr, (Bomb, "exploded", True))


def _save(change: Callable[[Any], Any]) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        np.save(path, change(np.load(path)))

    return spoil


DAMAGE: dict[str, Callable[[Path], None]] = {
    "flipped": _flip,
    "cut short": lambda path: os.truncate(path, path.stat().st_size - 1),
    "cut to nothing": lambda path: os.truncate(path, 0),
    "cut to its header": lambda path: os.truncate(path, 64),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "missing": lambda path: path.unlink(),
    "a folder": lambda path: (path.unlink(), path.mkdir())[-1],
    "pickled": _pickled,
    "no array": lambda path: path.write_bytes(b"x" * path.stat().st_size),
    "by columns": _save(np.asfortranarray),
    "of another type": _save(lambda a: a.astype(np.int32)),
    "another shape": _save(lambda a: a.reshape(-1)),
    "another order of bytes": _save(lambda a: a.astype(a.dtype.newbyteorder(">"))),
}


# A flat list has one order and one shape, and labels are integers already.
OF_LABELS = sorted(DAMAGE.keys() - {"by columns", "another shape", "of another type"})


@pytest.mark.parametrize(
    ("file", "name"),
    [*(("000002.npy", name) for name in DAMAGE), *(("000001.labels.npy", n) for n in OF_LABELS)],
)
def test_a_damaged_file_is_named(file: str, name: str, folder: Path) -> None:
    DAMAGE[name](folder / file)
    with pytest.raises(ShardError, match=re.escape(file)):
        read_all(folder)
    assert not Bomb.exploded


@settings(max_examples=budget(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(min_size=1, max_size=130), st.integers(0, 120))
def test_any_content_of_a_header_raises_nothing_but_a_shard_error(
    tmp_path: Path, content: bytes, place: int
) -> None:
    file = tmp_path / "shards" / "000000.npy"
    with restored(file) as original:
        changed = original[:place] + content + original[place + len(content) :]
        file.write_bytes(changed)
        with pytest.raises(ShardError) if changed != original else contextlib.nullcontext():
            read_all(tmp_path / "shards")


EVIL_HEADERS = {
    "many digits": b"1" * 3900,
    "many dimensions": b"1, " * 1300,
    "deep": b"(" * 3900,
    "an expression": b"__import__('os').getpid(), 6",
}


@pytest.mark.parametrize("name", EVIL_HEADERS)
def test_a_header_made_to_cost_time_is_refused_at_once(name: str, folder: Path) -> None:
    text = b"{'descr': '<f4', 'fortran_order': False, 'shape': (" + EVIL_HEADERS[name] + b"), }\n"
    content = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
    size = (folder / "000000.npy").stat().st_size
    (folder / "000000.npy").write_bytes(content.ljust(size, b"\0"))
    with pytest.raises(ShardError, match=r"000000\.npy"):
        open_shards(folder)[:1]


@pytest.mark.parametrize("name", ["000000.npy", "shards.json"])
def test_a_link_is_not_followed(name: str, tmp_path: Path) -> None:
    folder_of_shards(tmp_path / "shards")
    file = tmp_path / "shards" / name
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ShardError, match=re.escape(name)):
        open_shards(tmp_path / "shards")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_nan_and_infinity_are_found_behind_a_right_hash(
    value: float, dtype: str, tmp_path: Path
) -> None:
    write_shards(tmp_path, [(X, Y)], dtype=dtype, rows_per_shard=50)
    rows = X[:50].astype(dtype)
    rows[17, 3] = value
    np.save(tmp_path / "000000.npy", rows)
    digest = hashlib.sha256((tmp_path / "000000.npy").read_bytes()).hexdigest()
    rewrite(tmp_path, lambda m: m["shards"][0].update(sha256=digest))
    with pytest.raises(ShardError, match=r"000000\.npy.*NaN or infinite"):
        open_shards(tmp_path)[:1]


@pytest.mark.parametrize("model", [NCMClassifier(), NCMForestClassifier(2, random_state=0)])
def test_a_model_that_meets_a_corrupt_shard_stays_as_it_was(model: Any, tmp_path: Path) -> None:
    shards = folder_of_shards(tmp_path)
    model.fit(X, Y)
    before = model.predict_proba(X)
    _flip(tmp_path / "000003.npy")
    for learn in (model.fit, model.partial_fit):
        with pytest.raises(ShardError, match=r"000003\.npy"):
            learn(shards, shards.labels)
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_unpickling_trusts_no_manifest(tmp_path: Path) -> None:
    content = pickle.dumps(folder_of_shards(tmp_path))
    rewrite(tmp_path, lambda m: m["shards"][0].update(file="../x"))
    with pytest.raises(ShardError, match="six digits"):
        pickle.loads(content)


def test_the_largest_manifest_is_limited(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evergrow.storage.shards.manifest._MAX_BYTES", 100)
    with pytest.raises(ShardError, match="more than 100 bytes"):
        open_shards(folder)
    assert json.loads((folder / "shards.json").read_text())
