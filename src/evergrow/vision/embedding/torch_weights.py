"""Weights from the legacy file format of PyTorch, read without PyTorch and without running code.

Such a file is a sequence of pickles (a magic number, a version, system information, the named
tensors, the names of their storages), followed by the storages: each is a count and that many
numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError
from evergrow.storage.pickles import RefusedPickleError, read_pickle

Tensors = dict[str, npt.NDArray[Any]]

_MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
_PROTOCOL_VERSION = 1001
_COUNT_BYTES = 8
# More than any layer has.
_MAX_DIMENSIONS = 8


@dataclass(frozen=True)
class _StorageType:
    dtype: str


@dataclass(frozen=True)
class _Storage:
    name: str
    dtype: str
    n_values: int


@dataclass(frozen=True)
class _Tensor:
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def _rebuild_tensor(storage: Any, offset: Any, shape: Any, strides: Any, *_: Any) -> _Tensor:
    numbers = (offset, *shape, *strides)
    whole = all(type(number) is int and number >= 0 for number in numbers)
    if not isinstance(storage, _Storage) or not whole or len(shape) != len(strides):
        raise RefusedPickleError("a tensor has an invalid shape")
    return _Tensor(storage, offset, tuple(shape), tuple(strides))


class _OrderedDict(dict[str, Any]):
    """Stands for an ``OrderedDict``; its attributes, such as versions of layers, are ignored."""

    def __init__(self) -> None:
        # Without entries: those are added one by one, with checked keys.
        super().__init__()

    def set_pickled_state(self, state: Any) -> None:
        """Ignore attributes."""


# The names that a file may use, and the harmless objects that stand for them.
_NAMES: dict[str, Callable[..., Any] | _StorageType] = {
    "collections OrderedDict": _OrderedDict,
    "torch._utils _rebuild_tensor_v2": _rebuild_tensor,
    "torch FloatStorage": _StorageType("<f4"),
    "torch DoubleStorage": _StorageType("<f8"),
    "torch HalfStorage": _StorageType("<f2"),
    "torch LongStorage": _StorageType("<i8"),
}


def _load_storage(pid: Any) -> _Storage:
    if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] != "storage":
        raise RefusedPickleError("it refers to something that is not a storage")
    _, kind, name, _, n_values = pid[:5]
    known = isinstance(kind, _StorageType) and isinstance(name, str)
    if not known or type(n_values) is not int or n_values < 0:
        raise RefusedPickleError("it refers to a storage of unknown type")
    return _Storage(name, kind.dtype, n_values)


def read_torch_weights(file: BinaryIO) -> Tensors:
    """Read the named tensors of a file; a ``ValueError`` if it is anything but weights."""
    try:
        named, order = _read_tables(file)
        storages = _read_storages(file, named, order)
        return {str(name): _to_array(tensor, storages) for name, tensor in named.items()}
    # A hostile pickle can raise almost anything.
    except Exception as error:
        raise InvalidInputError(f"the weights cannot be read: {error}") from error


def _read_tables(file: BinaryIO) -> tuple[dict[Any, Any], Any]:
    """Read the named tensors, and the names of their storages in file order."""
    magic = read_pickle(file, _NAMES, _load_storage)
    if magic != _MAGIC_NUMBER:
        raise RefusedPickleError("it is not in the legacy format of PyTorch")
    version, _, named, order = (read_pickle(file, _NAMES, _load_storage) for _ in range(4))
    if version != _PROTOCOL_VERSION or not isinstance(named, dict):
        raise RefusedPickleError("it has no table of tensors in a known version")
    return named, order


def _read_storages(file: BinaryIO, named: dict[Any, Any], order: Any) -> Tensors:
    declared = {}
    for tensor in named.values():
        if not isinstance(tensor, _Tensor):
            raise RefusedPickleError("it contains something that is not a tensor")
        declared[tensor.storage.name] = tensor.storage
    if not isinstance(order, list) or sorted(order) != sorted(declared):
        raise RefusedPickleError("its list of storages does not match its tensors")
    return {name: _read_storage(file, declared[name]) for name in order}


def _read_storage(file: BinaryIO, storage: _Storage) -> npt.NDArray[Any]:
    n_values = int.from_bytes(file.read(_COUNT_BYTES), "little")
    n_bytes = n_values * np.dtype(storage.dtype).itemsize
    content = file.read(n_bytes) if n_values == storage.n_values else b""
    if n_values != storage.n_values or len(content) != n_bytes:
        raise RefusedPickleError("it is truncated, or its counts do not match")
    return np.frombuffer(content, dtype=storage.dtype)


def _to_array(tensor: _Tensor, storages: Tensors) -> npt.NDArray[Any]:
    storage, shape = storages[tensor.storage.name], tensor.shape
    if math.prod(shape) == 0:
        return np.empty(shape, storage.dtype)
    steps = zip(shape, tensor.strides, strict=True)
    last = tensor.offset + sum((size - 1) * stride for size, stride in steps)
    # With strides of 0 a few numbers could be repeated until the memory is full.
    if last >= len(storage) or math.prod(shape) > len(storage) or len(shape) > _MAX_DIMENSIONS:
        raise RefusedPickleError("a tensor lies outside its storage")
    strides = [stride * storage.itemsize for stride in tensor.strides]
    return np.lib.stride_tricks.as_strided(storage[tensor.offset :], shape, strides).copy()
