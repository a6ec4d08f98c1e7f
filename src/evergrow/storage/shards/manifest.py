"""The manifest of a folder of shards: what it says, and what it may say.

A manifest is read from a disk that others write to. Every field is checked for type and range
before it is used, and names of files are made here from numbers: none is ever taken from a text.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from evergrow.foundation.atomic import written_whole
from evergrow.foundation.errors import ModelFileError, ShardError
from evergrow.foundation.labels import ClassList
from evergrow.storage.modelfile import class_list, classes_to_json
from evergrow.storage.shards.arrayfiles import ArrayFile, open_regular

__all__ = ["DTYPES", "FORMAT_VERSION", "MANIFEST", "Manifest", "Shard", "Source"]

MANIFEST = "shards.json"
FORMAT_VERSION = 1

DTYPES: dict[str, np.dtype[Any]] = {
    "float16": np.dtype("<f2"),
    "float32": np.dtype("<f4"),
    "float64": np.dtype("<f8"),
}
# Each kind of file beside the features: its type, and the shape of one entry.
_BESIDE: dict[str, np.dtype[Any]] = {
    "labels": np.dtype("<i4"),
    "offsets": np.dtype("<i8"),
    "origins": np.dtype("u1"),
}
# Bytes that name the origin of a row.
ORIGIN_BYTES = 32

_FORMAT = "evergrow shards"
_MAX_BYTES = 128 << 20
_MOST_ROWS = 2**40
_MOST_FEATURES = 2**24
_MOST_SHARDS = 10**6
_LONGEST_NAME = 10_000
_MAX_NAMES_BYTES = 1 << 30
_FILE = re.compile(r"[0-9]{6}\.npy")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Source:
    """Something that rows were read from: a hash that names it, and how many rows it gave."""

    sha256: str
    rows: int


@dataclass(frozen=True)
class Shard:
    """What the manifest says of one shard; hashes of files that it does not have are None."""

    number: int
    rows: int
    sha256: str
    # Whole images where several rows belong to one; else the rows.
    items: int
    labels: str | None = None
    offsets: str | None = None
    origins: str | None = None

    @property
    def name(self) -> str:
        """Name of the file of features."""
        return f"{self.number:06d}.npy"

    def name_beside(self, kind: str) -> str:
        """Name of a file that belongs to the features."""
        return f"{self.number:06d}.{kind}.npy"

    @property
    def names(self) -> list[str]:
        """Names of all its files."""
        beside = [kind for kind in _BESIDE if getattr(self, kind) is not None]
        return [self.name, *(self.name_beside(kind) for kind in beside)]

    def files_beside(self, folder: Path) -> list[ArrayFile]:
        """All files that belong to the features."""
        files = (self.file_beside(folder, kind) for kind in _BESIDE)
        return [file for file in files if file is not None]

    def file_beside(self, folder: Path, kind: str) -> ArrayFile | None:
        """The file of labels, offsets or origins, if there is one."""
        expected = getattr(self, kind)
        if expected is None:
            return None
        shapes = {
            "labels": (self.items,),
            "offsets": (self.items + 1,),
            "origins": (self.items, ORIGIN_BYTES),
        }
        return ArrayFile(
            folder / self.name_beside(kind), _BESIDE[kind], shapes[kind], str(expected)
        )

    def to_json(self) -> dict[str, Any]:
        """As the manifest holds it."""
        entry: dict[str, Any] = {"file": self.name, "rows": self.rows, "sha256": self.sha256}
        if self.offsets is not None:
            entry["items"] = self.items
        for kind in _BESIDE:
            if getattr(self, kind) is not None:
                entry[f"{kind}_sha256"] = getattr(self, kind)
        return entry


@dataclass(frozen=True)
class Manifest:
    """All that a folder of shards says of itself."""

    dtype: np.dtype[Any]
    n_features: int
    classes: ClassList | None
    shards: tuple[Shard, ...]
    sources: tuple[Source, ...] = ()
    # Names what made the rows; rows made otherwise do not go with them.
    made_by: str | None = field(default=None)

    @property
    def is_ragged(self) -> bool:
        """Whether several rows belong to one image."""
        return any(shard.offsets is not None for shard in self.shards)

    def file_of(self, folder: Path, shard: Shard) -> ArrayFile:
        """The features of a shard."""
        shape = (shard.rows, self.n_features)
        return ArrayFile(folder / shard.name, self.dtype, shape, shard.sha256)

    def first(self, n_shards: int, n_classes: int) -> Manifest:
        """What it was when it had so many shards and classes."""
        kept = None
        if self.classes is not None and n_classes:
            kept = ClassList(self.classes.classes[:n_classes].copy())
        return replace(self, shards=self.shards[:n_shards], classes=kept)

    @cached_property
    def digest(self) -> str:
        """One hash that names all rows and labels, whatever folder they are in."""
        return _hash({k: v for k, v in self._content().items() if k not in ("sources", "made_by")})

    def _content(self) -> dict[str, Any]:
        content: dict[str, Any] = {
            "format": _FORMAT,
            "format_version": FORMAT_VERSION,
            "dtype": self.dtype.name,
            "n_features": self.n_features,
            "classes": None if self.classes is None else classes_to_json(self.classes.classes),
            "shards": [shard.to_json() for shard in self.shards],
        }
        if self.sources:
            content["sources"] = [{"sha256": s.sha256, "rows": s.rows} for s in self.sources]
        if self.made_by is not None:
            content["made_by"] = self.made_by
        return content

    def write(self, folder: Path) -> None:
        """Replace the manifest of a folder by this one, whole or not at all."""
        content = self._content()
        # Nothing is written that nobody could read.
        _check_lengths(content["classes"], ShardError)
        _check_together(self.shards, self.classes, _unwritable)
        text = json.dumps({**content, "sha256": _hash(content)}, indent=1, sort_keys=True)
        if len(text) >= _MAX_BYTES:
            raise ShardError(
                f"the manifest would take {len(text)} bytes, at most {_MAX_BYTES} are read: "
                "write fewer and larger shards, or to another folder"
            )
        with written_whole(folder / MANIFEST) as file:
            file.write(text.encode() + b"\n")

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The manifest of a folder; a ``ShardError`` if it is damaged or lies."""
        return _Reader(folder).manifest()

    @classmethod
    def found_in(cls, folder: Path) -> Manifest | None:
        """The manifest of a folder, None if it has none."""
        return cls.read(folder) if os.path.lexists(folder / MANIFEST) else None


