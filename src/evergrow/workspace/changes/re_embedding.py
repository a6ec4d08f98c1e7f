"""Embeds the stored pictures of a workspace again, with another network or other stages.

Removed examples are embedded too, so that all earlier changes can still be undone.
"""

from __future__ import annotations

import copy
import itertools
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from evergrow.foundation.errors import BadImageWarning, InvalidInputError, WorkspaceError
from evergrow.foundation.files import sync_folder
from evergrow.foundation.progress import progress_bar
from evergrow.vision.embedding import Embedder
from evergrow.workspace.changes.examples import erase_examples
from evergrow.workspace.changes.transaction import ChangeTransaction, next_id
from evergrow.workspace.changes.writer import ChangeWriter
from evergrow.workspace.events import NullProjection
from evergrow.workspace.records import ConflictError
from evergrow.workspace.store.creation import describe_embedder, make_embedder
from evergrow.workspace.store.database import translate_disk_errors
from evergrow.workspace.store.files import Rows, VectorStore, row_sha256, sha256_of, sha256_of_file
from evergrow.workspace.store.layout import Layout, Manifest, read_manifest, write_manifest
from evergrow.workspace.store.staging import settle
from evergrow.workspace.store.store import Store, open_store

# Pictures that are read and embedded at once.
_BATCH = 64


@dataclass(frozen=True)
class ReEmbedded:
    """The result of embedding all pictures of a workspace again.

    Attributes
    ----------
    features : str
        Name of the new embedder.
    blocks : dict from str to int
        Names and widths of the blocks of its embeddings.
    n_examples : int
        Number of examples that were embedded, including removed ones.
    n_erased : int
        Number of examples that could not be embedded and were erased.
    """

    features: str
    blocks: dict[str, int]
    n_examples: int
    n_erased: int


