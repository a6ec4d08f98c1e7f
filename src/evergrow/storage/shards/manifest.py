"""The manifest of a folder of shards, and its validation.

A manifest is untrusted input: every field is checked for type and range before it is used, and file
names are built from numbers, never taken from the text.
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

from evergrow.foundation.errors import ModelFileError, ShardError
from evergrow.foundation.extras import __version__
from evergrow.foundation.files import atomic_write
from evergrow.foundation.labels import ClassList
from evergrow.storage.models.header import class_list, classes_to_json
from evergrow.storage.shards.array_files import ArrayFile, open_shard_file

MANIFEST = "shards.json"
FORMAT_VERSION = 1

DTYPES: dict[str, np.dtype[Any]] = {
    "float16": np.dtype("<f2"),
    "float32": np.dtype("<f4"),
    "float64": np.dtype("<f8"),
}
# The type of each kind of sidecar file.
_SIDECARS: dict[str, np.dtype[Any]] = {
    "labels": np.dtype("<i4"),
    "offsets": np.dtype("<i8"),
    "origins": np.dtype("u1"),
}
# Size of the hash that identifies the origin of a row.
ORIGIN_BYTES = 32

_FORMAT = "evergrow shards"
_MAX_BYTES = 128 << 20
_MAX_ROWS = 2**40
_MAX_FEATURES = 2**24
_MAX_SHARDS = 10**6
_FILE = re.compile(r"[0-9]{6}\.npy")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Source:
    """A source of rows: a hash that identifies it, and the number of its rows."""

    sha256: str
    rows: int


@dataclass(frozen=True)
class Shard:
    """The entry of one shard in the manifest; the hash of a missing sidecar file is None."""

    number: int
    rows: int
    sha256: str
    # Number of images if images have several rows, else of rows.
    items: int
    labels: str | None = None
    offsets: str | None = None
    origins: str | None = None

    @property
    def name(self) -> str:
        """Name of the file of features."""
        return f"{self.number:06d}.npy"

    def sidecar_name(self, kind: str) -> str:
        """Name of a sidecar file."""
        return f"{self.number:06d}.{kind}.npy"

    @property
    def names(self) -> list[str]:
        """Names of all its files."""
        sidecars = [kind for kind in _SIDECARS if getattr(self, kind) is not None]
        return [self.name, *(self.sidecar_name(kind) for kind in sidecars)]

    def sidecar_files(self, folder: Path) -> list[ArrayFile]:
        """Return all sidecar files."""
        files = (self.sidecar_file(folder, kind) for kind in _SIDECARS)
        return [file for file in files if file is not None]

    def sidecar_file(self, folder: Path, kind: str) -> ArrayFile | None:
        """Return the file of labels, offsets or origins, if there is one."""
        expected = getattr(self, kind)
        if expected is None:
            return None
        shapes = {
            "labels": (self.items,),
            "offsets": (self.items + 1,),
            "origins": (self.items, ORIGIN_BYTES),
        }
        return ArrayFile(
            folder / self.sidecar_name(kind), _SIDECARS[kind], shapes[kind], str(expected)
        )

    def to_json(self) -> dict[str, Any]:
        """Return the entry as JSON."""
        entry: dict[str, Any] = {"file": self.name, "rows": self.rows, "sha256": self.sha256}
        if self.offsets is not None:
            entry["items"] = self.items
        for kind in _SIDECARS:
            if getattr(self, kind) is not None:
                entry[f"{kind}_sha256"] = getattr(self, kind)
        return entry


@dataclass(frozen=True)
class Manifest:
    """The description of a folder of shards."""

    dtype: np.dtype[Any]
    n_features: int
    classes: ClassList | None
    shards: tuple[Shard, ...]
    sources: tuple[Source, ...] = ()
    # Identifies how the rows were computed; other rows cannot be appended.
    made_by: str | None = field(default=None)

    @property
    def is_ragged(self) -> bool:
        """Whether images have several rows."""
        return any(shard.offsets is not None for shard in self.shards)

    def file_of(self, folder: Path, shard: Shard) -> ArrayFile:
        """Return the file of features of a shard."""
        shape = (shard.rows, self.n_features)
        return ArrayFile(folder / shard.name, self.dtype, shape, shard.sha256)

    def first(self, n_shards: int, n_classes: int) -> Manifest:
        """Return the manifest as it was with this many shards and classes."""
        classes = None
        if self.classes is not None and n_classes:
            classes = ClassList(self.classes.classes[:n_classes].copy())
        return replace(self, shards=self.shards[:n_shards], classes=classes)

    @cached_property
    def digest(self) -> str:
        """A hash of all rows and labels, independent of the folder."""
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
        """Replace the manifest of a folder atomically."""
        content = self._content()
        # Only what can be read again is written.
        would_be = "the manifest would be invalid: "
        _check_together(self.shards, self.classes, lambda reason: ShardError(would_be + reason))
        text = json.dumps({**content, "sha256": _hash(content)}, indent=1, sort_keys=True)
        if len(text) >= _MAX_BYTES:
            raise ShardError(
                f"the manifest would have {len(text)} bytes, the limit is {_MAX_BYTES}: write "
                "fewer and larger shards, or use another folder"
            )
        with atomic_write(folder / MANIFEST) as file:
            file.write(text.encode() + b"\n")

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read the manifest of a folder; raise a ``ShardError`` if it is invalid."""
        return _Reader(folder).manifest()

    @classmethod
    def read_if_present(cls, folder: Path) -> Manifest | None:
        """Read the manifest of a folder; None if it has none."""
        return cls.read(folder) if os.path.lexists(folder / MANIFEST) else None