def _check_lengths(classes: Any, wrong: Callable[[str], ShardError]) -> None:
    """Raise a ``ShardError`` for names so long that an array of them would fill the memory."""
    values = classes.get("values") if isinstance(classes, dict) else None
    names = [name for name in values if isinstance(name, str)] if isinstance(values, list) else []
    longest = max((len(name) for name in names), default=0)
    # In an array every name takes the room of the longest.
    if longest > _LONGEST_NAME or 4 * longest * len(names) > _MAX_NAMES_BYTES:
        raise wrong(
            f"{len(names)} names of classes of up to {longest} characters are too much; one may "
            f"have {_LONGEST_NAME}"
        )


def _check_together(
    shards: tuple[Shard, ...], classes: ClassList | None, wrong: Callable[[str], ShardError]
) -> None:
    """Raise a ``ShardError`` for shards that do not make one matrix."""
    if not shards:
        raise wrong("it lists no shards")
    (number, count), *_ = Counter(shard.number for shard in shards).most_common(1)
    if count > 1:
        raise wrong(f"it lists the file '{number:06d}.npy' twice")
    if len({shard.offsets is not None for shard in shards}) > 1:
        raise wrong("some shards have several rows per image and others do not")
    if classes is None and any(shard.labels is not None for shard in shards):
        raise wrong("there are labels but no classes")


def _unwritable(reason: str) -> ShardError:
    return ShardError(f"the manifest would be one that cannot be read: {reason}")


