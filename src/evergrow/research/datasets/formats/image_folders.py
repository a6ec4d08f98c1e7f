"""Folders of images, one per class; the samples are paths."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evergrow.foundation.arrays import Array
from evergrow.foundation.errors import DatasetWarning, warn_user
from evergrow.foundation.naming import display_name
from evergrow.foundation.params import Flag, Integer, check_parameters
from evergrow.foundation.progress import progress_bar
from evergrow.research.datasets.dataset import Dataset
from evergrow.research.datasets.formats.files import (
    Expected,
    checked_digest,
    digest_of,
    open_file,
)
from evergrow.research.datasets.formats.samples import check_split, refuse_split, split

if TYPE_CHECKING:
    from evergrow.vision.images import LabelledImages

_PARTS = ("train", "test")


def read_image_folder(
    path: Path,
    *,
    test_share: float | None = None,
    random_state: int = 0,
    sha256: Expected = None,
    verbose: int = 0,
) -> Dataset:
    """List the images of one folder per class, perhaps inside folders train and test."""
    check_split(test_share, random_state)
    check_parameters({"verbose": verbose}, {"verbose": [Integer(0), Flag()]})
    if not path.is_dir():
        raise NotADirectoryError(f"{display_name(path)} is not a folder")
    # The import takes seconds, and other data sets do not need it.
    from evergrow.vision.images import find_labelled

    if all((path / part).is_dir() for part in _PARTS):
        refuse_split(test_share, display_name(path))
        _warn_about_others(path)
        X_train, y_train = _listed(find_labelled(path / "train"))
        X_test, y_test = _listed(find_labelled(path / "test"))
    else:
        X, y = _listed(find_labelled(path))
        train, test = split(y, test_share, random_state)
        X_train, y_train, X_test, y_test = X[train], y[train], X[test], y[test]
    digest = _digest(path, [*X_train.tolist(), *X_test.tolist()], sha256, verbose)
    name = path.resolve().name
    return Dataset(name, X_train, y_train, X_test, y_test, sha256=digest)


def _listed(found: LabelledImages) -> tuple[Array, Array]:
    from evergrow.vision.images.results import warn_about

    warn_about(found.problems, stacklevel=5)
    return np.array([os.fspath(path) for path in found.paths]), found.labels


def _warn_about_others(root: Path) -> None:
    from evergrow.vision.images.walk import list_entries

    others = sorted(
        entry.name
        for entry in list_entries(root)
        if entry.name not in _PARTS and entry.is_dir(follow_symlinks=False)
    )
    if others:
        warn_user(
            f"{display_name(root)} has the folders train and test; other folders are not "
            f"read: {', '.join(map(display_name, others[:5]))}",
            DatasetWarning,
        )


def _digest(root: Path, paths: list[str], expected: Expected, verbose: int) -> str:
    digests = {}
    with progress_bar("Hashing images", len(paths), verbose) as show:
        for place, path in enumerate(paths, 1):
            with open_file(Path(path)) as file:
                digests[Path(path).relative_to(root).as_posix()] = digest_of(file)
            if show is not None:
                show(place)
    return checked_digest(digests, expected)
