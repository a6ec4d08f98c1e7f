"""Finding the images of folders, and their classes by the names of folders."""

from __future__ import annotations

import errno
import glob
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.features.decoding import SUFFIXES
from evergrow.features.many import BadImage, warn_of
from evergrow.features.sources import name_of, printable

__all__ = ["LabelledImages", "find_images", "find_labelled"]

Where = str | os.PathLike[str]


@dataclass(frozen=True)
class LabelledImages:
    """Images and their classes.

    Attributes
    ----------
    paths : list of Path
        The images, class by class.
    labels : ndarray of shape (n_images,)
        The class of each.
    problems : tuple of BadImage
        Files and folders that were not taken, and why.
    """

    paths: list[Path]
    labels: npt.NDArray[np.str_]
    problems: tuple[BadImage, ...]


def find_images(where: Where | Iterable[Where]) -> list[Path]:
    """List the images of folders.

    A folder is searched to its bottom for files named like images; hidden ones are ignored. Links
    are followed only to files inside the folder. A warning names what was not taken.

    Parameters
    ----------
    where : path, str or list of these
        A folder, a file, or a pattern such as ``"holiday/**/*.jpg"``. A file that is named is
        taken whatever its ending.

    Returns
    -------
    paths : list of Path
        In the order of their names, numbers by value: ``2.jpg`` before ``10.jpg``. The same order
        on every system.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from evergrow.features import find_images
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ["10.jpg", "2.jpg", "notes.txt"]:
    ...         _ = pathlib.Path(folder, name).write_text("")
    ...     [path.name for path in find_images(folder)]
    ['2.jpg', '10.jpg']
    """
    places = [where] if isinstance(where, (str, os.PathLike)) else list(where)
    problems: list[BadImage] = []
    paths = [path for place in places for path in _images_at(place, problems)]
    warn_of(problems)
    if not paths:
        named = ", ".join(name_of(place) for place in places) or "an empty list"
        raise ValueError(f"there are no images in {named}; {_known_suffixes()}")
    return paths


def find_labelled(folder: Where) -> LabelledImages:
    """List the images of a folder that holds one folder per class.

    Parameters
    ----------
    folder : path
        Each folder in it is a class, called by its name; images may lie deeper inside.

    Returns
    -------
    found : LabelledImages
        Paths, labels, and what was not taken: class folders without images, images outside every
        class folder, and links that are not followed.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from evergrow.features import find_labelled
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ["cat/1.jpg", "dog/1.jpg", "dog/2.jpg"]:
    ...         path = pathlib.Path(folder, name)
    ...         path.parent.mkdir(exist_ok=True)
    ...         _ = path.write_text("")
    ...     find_labelled(folder).labels.tolist()
    ['cat', 'dog', 'dog']
    """
    root = Path(folder)
    if not root.exists():
        raise FileNotFoundError(f"there is no folder {name_of(root)}")
    if not root.is_dir():
        raise NotADirectoryError(f"{name_of(root)} is not a folder")
    problems: list[BadImage] = []
    classes = [entry.name for entry in _visible(root) if entry.is_dir(follow_symlinks=False)]
    found = _search(root, problems)
    if not classes:
        raise ValueError(
            f"{name_of(root)} holds no folders: put the pictures of each class in a folder of its "
            "own"
        )
    if not any(len(path.relative_to(root).parts) > 1 for path in found):
        raise ValueError(f"no folder in {name_of(root)} holds images; {_known_suffixes()}")
    return _labelled(root, found, classes, problems)


def _labelled(
    root: Path, found: list[Path], classes: list[str], problems: list[BadImage]
) -> LabelledImages:
    paths, labels = [], []
    for path in found:
        parts = path.relative_to(root).parts
        if len(parts) == 1:
            problems.append(BadImage(None, name_of(path), "it lies in no class folder"))
        else:
            paths.append(path)
            labels.append(parts[0])
    empty = sorted(set(classes) - set(labels), key=_natural)
    problems += [
        BadImage(None, name_of(root / name), "the folder holds no images") for name in empty
    ]
    # A class must be text that can be shown and stored; some names of files cannot.
    return LabelledImages(paths, np.array([printable(one) for one in labels]), tuple(problems))


def _images_at(place: Any, problems: list[BadImage]) -> list[Path]:
    if not isinstance(place, (str, os.PathLike)):
        raise TypeError(f"a place of images must be a path, got {type(place).__name__}")
    path = Path(place)
    if path.is_dir():
        return _search(path, problems)
    if os.path.lexists(path):
        return [path]
    # What exists by that very name is no pattern.
    matches = glob.glob(place, recursive=True) if isinstance(place, str) else []
    if not matches:
        raise FileNotFoundError(f"there is no file, folder or match for {name_of(place)}")
    found = [
        image
        for path in map(Path, matches)
        for image in (_search(path, problems) if path.is_dir() else [path])
        if _named_like_image(image.name)
    ]
    # A pattern such as ** matches folders as well as the files in them.
    return sorted(dict.fromkeys(found), key=_place_in_order)


def _search(root: Path, problems: list[BadImage]) -> list[Path]:
    """All images below a folder, in order; appends what was not taken to the problems."""
    found: list[Path] = []
    inside = os.path.realpath(root)
    folders = [root]
    while folders:
        folder = folders.pop()
        try:
            for entry in _visible(folder):
                path = folder / entry.name
                reason = _why_not(entry, inside)
                if reason is not None:
                    problems.append(BadImage(None, name_of(path), reason))
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(path)
                elif _named_like_image(entry.name):
                    found.append(path)
        except OSError as error:
            problems.append(BadImage(None, name_of(folder), (error.strerror or str(error)).lower()))
    problems.sort(key=lambda problem: problem.source)
    return sorted(found, key=lambda path: _place_in_order(path.relative_to(root)))


def _visible(folder: Path) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        yield from (entry for entry in entries if not entry.name.startswith("."))


def _why_not(entry: os.DirEntry[str], inside: str) -> str | None:
    """Why an entry that might be or hold images is not taken; None for all others."""
    try:
        mode = entry.stat().st_mode
    except OSError as error:
        circles = error.errno == errno.ELOOP
        return "a link that leads in circles" if circles else "a link to nothing"
    if stat.S_ISDIR(mode):
        # One inside the folder holds images that are found where they lie.
        return "a link to a folder is not followed" if entry.is_symlink() else None
    if not _named_like_image(entry.name):
        return None
    if not stat.S_ISREG(mode):
        return "it is not a regular file"
    leaves = entry.is_symlink() and not Path(os.path.realpath(entry.path)).is_relative_to(inside)
    return "a link that leaves the folder is not followed" if leaves else None


def _named_like_image(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in SUFFIXES


def _known_suffixes() -> str:
    return f"images are files that end in {', '.join(sorted(SUFFIXES))}"


def _place_in_order(path: Path) -> list[Any]:
    return [_natural(part) for part in path.parts]


def _natural(name: str) -> tuple[Any, ...]:
    """Sorts numbers by value, letters without case; the name itself where that is equal."""
    pieces = re.split("([0-9]+)", name.casefold())
    # Digits are compared as text of one length: no number is too long.
    numbers = [(len(piece.lstrip("0")), piece.lstrip("0")) for piece in pieces[1::2]]
    return (list(_alternating(pieces[::2], numbers)), name)


def _alternating(texts: list[str], numbers: list[tuple[int, str]]) -> Iterator[Any]:
    for text, number in zip(texts, [*numbers, (0, "")], strict=True):
        yield text
        yield number
