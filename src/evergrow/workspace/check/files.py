"""Checks the files of a workspace against its database."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import ImageError, InvalidInputError, WorkspaceError
from evergrow.foundation.formatting import format_count
from evergrow.vision.embedding import Embedder
from evergrow.workspace.check.database import Problem, first_few
from evergrow.workspace.store.files import row_sha256, sha256_of, sha256_of_file
from evergrow.workspace.store.store import Store
from evergrow.workspace.tokens import Tokens

Rows = npt.NDArray[np.float32]

_NOT_PLAIN = "that cannot be read, behind a link or not a plain file"
REPLACE_LINK = "put the file or folder itself in the place of the link, pipe or device"


class FileCheck:
    """Checks the files of one workspace.

    The embedder recomputes embeddings from images, and ``forget`` erases examples by id; they are
    None if nothing may be repaired.
    """

    def __init__(
        self,
        store: Store,
        *,
        embedder: Embedder | None,
        forget: Callable[[list[int]], None] | None,
    ) -> None:
        self._store = store
        self._layout = store.layout
        self._images = store.images
        self._vectors = store.vectors
        self._embedder = embedder
        self._forget = forget

    def problems(self) -> Iterator[Problem]:
        """All problems of the files."""
        # Files are listed first: the database read later knows all that was written meanwhile.
        image_files = list(self._images.files())
        thumbnails = list(self._images.thumbnail_files())
        examples = self._examples()
        used = {image for _, _, image in examples if image is not None}
        yield from self._features()
        yield from self._tokens()
        yield from self._rows(examples)
        yield from self._if_idle(self._unused_rows(len(examples)))
        yield from self._pictures(used)
        yield from self._if_idle(self._leftovers(image_files, thumbnails, used))

    def _examples(self) -> list[tuple[int, str, str | None]]:
        """Id, hash of the embedding and image of all examples, including removed ones."""
        with self._store.database.read_transaction() as connection:
            # An unfinished erasure counts as finished.
            return connection.execute(
                "SELECT id, iif(erased, '', row_sha256),"
                " iif(erased AND row_sha256 != '', NULL, image) FROM example ORDER BY id"
            ).fetchall()

    def _if_idle(self, leftovers: Iterator[Problem]) -> Iterator[Problem]:
        """Leftovers, unless another process may be writing or deleting them right now."""
        for problem in leftovers:
            if self._store.is_written_elsewhere:
                return
            yield problem

    def _features(self) -> Iterator[Problem]:
        if self._store.manifest.features_sha256 is None:
            return
        path = self._layout.features
        if not path.is_file() or sha256_of_file(path) != self._store.manifest.features_sha256:
            yield Problem(
                "damage",
                f"{path.name} is missing or differs from the one the workspace was created with",
                "restore it from a backup; without it no images can be taught",
            )

    def _tokens(self) -> Iterator[Problem]:
        path = self._layout.tokens
        try:
            Tokens(self._layout.folder).list()
        except WorkspaceError as error:
            yield Problem("damage", str(error), "delete it and create new tokens")
            return
        if sys.platform != "win32" and path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077:
            yield Problem(
                "damage",
                f"{path.name} can be read by other users",
                "'evergrow check --mend' restricts it to its owner",
                lambda: os.chmod(path, 0o600),
            )

    def _rows(self, examples: Iterable[tuple[int, str, str | None]]) -> Iterator[Problem]:
        """Embeddings whose hash is wrong."""
        vectors = self._vectors
        wanted = {number: (sha256, image) for number, sha256, image in examples if sha256}
        if vectors is None or not wanted:
            return
        lost: dict[int, str | None] = {}
        intact: dict[int, bool] = {}
        for number, (sha256, image) in wanted.items():
            shard = (number - 1) // vectors.rows_per_shard
            if shard not in intact:
                wrong = vectors.find_damage(shard)
                if wrong is not None:
                    yield Problem(
                        "damage",
                        f"embeddings: {wrong}",
                        "'evergrow check --mend' recreates the file, empty",
                        self._if_repairing(partial(vectors.recreate, shard)),
                    )
                # It may have been repaired.
                intact[shard] = vectors.find_damage(shard) is None
            if not intact[shard] or row_sha256(vectors.row(number - 1)) != sha256:
                lost[number] = image
        if lost:
            yield from self._lost_rows(self._still_lost(lost))

    def _still_lost(self, lost: dict[int, str | None]) -> dict[int, str | None]:
        """Without those that were erased since their hashes were read."""
        there = {number for number, sha256, _ in self._examples() if sha256}
        return {number: image for number, image in lost.items() if number in there}

    def _lost_rows(self, lost: dict[int, str | None]) -> Iterator[Problem]:
        recomputed, gone = {}, []
        for number, image in lost.items():
            row = None if image is None else self._recompute_row(image)
            if row is None:
                gone.append(number)
            else:
                recomputed[number] = row
        if recomputed:
            yield Problem(
                "damage",
                f"the embeddings of {format_count(len(recomputed), 'example')} are damaged "
                f"({first_few(recomputed)}); their images are intact",
                "'evergrow check --mend' recomputes them from the images",
                self._if_repairing(lambda: self._rewrite_rows(recomputed)),
            )
        if gone:
            forget = self._forget
            yield Problem(
                "damage",
                f"the embeddings of {format_count(len(gone), 'example')} are lost "
                f"({first_few(gone)})",
                "restore the embeddings from a backup, or let 'evergrow check --mend' erase these "
                "examples",
                None if forget is None else lambda: forget(gone),
            )

    def _recompute_row(self, image: str) -> Rows | None:
        if self._embedder is None:
            return None
        try:
            content = self._images.content(image)
            if sha256_of(content) != image:
                return None
            return self._embedder.transform([content]).reshape(-1)
        except (WorkspaceError, ImageError, ImportError):
            return None

    def _rewrite_rows(self, rows: dict[int, Rows]) -> None:
        if self._vectors is None:
            return
        for number, row in rows.items():
            self._vectors.write(number - 1, row.reshape(1, -1))
        with self._store.database.transaction() as connection:
            connection.executemany(
                "UPDATE example SET row_sha256 = ? WHERE id = ?",
                [(row_sha256(row), number) for number, row in rows.items()],
            )

    def _unused_rows(self, n_examples: int) -> Iterator[Problem]:
        vectors = self._vectors
        if vectors is None:
            return
        needed = -(-n_examples // vectors.rows_per_shard)
        for path in sorted(self._layout.embeddings.glob("*")):
            number = path.stem
            unused = not (path.suffix == ".npy" and number.isdigit()) or int(number) >= needed
            if unused:
                yield _leftover([path], "file of embeddings", self._can_repair)
        last = needed - 1
        if needed and vectors.find_damage(last) is None:
            first = n_examples - last * vectors.rows_per_shard
            numbers = np.arange(first, vectors.rows_per_shard) + last * vectors.rows_per_shard
            written = numbers[vectors.rows(numbers).any(axis=1)]
            if len(written):
                yield Problem(
                    "harmless",
                    f"{format_count(len(written), 'embedding')} of examples that were not taught",
                    "nothing needs to be done: the next examples overwrite them",
                    self._if_repairing(lambda: vectors.erase(written)),
                )

    def _pictures(self, used: set[str]) -> Iterator[Problem]:
        found = [image for image in sorted(used) if self._state_of(image) != "intact"]
        if found:
            # Some may have been erased or restored since the database was read.
            used = {image for _, _, image in self._examples() if image is not None}
        states = {image: self._state_of(image) for image in found if image in used}
        restore = "restore them from a backup, or teach the same images again"
        remedies = {"missing": restore, "damaged": restore, _NOT_PLAIN: REPLACE_LINK}
        for state, remedy in remedies.items():
            names = [image for image, found_state in states.items() if found_state == state]
            if names:
                yield Problem(
                    "damage",
                    f"{format_count(len(names), 'image file')} {state}: {first_few(names)}",
                    f"{remedy}; what was learnt from them is not affected",
                )

    def _state_of(self, image: str) -> str:
        try:
            path = self._images.path(image)
            if not path.is_file():
                return "missing"
            return "intact" if sha256_of_file(path) == image else "damaged"
        except FileNotFoundError:
            return "missing"
        except InvalidInputError:
            return _NOT_PLAIN

    def _leftovers(
        self, images: list[Path], thumbnails: list[Path], used: set[str]
    ) -> Iterator[Problem]:
        unknown = [path for path in images if path.name not in used]
        thumbs = [path for path in thumbnails if path.stem not in used]
        temporary = [
            path
            for path in self._layout.folder.iterdir()
            if path.name.startswith(".evergrow-") and path.suffix == ".tmp"
        ]
        for paths, what in (
            (unknown, "image file"),
            (thumbs, "thumbnail"),
            (temporary, "half-written file"),
        ):
            if paths:
                yield _leftover(paths, what, self._can_repair)

    @property
    def _can_repair(self) -> bool:
        return self._forget is not None

    def _if_repairing(self, repair: Callable[[], None]) -> Callable[[], None] | None:
        return repair if self._can_repair else None


def _leftover(paths: list[Path], what: str, can_repair: bool) -> Problem:
    def remove() -> None:
        for path in paths:
            path.unlink(missing_ok=True)

    return Problem(
        "harmless",
        f"{format_count(len(paths), what)} left by an interrupted change or an erasure",
        "'evergrow check --mend' deletes it",
        remove if can_repair else None,
    )
