"""The search of folders for images: each folder once, with or without the targets of links."""

from __future__ import annotations

import errno
import fnmatch
import glob
import heapq
import os
import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evergrow.foundation.errors import BadImage
from evergrow.foundation.formatting import display_name, format_count, natural_order
from evergrow.vision.images.decoder import FOREIGN_SUFFIXES, SUFFIXES

_ANY_DEPTH = "**"
_BROKEN_LINKS = {
    errno.ENOENT: "a link to nothing",
    errno.ENOTDIR: "a link to nothing",
    errno.ELOOP: "a link that leads in circles",
}
# Device and number of a folder, the same for every path that leads to it.
_FileId = tuple[int, int]


class Walk:
    """A search for images that records what it skips.

    Each folder is read once, however many links lead to it, so links cannot form loops.
    """

    def __init__(self, *, follow_links: bool = True) -> None:
        self._follow_links = follow_links
        # By name, because two branches of a pattern may reach the same file; with whether the
        # skipped file may be an image.
        self._skipped: dict[str, tuple[BadImage, bool]] = {}
        # Files that look like images of formats that are not read.
        self._foreign: set[Path] = set()

    @property
    def unreadable(self) -> tuple[BadImage, ...]:
        """Skipped files and folders that may be or contain images.

        Broken links named like images, links that are not followed, pipes, and folders that cannot
        be opened.
        """
        return self._sorted(harmful=True)

    @property
    def ignored(self) -> tuple[BadImage, ...]:
        """Files and folders that are ignored by rule: unknown formats, folders read elsewhere."""
        return (*self._sorted(harmful=False), *self._foreign_formats())

    def _sorted(self, *, harmful: bool) -> tuple[BadImage, ...]:
        found = [problem for problem, harms in self._skipped.values() if harms == harmful]
        return tuple(sorted(found, key=lambda problem: problem.source))

    def _foreign_formats(self) -> tuple[BadImage, ...]:
        if not self._foreign:
            return ()
        first = display_name(min(self._foreign, key=path_key))
        if len(self._foreign) == 1:
            return (BadImage(None, first, "images of this format are not read"),)
        counts = Counter(_suffix(path.name) for path in self._foreign)
        listed = ", ".join(f"{suffix} {n}" for suffix, n in sorted(counts.items()))
        files = format_count(len(self._foreign), "file")
        source = f"{files} ({listed}), the first {first}"
        return (BadImage(None, source, "images of these formats are not read"),)

    def search(self, root: Path, inside: str | None = None) -> list[Path]:
        """List all images below a folder, sorted; ``inside`` is the folder that was asked for."""
        inside = os.path.realpath(root) if inside is None else inside
        found: list[Path] = []
        seen: set[_FileId] = set()
        folders, linked = [root], _Linked()
        while folders or linked:
            # Links come last: a folder is read under its own name if it is below the root.
            folder = folders.pop() if folders else linked.pop()[0]
            if not self._enter(folder, seen):
                continue
            for entry in self._usable_entries(folder, "*", inside):
                path = folder / entry.name
                if entry.is_dir():
                    linked.add(path) if entry.is_symlink() else folders.append(path)
                elif _has_image_suffix(entry.name):
                    found.append(path)
        return sorted(found, key=lambda path: path_key(path.relative_to(root)))

    def match(self, pattern: str) -> list[Path] | None:
        """List all images that match a pattern or lie in matching folders; None if none matches.

        Like :func:`glob.glob` with ``recursive``, except that a folder is read once for each part
        of the pattern, whatever links lead to it.
        """
        root, parts = _split_pattern(pattern)
        inside = os.path.realpath(root)
        found: list[Path] = []
        seen: list[set[_FileId]] = [set() for _ in range(len(parts) + 1)]
        matched = False
        pending = [(root, 0)] if root.is_dir() else []
        linked = _Linked()
        while pending or linked:
            folder, place = pending.pop() if pending else linked.pop()
            if not self._enter(folder, seen[place]):
                continue
            if place == len(parts) or parts[place:] == [_ANY_DEPTH]:
                matched = True
                found += self.search(folder, inside)
                continue
            any_depth = parts[place] == _ANY_DEPTH
            if any_depth:
                pending.append((folder, place + 1))
            for entry in self._usable_entries(folder, "*" if any_depth else parts[place], inside):
                if entry.is_dir():
                    step = (folder / entry.name, place if any_depth else place + 1)
                    linked.add(*step) if entry.is_symlink() else pending.append(step)
                elif not any_depth and place == len(parts) - 1:
                    matched = True
                    found += [folder / entry.name] if _has_image_suffix(entry.name) else []
        # A folder and the files in it may both match.
        return sorted(dict.fromkeys(found), key=path_key) if matched else None

    def _enter(self, folder: Path, seen: set[_FileId]) -> bool:
        """Whether a folder is read now for the first time; an error to open it is recorded."""
        try:
            status = os.stat(folder)
        except OSError as error:
            self._skip(folder, (error.strerror or str(error)).lower(), harmful=True)
            return False
        identity = (status.st_dev, status.st_ino)
        # Some systems give no numbers to folders; then links to folders are not followed at all.
        if identity in seen and status.st_ino:
            if folder.is_symlink():
                self._skip(folder, "a link to a folder that is read already", harmful=False)
            return False
        seen.add(identity)
        return True

    def _skip(self, path: Path, reason: str, *, harmful: bool) -> None:
        name = display_name(path)
        self._skipped[name] = (BadImage(None, name, reason), harmful)

    def _usable_entries(
        self, folder: Path, pattern: str, inside: str
    ) -> Iterator[os.DirEntry[str]]:
        """Yield the entries of a folder that match; unusable ones are recorded."""
        try:
            for entry in list_entries(folder, pattern):
                if self._is_usable(entry, folder, inside):
                    yield entry
        except OSError as error:
            self._skip(folder, (error.strerror or str(error)).lower(), harmful=True)

    def _is_usable(self, entry: os.DirEntry[str], folder: Path, inside: str) -> bool:
        path = folder / entry.name
        is_image = _has_image_suffix(entry.name)
        try:
            mode = entry.stat().st_mode
        except OSError as error:
            reason = _BROKEN_LINKS.get(error.errno or 0, (error.strerror or str(error)).lower())
            # Without an ending it may have led to a folder of images.
            self._skip(path, reason, harmful=is_image or not _suffix(entry.name))
            return False
        if stat.S_ISDIR(mode):
            return self._is_usable_folder(entry, path, inside)
        if not is_image:
            if _suffix(entry.name) in FOREIGN_SUFFIXES:
                self._foreign.add(path)
            return True
        if not stat.S_ISREG(mode):
            self._skip(path, "it is not a regular file", harmful=True)
            return False
        if entry.is_symlink() and not self._follow_links:
            self._skip(path, "a link is not followed", harmful=True)
            return False
        return True

    def _is_usable_folder(self, entry: os.DirEntry[str], path: Path, inside: str) -> bool:
        if not entry.is_symlink():
            return True
        if not self._follow_links:
            self._skip(path, "a link is not followed", harmful=True)
            return False
        if Path(inside).is_relative_to(os.path.realpath(path)):
            self._skip(path, "a link to a folder above it is not followed", harmful=False)
            return False
        return True


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


class _Linked:
    """Links to folders that are still to be read, first by name: the same order on every system."""

    def __init__(self) -> None:
        self._heap: list[tuple[list[Any], int, Path]] = []

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, folder: Path, place: int = 0) -> None:
        heapq.heappush(self._heap, (path_key(folder), place, folder))

    def pop(self) -> tuple[Path, int]:
        _, place, folder = heapq.heappop(self._heap)
        return folder, place


def _suffix(name: str) -> str:
    return os.path.splitext(name)[1].lower()


def _has_image_suffix(name: str) -> bool:
    return _suffix(name) in SUFFIXES


def path_key(path: Path) -> list[Any]:
    """Sort key for paths: their parts in natural order."""
    return [natural_order(part) for part in path.parts]
