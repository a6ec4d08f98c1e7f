"""Model files: safetensors with a JSON header and a SHA-256 over all of it; never pickle.

The layout is that of the safetensors format, written here directly so that large arrays stream
to disk without a second copy in memory; the safetensors library reads and checks it. The
``__metadata__`` entry ``evergrow`` holds the header as JSON, the entry ``sha256`` the hash of the
header and of every tensor's name, type, shape and bytes.

Evergrow reads the format version that it writes, :data:`FORMAT_VERSION`, and refuses any other with
an error that names both.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open

from evergrow.foundation.errors import InvalidInputError, ModelFileError
from evergrow.foundation.extras import __version__
from evergrow.foundation.files import atomic_write

FORMAT_VERSION = 1

Tensors = Mapping[str, npt.NDArray[Any]]

_CHUNK_BYTES = 8 << 20
# At the start of a file these tell its kind: the name of the first file in a zip file is there.
_START_BYTES = 256
# The safetensors library reads no more.
_MAX_HEADER_BYTES = 100_000_000
# Lists and objects in a header: each takes many times its two characters.
_MAX_HEADER_PARTS = 1_000_000
# What looks at a header before the arrays of the file are read, and raises an error.
CheckHeader = Callable[[dict[str, Any], Collection[str]], None]

_DTYPE_NAMES = {
    "float16": "F16",
    "float32": "F32",
    "float64": "F64",
    "int8": "I8",
    "int32": "I32",
    "int64": "I64",
    "uint8": "U8",
    "uint16": "U16",
}


def write_model(path: str | os.PathLike[str], header: Mapping[str, Any], tensors: Tensors) -> None:
    """Write a model file atomically: a reader sees the complete old or the complete new file."""
    with atomic_write(path) as file:
        _write_content(file, header, tensors)


def _write_content(file: BinaryIO, header: Mapping[str, Any], tensors: Tensors) -> None:
    arrays = dict(sorted(tensors.items()))
    text = json.dumps({**header, "format_version": FORMAT_VERSION}, sort_keys=True)
    entries: dict[str, Any] = {
        "__metadata__": {"evergrow": text, "sha256": _digest(text, arrays)},
    }
    offset = 0
    for name, array in arrays.items():
        entries[name] = {
            "dtype": _DTYPE_NAMES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
    table = json.dumps(entries).encode()
    table += b" " * (-len(table) % 8)
    if len(table) > _MAX_HEADER_BYTES:
        raise InvalidInputError(
            f"the model is too large for one file: its table of arrays takes {len(table)} bytes, "
            f"at most {_MAX_HEADER_BYTES} are allowed"
        )
    file.write(len(table).to_bytes(8, "little"))
    file.write(table)
    for array in arrays.values():
        for chunk in _chunks(array):
            file.write(chunk)


def _chunks(array: npt.NDArray[Any]) -> Iterator[memoryview]:
    """The bytes of an array in C order, little-endian, without a copy of all of it.

    Array-like objects with a shape, a type and row slices are also accepted.
    """
    # Only if needed: `atleast_1d` would load array-like objects completely.
    if array.ndim == 0:
        array = np.atleast_1d(array)
    dtype = array.dtype.newbyteorder("<")
    step = max(1, _CHUNK_BYTES // max(1, array[:1].nbytes))
    for first in range(0, len(array), step):
        chunk = np.ascontiguousarray(array[first : first + step], dtype=dtype)
        yield chunk.reshape(-1).view(np.uint8).data


def _digest(text: str, arrays: Tensors) -> str:
    digest = hashlib.sha256(text.encode())
    for name, array in sorted(arrays.items()):
        shape = ",".join(str(size) for size in array.shape)
        digest.update(f"\n{name}:{_DTYPE_NAMES[array.dtype.name]}:{shape}\n".encode())
        for chunk in _chunks(array):
            digest.update(chunk)
    return digest.hexdigest()


def read_model(
    path: str | os.PathLike[str],
    *,
    max_bytes: int | None = None,
    check_header: CheckHeader | None = None,
) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Read header and tensors of a model file; raise ``ModelFileError`` if anything is wrong.

    ``check_header`` sees the header and the names of the tensors before these are read.
    """
    source = Path(path)
    if source.is_dir():
        raise IsADirectoryError(f"cannot load {str(source)!r}: it is a directory, name a file")
    if not source.exists():
        raise FileNotFoundError(f"cannot load {str(source)!r}: there is no such file")
    if not source.is_file():
        raise ModelFileError(f"cannot load {str(source)!r}: it is not a regular file")
    size = source.stat().st_size
    if max_bytes is not None and size > max_bytes:
        raise ModelFileError(f"{str(source)!r} has {size} bytes, max_bytes is {max_bytes}")
    try:
        with safe_open(source, framework="np") as file:
            text, expected = _header_text(source, file.metadata())
            header = _parse_header(source, text)
            names = list(file.keys())
            if check_header is not None:
                check_header(header, names)
            _check_types(source, {file.get_slice(name).get_dtype() for name in names})
            tensors = {name: file.get_tensor(name) for name in names}
    except SafetensorError as error:
        kind = _other_kind(source)
        problem = (
            f"not a model file: it looks like {kind}" if kind else "incomplete or not a model file"
        )
        raise ModelFileError(f"{str(source)!r} is {problem}") from error
    if any(array.ndim == 0 for array in tensors.values()):
        raise ModelFileError(f"{str(source)!r} contains a zero-dimensional array")
    if _digest(text, tensors) != expected:
        raise ModelFileError(
            f"{str(source)!r} is damaged: its content does not match its SHA-256 checksum"
        )
    return header, tensors