def re_embed_workspace(
    path: str | os.PathLike[str],
    features: str | os.PathLike[str] | Embedder = "auto",
    *,
    erase_lost: bool = False,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> ReEmbedded:
    """Change the embedder of a workspace, and embed all stored pictures again.

    Examples, classes and the audit log stay as they are. If the call is interrupted, the workspace
    is either the old or the new one, never a mixture. The model is trained on the new embeddings
    when the workspace is opened, and the next assessment selects its hyperparameters again.

    Parameters
    ----------
    path : path
        The folder. No other process may have it open for writing.
    features : str, path or Embedder, default="auto"
        The new embedder, as in :meth:`Workspace.create`.
    erase_lost : bool, default=False
        What to do with examples that cannot be embedded again, because they were taught as
        embeddings or their picture is missing or damaged. False raises an error. True erases them
        and all examples that were removed before; no earlier change can be undone then.
    n_jobs : int, default=None
        Number of threads: None is 1, -1 uses all processors.
    verbose : int, default=0
        Show a progress bar if positive.

    Returns
    -------
    result : ReEmbedded
        What was embedded.

    Raises
    ------
    evergrow.WorkspaceError
        If the folder is not a workspace, is in use, or has examples that cannot be embedded again.
        Nothing was changed.
    """
    layout = Layout(path)
    read_manifest(layout)
    embedder = copy.copy(make_embedder(features)).set_params(n_jobs=n_jobs, verbose=0)
    # An error of the network comes before anything is written.
    embedder.network()
    store, lock = open_store(layout, read_only=False)
    try:
        with translate_disk_errors(layout.folder):
            return _Embedding(store, embedder).run(erase_lost=erase_lost, verbose=verbose)
    finally:
        store.database.close()
        if lock is not None:
            lock.release()


@dataclass
class _Lost:
    """Examples that cannot be embedded, by the reason."""

    # Taught as embeddings.
    bare: list[int] = field(default_factory=list)
    # The picture is missing, damaged or cannot be read.
    unreadable: list[int] = field(default_factory=list)

    @property
    def all(self) -> list[int]:
        return sorted(self.bare + self.unreadable)

    def refuse(self) -> None:
        """Raise an error if there are any."""
        reasons = []
        if self.bare:
            reasons.append(f"{len(self.bare)} taught as embeddings, without a picture")
        if self.unreadable:
            reasons.append(f"{len(self.unreadable)} with a picture that is missing or damaged")
        if reasons:
            raise ConflictError(
                f"examples cannot be embedded again: {', '.join(reasons)}; teach them again with "
                "their pictures, or erase them with --erase-lost (erase_lost=True)"
            )


class _Embedding:
    """Embeds the pictures of one workspace, which is locked."""

    def __init__(self, store: Store, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder
        self._new = Layout(store.layout.staging)
        self._lost = _Lost()

    def run(self, *, erase_lost: bool, verbose: int) -> ReEmbedded:
        """Embed all, commit, and put the files in place."""
        store, writer = self._store, self._store.database.writer
        manifest = _checked(describe_embedder(store.manifest, self._embedder))
        pictures = self._find_pictures()
        if not erase_lost:
            self._lost.refuse()
        # A leftover of an interrupted attempt was deleted on opening.
        self._new.folder.mkdir(0o700)
        try:
            hashes = self._embed_all(pictures, manifest, verbose)
            if not erase_lost:
                self._lost.refuse()
            # An erasure is an event of its own, before this one.
            event = next_id(writer, "event") + bool(self._lost.all)
            self._write_files(replace(manifest, embedded_by=event))
            self._commit(manifest, event, hashes)
        finally:
            store.database.prove()
            # Deletes the new files unless they were committed.
            settle(store.layout, writer)
        return ReEmbedded(
            manifest.features or "", dict(manifest.blocks), len(hashes), len(self._lost.all)
        )

    def _find_pictures(self) -> list[tuple[int, str]]:
        """Examples that are stored, with their pictures; the others are lost."""
        found = self._store.database.writer.execute(
            "SELECT id, image FROM example WHERE erased = 0 ORDER BY id"
        ).fetchall()
        pictures = []
        for number, image in found:
            if image is None:
                self._lost.bare.append(number)
            elif not self._store.images.path(image).is_file():
                self._lost.unreadable.append(number)
            else:
                pictures.append((number, image))
        return pictures

    def _embed_all(
        self, pictures: Sequence[tuple[int, str]], manifest: Manifest, verbose: int
    ) -> dict[int, str]:
        """Write the embeddings of all pictures that can be read; return their hashes by example."""
        n_features = manifest.n_features or 0
        vectors = VectorStore(self._new.embeddings, manifest.rows_per_shard, n_features)
        # Every row has its place, also those of erased examples.
        n_examples = next_id(self._store.database.writer, "example") - 1
        self._new.embeddings.mkdir(0o700)
        for shard in range(-(-n_examples // manifest.rows_per_shard)):
            vectors.recreate(shard)
        hashes: dict[int, str] = {}
        with progress_bar("Embedding", len(pictures), verbose) as show:
            for first in range(0, len(pictures), _BATCH):
                batch = pictures[first : first + _BATCH]
                rows = self._embed(batch)
                for numbers in _runs(list(rows)):
                    matrix = np.stack([rows[number] for number in numbers])
                    vectors.write(numbers[0] - 1, matrix)
                hashes |= {number: row_sha256(row) for number, row in rows.items()}
                if show is not None:
                    show(first + len(batch))
        return hashes

    def _embed(self, batch: Sequence[tuple[int, str]]) -> dict[int, Rows]:
        """Embeddings of some examples, in their order; those that cannot be read are lost."""
        numbers, contents = [], []
        for number, image in batch:
            content = self._store.images.content(image)
            if sha256_of(content) == image:
                numbers.append(number)
                contents.append(content)
            else:
                self._lost.unreadable.append(number)
        if not contents:
            return {}
        with warnings.catch_warnings():
            # The number of such pictures is reported at the end.
            warnings.simplefilter("ignore", BadImageWarning)
            found = self._embedder.extract(contents, on_error="skip")
        kept = [numbers[place] for place in found.kept.tolist()]
        self._lost.unreadable += sorted(set(numbers) - set(kept))
        return dict(zip(kept, found.features, strict=True))

    def _write_files(self, manifest: Manifest) -> None:
        """Write the embedder and the manifest, so that everything is on disk."""
        self._embedder.save(self._new.features)
        os.chmod(self._new.features, 0o600)
        digest = sha256_of_file(self._new.features)
        write_manifest(self._new, replace(manifest, features_sha256=digest))
        for folder in (self._new.embeddings, self._new.folder, self._store.layout.folder):
            sync_folder(folder)

    def _commit(self, manifest: Manifest, event: int, hashes: dict[int, str]) -> None:
        """Make the new embeddings count, in one transaction."""
        store, lost = self._store, self._lost.all
        clock = ChangeWriter(store, NullProjection()).clock
        with store.database.transaction() as connection:
            transaction = ChangeTransaction(
                connection, clock(), "command line", store.manifest.max_classes
            )
            if lost:
                erase_examples(transaction, lost)
            body = {
                "features": manifest.features,
                "blocks": dict(manifest.blocks),
                "n_examples": len(hashes),
            }
            if transaction.add_event("embed", body) != event:
                raise WorkspaceError("the database was changed meanwhile: try again")
            connection.executemany(
                "UPDATE example SET row_sha256 = ? WHERE id = ?",
                [(digest, number) for number, digest in hashes.items()],
            )
            # They belong to the old embeddings. Fine classes are guessed again when they are due.
            connection.execute("DELETE FROM assessment")
            connection.execute("UPDATE class SET guessed_by = 0 WHERE split = 1")


def _checked(manifest: Manifest) -> Manifest:
    try:
        manifest.check()
    except InvalidInputError as error:
        raise WorkspaceError(str(error)) from error
    return manifest


def _runs(numbers: Sequence[int]) -> Iterator[list[int]]:
    """Groups of consecutive numbers.

    >>> list(_runs([1, 2, 3, 7, 8]))
    [[1, 2, 3], [7, 8]]
    """
    place: Callable[[tuple[int, int]], int] = lambda pair: pair[1] - pair[0]  # noqa: E731
    for _, group in itertools.groupby(enumerate(numbers), key=place):
        yield [number for _, number in group]
