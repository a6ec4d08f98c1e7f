"""A workspace: durable examples and the model that follows them, in one folder."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Self

from evergrow.foundation.locks import HeldLock
from evergrow.vision.embedding import Embedder
from evergrow.workspace.model.snapshot_files import drop_before, drop_foreign
from evergrow.workspace.model.upkeep import ModelledWorkspace
from evergrow.workspace.store.creation import hold, make_folder, make_folders
from evergrow.workspace.store.database import Store
from evergrow.workspace.store.layout import Layout, Manifest, read_manifest, read_values
from evergrow.workspace.store.migrations import check_newest, migrate

__all__ = ["Workspace"]


class Workspace(ModelledWorkspace):
    """A folder that is the whole state: examples, images, embeddings and the model.

    Made by :meth:`create` and :meth:`open`. Every change is on disk before its method returns.
    Methods may be called from several threads: changes take turns, reading waits for nothing.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from evergrow.workspace import Lesson, Workspace
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Workspace.create(f"{folder}/things", features=None) as workspace:
    ...         taught = workspace.teach([Lesson(np.ones(3), "cup"), Lesson(np.zeros(3), "pen")])
    ...         print([one.event for one in taught])
    ...         print(workspace.rename("cup", "mug").summary)
    ...         print([(one.name, one.n_examples) for one in workspace.classes().items])
    [1, 2]
    'cup' is 'mug' now
    [('mug', 1), ('pen', 1)]
    """

    def __init__(
        self, layout: Layout, store: Store, manifest: Manifest, lock: HeldLock | None
    ) -> None:
        super().__init__(layout, store, manifest)
        self._lock = lock

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        features: str | os.PathLike[str] | Embedder | None = "efficientnet-lite0",
        n_features: int | None = None,
        forest: bool = False,
        false_alarms: float = 0.1,
        max_classes: int = 10_000,
        seed: int = 0,
        rows_per_shard: int = 1024,
    ) -> Self:
        """Make a workspace in a folder that is new or empty, and open it.

        Parameters
        ----------
        path : path
            The folder.
        features : str, path, Embedder or None
            What makes embeddings of images: the name of a network, an ONNX file or an embedder.
            None to take embeddings only, made elsewhere.
        n_features : int, default=None
            Length of an embedding where ``features`` is None; None if the first example says it.
        forest : bool, default=False
            Also learn a forest, which is better with many examples per class and slower.
        false_alarms : float, default=0.1
            Share of known things that may be called unknown. More finds more that is new.
        max_classes : int, default=10000
            Classes there may be at a time; answers take longer with more.
        seed : int, default=0
            Of all that is drawn at random.
        rows_per_shard : int, default=1024
            Embeddings in each file of them; fewer waste less disk, more make fewer files.

        Returns
        -------
        workspace : Workspace
            Open for writing.
        """
        layout = Layout(Path(path))
        options = {
            "forest": forest,
            "false_alarms": false_alarms,
            "max_classes": max_classes,
            "seed": seed,
            "rows_per_shard": rows_per_shard,
        }
        make_folder(layout, features=features, n_features=n_features, options=options)
        return cls.open(path)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, read_only: bool = False) -> Self:
        """Open the workspace in a folder.

        Parameters
        ----------
        path : path
            The folder.
        read_only : bool, default=False
            Change nothing, not even to mend what a crash left; works while another process writes.

        Returns
        -------
        workspace : Workspace
            To be closed, or used in a ``with`` statement.
        """
        layout = Layout(Path(path))
        # A folder that is no workspace gets no lock, and is told apart from one that is in use.
        read_values(layout)
        lock = None if read_only else hold(layout)
        store = None
        try:
            store = Store(layout.database, read_only=read_only)
            (check_newest if read_only else migrate)(layout, store)
            workspace = cls(layout, store, _settled(read_manifest(layout), store), lock)
            workspace._finish_opening()
        except BaseException:
            if store is not None:
                store.close()
            if lock is not None:
                lock.release()
            raise
        return workspace

    @property
    def read_only(self) -> bool:
        """Whether nothing can be changed through this object."""
        return self._lock is None

    def close(self) -> None:
        """Let go of the folder; what was acknowledged is on disk already."""
        with self._writing:
            self._store.close()
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _finish_opening(self) -> None:
        if self._lock is not None:
            make_folders(self._layout)
            self._finish_erasing()
            # A crash may have come between an erasing and this.
            drop_before(self._layout.models, self._history.usable_from)
            drop_foreign(self._layout.models, self._history.nonce)
        self._open_follower()


def _settled(manifest: Manifest, store: Store) -> Manifest:
    """The manifest, less what a first lesson wrote that was interrupted before it counted."""
    if manifest.n_features_given:
        return manifest
    with store.reading() as connection:
        taught = connection.execute("SELECT 1 FROM example LIMIT 1").fetchone()
    return manifest if taught else manifest.with_n_features(None)
