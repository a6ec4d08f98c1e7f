"""The facade: one class over the store, the changes and the model of a workspace."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Self

from evergrow.foundation.progress import progress_bar
from evergrow.vision.embedding import Embedder
from evergrow.vision.images import LabelledImages
from evergrow.workspace.changes.classes import merge, rename, split, unsplit
from evergrow.workspace.changes.examples import finish_erasure, forget, relabel, remove
from evergrow.workspace.changes.image_batches import StrPath, find_labelled_paths, read_batches
from evergrow.workspace.changes.lessons import lesson_examples, read_lessons
from evergrow.workspace.changes.undo import undo
from evergrow.workspace.changes.writer import ChangeWriter
from evergrow.workspace.check.database import Finding
from evergrow.workspace.check.integrity import check_store
from evergrow.workspace.model.assessment import Assessment
from evergrow.workspace.model.snapshot_files import delete_before, delete_foreign
from evergrow.workspace.reader import WorkspaceReader
from evergrow.workspace.records import (
    Change,
    NewExample,
    Request,
    TaughtImages,
    TeachResult,
)
from evergrow.workspace.store.creation import create_folder, create_subfolders
from evergrow.workspace.store.database import translate_disk_errors
from evergrow.workspace.store.layout import Layout
from evergrow.workspace.store.ownership import Ownership
from evergrow.workspace.store.store import Store, open_store
from evergrow.workspace.store.trust import report_damage, verify_references

_COMMAND_LINE = Request()


class Workspace(WorkspaceReader):
    """A folder that holds examples, images, embeddings and the model trained on them.

    Use :meth:`create` or :meth:`open`. Every change is on disk before its method returns. Methods
    are thread-safe: changes wait for each other, and reading never waits.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from evergrow.workspace import NewExample, Workspace
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Workspace.create(f"{folder}/things", features=None) as workspace:
    ...         examples = [NewExample(np.ones(3), "cup"), NewExample(np.zeros(3), "pen")]
    ...         print([result.event for result in workspace.teach(examples)])
    ...         print(workspace.rename("cup", "mug").summary)
    ...         print([(one.name, one.n_examples) for one in workspace.classes().items])
    [1, 2]
    'cup' is 'mug' now
    [('mug', 1), ('pen', 1)]
    """

    def __init__(self, store: Store, lock: Ownership | None) -> None:
        super().__init__(store)
        self._lock = lock
        self._writer = ChangeWriter(store, self._model)
        # One slow task of the model at a time.
        self._upkeep = threading.Lock()

    @classmethod
    def create(
        cls,
        path: StrPath,
        *,
        features: StrPath | Embedder | None = "auto",
        n_features: int | None = None,
        forest: bool = False,
        false_alarms: float = 0.1,
        max_classes: int = 10_000,
        seed: int = 0,
        rows_per_shard: int = 1024,
    ) -> Self:
        """Create a workspace in a new or empty folder, and open it.

        Parameters
        ----------
        path : path
            The folder.
        features : str, path, Embedder or None
            The embedder: a known network, an ONNX file or an ``Embedder``; "auto" as in
            ``ImageClassifier``. None for a workspace that takes embeddings instead of images.
        n_features : int, default=None
            Length of an embedding if ``features`` is None; by default the first example fixes it.
        forest : bool, default=False
            Also train a forest, which is better with many examples per class, and slower.
        false_alarms : float, default=0.1
            Share of known examples that may be called unknown; a higher share detects more unknown
            things.
        max_classes : int, default=10000
            Most classes at a time; predictions take longer with more.
        seed : int, default=0
            Seed of all random choices.
        rows_per_shard : int, default=1024
            Embeddings per file: fewer waste less disk space, more make fewer files.

        Returns
        -------
        workspace : Workspace
            Open for writing.
        """
        options = {
            "forest": forest,
            "false_alarms": false_alarms,
            "max_classes": max_classes,
            "seed": seed,
            "rows_per_shard": rows_per_shard,
        }
        create_folder(Layout(path), features=features, n_features=n_features, options=options)
        return cls.open(path)

    @classmethod
    def open(cls, path: StrPath, *, read_only: bool = False) -> Self:
        """Open the workspace in a folder.

        Parameters
        ----------
        path : path
            The folder.
        read_only : bool, default=False
            Change nothing, not even to recover from a crash; works while another process writes.

        Returns
        -------
        workspace : Workspace
            To be closed, or used in a ``with`` statement.
        """
        store, lock = open_store(Layout(path), read_only=read_only)
        try:
            with store.database.read_transaction() as connection:
                verify_references(connection, store.layout.database)
            with report_damage(store.layout.folder):
                workspace = cls(store, lock)
                workspace._recover()
        except BaseException:
            store.database.close()
            if lock is not None:
                lock.release()
            raise
        return workspace

    def close(self) -> None:
        """Close the database and release the lock; every change is on disk already."""
        with self._writer.lock:
            self._store.database.close()
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def teach(self, examples: Sequence[NewExample]) -> list[TeachResult]:
        """Teach examples: all of them, or none if one is not valid.

        An image that the class has already is not learnt twice, so teaching can be repeated. Its
        file is restored if it was lost, and it gets the fine class unless one was given before. An
        image that another class has stays there (``known_as``), unless the example says ``move``.

        Parameters
        ----------
        examples : sequence of NewExample
            What to teach, in this order.

        Returns
        -------
        results : list of TeachResult
            One per example; all of them are on disk.

        Raises
        ------
        evergrow.WorkspaceError
            If an example is not valid; the message has its number if there are several.
        WorkspaceFullError
            If the disk is full; nothing was taught.
        WorkspaceLostError
            If the folder was moved or replaced while it was open; nothing was taught.
        """
        return self._writer.teach(examples)

    def teach_images(
        self,
        images: StrPath | Iterable[StrPath] | LabelledImages,
        label: str | None = None,
        *,
        fine: str | None = None,
        fine_folders: bool = False,
        move: bool = False,
        on_error: str = "raise",
        n_jobs: int | None = None,
        verbose: int = 0,
        request: Request = _COMMAND_LINE,
        on_batch: Callable[[TaughtImages], None] | None = None,
        guard: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> TaughtImages:
        """Teach image files, in batches that are on disk one after the other, and one undo.

        Parameters
        ----------
        images : path, list of paths, or LabelledImages
            A folder with one sub-folder per class, another source that
            :func:`~evergrow.vision.find_labelled` reads, or what it found; with a ``label``, files
            and folders of that class.
        label, fine : str, default=None
            Class and fine class of all images; None to take the class from the sub-folders.
        fine_folders : bool, default=False
            Whether folders within a class folder are fine classes.
        move : bool, default=False
            Whether images that another class has already move to the new class; otherwise they
            stay, and their results say where (``known_as``).
        on_error : {"raise", "skip"}, default="raise"
            Raise an ``ImageError`` that names all images that cannot be read, or leave them out.
            Batches before the first of them stay taught.
        n_jobs : int, default=None
            Threads that decode and embed; None for one, -1 for one per processor.
        verbose : int, default=0
            Show a progress bar if positive.
        request : Request
            Who teaches.
        on_batch : callable, default=None
            Called with the result of each batch.
        guard : callable, default=contextlib.nullcontext
            Context manager around each batch and its ``on_batch``; may delay Ctrl-C.

        Returns
        -------
        taught : TaughtImages
            A result per image, and the images that were left out.
        """
        if request.action is None:
            # All of them are undone at once.
            request = replace(request, action=secrets.token_hex(8))
        labelled = find_labelled_paths(images, label, fine, fine_folders, on_error)
        batches = read_batches(self._store, labelled, on_error, n_jobs, request, move)
        taught = TaughtImages()
        with progress_bar("Learning", len(labelled), verbose) as show:
            for batch in batches:
                with guard():
                    results = self.teach(batch.examples) if batch.examples else []
                    taught.results.extend(results)
                    taught.problems.extend(batch.problems)
                    if on_batch is not None:
                        on_batch(TaughtImages(results, batch.problems))
                if show is not None:
                    show(len(taught.results) + len(taught.problems))
        return taught

    def teach_lessons(
        self,
        path: StrPath,
        *,
        move: bool = False,
        on_error: str = "raise",
        n_jobs: int | None = None,
        request: Request = _COMMAND_LINE,
    ) -> TaughtImages:
        """Teach what an exported page was taught: all lessons of its file, or none.

        A lesson is learnt once, however often its file comes: the answer to a repeated one says
        ``replayed``. All new ones are one step of undo.

        Parameters
        ----------
        path : path
            The file of lessons, as the page saves it.
        move : bool, default=False
            Whether pictures that another class has already move to the class of the lesson.
        on_error : {"raise", "skip"}, default="raise"
            Whether a picture that cannot be read is an error or is left out. Browsers show some
            that are not read here, such as photographs whose last rows are missing.
        n_jobs : int, default=None
            Threads that decode and embed; None for one, -1 for one per processor.
        request : Request
            Who teaches.

        Returns
        -------
        taught : TaughtImages
            One result per lesson, and the pictures that were left out.

        Raises
        ------
        evergrow.WorkspaceError
            If the file is not a valid file of lessons; nothing was taught.
        evergrow.ImageError
            If a picture cannot be read and ``on_error`` is "raise"; nothing was taught.
        """
        lessons = read_lessons(path)
        if request.action is None:
            request = replace(request, action=secrets.token_hex(8))
        found = lesson_examples(self._store, lessons, on_error, n_jobs, request, move)
        results = self.teach(found.examples) if found.examples else []
        return TaughtImages(results, found.problems)

    def relabel(
        self,
        example_id: int | Sequence[int],
        *,
        label: str | None = None,
        fine: str | None = None,
        clear_fine: bool = False,
        request: Request = _COMMAND_LINE,
    ) -> Change:
        """Correct the class or fine class of examples, or confirm their class.

        Parameters
        ----------
        example_id : int or sequence of int
            Up to 500 ids, which are one change.
        label : str, default=None
            Their class, known or new. The class that they have already is confirmed: they are no
            longer listed for review.
        fine, clear_fine : str and bool
            Set the fine class, or remove it; another class removes it too.
        """
        return self._writer.change(request, relabel, _ids(example_id), label, fine, clear_fine)

    def remove(
        self, example_id: int | Sequence[int], *, request: Request = _COMMAND_LINE
    ) -> Change:
        """Remove one example, or up to 500 at once; this can be undone."""
        return self._writer.change(request, remove, _ids(example_id))

    def forget(
        self, label: str, *, erase: bool = False, request: Request = _COMMAND_LINE
    ) -> Change:
        """Forget a class with all its examples.

        Parameters
        ----------
        label : str
            The class; to erase, also one that was forgotten before.
        erase : bool, default=False
            Also delete its images and embeddings for good, with those of all examples that were
            removed before. Neither this nor any earlier change can be undone afterwards.
        """
        if erase:
            # Snapshots contain what is erased and go anyway; deleting them may free enough space.
            models = self.layout.models
            return self._writer.erase(
                request, label, lambda: delete_before(models, self.version + 1)
            )
        return self._writer.change(request, forget, label, False)

    def rename(
        self, label: str, to: str, *, within: str | None = None, request: Request = _COMMAND_LINE
    ) -> Change:
        """Rename a class, or a fine class of the class that ``within`` names."""
        return self._writer.change(request, rename, label, to, within)

    def merge(self, source: str, into: str, *, request: Request = _COMMAND_LINE) -> Change:
        """Move all examples of one class to another; the first class is gone then."""
        return self._writer.change(request, merge, source, into)

    def split(self, label: str, *, request: Request = _COMMAND_LINE) -> Change:
        """Distinguish the fine classes of a class; examples without a fine class get a guess."""
        with self._writer.lock:
            change = self._writer.change(request, split, label)
            class_id = self.class_named(label).id
            # Already done if this is the stored answer to a repeated request.
            if self.log.guessed_at(class_id) < change.event:
                self._guess(class_id)
            return change

    def unsplit(self, label: str, *, request: Request = _COMMAND_LINE) -> Change:
        """Stop distinguishing the fine classes of a class; given fine classes stay."""
        return self._writer.change(request, unsplit, label)

    def undo(
        self,
        *,
        event: int | None = None,
        since: int | None = None,
        count: int = 1,
        request: Request = _COMMAND_LINE,
    ) -> Change:
        """Undo the newest step that was not undone yet, or several.

        A step is one change, or all changes of one :attr:`~evergrow.workspace.Request.action`.

        Parameters
        ----------
        event : int, default=None
            Only if the newest change is this event, to avoid undoing a change of someone else.
        since, count : int
            Undo this event and all later changes, or this many steps: all of them or none.
        """
        return self._writer.change(request, undo, event, since, count)

    def assess(self, *, force: bool = False) -> Assessment | None:
        """Measure how well the classes are recognised, and select hyperparameters by it.

        It takes seconds with many examples; teaching and predicting go on meanwhile. Returns None
        if there are no examples, or if little changed and it is not forced.
        """
        with self._upkeep:
            found = self._model.assess(self.log, force=force)
            if found is not None:
                self._writer.record("choose", found.to_event(), found.to_json())
            return found

    def update_forest(self, *, force: bool = False) -> bool:
        """Train the forest on new examples, if due or forced; return whether it was trained."""
        with self._upkeep:
            n_changes = self._model.prepare_forest(self.log, force=force)
            if n_changes is not None:
                self._writer.record("forest", {"n_changes": n_changes})
            return n_changes is not None

    def update_guesses(self) -> int:
        """Guess fine classes again in split classes that changed; return how many classes."""
        with self._upkeep:
            stale = self._model.stale_guesses(self.log)
            for class_id in stale:
                self._guess(class_id)
            return len(stale)

    def maintain(self) -> None:
        """Do all that is due: assess, guess fine classes, train the forest, save a snapshot."""
        self.assess()
        self.update_guesses()
        self.update_forest()
        self.save_snapshot(force=False)

    def save_snapshot(self, *, force: bool = True) -> bool:
        """Save the model to disk, if due or forced, so that opening replays fewer events.

        Returns whether it was saved; a snapshot of the newest event is never written twice.
        """
        with translate_disk_errors(self.layout.folder):
            self.prove()
            return self._model.save(self.log, force=force)

    def prove(self) -> None:
        """Raise a ``WorkspaceLostError`` if the folder is not the one that was opened any more.

        It was moved, removed or replaced, so that its path names other files than those in use.
        """
        self._store.database.prove()

    def check(self, *, repair: bool = False) -> list[Finding]:
        """Verify every hash and count; with ``repair`` also repair them and delete leftovers.

        Returns the problems that were found, repaired or not.
        """
        return check_store(self._store, self._writer, repair=repair)

    def _guess(self, class_id: int) -> None:
        """Guess the fine classes within a split class."""
        # No example may move between the guess and its record.
        with self._writer.lock:
            self._writer.record_guesses(class_id, self._model.guesses(class_id, self.log))

    def _recover(self) -> None:
        """Finish what a crash interrupted, and build the model."""
        if self._lock is not None:
            create_subfolders(self.layout)
            finish_erasure(self._store)
            delete_before(self.layout.models, self.log.last_erasure)
            delete_foreign(self.layout.models, self.log.nonce)
        self._writer.publisher.rebuild()


def _ids(example_id: int | Sequence[int]) -> tuple[int, ...]:
    return tuple(example_id) if isinstance(example_id, Sequence) else (example_id,)