def _check_together(
    shards: tuple[Shard, ...], classes: ClassList | None, wrong: Callable[[str], ShardError]
) -> None:
    """Raise a ``ShardError`` if the shards do not form one matrix."""
    if not shards:
        raise wrong("it lists no shards")
    (number, count), *_ = Counter(shard.number for shard in shards).most_common(1)
    if count > 1:
        raise wrong(f"it lists the file '{number:06d}.npy' twice")
    if len({shard.offsets is not None for shard in shards}) > 1:
        raise wrong("some shards have several rows per image and others do not")
    if classes is None and any(shard.labels is not None for shard in shards):
        raise wrong("there are labels but no classes")


def _hash(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class _Reader:
    """Parses and validates a manifest; errors name its path."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / MANIFEST

    def wrong(self, reason: str) -> ShardError:
        return ShardError(f"the manifest {str(self.path)!r} is damaged: {reason}")

    def manifest(self) -> Manifest:
        content = self._parsed()
        version = content.get("format_version")
        if content.get("format") != _FORMAT or type(version) is not int:
            raise self.wrong(f"its format is not {_FORMAT!r}")
        if version != FORMAT_VERSION:
            raise ShardError(
                f"the manifest {str(self.path)!r} has format version {version}, and Evergrow "
                f"{__version__} reads {FORMAT_VERSION}: open it with the version that wrote it, or "
                "write the shards again"
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
            self._count(content, "n_features", _MAX_FEATURES),
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
        with open_shard_file(self.path) as file:
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
        if len(entries) > _MAX_SHARDS:
            raise self.wrong(f"{name} lists {len(entries)} entries, more than {_MAX_SHARDS}")
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
        try:
            classes = class_list(content["classes"])
        except ModelFileError as error:
            raise self.wrong(str(error).replace("the model file", "it")) from error
        if classes.classes.dtype.kind not in "iuU":
            raise self.wrong("classes must be integers or strings")
        return classes

    def _source(self, entry: dict[str, Any]) -> Source:
        return Source(self._hash_in(entry, "sha256"), self._count(entry, "rows", _MAX_ROWS))

    def _shard(self, entry: dict[str, Any]) -> Shard:
        name = entry.get("file")
        if not isinstance(name, str) or not _FILE.fullmatch(name):
            raise self.wrong(
                f"the file name of a shard must be six digits and '.npy', got {name!r:.80}"
            )
        hashes = {
            kind: self._hash_in(entry, f"{kind}_sha256")
            for kind in _SIDECARS
            if entry.get(f"{kind}_sha256") is not None
        }
        # Images may have no rows; a shard of only such images has none.
        rows = self._count(entry, "rows", _MAX_ROWS, least=0 if "offsets" in hashes else 1)
        items = self._count(entry, "items", _MAX_ROWS) if "offsets" in hashes else rows
        number = int(name.removesuffix(".npy"))
        return Shard(number, rows, self._hash_in(entry, "sha256"), items, **hashes)
