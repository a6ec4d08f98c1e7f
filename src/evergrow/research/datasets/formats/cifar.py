"""CIFAR-10 and CIFAR-100, from a folder or from the archive as distributed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.arrays import Array
from evergrow.foundation.errors import DatasetError
from evergrow.foundation.naming import display_name
from evergrow.research.datasets.dataset import Dataset
from evergrow.research.datasets.formats.archives import read_files, read_members
from evergrow.research.datasets.formats.byte_pickles import read_plain_pickle
from evergrow.research.datasets.formats.features import parents_of_pairs
from evergrow.research.datasets.formats.files import MAX_BYTES, Budget, Expected, open_files
from evergrow.research.datasets.formats.samples import as_rows

# Each byte of a pixel becomes a float32.
_FLOAT_BYTES = 4


def read_cifar10(path: Path, *, max_bytes: int = MAX_BYTES, sha256: Expected = None) -> Dataset:
    """Read the binary or Python version of CIFAR-10."""
    return _read("cifar10", path, Budget.of(max_bytes), sha256)


def read_cifar100(path: Path, *, max_bytes: int = MAX_BYTES, sha256: Expected = None) -> Dataset:
    """Read the binary or Python version of CIFAR-100, with fine and coarse classes."""
    return _read("cifar100", path, Budget.of(max_bytes), sha256)


def _read(name: str, path: Path, budget: Budget, sha256: Expected) -> Dataset:
    layouts = LAYOUTS[name]
    found = _locate(path, layouts)
    if isinstance(found, Layout):
        folder = path if (path / found.test).is_file() else path / found.folder
        return _from_folder(name, folder, found, budget, sha256)
    with open_files({found.name: found}, sha256) as archive:
        wanted = {f"{layout.folder}/{file}" for layout in layouts for file in layout.files}
        members = read_members(archive.files[found.name], wanted, budget, display_name(found))
        layout = _layout_of_members(members, layouts, display_name(found))
    contents = {
        file: members[f"{layout.folder}/{file}"]
        for file in layout.files
        if f"{layout.folder}/{file}" in members
    }
    return _dataset(name, contents, layout, budget, archive.sha256)


def _locate(path: Path, layouts: Sequence[Layout]) -> Layout | Path:
    """Return the version whose files are in the folder or its subfolder, or an archive."""
    if not path.exists():
        raise FileNotFoundError(f"no such file or folder: {display_name(path)}")
    if not path.is_dir():
        return path
    for layout in layouts:
        if (path / layout.test).is_file() or (path / layout.folder / layout.test).is_file():
            return layout
    for layout in layouts:
        if (path / layout.archive).is_file():
            return path / layout.archive
    sought = [name for layout in layouts for name in (layout.archive, f"{layout.folder}/")]
    raise FileNotFoundError(
        f"{display_name(path)} has none of {', '.join(sought)}, and no files of such a folder"
    )


def _layout_of_members(
    members: Mapping[str, bytes], layouts: Sequence[Layout], what: str
) -> Layout:
    for layout in layouts:
        if all(f"{layout.folder}/{file}" in members for file in layout.batches):
            return layout
    sought = [f"{layout.folder}/{file}" for layout in layouts for file in layout.batches]
    missing = [name for name in sought if name not in members]
    raise DatasetError(f"{what} has no {', '.join(missing[:3])}: it is not a known version")


def _from_folder(
    name: str, folder: Path, layout: Layout, budget: Budget, sha256: Expected
) -> Dataset:
    there = [file for file in layout.names if (folder / file).is_file()]
    paths = {file: folder / file for file in (*layout.batches, *there)}
    with open_files(paths, sha256) as found:
        contents = read_files(found.files, budget)
    return _dataset(name, contents, layout, budget, found.sha256)


def _dataset(
    name: str, contents: Mapping[str, bytes], layout: Layout, budget: Budget, sha256: str
) -> Dataset:
    batches = [layout.batch(contents[file], repr(file)) for file in layout.batches]
    for batch in batches:
        budget.take(batch.X.size * _FLOAT_BYTES, name)
    train, test = _joined(batches[:-1]), _joined(batches[-1:])
    y_train, y_test = train.labels[0], test.labels[0]
    classes, parents, names = np.unique(y_train), None, _names(contents, layout)
    if len(layout.n_classes) > 1:
        levels = [np.concatenate(pair) for pair in zip(train.labels, test.labels, strict=True)]
        parents = parents_of_pairs(levels[0], levels[1], name)
    return Dataset(
        name,
        as_rows(train.X, name),
        y_train,
        as_rows(test.X, name),
        y_test,
        parents,
        sha256,
        class_names=_chosen(names, 0, classes),
        parent_names=None if parents is None else _chosen(names, 1, sorted({*parents.values()})),
    )


def _joined(batches: Sequence[CifarFile]) -> CifarFile:
    levels: Any = zip(*(batch.labels for batch in batches), strict=True)
    X: npt.NDArray[np.uint8] = np.concatenate([batch.X for batch in batches])
    return CifarFile(X, tuple(np.concatenate(level) for level in levels))


def _names(contents: Mapping[str, bytes], layout: Layout) -> list[list[str]] | None:
    if not all(file in contents for file in layout.names):
        return None
    names = layout.read_names(contents, layout)
    for level, n_classes in zip(names, layout.n_classes, strict=True):
        if len(level) != n_classes:
            raise DatasetError(
                f"{' and '.join(layout.names)} must name {n_classes} classes, found {len(level)}"
            )
    return names


def _chosen(names: list[list[str]] | None, level: int, classes: Any) -> dict[int, str] | None:
    return None if names is None else {int(label): names[level][label] for label in classes}


# The names of the classes of each level, the finest first.
Names = list[list[str]]

# 32 x 32 pixels: all red values first, then green, then blue.
_N_VALUES = 3 * 32 * 32


@dataclass(frozen=True)
class CifarFile:
    """Images of one file with their labels on every level, the finest first."""

    X: npt.NDArray[np.uint8]
    labels: tuple[Array, ...]


@dataclass(frozen=True)
class Layout:
    """One version of a data set: its files and how to read them."""

    folder: str
    archive: str
    train: tuple[str, ...]
    test: str
    names: tuple[str, ...]
    n_classes: tuple[int, ...]
    read: Callable[[bytes, Layout, str], CifarFile]
    read_names: Callable[[Mapping[str, bytes], Layout], Names]
    # Names of the labels of each level in the Python version.
    keys: tuple[str, ...] = ()

    @property
    def batches(self) -> tuple[str, ...]:
        """Names of files with images."""
        return (*self.train, self.test)

    @property
    def files(self) -> tuple[str, ...]:
        """Names of all files; those with class names may be missing."""
        return (*self.batches, *self.names)

    def batch(self, content: bytes, what: str) -> CifarFile:
        """Read one file of images."""
        batch = self.read(content, self, what)
        for labels, n_classes in zip(batch.labels, self.n_classes, strict=True):
            if labels.min() < 0 or labels.max() >= n_classes:
                raise DatasetError(
                    f"{what} has labels from {labels.min()} to {labels.max()}, "
                    f"expected 0 to {n_classes - 1}"
                )
        return batch


def _read_binary(content: bytes, layout: Layout, what: str) -> CifarFile:
    """Read records of labels, the coarsest first, and pixels."""
    n_labels = len(layout.n_classes)
    record = n_labels + _N_VALUES
    if not content or len(content) % record:
        raise DatasetError(
            f"{what} has {len(content)} bytes, which is not a multiple of the record size {record}"
        )
    records = np.frombuffer(content, np.uint8).reshape(-1, record)
    labels = [records[:, column].astype(np.int64) for column in range(n_labels)]
    return CifarFile(records[:, n_labels:], tuple(labels[::-1]))


def _read_pickled(content: bytes, layout: Layout, what: str) -> CifarFile:
    """Read a pickled dictionary with a matrix of pixels and a list of labels per level."""
    values = read_plain_pickle(content, what)
    X = values.get("data")
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.shape[1] != _N_VALUES or not len(X):
        raise DatasetError(f"{what} has no matrix 'data' with {_N_VALUES} bytes per image")
    return CifarFile(X, tuple(_labels(values.get(key), len(X), key, what) for key in layout.keys))


def _labels(values: object, n_samples: int, key: str, what: str) -> Array:
    # A pickle can hold integers of any size, NumPy only 64 bits.
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

# Binary versions come first, because they need no pickle.
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