def _hash(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class _Reader:
    """Reads a manifest, and knows what to call it when something is wrong."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / MANIFEST

    def wrong(self, reason: str) -> ShardError:
        return ShardError(f"the manifest {str(self.path)!r} is damaged: {reason}")

    def manifest(self) -> Manifest:
        content = self._parsed()
        version = content.get("format_version")
        if content.get("format") != _FORMAT or type(version) is not int or version < 1:
            raise self.wrong(f"it does not say that it is one of {_FORMAT!r}")
        if version > FORMAT_VERSION:
            raise ShardError(
                f"the manifest {str(self.path)!r} has format version {version}; "
                f"this version of Evergrow reads up to {FORMAT_VERSION}"
            )
        expected = content.pop("sha256", None)
        if expected != _hash(content):
            raise self.wrong("its content does not match its SHA-256 checksum")
        dtype = content.get("dtype")
        if not isinstance(dtype, str) or dtype not in DTYPES:
            raise self.wrong(f"dtype must be one of {sorted(DTYPES)}, got {dtype!r}")
        classes = self._classes(content)
        shards = tuple(self._shard(entry) for entry in self._list(content, "shards"))
        _check_together(shards, classes, self.wrong)
        return Manifest(
            DTYPES[dtype],
            self._count(content, "n_features", _MOST_FEATURES),
            classes,
            shards,
            tuple(self._source(entry) for entry in self._list(content, "sources")),
            None if content.get("made_by") is None else self._hash_in(content, "made_by"),
        )

    def _parsed(self) -> dict[str, Any]:
        if not os.path.lexists(self.path):
            raise ShardError(
                f"{str(self.path.parent)!r} is not a folder of shards: it has no {MANIFEST}"
            )
        with open_regular(self.path) as file:
            text = file.read(_MAX_BYTES + 1)
        if len(text) > _MAX_BYTES:
            raise self.wrong(f"it has more than {_MAX_BYTES} bytes")
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self.wrong(str(error)) from error
        if not isinstance(content, dict):
            raise self.wrong("it is not a JSON object")
        return content

    def _list(self, content: dict[str, Any], name: str) -> list[dict[str, Any]]:
        entries = content.get(name, [])
        if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
            raise self.wrong(f"{name} must be a list of objects")
        if len(entries) > _MOST_SHARDS:
            raise self.wrong(f"{name} lists {len(entries)} entries, more than {_MOST_SHARDS}")
        return entries

    def _count(self, entry: dict[str, Any], name: str, most: int, least: int = 1) -> int:
        found = entry.get(name)
        if type(found) is not int or not least <= found <= most:
            raise self.wrong(f"{name} must be an integer from {least} to {most}, got {found!r:.80}")
        return found

    def _hash_in(self, entry: dict[str, Any], name: str) -> str:
        found = entry.get(name)
        if not isinstance(found, str) or not _SHA256.fullmatch(found):
            raise self.wrong(f"{name} must be a SHA-256 in hexadecimal, got {found!r:.80}")
        return found

    def _classes(self, content: dict[str, Any]) -> ClassList | None:
        if content.get("classes") is None:
            return None
        _check_lengths(content["classes"], self.wrong)
        try:
            classes = class_list(content)
        except ModelFileError as error:
            raise self.wrong(str(error).replace("the model file", "it")) from error
        if classes.classes.dtype.kind not in "iuU":
            raise self.wrong("classes must be integers or strings")
        return classes

    def _source(self, entry: dict[str, Any]) -> Source:
        return Source(self._hash_in(entry, "sha256"), self._count(entry, "rows", _MOST_ROWS))

    def _shard(self, entry: dict[str, Any]) -> Shard:
        name = entry.get("file")
        if not isinstance(name, str) or not _FILE.fullmatch(name):
            raise self.wrong(
                f"a shard's file must be named by six digits and '.npy', got {name!r:.80}"
            )
        hashes = {
            kind: self._hash_in(entry, f"{kind}_sha256")
            for kind in _BESIDE
            if entry.get(f"{kind}_sha256") is not None
        }
        # Images may have no rows; a shard of such images alone has none.
        rows = self._count(entry, "rows", _MOST_ROWS, least=0 if "offsets" in hashes else 1)
        items = self._count(entry, "items", _MOST_ROWS) if "offsets" in hashes else rows
        number = int(name.removesuffix(".npy"))
        return Shard(number, rows, self._hash_in(entry, "sha256"), items, **hashes)
