"""Features and labels in ``.npz`` and ``.npy`` files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from evergrow.foundation.arrays import Array
from evergrow.foundation.errors import DatasetError, InvalidInputError
from evergrow.foundation.naming import display_name
from evergrow.research.datasets.dataset import Dataset
from evergrow.research.datasets.formats.files import MAX_BYTES, Budget, Expected, open_files
from evergrow.research.datasets.formats.npy import ArrayArchive, read_npy
from evergrow.research.datasets.formats.samples import (
    as_labels,
    as_rows,
    by_label,
    check_lengths,
    check_split,
    refuse_split,
    split,
)

_PARTS = ("train", "test")
_SPLIT = tuple(f"{letter}_{part}" for part in _PARTS for letter in "Xy")
_WHOLE = ("X", "y")
Read = Callable[[ArrayArchive, str, tuple[Any, Any]], tuple[Array, ...]]
# Names of fine labels with coarse labels of the same samples.
_COARSE_PAIRS = (("y_train", "y_coarse_train"), ("y_test", "y_coarse_test"), ("y", "y_coarse"))
_FINE_NAMES = ("class_names", "fine_names")


def read_features(
    path: Path,
    *,
    labels: str | os.PathLike[str] | None = None,
    test_share: float | None = None,
    random_state: int = 0,
    max_bytes: int = MAX_BYTES,
    sha256: Expected = None,
) -> Dataset:
    """Read an ``.npz`` file, or an ``.npy`` file of features with another one of labels."""
    check_split(test_share, random_state)
    division = (test_share, random_state)
    if path.suffix.lower() == ".npz":
        if labels is not None:
            raise InvalidInputError(f"labels cannot be used: {display_name(path)} has its own")
        with open_files({path.name: path}, sha256) as found:
            file = found.files[path.name]
            with ArrayArchive(file, Budget.of(max_bytes), display_name(path)) as arrays:
                return _from_archive(path, arrays, division, found.sha256)
    if labels is None:
        raise DatasetError(
            f"{display_name(path)} has no labels: labels must name the .npy file with the labels"
        )
    return _from_two_files(path, Path(labels), division, Budget.of(max_bytes), sha256)


def _from_two_files(
    path: Path, labels: Path, division: tuple[Any, Any], budget: Budget, sha256: Expected
) -> Dataset:
    if path.name == labels.name:
        # Expected hashes are given by file name.
        raise InvalidInputError(
            "the files of features and labels have the same name "
            f"{display_name(path.name)}: rename one"
        )
    with open_files({path.name: path, labels.name: labels}, sha256) as found:
        X, y = (
            read_npy(file, os.fstat(file.fileno()).st_size, budget, display_name(one))
            for one, file in ((one, found.files[one.name]) for one in (path, labels))
        )
    X, y = as_rows(X, display_name(path)), as_labels(y, display_name(labels))
    check_lengths(X, y, (display_name(path), display_name(labels)))
    train, test = split(y, *division)
    return Dataset(path.stem, X[train], y[train], X[test], y[test], sha256=found.sha256)


def _from_archive(
    path: Path, arrays: ArrayArchive, division: tuple[Any, Any], sha256: str
) -> Dataset:
    what = display_name(path)
    names, read = _layout(arrays, what)
    _check_names(arrays, names, what)
    X_train, y_train, X_test, y_test = read(arrays, what, division)
    classes = np.unique(y_train)
    parents = _parents(arrays, classes, what)
    return Dataset(
        path.stem,
        X_train,
        y_train,
        X_test,
        y_test,
        parents,
        sha256,
        class_names=_names(arrays, _FINE_NAMES, classes, what),
        parent_names=None
        if parents is None
        else _names(arrays, ("coarse_names",), np.unique(list(parents.values())), what),
    )


def _layout(arrays: ArrayArchive, what: str) -> tuple[tuple[str, ...], Read]:
    """Return the array names and the reader of the layout of an archive."""
    parts, whole = (
        [name for name in names if name in arrays] for names in (_SPLIT, (*_WHOLE, "split"))
    )
    if parts and whole:
        raise DatasetError(
            f"{what} holds both {', '.join(whole)} and {', '.join(parts)}: it must hold either "
            f"{', '.join(_SPLIT)}, or X, y and optionally split"
        )
    return (_SPLIT, _split_samples) if parts else (_WHOLE, _whole_samples)


def _check_names(arrays: ArrayArchive, needed: tuple[str, ...], what: str) -> None:
    missing = [name for name in needed if name not in arrays]
    if missing:
        raise DatasetError(
            f"{what} lacks {', '.join(missing)}: it must hold the arrays {', '.join(_SPLIT)}, or "
            f"X, y and optionally split; it holds {', '.join(map(repr, arrays.names[:12]))}"
        )


def _split_samples(arrays: ArrayArchive, what: str, division: tuple[Any, Any]) -> tuple[Array, ...]:
    refuse_split(division[0], what)
    parts = []
    for part in _PARTS:
        X, y = _samples(arrays, f"X_{part}", f"y_{part}", what)
        parts += [X, y]
    if parts[0].shape[1] != parts[2].shape[1]:
        raise DatasetError(
            f"in {what} training samples have {parts[0].shape[1]} features and test samples "
            f"{parts[2].shape[1]}: the numbers must be equal"
        )
    if parts[1].dtype.kind != parts[3].dtype.kind:
        raise DatasetError(f"in {what} y_train and y_test must be both numbers or both strings")
    return tuple(parts)


def _whole_samples(arrays: ArrayArchive, what: str, division: tuple[Any, Any]) -> tuple[Array, ...]:
    X, y = _samples(arrays, "X", "y", what)
    if "split" in arrays:
        refuse_split(division[0], what)
        train, test = _rows_of_parts(arrays["split"], len(y), f"'split' in {what}")
    else:
        train, test = split(y, *division)
    return X[train], y[train], X[test], y[test]


def _samples(arrays: ArrayArchive, X_name: str, y_name: str, what: str) -> tuple[Array, Array]:
    names = (f"{X_name!r} in {what}", f"{y_name!r} in {what}")
    # Labels first: they are small, so errors in them appear early.
    y = as_labels(arrays[y_name], names[1])
    X = as_rows(arrays[X_name], names[0])
    check_lengths(X, y, names)
    return X, y


def _rows_of_parts(split: Array, n_samples: int, what: str) -> tuple[Array, Array]:
    given = as_labels(split, what)
    if len(given) != n_samples:
        raise DatasetError(f"{what} has {len(given)} entries for {n_samples} samples")
    unknown = sorted({str(one) for one in np.unique(given).tolist()} - set(_PARTS))
    if unknown:
        raise DatasetError(f"{what} must be 'train' or 'test' for each sample, got {unknown[:5]}")
    train, test = (np.flatnonzero(given == part) for part in _PARTS)
    return train, test


def _names(
    arrays: ArrayArchive, keys: tuple[str, ...], classes: Array, what: str
) -> dict[Any, str] | None:
    key = next((key for key in keys if key in arrays), None)
    # Labels that are text are names already.
    if key is None or classes.dtype.kind not in "iu":
        return None
    return by_label(as_labels(arrays[key], f"{key!r} in {what}"), classes, f"{key!r}")


def _parents(arrays: ArrayArchive, classes: Array, what: str) -> dict[Any, Any] | None:
    """Return the coarse class of each class, from a list by label and from the samples."""
    of_samples = _parents_of_samples(arrays, what)
    if "fine_to_coarse" not in arrays:
        return of_samples
    name = f"'fine_to_coarse' in {what}"
    listed = by_label(as_labels(arrays["fine_to_coarse"], name), classes, name)
    for label, coarse in listed.items():
        other = coarse if of_samples is None else of_samples.get(label, coarse)
        if other != coarse:
            raise DatasetError(
                f"{what} gives class {label!r} two coarse classes: {coarse!r} in 'fine_to_coarse' "
                f"and {other!r} with its samples"
            )
    return listed


def _parents_of_samples(arrays: ArrayArchive, what: str) -> dict[Any, Any] | None:
    """Return the coarse classes from the samples; None if training samples have none."""
    pairs = {
        fine: _pair(arrays, fine, coarse, what)
        for fine, coarse in _COARSE_PAIRS
        if fine in arrays and coarse in arrays
    }
    # Test samples may not cover all classes.
    if not pairs.keys() - {"y_test"}:
        return None
    if len({coarse.dtype.kind for _, coarse in pairs.values()}) > 1:
        raise DatasetError(
            f"in {what} y_coarse_train and y_coarse_test must be both numbers or both strings"
        )
    fine, coarse = (np.concatenate(part) for part in zip(*pairs.values(), strict=True))
    return parents_of_pairs(fine, coarse, what)


def _pair(arrays: ArrayArchive, fine: str, coarse: str, what: str) -> tuple[Array, Array]:
    names = (f"{fine!r} in {what}", f"{coarse!r} in {what}")
    y, y_coarse = (
        as_labels(arrays[key], name) for key, name in zip((fine, coarse), names, strict=True)
    )
    check_lengths(y, y_coarse, names)
    return y, y_coarse


def parents_of_pairs(fine: Array, coarse: Array, what: str) -> dict[Any, Any]:
    """Return the coarse class of each fine class; raise a ``DatasetError`` if one has two."""
    labels, first, codes = np.unique(fine, return_index=True, return_inverse=True)
    of_each = coarse[first]
    wrong = np.flatnonzero(of_each[codes] != coarse)
    if len(wrong):
        label = labels[codes[wrong[0]]].item()
        two = sorted({of_each[codes[wrong[0]]].item(), coarse[wrong[0]].item()})
        raise DatasetError(f"{what} gives class {label!r} two coarse classes: {two}")
    return dict(zip(labels.tolist(), of_each.tolist(), strict=True))
