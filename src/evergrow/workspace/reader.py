"""The half of a workspace that reads: lists, single things, files. It never waits for a writer."""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import WorkspaceError
from evergrow.storage.loading import load
from evergrow.vision.embedding import Embedder
from evergrow.workspace.changes.idempotency import known_answer
from evergrow.workspace.changes.pending_classes import was_class
from evergrow.workspace.changes.undo import newest_change
from evergrow.workspace.check.backup import Backup, back_up
from evergrow.workspace.errors import NoSuchExampleError
from evergrow.workspace.names import checked_name
from evergrow.workspace.records import (
    Change,
    ClassEntry,
    Event,
    Example,
    Page,
    Request,
    Status,
    Taught,
)
from evergrow.workspace.store.creation import size_of
from evergrow.workspace.store.database import Store
from evergrow.workspace.store.event_log import StoredHistory, version_of
from evergrow.workspace.store.images import Images
from evergrow.workspace.store.layout import Layout, Manifest, read_manifest
from evergrow.workspace.store.queries import (
    CountedClass,
    classes_page,
    counted_class,
    events_page,
    example_by_id,
    examples_page,
    totals,
    unsure_examples,
)
from evergrow.workspace.store.vectors import Shards

__all__ = ["ReadableWorkspace"]


class ReadableWorkspace:
    """What can be read from a workspace, from any thread.

    Parameters
    ----------
    layout : Layout
        Where everything lies.
    store : Store
        The database, of the newest format.
    manifest : Manifest
        What the workspace is.
    """

    def __init__(self, layout: Layout, store: Store, manifest: Manifest) -> None:
        self._layout = layout
        self._store = store
        self._manifest = manifest
        self._images = Images(layout.folder)
        self._shards = _shards_of(layout, manifest)
        self._history = StoredHistory(store, self._current_shards, manifest.seed)
        self._embedder: Embedder | None = None

    @property
    def version(self) -> int:
        """Number of the newest event; whatever was read before it may differ after it."""
        with self._store.reading() as connection:
            return version_of(connection)

    @property
    def manifest(self) -> Manifest:
        """What the workspace is."""
        return self._manifest

    @property
    def layout(self) -> Layout:
        """Where everything lies."""
        return self._layout

    @property
    def history(self) -> StoredHistory:
        """Facts in recorded order, and examples as arrays."""
        return self._history

    @property
    def n_features(self) -> int | None:
        """Length of an embedding; None before the first example."""
        shards = self._current_shards()
        return None if shards is None else shards.n_features

    @property
    def embedder(self) -> Embedder | None:
        """What makes embeddings of images; None where embeddings are sent."""
        if self._embedder is None and self._manifest.features is not None:
            found = load(self._layout.features)
            if not isinstance(found, Embedder):
                raise WorkspaceError(f"{str(self._layout.features)!r} holds no embedder")
            self._embedder = found
        return self._embedder

    def classes(self, *, after: str | None = None, limit: int = 100) -> Page[ClassEntry]:
        """Classes in order of creation.

        Parameters
        ----------
        after : str, default=None
            The ``next`` of the page before; None for the first page.
        limit : int, default=100
            Most classes on a page.

        Returns
        -------
        page : Page of ClassEntry
            Classes, and where the next page begins.
        """
        with self._store.reading() as connection:
            page = classes_page(connection, after=after, limit=limit)
        return Page(tuple(self._class_entry(one) for one in page.items), page.next)

    def class_named(self, name: str) -> ClassEntry:
        """One class; a ``NoSuchClassError`` if there is none of this name."""
        with self._store.reading() as connection:
            return self._class_entry(counted_class(connection, checked_name(name)))

    def had_class(self, name: str) -> bool:
        """Whether a class has this name, or had it when it went; its examples can be erased."""
        with self._store.reading() as connection:
            return was_class(connection, checked_name(name))

    def examples(
        self,
        *,
        label: str | None = None,
        fine: str | None = None,
        guessed: bool | None = None,
        after: str | None = None,
        limit: int = 100,
        newest_first: bool = False,
    ) -> Page[Example]:
        """Examples in order of their numbers.

        Parameters
        ----------
        label : str, default=None
            Only those of this class.
        fine : str, default=None
            Only those with this fine name, given or guessed, within the class or within any.
        guessed : bool, default=None
            Only those whose fine name is a guess, or only those for which it is not.
        after : str, default=None
            The ``next`` of the page before; None for the first page.
        limit : int, default=100
            Most examples on a page.
        newest_first : bool, default=False
            Whether the newest come first.

        Returns
        -------
        page : Page of Example
            Examples, and where the next page begins.
        """
        with self._store.reading() as connection:
            return examples_page(
                connection,
                label=None if label is None else checked_name(label),
                fine=None if fine is None else checked_name(fine, "fine"),
                guessed=guessed,
                after=after,
                limit=limit,
                newest_first=newest_first,
            )

    def example(self, example_id: int) -> Example:
        """One example; a ``NoSuchExampleError`` if it is not there, or not any more."""
        with self._store.reading() as connection:
            return example_by_id(connection, example_id)

    def unsure(self, limit: int = 100) -> list[Example]:
        """Examples of split classes whose fine name is a guess, least certain first."""
        with self._store.reading() as connection:
            return unsure_examples(connection, limit)

    def events(
        self, *, after: str | None = None, limit: int = 100, newest_first: bool = True
    ) -> Page[Event]:
        """The audit log: every change, who asked for it and when.

        Parameters
        ----------
        after : str, default=None
            The ``next`` of the page before; None for the first page.
        limit : int, default=100
            Most events on a page.
        newest_first : bool, default=True
            Whether the newest come first.

        Returns
        -------
        page : Page of Event
            Events, and where the next page begins.
        """
        with self._store.reading() as connection:
            return events_page(connection, after=after, limit=limit, newest_first=newest_first)

    def undoable(self) -> Event | None:
        """The change that :meth:`undo` would take back; None if there is none."""
        with self._store.reading() as connection:
            return newest_change(connection)

    def taught_with(self, request: Request, digest: str | None = None) -> Taught | Change | None:
        """The answer that a request with this key got before; None if it is new.

        Raises
        ------
        KeyReusedError
            If the key came with another digest.
        """
        with self._store.reading() as connection:
            return known_answer(connection, request, digest or request.digest or "")

    def embedding(self, example_id: int) -> npt.NDArray[np.float32]:
        """The embedding of an example, of shape (n_features,)."""
        self.example(example_id)
        rows = self._history.rows(np.array([example_id], dtype=np.int64))
        return rows.reshape(-1)

    def picture(self, example_id: int) -> bytes:
        """The image file of an example, as it came."""
        return self._images.content(self._image_of(example_id))

    def thumbnail(self, example_id: int) -> bytes:
        """A small JPEG of an example's image."""
        return self._images.thumbnail(self._image_of(example_id), keep=not self._store.read_only)

    def backup(self, target: str | os.PathLike[str]) -> Backup:
        """Copy the workspace to a new or empty folder, also while another process writes to it.

        Parameters
        ----------
        target : path
            Where the copy goes; it is a workspace of its own.

        Returns
        -------
        backup : Backup
            What was copied.
        """
        return back_up(self._layout, self._store, target)

    def status(self) -> Status:
        """The workspace at a glance."""
        with self._store.reading() as connection:
            event = version_of(connection)
            n_examples, n_classes, n_bytes = totals(connection)
        for folder in (self._layout.embeddings, self._layout.models):
            n_bytes += size_of(folder)
        return Status(
            id=self._manifest.id,
            event=event,
            n_examples=n_examples,
            n_classes=n_classes,
            n_features=self.n_features,
            takes_images=self._manifest.features is not None,
            forest=self._manifest.forest,
            forest_lacks=None,
            false_alarms=self._manifest.false_alarms,
            measured_false_alarms=None,
            accuracy=None,
            assessed_event=None,
            snapshot_event=None,
            n_bytes=n_bytes,
        )

    def _current_shards(self) -> Shards | None:
        # Another process may have taught the first example since this one opened to read.
        if self._shards is None and not self._manifest.n_features_given and self.version:
            self._manifest = read_manifest(self._layout)
            self._shards = _shards_of(self._layout, self._manifest)
        return self._shards

    def _image_of(self, example_id: int) -> str:
        image = self.example(example_id).image
        if image is None:
            raise NoSuchExampleError(f"example {example_id} came without an image")
        return image

    def _class_entry(self, counted: CountedClass) -> ClassEntry:
        """A class as it is shown; how well it is known is for the model to say."""
        return ClassEntry(
            id=counted.id,
            name=counted.name,
            n_examples=counted.n_examples,
            n_pictures=counted.n_pictures,
            split=counted.split,
            fine=counted.fine,
            sign="new",
            accuracy=None,
            confused_with=None,
            confused_share=None,
        )


def _shards_of(layout: Layout, manifest: Manifest) -> Shards | None:
    if manifest.n_features is None:
        return None
    return Shards(layout.embeddings, manifest.rows_per_shard, manifest.n_features)
