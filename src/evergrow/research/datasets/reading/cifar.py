"""CIFAR-10 and CIFAR-100 from a folder or from the archive they are distributed as."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import DatasetError
from evergrow.foundation.naming import name_of
from evergrow.research.datasets.dataset import Dataset
from evergrow.research.datasets.reading.cifar_layouts import LAYOUTS, Batch, Layout
from evergrow.research.datasets.reading.columns import as_rows
from evergrow.research.datasets.reading.features import parents_of_pairs
from evergrow.research.datasets.reading.members import contents_of, members_of_archive
from evergrow.research.datasets.reading.opening import MAX_BYTES, Budget, Expected, opened

__all__ = ["read_cifar10", "read_cifar100"]

# A byte of a pixel becomes a float32.
_FLOAT_BYTES = 4


def read_cifar10(path: Path, *, max_bytes: int = MAX_BYTES, sha256: Expected = None) -> Dataset:
    """Read CIFAR-10, of either version."""
    return _read("cifar10", path, Budget.of(max_bytes), sha256)


def read_cifar100(path: Path, *, max_bytes: int = MAX_BYTES, sha256: Expected = None) -> Dataset:
    """Read CIFAR-100, of either version, with fine labels and the coarse class of each."""
    return _read("cifar100", path, Budget.of(max_bytes), sha256)


def _read(name: str, path: Path, budget: Budget, sha256: Expected) -> Dataset:
    layouts = LAYOUTS[name]
    found = _found(path, layouts)
    if isinstance(found, Layout):
        folder = path if (path / found.test).is_file() else path / found.folder
        return _from_folder(name, folder, found, budget, sha256)
    with opened({found.name: found}, sha256) as archive:
        wanted = {f"{layout.folder}/{file}" for layout in layouts for file in layout.files}
        members = members_of_archive(archive.files[found.name], wanted, budget, name_of(found))
        layout = _layout_of_members(members, layouts, name_of(found))
    contents = {
        file: members[f"{layout.folder}/{file}"]
        for file in layout.files
        if f"{layout.folder}/{file}" in members
    }
    return _dataset(name, contents, layout, budget, archive.sha256)


def _found(path: Path, layouts: Sequence[Layout]) -> Layout | Path:
    """A version whose files lie in the folder or one below, or an archive."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file or folder {name_of(path)}")
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
        f"{name_of(path)} holds none of {', '.join(sought)}, nor the files of one of these folders"
    )


def _layout_of_members(
    members: Mapping[str, bytes], layouts: Sequence[Layout], what: str
) -> Layout:
    for layout in layouts:
        if all(f"{layout.folder}/{file}" in members for file in layout.batches):
            return layout
    sought = [f"{layout.folder}/{file}" for layout in layouts for file in layout.batches]
    missing = [name for name in sought if name not in members]
    raise DatasetError(f"{what} lacks {', '.join(missing[:3])} and so is no version that is known")


def _from_folder(
    name: str, folder: Path, layout: Layout, budget: Budget, sha256: Expected
) -> Dataset:
    there = [file for file in layout.names if (folder / file).is_file()]
    paths = {file: folder / file for file in (*layout.batches, *there)}
    with opened(paths, sha256) as found:
        contents = contents_of(found.files, budget)
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


def _joined(batches: Sequence[Batch]) -> Batch:
    levels: Any = zip(*(batch.labels for batch in batches), strict=True)
    X: npt.NDArray[np.uint8] = np.concatenate([batch.X for batch in batches])
    return Batch(X, tuple(np.concatenate(level) for level in levels))


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
