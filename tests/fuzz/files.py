"""Model files as bytes: taken apart, and put together again with the right hashes."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from evergrow.storage.models.format import FORMAT_VERSION, _digest

Header = dict[str, Any]
Tensors = dict[str, np.ndarray[Any, Any]]

_NAMES = {
    "float16": "F16", "float32": "F32", "float64": "F64", "int8": "I8",
    "int32": "I32", "int64": "I64", "uint8": "U8", "uint16": "U16",
}  # fmt: skip
_TYPES = {name: np.dtype(kind) for kind, name in _NAMES.items()}


def encode(header: Header, tensors: Tensors) -> bytes:
    """A model file with this content and valid hashes, whatever the content is.

    ``save`` would write the current format version; here the header is written as it is. Networks
    inside get the hash that belongs to their bytes.
    """
    header = _with_network_hashes(header, tensors)
    header.setdefault("format_version", FORMAT_VERSION)
    arrays = {name: np.atleast_1d(array) for name, array in sorted(tensors.items())}
    text = json.dumps(header, sort_keys=True)
    table: dict[str, Any] = {"__metadata__": {"evergrow": text, "sha256": _digest(text, arrays)}}
    offset = 0
    for name, array in arrays.items():
        table[name] = {
            "dtype": _NAMES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
    start = json.dumps(table).encode()
    start += b" " * (-len(start) % 8)
    parts = [len(start).to_bytes(8, "little"), start]
    return b"".join([*parts, *(np.ascontiguousarray(array).tobytes() for array in arrays.values())])


def decode(content: bytes) -> tuple[Header, Tensors] | None:
    """Header and arrays of a model file, without any check of hashes; None for other bytes."""
    try:
        size = int.from_bytes(content[:8], "little")
        table = json.loads(content[8 : 8 + size])
        header = json.loads(table.pop("__metadata__")["evergrow"])
        body = content[8 + size :]
        tensors = {}
        for name, entry in table.items():
            first, last = entry["data_offsets"]
            array = np.frombuffer(body[first:last], dtype=_TYPES[entry["dtype"]])
            tensors[name] = array.reshape(entry["shape"]).copy()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        return None
    return (header, tensors) if isinstance(header, dict) else None


def _with_network_hashes(header: Header, tensors: Tensors) -> Header:
    if "onnx" not in tensors:
        return dict(header)
    parameters = header.get("parameters")
    if not isinstance(parameters, dict) or not isinstance(parameters.get("model"), dict):
        return dict(header)
    digest = hashlib.sha256(tensors["onnx"].tobytes()).hexdigest()
    return {**header, "parameters": {**parameters, "model": {"inside": digest}}}
