"""Everything that a workspace has on disk, as one value."""

from __future__ import annotations

from evergrow.foundation.errors import WorkspaceError
from evergrow.storage.models.loader import load
from evergrow.vision.embedding import Embedder
from evergrow.workspace.store.database import Database, translate_disk_errors
from evergrow.workspace.store.event_log import EventLog
from evergrow.workspace.store.files import ImageStore, VectorStore
from evergrow.workspace.store.layout import (
    FORMAT,
    Layout,
    Manifest,
    read_manifest,
    require_format,
    write_manifest,
)
from evergrow.workspace.store.ownership import Ownership, is_written_to
from evergrow.workspace.store.staging import require_settled, settle
from evergrow.workspace.store.trust import require_plain_layout


class Store:
    """Database, vectors, images, manifest and event log of a workspace."""

    def __init__(self, layout: Layout, database: Database, manifest: Manifest) -> None:
        self.layout = layout
        self.database = database
        self.manifest = manifest
        self.images = ImageStore(layout.folder)
        self._vectors = _open_vectors(layout, manifest)
        self.log = EventLog(database.read_transaction, lambda: self.vectors, manifest.seed)
        self._embedder: Embedder | None = None

    @property
    def vectors(self) -> VectorStore | None:
        """The embeddings; None before the first example fixes their length."""
        # Another process may have taught the first example since this one opened for reading.
        if self._vectors is None and not self.manifest.n_features_given and self.log.version:
            self.manifest = read_manifest(self.layout)
            self._vectors = _open_vectors(self.layout, self.manifest)
        return self._vectors

    @property
    def n_features(self) -> int | None:
        """Length of an embedding; None before the first example."""
        return self.log.n_features

    @property
    def embedder(self) -> Embedder | None:
        """The embedder of images; None if the workspace takes embeddings."""
        if self._embedder is None and self.manifest.features is not None:
            found = load(self.layout.features)
            if not isinstance(found, Embedder):
                raise WorkspaceError(
                    f"{str(self.layout.features)!r} is not an embedder: restore it from a backup"
                )
            self._embedder = found
        return self._embedder

    @property
    def is_written_elsewhere(self) -> bool:
        """Whether another process has the workspace open for writing right now."""
        return self.database.read_only and is_written_to(self.layout)

    def vectors_for(self, n_features: int) -> VectorStore:
        """The embeddings; their length is fixed to that of the first example."""
        if self._vectors is not None:
            return self._vectors
        manifest = self.manifest.with_n_features(n_features)
        write_manifest(self.layout, manifest)
        # Left by an interrupted first example of another length.
        for leftover in self.layout.embeddings.glob("*.npy"):
            leftover.unlink()
        self.manifest = manifest
        self._vectors = VectorStore(self.layout.embeddings, manifest.rows_per_shard, n_features)
        return self._vectors

    def release_n_features(self, manifest: Manifest) -> None:
        """Go back to an earlier manifest, if the first example was not taught after all."""
        if manifest is not self.manifest:
            self.manifest, self._vectors = manifest, None


def open_store(
    layout: Layout, *, read_only: bool, accept_database: bool = False
) -> tuple[Store, Ownership | None]:
    """Open what is on disk, with the lock of the writer.

    ``accept_database`` also opens a database that was put in place of the one written to last.
    """
    # The process may change its directory while the workspace is open.
    layout = Layout(layout.folder.absolute())
    # Refuse a folder that is not a workspace before a lock file is created in it.
    require_plain_layout(layout)
    read_manifest(layout)
    ownership = None if read_only else Ownership(layout)
    database = None
    try:
        database = Database(layout, ownership, accept=accept_database)
        _verify(layout, database)
        manifest = _without_interrupted_length(read_manifest(layout), database)
        return Store(layout, database, manifest), ownership
    except BaseException:
        if database is not None:
            database.close()
        if ownership is not None:
            ownership.release()
        raise


def _verify(layout: Layout, database: Database) -> None:
    """Check the database; for writing, take it over and put new files of embeddings in place."""
    with database.read_transaction() as connection, translate_disk_errors(layout.folder):
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version == 0:
        raise WorkspaceError(
            f"{str(layout.database)!r} is not the database of a workspace: restore a backup"
        )
    require_format(f"the database of the workspace {str(layout.folder)!r}", version, FORMAT)
    if database.read_only:
        with database.read_transaction() as connection:
            require_settled(layout, connection)
        database.verify()
        return
    database.verify()
    database.prove()
    settle(layout, database.writer)
    database.take_over()


def _without_interrupted_length(manifest: Manifest, database: Database) -> Manifest:
    """The manifest, without the length of embeddings if the first example was not committed."""
    if manifest.n_features_given:
        return manifest
    with database.read_transaction() as connection:
        taught = connection.execute("SELECT 1 FROM example LIMIT 1").fetchone()
    return manifest if taught else manifest.with_n_features(None)


def _open_vectors(layout: Layout, manifest: Manifest) -> VectorStore | None:
    if manifest.n_features is None:
        return None
    return VectorStore(layout.embeddings, manifest.rows_per_shard, manifest.n_features)
