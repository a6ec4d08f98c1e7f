"""MNIST and other data sets in IDX files, plain or compressed with gzip."""

from __future__ import annotations

import gzip
import math
import os
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import DatasetError
from evergrow.foundation.naming import display_name
from evergrow.research.datasets.dataset import Dataset
from evergrow.research.datasets.formats.files import MAX_BYTES, Budget, Expected, fill, open_files
from evergrow.research.datasets.formats.samples import as_labels, as_rows, check_lengths

_FILES = {
    "X_train": "train-images-idx3-ubyte",
    "y_train": "train-labels-idx1-ubyte",
    "X_test": "t10k-images-idx3-ubyte",
    "y_test": "t10k-labels-idx1-ubyte",
}
_N_DIMENSIONS = {"X": 3, "y": 1}
_GZIP = b"\x1f\x8b"
# The magic number is two zeros, this type code of unsigned bytes, and the number of dimensions.
_BYTES_TYPE = 8
_WORD = 4
# The highest compression ratio of gzip.
_MAX_RATIO = 1032
_FLOAT_BYTES = 4


def read_mnist(path: Path, *, max_bytes: int = MAX_BYTES, sha256: Expected = None) -> Dataset:
    """Read the four files of MNIST from a folder."""
    if not path.is_dir():
        raise NotADirectoryError(
            f"{display_name(path)} is not a folder: name the folder with "
            f"{', '.join(_FILES.values())}"
        )
    paths = {key: _locate(path, stem) for key, stem in _FILES.items()}
    budget = Budget.of(max_bytes)
    with open_files({one.name: one for one in paths.values()}, sha256) as found:
        arrays = {
            key: read_idx(found.files[one.name], _N_DIMENSIONS[key[0]], budget, display_name(one))
            for key, one in paths.items()
        }
    names = {key: display_name(one) for key, one in paths.items()}
    for part in ("train", "test"):
        X_name, y_name = f"X_{part}", f"y_{part}"
        check_lengths(arrays[X_name], arrays[y_name], (names[X_name], names[y_name]))
    if arrays["X_train"].shape[1:] != arrays["X_test"].shape[1:]:
        raise DatasetError(
            f"images of {names['X_train']} and {names['X_test']} differ in size: "
            f"{arrays['X_train'].shape[1:]} and {arrays['X_test'].shape[1:]}"
        )
    X_train, X_test = (as_rows(arrays[key], names[key]) for key in ("X_train", "X_test"))
    y_train, y_test = (as_labels(arrays[key], names[key]) for key in ("y_train", "y_test"))
    return Dataset("mnist", X_train, y_train, X_test, y_test, sha256=found.sha256)


def _locate(folder: Path, stem: str) -> Path:
    # Some unpackers write a dot instead of the dash before the type.
    dotted = stem.replace("-idx", ".idx")
    for name in (stem, f"{stem}.gz", dotted, f"{dotted}.gz"):
        if (folder / name).exists():
            return folder / name
    raise FileNotFoundError(f"neither {stem} nor {stem}.gz is in {display_name(folder)}")


def read_idx(file: BinaryIO, n_dimensions: int, budget: Budget, what: str) -> npt.NDArray[np.uint8]:
    """Read an array of bytes, compressed or not; ``what`` names it in errors."""
    n_bytes = os.fstat(file.fileno()).st_size
    compressed = file.read(len(_GZIP)) == _GZIP
    file.seek(0)
    if not compressed:
        return _read_array(file, n_dimensions, budget, what, n_bytes)
    try:
        with gzip.GzipFile(fileobj=file) as content:
            return _read_array(content, n_dimensions, budget, what, n_bytes * _MAX_RATIO)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DatasetError(f"{what} is damaged: {error}") from error


def _read_array(
    file: Any, n_dimensions: int, budget: Budget, what: str, most: int
) -> npt.NDArray[np.uint8]:
    magic = bytes([0, 0, _BYTES_TYPE, n_dimensions])
    header = file.read(_WORD * (1 + n_dimensions))
    if header[:_WORD] != magic:
        raise DatasetError(
            f"{what} is not an IDX file of bytes in {n_dimensions} dimensions: it starts with "
            f"{header[:_WORD].hex() or 'nothing'}, not {magic.hex()}"
        )
    if len(header) != _WORD * (1 + n_dimensions):
        raise DatasetError(f"{what} is truncated: its header ends after {len(header)} bytes")
    shape = tuple(np.frombuffer(header[_WORD:], dtype=">u4").tolist())
    n_values = math.prod(shape)
    if n_values > most:
        raise DatasetError(f"{what} is truncated: its header declares {n_values} bytes of values")
    budget.take(n_values * _FLOAT_BYTES, what)
    values = np.empty(n_values, np.uint8)
    fill(values, file, what)
    if file.read(1):
        raise DatasetError(f"{what} continues after the {n_values} values that its header declares")
    return values.reshape(shape)