def _other_kind(source: Path) -> str:
    """Return what kind of file the first bytes tell, empty if they do not."""
    with source.open("rb") as file:
        start = file.read(_START_BYTES)
    if start.startswith(b"\x93NUMPY"):
        return "a NumPy file (numpy.load reads it)"
    if start.startswith(b"PK\x03\x04"):
        # The name of the first file in it, whose length is in the header.
        name = start[30 : 30 + int.from_bytes(start[26:28], "little")]
        is_arrays = name.endswith(b".npy")
        return "a NumPy file (numpy.load reads it)" if is_arrays else "a zip file"
    # A model file may begin with these two bytes too, but its ninth is a brace.
    is_pickle = start[:1] == b"\x80" and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05")
    return "a pickle" if is_pickle and start[8:9] not in (b"", b"{") else ""


def _check_types(source: Path, found: set[str]) -> None:
    unknown = found - set(_DTYPE_NAMES.values())
    if unknown:
        raise ModelFileError(f"{str(source)!r} holds arrays of unexpected types {sorted(unknown)}")


def _header_text(source: Path, metadata: dict[str, str] | None) -> tuple[str, str]:
    if not metadata or "evergrow" not in metadata or "sha256" not in metadata:
        raise ModelFileError(f"{str(source)!r} was not written by Evergrow: it has no header")
    return metadata["evergrow"], metadata["sha256"]


def _parse_header(source: Path, text: str) -> dict[str, Any]:
    if text.count("[") + text.count("{") > _MAX_HEADER_PARTS:
        raise ModelFileError(f"{str(source)!r} has a header of too many parts")
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{str(source)!r} has a damaged header: {error}") from error
    version = header.get("format_version") if isinstance(header, dict) else None
    if type(version) is not int:
        raise ModelFileError(f"{str(source)!r} has a damaged header: no format version")
    if version != FORMAT_VERSION:
        raise ModelFileError(
            f"{str(source)!r} has format version {version}, written by Evergrow "
            f"{header.get('library_version', 'of another version')}; this is Evergrow "
            f"{__version__}, which reads format version {FORMAT_VERSION}: load it with the version "
            "that wrote it, or fit and save the model again"
        )
    return dict(header)
