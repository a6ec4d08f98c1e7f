"""The search of folders for images: each file once, without following links out of the folder."""

from __future__ import annotations

import errno
import fnmatch
import glob
import os
import re
import stat
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from evergrow.foundation.errors import BadImage
from evergrow.foundation.naming import display_name
from evergrow.vision.images.decoder import SUFFIXES

_ANY_DEPTH = "**"


class Walk:
    """A search for images that records what it skips."""

    def __init__(self) -> None:
        # By name, because two branches of a pattern may reach the same file; with whether the
        # skipped file may be an image.
        self._skipped: dict[str, tuple[BadImage, bool]] = {}

    @property
    def unreadable(self) -> tuple[BadImage, ...]:
        """Skipped files and folders that may be or contain images.

        Links named like images that are broken or leave the folder, pipes, and folders that cannot
        be opened.
        """
        return self._sorted(harmful=True)

    @property
    def ignored(self) -> tuple[BadImage, ...]:
        """Files and folders that are ignored by rule: links to folders, other broken links."""
        return self._sorted(harmful=False)

    def _sorted(self, *, harmful: bool) -> tuple[BadImage, ...]:
        found = [problem for problem, harms in self._skipped.values() if harms == harmful]
        return tuple(sorted(found, key=lambda problem: problem.source))

    def search(self, root: Path, inside: str | None = None) -> list[Path]:
        """List all images below a folder, sorted; links must stay in ``inside``, else in root."""
        inside = os.path.realpath(root) if inside is None else inside
        found: list[Path] = []
        folders = [root]
        while folders:
            folder = folders.pop()
            for entry in self._usable_entries(folder, "*", inside):
                path = folder / entry.name
                if entry.is_dir(follow_symlinks=False):
                    folders.append(path)
                elif _has_image_suffix(entry.name):
                    found.append(path)
        return sorted(found, key=lambda path: path_key(path.relative_to(root)))

    def match(self, pattern: str) -> list[Path] | None:
        """List all images that match a pattern or lie in matching folders; None if none matches.

        Like :func:`glob.glob` with ``recursive``, except for links to folders: following them would
        yield a file once per path through the links, and links can form cycles.
        """
        root, parts = _split_pattern(pattern)
        inside = os.path.realpath(root)
        found: list[Path] = []
        seen: set[tuple[Path, int]] = set()
        matched = False
        pending = [(root, 0)] if root.is_dir() else []
        while pending:
            folder, place = pending.pop()
            if (folder, place) in seen:
                continue
            seen.add((folder, place))
            if place == len(parts) or parts[place:] == [_ANY_DEPTH]:
                matched = True
                found += self.search(folder, inside)
                continue
            any_depth = parts[place] == _ANY_DEPTH
            if any_depth:
                pending.append((folder, place + 1))
            for entry in self._usable_entries(folder, "*" if any_depth else parts[place], inside):
                if entry.is_dir(follow_symlinks=False):
                    pending.append((folder / entry.name, place if any_depth else place + 1))
                elif not any_depth and place == len(parts) - 1:
                    matched = True
                    found += [folder / entry.name] if _has_image_suffix(entry.name) else []
        # A folder and the files in it may both match.
        return sorted(dict.fromkeys(found), key=path_key) if matched else None

    def _usable_entries(
        self, folder: Path, pattern: str, inside: str
    ) -> Iterator[os.DirEntry[str]]:
        """Yield the entries of a folder that match; unusable ones are recorded."""
        try:
            for entry in list_entries(folder, pattern):
                problem = _why_skipped(entry, folder, inside)
                if problem is None:
                    yield entry
                else:
                    self._skipped[problem[0].source] = problem
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            self._skipped[display_name(folder)] = (
                BadImage(None, display_name(folder), reason),
                True,
            )


def list_entries(folder: Path, pattern: str = "*") -> Iterator[os.DirEntry[str]]:
    """Yield the entries of a folder that match; hidden ones only if the pattern starts with "."."""
    with os.scandir(folder) as entries:
        for entry in entries:
            hidden = entry.name.startswith(".") and not pattern.startswith(".")
            if not hidden and fnmatch.fnmatch(entry.name, pattern):
                yield entry


def _split_pattern(pattern: str) -> tuple[Path, list[str]]:
    """The folder before the first part with a wildcard, and the parts from there."""
    parts = list(Path(pattern).parts)
    if pattern.endswith(("/", os.sep)):
        # Folders only, each searched recursively.
        parts.append(_ANY_DEPTH)
    fixed = next((k for k, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    return Path(*parts[:fixed]), parts[fixed:]


def _why_skipped(
    entry: os.DirEntry[str], folder: Path, inside: str
) -> tuple[BadImage, bool] | None:
    """Why an entry is skipped, and whether it may be an image; None if it is used."""
    image = _has_image_suffix(entry.name)

    def because(reason: str, *, harmful: bool) -> tuple[BadImage, bool]:
        return BadImage(None, display_name(folder / entry.name), reason), harmful

    try:
        mode = entry.stat().st_mode
    except OSError as error:
        circular = error.errno == errno.ELOOP
        reason = "a link that leads in circles" if circular else "a link to nothing"
        return because(reason, harmful=image)
    if stat.S_ISDIR(mode):
        # If the target is inside the folder, its images are found there.
        link = entry.is_symlink()
        return because("a link to a folder is not followed", harmful=False) if link else None
    if not image:
        return None
    if not stat.S_ISREG(mode):
        return because("it is not a regular file", harmful=True)
    if entry.is_symlink() and not Path(os.path.realpath(entry.path)).is_relative_to(inside):
        return because("a link that leaves the folder is not followed", harmful=True)
    return None


def _has_image_suffix(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in SUFFIXES


def path_key(path: Path) -> list[Any]:
    """Sort key for paths: their parts in natural order."""
    return [natural_key(part) for part in path.parts]


def natural_key(name: str) -> tuple[Any, ...]:
    """Sort key for names: numbers by value, letters without case, ties by the name itself."""
    pieces = re.split("([0-9]+)", name.casefold())
    # Numbers are compared by length, then as text, so that none is too long to convert.
    numbers = [(len(piece.lstrip("0")), piece.lstrip("0")) for piece in pieces[1::2]]
    pairs = zip(pieces[::2], [*numbers, (0, "")], strict=True)
    return (list(chain.from_iterable(pairs)), name)
