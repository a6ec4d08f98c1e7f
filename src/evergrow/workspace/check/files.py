"""Checking the files of a workspace against the database that names them."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import ImageError, WorkspaceError
from evergrow.workspace.changes.edits import counted
from evergrow.workspace.changes.teach import row_sha256
from evergrow.workspace.check.database import Problem
from evergrow.workspace.store.database import Store
from evergrow.workspace.store.images import Images
from evergrow.workspace.store.layout import Layout, Manifest
from evergrow.workspace.store.vectors import Shards
from evergrow.workspace.tokens import Tokens

__all__ = ["FileCheck"]

Rows = npt.NDArray[np.float32]

_MOST_SHOWN = 5
# Made again from the image of an example; None where that cannot be.
MakeRow = Callable[[bytes], Rows]


class FileCheck:
    """Checks the files of one workspace.

    Parameters
    ----------
    layout : Layout
        Where everything lies.
    store : Store
        The database, found sound.
    manifest : Manifest
        What the workspace is.
    shards : Shards or None
        The embeddings.
    make_row : callable or None
        Makes an embedding from the bytes of an image.
    forget : callable or None
        Takes examples out for good, by number; None where nothing may be changed.
    is_busy : callable
        Tells whether another process writes: then what seems left over may be about to count.
    """

    def __init__(
        self,
        layout: Layout,
        store: Store,
        manifest: Manifest,
        shards: Shards | None,
        *,
        make_row: MakeRow | None,
        forget: Callable[[list[int]], None] | None,
        is_busy: Callable[[], bool],
    ) -> None:
        self._layout = layout
        self._store = store
        self._manifest = manifest
        self._shards = shards
        self._images = Images(layout.folder)
        self._make_row = make_row
        self._forget = forget
        self._is_busy = is_busy

    def problems(self) -> Iterator[Problem]:
        """Everything that is wrong with the files."""
        # Files first: what is written meanwhile is in the database when that is read.
        image_files = list(self._images.files())
        thumbnails = list(self._images.thumbnail_files())
        examples = self._examples()
        kept = {image for _, _, image in examples if image is not None}
        yield from self._features()
        yield from self._tokens()
        yield from self._rows(examples)
        yield from self._if_idle(self._unused_rows(len(examples)))
        yield from self._pictures(kept)
        yield from self._if_idle(self._leftovers(image_files, thumbnails, kept))

    def _examples(self) -> list[tuple[int, str, str | None]]:
        """Number, hash of the embedding and image of all examples there ever were."""
        with self._store.reading() as connection:
            # What is about to be erased counts as erased.
            return connection.execute(
                "SELECT id, iif(erased, '', row_sha256),"
                " iif(erased AND row_sha256 != '', NULL, image) FROM example ORDER BY id"
            ).fetchall()

    def _if_idle(self, leftovers: Iterator[Problem]) -> Iterator[Problem]:
        """What was left over, unless it is being written or removed right now."""
        for problem in leftovers:
            if self._is_busy():
                return
            yield problem

    def _features(self) -> Iterator[Problem]:
        if self._manifest.features_sha256 is None:
            return
        path = self._layout.features
        if not path.is_file() or _sha256(path) != self._manifest.features_sha256:
            yield Problem(
                "damage",
                f"{path.name} is missing or is not the one the workspace was made with",
                "put the one of a backup in its place; without it no image can be taken",
            )

    def _tokens(self) -> Iterator[Problem]:
        path = self._layout.tokens
        try:
            Tokens(self._layout.folder).list()
        except WorkspaceError as error:
            yield Problem("damage", str(error), "remove it and make new tokens")
            return
        if sys.platform != "win32" and path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077:
            yield Problem(
                "damage",
                f"{path.name} can be read by others",
                "'evergrow check --mend' makes it yours alone",
                lambda: os.chmod(path, 0o600),
            )

    def _rows(self, examples: Iterable[tuple[int, str, str | None]]) -> Iterator[Problem]:
        """Embeddings that are not what was taught."""
        shards = self._shards
        wanted = {number: (sha256, image) for number, sha256, image in examples if sha256}
        if shards is None or not wanted:
            return
        lost: dict[int, str | None] = {}
        whole: dict[int, bool] = {}
        for number, (sha256, image) in wanted.items():
            shard = (number - 1) // shards.rows_per_shard
            if shard not in whole:
                wrong = shards.check_whole(shard)
                if wrong is not None:
                    yield Problem(
                        "damage",
                        f"embeddings: {wrong}",
                        "'evergrow check --mend' makes the file again, empty",
                        self._mending(partial(shards.make_again, shard)),
                    )
                # It may have been mended.
                whole[shard] = shards.check_whole(shard) is None
            if not whole[shard] or row_sha256(shards.row(number - 1)) != sha256:
                lost[number] = image
        if lost:
            yield from self._lost_rows(self._still_lost(lost))

    def _still_lost(self, lost: dict[int, str | None]) -> dict[int, str | None]:
        """Without those that were erased since it was read what they should be."""
        there = {number for number, sha256, _ in self._examples() if sha256}
        return {number: image for number, image in lost.items() if number in there}

    def _lost_rows(self, lost: dict[int, str | None]) -> Iterator[Problem]:
        again, gone = {}, []
        for number, image in lost.items():
            row = None if image is None else self._row_again(image)
            if row is None:
                gone.append(number)
            else:
                again[number] = row
        if again:
            yield Problem(
                "damage",
                f"the embeddings of {counted(len(again), 'example')} are damaged "
                f"({_shown(again)}); their images are there",
                "'evergrow check --mend' makes them again from the images",
                self._mending(lambda: self._write_again(again)),
            )
        if gone:
            forget = self._forget
            yield Problem(
                "damage",
                f"the embeddings of {counted(len(gone), 'example')} are lost ({_shown(gone)})",
                "put the embeddings of a backup in their place, or let 'evergrow check --mend' "
                "take these examples out for good",
                None if forget is None else lambda: forget(gone),
            )

    def _row_again(self, image: str) -> Rows | None:
        if self._make_row is None:
            return None
        try:
            content = self._images.content(image)
            if hashlib.sha256(content).hexdigest() != image:
                return None
            return self._make_row(content)
        except (WorkspaceError, ImageError, ImportError):
            return None

    def _write_again(self, rows: dict[int, Rows]) -> None:
        if self._shards is None:
            return
        for number, row in rows.items():
            self._shards.write(number - 1, row.reshape(1, -1))
        with self._store.transaction() as connection:
            connection.executemany(
                "UPDATE example SET row_sha256 = ? WHERE id = ?",
                [(row_sha256(row), number) for number, row in rows.items()],
            )

    def _unused_rows(self, n_examples: int) -> Iterator[Problem]:
        shards = self._shards
        if shards is None:
            return
        needed = -(-n_examples // shards.rows_per_shard)
        for path in sorted(self._layout.embeddings.glob("*")):
            number = path.stem
            unused = not (path.suffix == ".npy" and number.isdigit()) or int(number) >= needed
            if unused:
                yield _leftover([path], "file of embeddings", self._can_mend)
        last = needed - 1
        if needed and shards.check_whole(last) is None:
            first = n_examples - last * shards.rows_per_shard
            numbers = np.arange(first, shards.rows_per_shard) + last * shards.rows_per_shard
            written = numbers[shards.rows(numbers).any(axis=1)]
            if len(written):
                yield Problem(
                    "harmless",
                    f"{counted(len(written), 'embedding')} of lessons that were interrupted",
                    "nothing needs to be done: the next lessons take their place",
                    self._mending(lambda: shards.erase(written)),
                )

    def _pictures(self, kept: set[str]) -> Iterator[Problem]:
        found = [image for image in sorted(kept) if self._state_of(image) != "whole"]
        if found:
            # Some may have been erased, or put back, since it was read which there should be.
            kept = {image for _, _, image in self._examples() if image is not None}
        states = {image: self._state_of(image) for image in found if image in kept}
        for how in ("missing", "damaged"):
            names = [image for image, state in states.items() if state == how]
            if names:
                yield Problem(
                    "damage",
                    f"{counted(len(names), 'image file')} {how}: {_shown(names)}",
                    "put them back from a backup, or teach the same images again; what was "
                    "learnt from them is not affected",
                )

    def _state_of(self, image: str) -> str:
        path = self._images.path(image)
        try:
            if not path.is_file():
                return "missing"
            return "whole" if _sha256(path) == image else "damaged"
        except FileNotFoundError:
            return "missing"

    def _leftovers(
        self, images: list[Path], thumbnails: list[Path], kept: set[str]
    ) -> Iterator[Problem]:
        strays = [path for path in images if path.name not in kept]
        small = [path for path in thumbnails if path.stem not in kept]
        asides = [
            path
            for path in self._layout.folder.iterdir()
            if path.name.startswith(".evergrow-") and path.suffix == ".tmp"
        ]
        for paths, what in (
            (strays, "image file"),
            (small, "thumbnail"),
            (asides, "half-written file"),
        ):
            if paths:
                yield _leftover(paths, what, self._can_mend)

    @property
    def _can_mend(self) -> bool:
        return self._forget is not None

    def _mending(self, act: Callable[[], None]) -> Callable[[], None] | None:
        return act if self._can_mend else None


def _leftover(paths: list[Path], what: str, can_mend: bool) -> Problem:
    def remove() -> None:
        for path in paths:
            path.unlink(missing_ok=True)

    return Problem(
        "harmless",
        f"{counted(len(paths), what)} of something that was interrupted or erased",
        "'evergrow check --mend' removes it",
        remove if can_mend else None,
    )


def _shown(names: Iterable[object]) -> str:
    texts = [str(name) for name in names]
    more = f" and {len(texts) - _MOST_SHOWN} more" * (len(texts) > _MOST_SHOWN)
    return ", ".join(texts[:_MOST_SHOWN]) + more


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
