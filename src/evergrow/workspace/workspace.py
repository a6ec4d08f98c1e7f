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
    """A folder with every example you taught and a model that is always up to date.

    Create it with :meth:`create` or open it with :meth:`open`. Every change is on disk before its
    method returns. Methods are thread-safe: changes wait for each other, and reading never waits.
    See :doc:`/workspace`.

    Attributes
    ----------
    layout : Layout
        Paths of the files in the folder.
    read_only : bool
        Whether the workspace was opened for reading only.

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
            The embedder: the name of a network, the path of an ONNX file, an
            :class:`~evergrow.Embedder`, or ``"auto"`` as in :class:`~evergrow.ImageClassifier`.
            None for a workspace that takes embeddings instead of images.
        n_features : int, default=None
            Length of an embedding, if `features` is None. With None, the first example sets it.
        forest : bool, default=False
            Whether to train a forest too. It is slower, and better with many examples per class.
        false_alarms : float, default=0.1
            Share of examples of known classes that may be answered "unknown". A higher share
            detects more unknown things.
        max_classes : int, default=10000
            Maximum number of classes. With more classes, predictions take longer.
        seed : int, default=0
            Seed of all random choices.
        rows_per_shard : int, default=1024
            Number of embeddings per file. Fewer waste less disk space, more make fewer files.

        Returns
        -------
        workspace : Workspace
            The workspace, open for writing.
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
            Whether to open it only for reading. This also works while another process writes.

        Returns
        -------
        workspace : Workspace
            The open workspace. Close it, or use it in a ``with`` statement.
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
        """Teach examples: all of them, or none if an error is raised.

        You can teach the same images again: an image that the class already has is not learnt
        twice. An image that another class already has stays there, unless the example has
        ``move=True``.

        Parameters
        ----------
        examples : sequence of NewExample
            The examples, in the order in which they are taught.

        Returns
        -------
        results : list of TeachResult
            One per example. All of them are on disk.

        Raises
        ------
        evergrow.WorkspaceError
            If an example is not valid. The message says which one.
        WorkspaceFullError
            If the disk is full.
        WorkspaceLostError
            If the folder was moved or replaced while it was open.
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
        """Teach image files.

        The images are taught in batches. If the call is interrupted, finished batches stay taught.
        One undo takes back all of them.

        Parameters
        ----------
        images : path, list of paths, or LabelledImages
            Without `label`, a folder with one subfolder per class, or another source that
            :func:`~evergrow.vision.find_labelled` reads, or its result. With `label`, files and
            folders of that class.
        label : str, default=None
            The class of all images. None takes the classes from `images`.
        fine : str, default=None
            The fine class of all images.
        fine_folders : bool, default=False
            Whether folders within a class folder are fine classes.
        move : bool, default=False
            What to do with images that another class already has: True moves them to the new class,
            False leaves them there.
        on_error : {"raise", "skip"}, default="raise"
            What to do with images that cannot be read: raise an ``ImageError`` that names all of
            them, or skip them.
        n_jobs : int, default=None
            Number of threads that decode and embed: None is 1, -1 uses all processors.
        verbose : int, default=0
            Show a progress bar if positive.
        request : Request
            Who teaches.
        on_batch : callable, default=None
            Called with the result of each batch.
        guard : callable, default=contextlib.nullcontext
            Context manager around each batch and its `on_batch`, for example to delay Ctrl-C.

        Returns
        -------
        taught : TaughtImages
            A result per image, and the images that were skipped.
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
        """Teach what an exported page learnt: all lessons of its file, or none.

        You can teach the same file again: a lesson that is already known is not learnt twice. One
        undo takes back all new lessons.

        Parameters
        ----------
        path : path
            The file of lessons that the page saved.
        move : bool, default=False
            What to do with pictures that another class already has: True moves them to the class of
            the lesson, False leaves them there.
        on_error : {"raise", "skip"}, default="raise"
            What to do with pictures that cannot be read: raise an error, or skip them. Browsers
            show some pictures that cannot be read here, such as photographs without their last
            rows.
        n_jobs : int, default=None
            Number of threads that decode and embed: None is 1, -1 uses all processors.
        request : Request
            Who teaches.

        Returns
        -------
        taught : TaughtImages
            One result per lesson, and the pictures that were skipped.

        Raises
        ------
        evergrow.WorkspaceError
            If the file is not a valid file of lessons. Nothing was taught.
        evergrow.ImageError
            If a picture cannot be read and `on_error` is "raise". Nothing was taught.
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
            Id of an example, or up to 500 ids, which are changed and undone together.
        label : str, default=None
            The new class, known or new. Pass the current class to confirm it; the examples are then
            no longer listed for review.
        fine : str, default=None
            The new fine class. A change of the class removes it.
        clear_fine : bool, default=False
            Whether to remove the fine class.
        request : Request
            Who makes the change.

        Returns
        -------
        change : Change
            The change that was made.
        """
        return self._writer.change(request, relabel, _ids(example_id), label, fine, clear_fine)

    def remove(
        self, example_id: int | Sequence[int], *, request: Request = _COMMAND_LINE
    ) -> Change:
        """Remove examples; :meth:`undo` brings them back.

        Parameters
        ----------
        example_id : int or sequence of int
            Id of an example, or up to 500 ids, which are removed together.
        request : Request
            Who makes the change.

        Returns
        -------
        change : Change
            The change that was made.
        """
        return self._writer.change(request, remove, _ids(example_id))

    def forget(
        self, label: str, *, erase: bool = False, request: Request = _COMMAND_LINE
    ) -> Change:
        """Forget a class with all its examples.

        Parameters
        ----------
        label : str
            The class. With `erase`, it may have been forgotten before.
        erase : bool, default=False
            Whether to delete its images and embeddings permanently, and those of all examples that
            were removed before. Neither this nor any earlier change can be undone then.
        request : Request
            Who makes the change.

        Returns
        -------
        change : Change
            The change that was made.
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
        """Rename a class or a fine class.

        Parameters
        ----------
        label : str
            The class, or the fine class.
        to : str
            The new name.
        within : str, default=None
            The class of a fine class. None renames a class.
        request : Request
            Who makes the change.

        Returns
        -------
        change : Change
            The change that was made.
        """
        return self._writer.change(request, rename, label, to, within)

    def merge(self, source: str, into: str, *, request: Request = _COMMAND_LINE) -> Change:
        """Merge a class into another one.

        Parameters
        ----------
        source : str
            The class to merge; it no longer exists afterwards.
        into : str
            The class that gets its examples.
        request : Request
            Who makes the change.

        Returns
        -------
        change : Change
            The change that was made.
        """
        return self._writer.change(request, merge, source, into)

    def split(self, label: str, *, request: Request = _COMMAND_LINE) -> Change:
        """Start to predict the fine classes of a class.

        Parameters
        ----------
        label : str
            The class. Examples without a fine class get a guess.
        request : Request
            Who makes the change.

        Returns
        -------
        change : Change
            The change that was made.
        """
        with self._writer.lock:
            change = self._writer.change(request, split, label)
            class_id = self.class_named(label).id
            # Already done if this is the stored answer to a repeated request.
            if self.log.guessed_at(class_id) < change.event:
                self._guess(class_id)
            return change

    def unsplit(self, label: str, *, request: Request = _COMMAND_LINE) -> Change:
        """Stop predicting the fine classes of a class; examples keep those they were given.

        Parameters
        ----------
        label : str
            The class.
        request : Request
            Who makes the change.

        Returns
        -------
        change : Change
            The change that was made.
        """
        return self._writer.change(request, unsplit, label)

    def undo(
        self,
        *,
        event: int | None = None,
        since: int | None = None,
        count: int = 1,
        request: Request = _COMMAND_LINE,
    ) -> Change:
        """Undo the newest step that is not undone yet, or several steps.

        A step is one change, or all changes of one action, such as teaching a folder.

        Parameters
        ----------
        event : int, default=None
            Number of the newest change that you know of. If there is a newer one, nothing is undone
            and an error is raised.
        since : int, default=None
            Undo the change with this number and all later ones.
        count : int, default=1
            Number of steps to undo: all of them or none.
        request : Request
            Who makes the change.

        Returns
        -------
        change : Change
            The change that was made.
        """
        return self._writer.change(request, undo, event, since, count)

    def assess(self, *, force: bool = False) -> Assessment | None:
        """Measure how well the classes are recognised, and select hyperparameters.

        With many examples this takes seconds. Other threads can teach and predict meanwhile.

        Parameters
        ----------
        force : bool, default=False
            Whether to measure even if little has changed since the last time.

        Returns
        -------
        assessment : object or None
            The measurement. None if there are no examples, or if it was not due.
        """
        with self._upkeep:
            found = self._model.assess(self.log, force=force)
            if found is not None:
                self._writer.record("choose", found.to_event(), found.to_json())
            return found

    def update_forest(self, *, force: bool = False) -> bool:
        """Train the forest on new examples, if there are enough of them.

        Parameters
        ----------
        force : bool, default=False
            Whether to train even if there are only a few new examples.

        Returns
        -------
        trained : bool
            Whether the forest was trained.
        """
        with self._upkeep:
            n_changes = self._model.prepare_forest(self.log, force=force)
            if n_changes is not None:
                self._writer.record("forest", {"n_changes": n_changes})
            return n_changes is not None

    def update_guesses(self) -> int:
        """Guess missing fine classes again in split classes that have changed.

        Returns
        -------
        n_classes : int
            Number of classes that were guessed again.
        """
        with self._upkeep:
            stale = self._model.stale_guesses(self.log)
            for class_id in stale:
                self._guess(class_id)
            return len(stale)

    def maintain(self) -> None:
        """Assess the model, guess fine classes, train the forest and save a snapshot, if due."""
        self.assess()
        self.update_guesses()
        self.update_forest()
        self.save_snapshot(force=False)

    def save_snapshot(self, *, force: bool = True) -> bool:
        """Save the model to disk, so that the workspace opens faster.

        Parameters
        ----------
        force : bool, default=True
            Whether to save even if only few changes were made since the last snapshot.

        Returns
        -------
        saved : bool
            Whether a snapshot was written. There is at most one for each state.
        """
        with translate_disk_errors(self.layout.folder):
            self.prove()
            return self._model.save(self.log, force=force)

    def prove(self) -> None:
        """Raise a ``WorkspaceLostError`` if the folder is not the one that was opened any more.

        It was moved, removed or replaced, so that its path names other files than those in use.

        :meta private:
        """
        self._store.database.prove()

    def check(self, *, repair: bool = False) -> list[Finding]:
        """Verify every hash and count of the workspace.

        Parameters
        ----------
        repair : bool, default=False
            Whether to repair what can be repaired, and delete files that are not needed.

        Returns
        -------
        findings : list of evergrow.workspace.Finding
            The problems that were found, repaired or not.
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
