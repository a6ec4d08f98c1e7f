"""How the files of CIFAR-10 and CIFAR-100 are laid out, in their binary and python versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import DatasetError
from evergrow.research.datasets.reading.pickled import read_plain_pickle

__all__ = ["LAYOUTS", "Batch", "Layout", "Names"]

Array = npt.NDArray[Any]
# For each level of classes, the finest first, the names of its classes.
Names = list[list[str]]

# 32 x 32 pixels, all red ones first, then green, then blue.
_N_VALUES = 3 * 32 * 32


@dataclass(frozen=True)
class Batch:
    """Images of one file and their labels on every level, the finest first."""

    X: npt.NDArray[np.uint8]
    labels: tuple[Array, ...]


@dataclass(frozen=True)
class Layout:
    """One version of a data set: where its files lie and how they are read."""

    folder: str
    archive: str
    train: tuple[str, ...]
    test: str
    names: tuple[str, ...]
    n_classes: tuple[int, ...]
    read: Callable[[bytes, Layout, str], Batch]
    read_names: Callable[[Mapping[str, bytes], Layout], Names]
    # What the labels of each level are called in the python version.
    keys: tuple[str, ...] = ()

    @property
    def batches(self) -> tuple[str, ...]:
        """Files with images."""
        return (*self.train, self.test)

    @property
    def files(self) -> tuple[str, ...]:
        """All files; those with names of classes may be missing."""
        return (*self.batches, *self.names)

    def batch(self, content: bytes, what: str) -> Batch:
        """Read one file of images."""
        batch = self.read(content, self, what)
        for labels, n_classes in zip(batch.labels, self.n_classes, strict=True):
            if labels.min() < 0 or labels.max() >= n_classes:
                raise DatasetError(
                    f"{what} has labels from {labels.min()} to {labels.max()}, "
                    f"there are {n_classes} classes"
                )
        return batch


def _read_binary(content: bytes, layout: Layout, what: str) -> Batch:
    """Records of the labels, the coarsest first, and the pixels."""
    n_labels = len(layout.n_classes)
    record = n_labels + _N_VALUES
    if not content or len(content) % record:
        raise DatasetError(
            f"{what} has {len(content)} bytes, which are no whole number of records of {record}"
        )
    records = np.frombuffer(content, np.uint8).reshape(-1, record)
    labels = [records[:, column].astype(np.int64) for column in range(n_labels)]
    return Batch(records[:, n_labels:], tuple(labels[::-1]))


def _read_pickled(content: bytes, layout: Layout, what: str) -> Batch:
    """A pickled dictionary with a matrix of pixels and a list of labels for each level."""
    values = read_plain_pickle(content, what)
    X = values.get("data")
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.shape[1] != _N_VALUES or not len(X):
        raise DatasetError(f"{what} has no matrix 'data' with {_N_VALUES} bytes per image")
    return Batch(X, tuple(_labels(values.get(key), len(X), key, what) for key in layout.keys))


def _labels(values: object, n_samples: int, key: str, what: str) -> Array:
    # A label may be as large as its digits allow in the file, but NumPy holds 64 bits.
    sound = type(values) is list and all(type(one) is int and 0 <= one < 256 for one in values)
    if not isinstance(values, list) or not sound or len(values) != n_samples:
        raise DatasetError(f"{what} has no list {key!r} with a label for each of its images")
    return np.array(values, np.int64)


def _names_by_line(contents: Mapping[str, bytes], layout: Layout) -> Names:
    return [
        [line for line in contents[name].decode("utf-8", "replace").splitlines() if line.strip()]
        for name in layout.names
    ]


def _pickled_names(contents: Mapping[str, bytes], layout: Layout) -> Names:
    (name,) = layout.names
    values = read_plain_pickle(contents[name], repr(name))
    levels = [values.get(f"{key.removesuffix('s')}_names") for key in layout.keys]
    return [
        [one for one in level if type(one) is str] if type(level) is list else []
        for level in levels
    ]


_TEN_BATCHES = tuple(f"data_batch_{number}" for number in range(1, 6))
_TEN = (10,)
_HUNDRED = (100, 20)

# By data set; the binary versions come first, as they are no pickles.
LAYOUTS: dict[str, tuple[Layout, ...]] = {
    "cifar10": (
        Layout(
            "cifar-10-batches-bin",
            "cifar-10-binary.tar.gz",
            tuple(f"{name}.bin" for name in _TEN_BATCHES),
            "test_batch.bin",
            ("batches.meta.txt",),
            _TEN,
            _read_binary,
            _names_by_line,
        ),
        Layout(
            "cifar-10-batches-py",
            "cifar-10-python.tar.gz",
            _TEN_BATCHES,
            "test_batch",
            ("batches.meta",),
            _TEN,
            _read_pickled,
            _pickled_names,
            ("labels",),
        ),
    ),
    "cifar100": (
        Layout(
            "cifar-100-binary",
            "cifar-100-binary.tar.gz",
            ("train.bin",),
            "test.bin",
            ("fine_label_names.txt", "coarse_label_names.txt"),
            _HUNDRED,
            _read_binary,
            _names_by_line,
        ),
        Layout(
            "cifar-100-python",
            "cifar-100-python.tar.gz",
            ("train",),
            "test",
            ("meta",),
            _HUNDRED,
            _read_pickled,
            _pickled_names,
            ("fine_labels", "coarse_labels"),
        ),
    ),
}
