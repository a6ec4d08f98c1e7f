"""The images of folders."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evergrow.foundation.errors import BadImage, ImageError, InvalidInputError, InvalidTypeError
from evergrow.foundation.formatting import display_name
from evergrow.vision.images.decoder import SUFFIXES
from evergrow.vision.images.results import warn_about
from evergrow.vision.images.walk import Walk

StrPath = str | os.PathLike[str]

# An error names at most this many files, folders or classes.
_MAX_NAMED = 5


@dataclass(frozen=True)
class FoundImages:
    """Images of any folders, what could not be read there, and what was ignored by rule."""

    paths: list[Path]
    unreadable: tuple[BadImage, ...]
    ignored: tuple[BadImage, ...]


def find_images(where: StrPath | Iterable[StrPath], *, follow_links: bool = True) -> list[Path]:
    """List the images of folders.

    A folder is searched recursively for files with an image extension; hidden files are ignored.
    Each folder is read once, even if several links (symlinks) lead to it. A warning names what was
    skipped, and counts files that look like images of formats that cannot be read.

    Parameters
    ----------
    where : path, str or list of these
        A folder, a file, or a pattern such as ``"holiday/**/*.jpg"``. A file that is named
        explicitly is listed whatever its extension.
    follow_links : bool, default=True
        Whether links to files and folders are followed, also out of the folder.

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
    found = search_images(where, follow_links=follow_links)
    warn_about([*found.unreadable, *found.ignored])
    return found.paths


def search_images(where: StrPath | Iterable[StrPath], *, follow_links: bool = True) -> FoundImages:
    """List the images of folders as :func:`find_images` does, with everything that was skipped."""
    places = [where] if isinstance(where, (str, os.PathLike)) else list(where)
    walk = Walk(follow_links=follow_links)
    paths = [path for place in places for path in _images_at(place, walk)]
    if not paths:
        raise_unreadable(walk.unreadable)
        named = ", ".join(display_name(place) for place in places) or "an empty list"
        raise InvalidInputError(
            f"found no images in {named}{describe_skipped(walk)}; {known_suffixes()}"
        )
    return FoundImages(paths, walk.unreadable, walk.ignored)


def raise_unreadable(unreadable: Sequence[BadImage]) -> None:
    """Raise one ``ImageError`` for all unreadable files and folders, if there are any."""
    if unreadable:
        raise ImageError.of(unreadable)


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
        raise FileNotFoundError(f"no file or folder matches {display_name(place)}")
    return found or []


def describe_skipped(walk: Walk) -> str:
    """What was skipped by rule, for the end of an error."""
    named = "; ".join(str(problem) for problem in walk.ignored[:_MAX_NAMED])
    return f" ({named})" if named else ""


def known_suffixes() -> str:
    """Which files are images, for the end of an error."""
    return f"images are files that end in {', '.join(sorted(SUFFIXES))}"
