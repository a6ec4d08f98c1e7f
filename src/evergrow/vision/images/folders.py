"""Images of folders, and their classes by folder name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import BadImage, ImageError, InvalidInputError, InvalidTypeError
from evergrow.foundation.formatting import printable
from evergrow.foundation.naming import display_name
from evergrow.vision.images.decoder import SUFFIXES
from evergrow.vision.images.results import warn_about
from evergrow.vision.images.walk import Walk, list_entries, natural_key

StrPath = str | os.PathLike[str]


@dataclass(frozen=True)
class LabelledImages:
    """Images and their classes.

    Attributes
    ----------
    paths : list of Path
        The images, class by class.
    labels : ndarray of shape (n_images,)
        The class of each image.
    problems : tuple of BadImage
        Files and folders that were skipped, and why.
    unreadable : tuple of BadImage
        The subset of problems that may hide images: broken links named like images, links that
        leave the folder, pipes, and folders that cannot be opened.
    """

    paths: list[Path]
    labels: npt.NDArray[np.str_]
    problems: tuple[BadImage, ...]
    unreadable: tuple[BadImage, ...] = ()


@dataclass(frozen=True)
class FoundImages:
    """Images of any folders, what could not be read there, and what was ignored by rule."""

    paths: list[Path]
    unreadable: tuple[BadImage, ...]
    ignored: tuple[BadImage, ...]


def find_images(where: StrPath | Iterable[StrPath]) -> list[Path]:
    """List the images of folders.

    A folder is searched recursively for files with an image extension; hidden files are ignored.
    Links are followed only to files inside the folder (for a pattern: inside the folder before its
    first wildcard). A warning names what was skipped.

    Parameters
    ----------
    where : path, str or list of these
        A folder, a file, or a pattern such as ``"holiday/**/*.jpg"``. A file that is named
        explicitly is listed whatever its extension.

    Returns
    -------
    paths : list of Path
        Sorted by name with numbers by value (``2.jpg`` before ``10.jpg``), in the same order on
        every system.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from evergrow.vision import find_images
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ["10.jpg", "2.jpg", "notes.txt"]:
    ...         _ = pathlib.Path(folder, name).write_text("")
    ...     [path.name for path in find_images(folder)]
    ['2.jpg', '10.jpg']
    """
    found = search_images(where)
    warn_about([*found.unreadable, *found.ignored])
    return found.paths


def search_images(where: StrPath | Iterable[StrPath]) -> FoundImages:
    """List the images of folders as :func:`find_images` does, with everything that was skipped."""
    places = [where] if isinstance(where, (str, os.PathLike)) else list(where)
    walk = Walk()
    paths = [path for place in places for path in _images_at(place, walk)]
    if not paths:
        raise_first(walk.unreadable)
        named = ", ".join(display_name(place) for place in places) or "an empty list"
        raise InvalidInputError(f"there are no images in {named}; {_known_suffixes()}")
    return FoundImages(paths, walk.unreadable, walk.ignored)


def find_labelled(folder: StrPath) -> LabelledImages:
    """List the images of a folder that has one subfolder per class.

    Parameters
    ----------
    folder : path
        Each subfolder is a class with the name of the subfolder; images may lie deeper inside.
        Backslashes and characters that cannot be printed are escaped, so that class names stay
        distinct.

    Returns
    -------
    found : LabelledImages
        Paths, labels, and what was skipped: class folders without images, images outside every
        class folder, and links that are not followed.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from evergrow.vision import find_labelled
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
        raise FileNotFoundError(f"there is no folder {display_name(root)}")
    if not root.is_dir():
        raise NotADirectoryError(f"{display_name(root)} is not a folder")
    walk = Walk()
    classes = [entry.name for entry in list_entries(root) if entry.is_dir(follow_symlinks=False)]
    found = walk.search(root)
    if not classes:
        raise InvalidInputError(
            f"{display_name(root)} has no subfolders: put the images of each class into a folder "
            "of their own"
        )
    if not any(len(path.relative_to(root).parts) > 1 for path in found):
        raise_first(walk.unreadable)
        raise InvalidInputError(
            f"no folder in {display_name(root)} has images; {_known_suffixes()}"
        )
    return _label_by_folder(root, found, classes, walk)


def raise_first(unreadable: Sequence[BadImage]) -> None:
    """Raise an ``ImageError`` for the first unreadable file or folder, if there is one."""
    for problem in unreadable:
        raise ImageError(problem.source, problem.reason)


def _label_by_folder(
    root: Path, found: list[Path], classes: list[str], walk: Walk
) -> LabelledImages:
    paths, labels, problems = [], [], [*walk.unreadable, *walk.ignored]
    for path in found:
        parts = path.relative_to(root).parts
        if len(parts) == 1:
            problems.append(BadImage(None, display_name(path), "it is not in a class folder"))
        else:
            paths.append(path)
            labels.append(parts[0])
    empty = sorted(set(classes) - set(labels), key=natural_key)
    problems += [
        BadImage(None, display_name(root / name), "the folder has no images") for name in empty
    ]
    names = np.array([_class_name(one) for one in labels])
    return LabelledImages(paths, names, tuple(problems), walk.unreadable)


def _class_name(folder: str) -> str:
    """A printable name; distinct folder names stay distinct."""
    return printable(folder.replace("\\", r"\\"))


def _images_at(place: Any, walk: Walk) -> list[Path]:
    if not isinstance(place, (str, os.PathLike)):
        raise InvalidTypeError(f"where to find images must be a path, got {type(place).__name__}")
    path = Path(place)
    if path.is_dir():
        return walk.search(path)
    if os.path.lexists(path):
        return [path]
    # A name that exists is never read as a pattern.
    before = len(walk.unreadable)
    found = walk.match(place) if isinstance(place, str) else None
    if found is None and len(walk.unreadable) == before:
        raise FileNotFoundError(f"there is no file, folder or match for {display_name(place)}")
    return found or []


def _known_suffixes() -> str:
    return f"images are files that end in {', '.join(sorted(SUFFIXES))}"
