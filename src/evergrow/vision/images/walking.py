"""Walking through folders for images: each file once, no links to folders, nothing outside."""

from __future__ import annotations

import errno
import fnmatch
import glob
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evergrow.foundation.errors import BadImage
from evergrow.vision.images.decoding import SUFFIXES
from evergrow.vision.images.sources import name_of

__all__ = ["Walk", "entries_of", "natural", "place_in_order"]

_ANY_DEPTH = "**"


class Walk:
    """A search for images that remembers what it met but did not take."""

    def __init__(self) -> None:
        # By name, as two parts of a pattern may come by the same place; with whether it is harmful.
        self._met: dict[str, tuple[BadImage, bool]] = {}

    @property
    def unreadable(self) -> tuple[BadImage, ...]:
        """What may be or hold images and cannot be read.

        Links named like images that lead nowhere or outside, pipes, folders that do not open.
        """
        return self._sorted(harmful=True)

    @property
    def ignored(self) -> tuple[BadImage, ...]:
        """What is left alone by rule: links to folders, other links to nothing."""
        return self._sorted(harmful=False)

    def _sorted(self, *, harmful: bool) -> tuple[BadImage, ...]:
        found = [problem for problem, harms in self._met.values() if harms == harmful]
        return tuple(sorted(found, key=lambda problem: problem.source))

    def search(self, root: Path, inside: str | None = None) -> list[Path]:
        """All images below a folder, in order; links must stay in ``inside``, else in the root."""
        inside = os.path.realpath(root) if inside is None else inside
        found: list[Path] = []
        folders = [root]
        while folders:
            folder = folders.pop()
            for entry in self._usable(folder, "*", inside):
                path = folder / entry.name
                if entry.is_dir(follow_symlinks=False):
                    folders.append(path)
                elif _named_like_image(entry.name):
                    found.append(path)
        return sorted(found, key=lambda path: place_in_order(path.relative_to(root)))

    def matching(self, pattern: str) -> list[Path] | None:
        """All images that match a pattern or lie in folders that do; None if nothing matches.

        As :func:`glob.glob` with ``recursive``, but for links: it would follow those to folders,
        and two that lead back make as many paths as there are ways through them.
        """
        root, parts = _split(pattern)
        inside = os.path.realpath(root)
        found: list[Path] = []
        seen: set[tuple[Path, int]] = set()
        anything = False
        todo = [(root, 0)] if root.is_dir() else []
        while todo:
            folder, place = todo.pop()
            if (folder, place) in seen:
                continue
            seen.add((folder, place))
            if place == len(parts) or parts[place:] == [_ANY_DEPTH]:
                anything = True
                found += self.search(folder, inside)
                continue
            deep = parts[place] == _ANY_DEPTH
            if deep:
                todo.append((folder, place + 1))
            for entry in self._usable(folder, "*" if deep else parts[place], inside):
                if entry.is_dir(follow_symlinks=False):
                    todo.append((folder / entry.name, place if deep else place + 1))
                elif not deep and place == len(parts) - 1:
                    anything = True
                    found += [folder / entry.name] if _named_like_image(entry.name) else []
        # Folders and the files in them may both match.
        return sorted(dict.fromkeys(found), key=place_in_order) if anything else None

    def _usable(self, folder: Path, pattern: str, inside: str) -> Iterator[os.DirEntry[str]]:
        """Entries of a folder that match; those that cannot be used are kept in mind."""
        try:
            for entry in entries_of(folder, pattern):
                problem = _why_not(entry, folder, inside)
                if problem is None:
                    yield entry
                else:
                    self._met[problem[0].source] = problem
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            self._met[name_of(folder)] = (BadImage(None, name_of(folder), reason), True)


def entries_of(folder: Path, pattern: str = "*") -> Iterator[os.DirEntry[str]]:
    """Entries of a folder that match; hidden ones only where the pattern says so."""
    with os.scandir(folder) as entries:
        for entry in entries:
            hidden = entry.name.startswith(".") and not pattern.startswith(".")
            if not hidden and fnmatch.fnmatch(entry.name, pattern):
                yield entry


def _split(pattern: str) -> tuple[Path, list[str]]:
    """The folder before the first part with a wildcard, and the parts from there."""
    parts = list(Path(pattern).parts)
    if pattern.endswith(("/", os.sep)):
        # Folders only, each searched to its bottom.
        parts.append(_ANY_DEPTH)
    fixed = next((k for k, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    return Path(*parts[:fixed]), parts[fixed:]


def _why_not(entry: os.DirEntry[str], folder: Path, inside: str) -> tuple[BadImage, bool] | None:
    """Why an entry that might be or hold images is not taken, and whether that is harmful."""
    image = _named_like_image(entry.name)

    def because(reason: str, *, harmful: bool) -> tuple[BadImage, bool]:
        return BadImage(None, name_of(folder / entry.name), reason), harmful

    try:
        mode = entry.stat().st_mode
    except OSError as error:
        circles = error.errno == errno.ELOOP
        reason = "a link that leads in circles" if circles else "a link to nothing"
        return because(reason, harmful=image)
    if stat.S_ISDIR(mode):
        # One inside the folder holds images that are found where they lie.
        link = entry.is_symlink()
        return because("a link to a folder is not followed", harmful=False) if link else None
    if not image:
        return None
    if not stat.S_ISREG(mode):
        return because("it is not a regular file", harmful=True)
    if entry.is_symlink() and not Path(os.path.realpath(entry.path)).is_relative_to(inside):
        return because("a link that leaves the folder is not followed", harmful=True)
    return None


def _named_like_image(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in SUFFIXES


def place_in_order(path: Path) -> list[Any]:
    """Sorts paths by their parts in natural order."""
    return [natural(part) for part in path.parts]


def natural(name: str) -> tuple[Any, ...]:
    """Sorts numbers by value, letters without case; the name itself where that is equal."""
    pieces = re.split("([0-9]+)", name.casefold())
    # Digits are compared as text of one length: no number is too long.
    numbers = [(len(piece.lstrip("0")), piece.lstrip("0")) for piece in pieces[1::2]]
    return (list(_alternating(pieces[::2], numbers)), name)


def _alternating(texts: list[str], numbers: list[tuple[int, str]]) -> Iterator[Any]:
    for text, number in zip(texts, [*numbers, (0, "")], strict=True):
        yield text
        yield number
