"""Read access to a workspace: lists, single records, files and predictions."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from evergrow.estimators.novelty import RejectingClassifier
from evergrow.export.formats import format_of, save_as
from evergrow.export.onnx.weights import Weights
from evergrow.foundation.files import atomic_write
from evergrow.vision.classifier import ImageClassifier
from evergrow.vision.embedding import Embedder
from evergrow.vision.images.label_table import format_rows
from evergrow.workspace.archive.archive import ExportedPictures, PictureArchive
from evergrow.workspace.changes.idempotency import find_answer
from evergrow.workspace.changes.undo import newest_step
from evergrow.workspace.check.backup import Backup, back_up
from evergrow.workspace.model.assessment import Assessment, sign_of
from evergrow.workspace.model.projection import ModelProjection
from evergrow.workspace.model.review import Reviewer
from evergrow.workspace.model.snapshot import Snapshot
from evergrow.workspace.names import normalise_name
from evergrow.workspace.records import (
    Answer,
    Block,
    Change,
    ClassEntry,
    Confused,
    Event,
    Example,
    NoSuchExampleError,
    Page,
    Request,
    Review,
    Status,
    TeachResult,
    UndoStep,
)
from evergrow.workspace.store.creation import folder_size
from evergrow.workspace.store.database import translate_disk_errors
from evergrow.workspace.store.event_log import newest_event_number
from evergrow.workspace.store.files import sha256_of
from evergrow.workspace.store.layout import Manifest
from evergrow.workspace.store.queries import (
    class_entry,
    class_existed,
    classes_page,
    events_page,
    example_by_id,
    examples_page,
    has_image,
    totals,
)
from evergrow.workspace.store.store import Store

_EXAMPLES_AT_ONCE = 500
# Columns of the table of labels.
LABEL_COLUMNS = ("id", "label", "fine", "fine_kind", "image", "media_type", "at", "actor")
_EVENTS_AT_ONCE = 500


class WorkspaceReader:
    """The methods of a workspace that change nothing; they never wait for a writer.

    Attributes
    ----------
    layout : Layout
        Paths of its files.
    log : EventLog
        The event log, which replays what happened.
    read_only : bool
        Whether nothing can be changed through this object.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.layout = store.layout
        self.log = store.log
        self.read_only = store.database.read_only
        self._model = ModelProjection(store.layout.models, store.manifest)
        self._reviewer = Reviewer(store, self._model)
        # The newest event, and what an undo would take back then.
        self._undoable: tuple[int, UndoStep] | None = None

    @property
    def version(self) -> int:
        """Number of the newest change."""
        return self._store.log.version

    @property
    def manifest(self) -> Manifest:
        """Settings of the workspace."""
        return self._store.manifest

    @property
    def n_features(self) -> int | None:
        """Length of an embedding; None before the first example."""
        return self._store.n_features

    @property
    def embedder(self) -> Embedder | None:
        """The embedder of images; None if the workspace takes embeddings."""
        return self._store.embedder

    @property
    def snapshot(self) -> Snapshot:
        """The current model, immutable."""
        return self._model.snapshot

    @property
    def assessment(self) -> Assessment | None:
        """The last assessment; None if there was none yet."""
        return self._model.assessment

    def predict(self, X: npt.ArrayLike, *, model: str = "rls", top: int = 5) -> list[Answer]:
        """Predict the class of each embedding, with probabilities and novelty.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The embeddings.
        model : {"rls", "forest"}, default="rls"
            The model: least squares, or the forest if the workspace has one.
        top : int, default=5
            Number of the most probable classes to return.

        Returns
        -------
        answers : list of Answer
            One per embedding.
        """
        return self._model.snapshot.predict(X, model=model, top=top)

    def classes(self, *, after: str | None = None, limit: int = 100) -> Page[ClassEntry]:
        """List classes in order of creation.

        Parameters
        ----------
        after : str, default=None
            The ``next`` of the previous page; None for the first page.
        limit : int, default=100
            Maximum number of classes on a page.

        Returns
        -------
        page : Page of ClassEntry
            Classes, and the cursor of the next page.
        """
        with self._store.database.read_transaction() as connection:
            page = classes_page(connection, after=after, limit=limit)
        return Page(tuple(self._assessed(one) for one in page.items), page.next)

    def class_named(self, name: str) -> ClassEntry:
        """Return the class of this name.

        Parameters
        ----------
        name : str
            The name.

        Returns
        -------
        entry : ClassEntry
            The class, and how well it is recognised.

        Raises
        ------
        NoSuchClassError
            If there is no class of this name.
        """
        with self._store.database.read_transaction() as connection:
            return self._assessed(class_entry(connection, normalise_name(name)))

    def had_class(self, name: str) -> bool:
        """Tell whether a class has this name, or had it when it was forgotten."""
        with self._store.database.read_transaction() as connection:
            return class_existed(connection, normalise_name(name))

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
        """List examples in order of id.

        Parameters
        ----------
        label : str, default=None
            Only examples of this class.
        fine : str, default=None
            Only examples with this fine class, given or guessed.
        guessed : bool, default=None
            Only examples with (True) or without (False) a guessed fine class.
        after : str, default=None
            The ``next`` of the previous page; None for the first page.
        limit : int, default=100
            Maximum number of examples on a page.
        newest_first : bool, default=False
            Whether to reverse the order.

        Returns
        -------
        page : Page of Example
            Examples, and the cursor of the next page.
        """
        with self._store.database.read_transaction() as connection:
            return examples_page(
                connection,
                label=None if label is None else normalise_name(label),
                fine=None if fine is None else normalise_name(fine, "fine"),
                guessed=guessed,
                after=after,
                limit=limit,
                newest_first=newest_first,
            )

    def example(self, example_id: int) -> Example:
        """Return the example with this id.

        Parameters
        ----------
        example_id : int
            The id.

        Returns
        -------
        example : Example
            The example.

        Raises
        ------
        NoSuchExampleError
            If it does not exist or was removed.
        """
        with self._store.database.read_transaction() as connection:
            return example_by_id(connection, example_id)

    def embedding(self, example_id: int) -> npt.NDArray[np.float32]:
        """Return the embedding of an example, of shape (n_features,)."""
        self.example(example_id)
        return self._store.log.rows(np.array([example_id], dtype=np.int64)).reshape(-1)

    def picture(self, example_id: int) -> bytes:
        """Return the content of the image file of an example, as it was taught."""
        return self._store.images.content(self._image_of(example_id))

    def has_picture(self, content: bytes) -> bool:
        """Whether a class has an example whose image file has this content."""
        with self._store.database.read_transaction() as connection:
            return has_image(connection, sha256_of(content))

    def thumbnail(self, example_id: int) -> bytes | None:
        """Return the thumbnail of an example, a small JPEG; None if there is none.

        Thumbnails may be missing after a full disk or a power failure. The service creates them
        again.
        """
        return self._store.images.thumbnail(self._image_of(example_id))

    def write_thumbnail(self, example_id: int, content: bytes) -> None:
        """Store a thumbnail that was made again; ignored if the workspace is read-only.

        :meta private:
        """
        store = self._store
        if not store.database.read_only:
            store.images.write_thumbnail(self._image_of(example_id), content)

    def events(
        self, *, after: str | None = None, limit: int = 100, newest_first: bool = True
    ) -> Page[Event]:
        """List the audit log: every change, with its actor and time.

        Parameters
        ----------
        after : str, default=None
            The ``next`` of the previous page; None for the first page.
        limit : int, default=100
            Maximum number of changes on a page.
        newest_first : bool, default=True
            Whether the newest event comes first.

        Returns
        -------
        page : Page of Event
            Events, and the cursor of the next page.
        """
        with self._store.database.read_transaction() as connection:
            return events_page(connection, after=after, limit=limit, newest_first=newest_first)

    def undoable(self) -> UndoStep:
        """Return what :meth:`undo` would take back; its ``event`` is None if there is nothing."""
        with self._store.database.read_transaction() as connection:
            event = newest_event_number(connection)
            known = self._undoable
            # A step may have many changes, and clients ask after each of them.
            if known is None or known[0] != event:
                self._undoable = known = (event, newest_step(connection))
            return known[1]

    def stored_answer(
        self, request: Request, digest: str | None = None
    ) -> TeachResult | Change | None:
        """The answer to an earlier request with the same key; None if the key is new.

        A ``KeyReusedError`` is raised if the key was used with another digest.

        :meta private:
        """
        with self._store.database.read_transaction() as connection:
            return find_answer(connection, request, digest or request.digest or "")

    def review(self, limit: int = 100) -> list[Review]:
        """List the examples that a person should check.

        Examples with a guessed fine class come first: uncertain ones that differ from each other.
        Then come labels that are probably wrong, the most suspicious first, as in
        :func:`evergrow.label_issues`. A label that was confirmed with :meth:`relabel` is not listed
        again.

        Parameters
        ----------
        limit : int, default=100
            Maximum number of examples.

        Returns
        -------
        reviews : list of Review
            The reason for each example, and a suggestion.
        """
        return self._reviewer.review(limit)

    def confusion(self) -> list[Confused]:
        """Return the entries of the confusion matrix of the last assessment."""
        return self._reviewer.confusion()

    def confused_examples(self, label: str, answer: str | None, limit: int = 100) -> list[Example]:
        """List examples of a class that were mistaken for another class in the last assessment.

        Parameters
        ----------
        label : str
            The class of the examples.
        answer : str or None
            The predicted class. None lists the examples that were answered "unknown".
        limit : int, default=100
            Maximum number of examples.

        Returns
        -------
        examples : list of Example
            The examples.
        """
        predicted = None if answer is None else normalise_name(answer)
        return self._reviewer.confused_examples(normalise_name(label), predicted, limit)

    def status(self) -> Status:
        """Return the state of the workspace: its size, its model and how good it is."""
        store, assessment = self._store, self.assessment
        with store.database.read_transaction() as connection:
            event = newest_event_number(connection)
            n_examples, n_classes, n_bytes = totals(connection)
        for folder in (store.layout.embeddings, store.layout.models):
            n_bytes += folder_size(folder)
        return Status(
            id=store.manifest.id,
            name=store.layout.folder.resolve().name,
            event=event,
            n_examples=n_examples,
            n_classes=n_classes,
            n_features=store.n_features,
            blocks=self._blocks(),
            takes_images=store.manifest.features is not None,
            forest=store.manifest.forest,
            forest_lacks=self._model.forest_lacks,
            false_alarms=store.manifest.false_alarms,
            measured_false_alarms=None if assessment is None else assessment.measured_false_alarms,
            accuracy=None if assessment is None else assessment.accuracy,
            assessed_event=None if assessment is None else assessment.event,
            snapshot_event=self._model.snapshot_event,
            n_bytes=n_bytes,
        )

    def to_estimator(self) -> RejectingClassifier | ImageClassifier:
        """Return the model as an estimator that does not need the workspace.

        It predicts as the workspace does, including "unknown", and can be trained further. It does
        not predict fine classes.

        Returns
        -------
        estimator : ImageClassifier or RejectingClassifier
            A classifier of images if the workspace takes images, otherwise of embeddings.
        """
        return self._model.export(self._store.log, self._store.embedder)

    def export(self, path: str | os.PathLike[str], *, weights: Weights | None = None) -> None:
        """Write the model to a file; it is the one that :meth:`to_estimator` returns.

        Parameters
        ----------
        path : path
            File to write. An existing file is replaced. The extension chooses the format:

            - ``.evergrow``: a model file for :func:`evergrow.load`;
            - ``.onnx``: for other software (:func:`evergrow.export.save_onnx`);
            - ``.html``: a page (:func:`evergrow.export.save_html`).
        weights : {"float32", "float16", "int8"}, default=None
            How the weights of the network are stored. None is the default of the format.
        """
        format_of(path, weights=weights)
        estimator = self.to_estimator()
        with translate_disk_errors(Path(path).parent):
            save_as(estimator, path, weights=weights)

    def export_pictures(
        self, path: str | os.PathLike[str], *, coco: bool = False
    ) -> ExportedPictures:
        """Write all labelled pictures to class folders, with ``labels.csv``.

        Each picture is the file that was taught, named by the id of its example. The table has the
        path, class, fine class, time, id and SHA-256 of each example. If the name of a class cannot
        be the name of a folder, the folder has another name, and the table has the right one.
        ``evergrow learn``, ``evergrow fit`` and :func:`evergrow.vision.find_labelled` read the
        table. Examples that are taught during the export are not included.

        Parameters
        ----------
        path : path
            A zip file if it ends in ``.zip``; an existing file is replaced. Otherwise a new or
            empty folder.
        coco : bool, default=False
            Whether to write ``annotations.json`` too, with the labels in COCO format. Each picture
            has one annotation, whose box is the whole picture.

        Returns
        -------
        exported : ExportedPictures
            How many pictures and classes were written, and how many examples have no picture.
        """
        with self.picture_archive(coco=coco) as archive:
            if Path(path).suffix.lower() == ".zip":
                archive.write_zip(path)
            else:
                archive.write_folder(path)
            return archive.contents

    def picture_archive(self, *, coco: bool = False) -> PictureArchive:
        """All labelled pictures as of now, to be sent or written; close it afterwards.

        :meta private:
        """
        return PictureArchive(self._store, coco=coco)

    def export_labels(self, path: str | os.PathLike[str]) -> None:
        """Write the labels of all examples to a CSV file, without the pictures.

        Parameters
        ----------
        path : path
            File to write. An existing file is replaced.
        """
        with translate_disk_errors(Path(path).parent), atomic_write(path) as file:
            for chunk in self.label_lines():
                file.write(chunk)

    def label_lines(self) -> Iterator[bytes]:
        """The labels of all examples as CSV, some hundred examples at a time.

        :meta private:
        """
        yield format_rows([LABEL_COLUMNS]).encode()
        after: str | None = None
        while True:
            page = self.examples(after=after, limit=_EXAMPLES_AT_ONCE)
            rows = [[getattr(one, name) for name in LABEL_COLUMNS] for one in page.items]
            yield format_rows(rows).encode()
            after = page.next
            if after is None:
                return

    def export_audit_log(self, path: str | os.PathLike[str]) -> None:
        """Write the audit log to a file, one JSON object per line, the oldest event first.

        Parameters
        ----------
        path : path
            File to write. An existing file is replaced.
        """
        with translate_disk_errors(Path(path).parent), atomic_write(path) as file:
            for chunk in self.audit_log():
                file.write(chunk)

    def audit_log(self) -> Iterator[bytes]:
        """The audit log up to now in JSON lines, some hundred events at a time.

        :meta private:
        """
        after: str | None = None
        newest = self.version
        while True:
            page = self.events(after=after, limit=_EVENTS_AT_ONCE, newest_first=False)
            events = [event for event in page.items if event.seq <= newest]
            yield b"".join(json.dumps(asdict(event)).encode() + b"\n" for event in events)
            after = page.next
            if after is None or len(events) < len(page.items):
                return

    def backup(self, target: str | os.PathLike[str]) -> Backup:
        """Copy the workspace to a new or empty folder, even while another process writes to it.

        Parameters
        ----------
        target : path
            Folder of the copy, which becomes a complete workspace.

        Returns
        -------
        backup : Backup
            What was copied.
        """
        return back_up(self._store, target)

    def _blocks(self) -> tuple[Block, ...]:
        used = self.snapshot.trained.hyperparameters.used_blocks
        return tuple(
            Block(name, width, number in used)
            for number, (name, width) in enumerate(self._store.manifest.blocks)
        )

    def _image_of(self, example_id: int) -> str:
        image = self.example(example_id).image
        if image is None:
            raise NoSuchExampleError(f"example {example_id} has no image")
        return image

    def _assessed(self, entry: ClassEntry) -> ClassEntry:
        """A class with its results in the last assessment."""
        assessment = self.assessment
        found = None if assessment is None else assessment.recognised.get(entry.id)
        if assessment is None or found is None:
            return replace(entry, sign=sign_of(entry.n_examples, None))
        sign = sign_of(entry.n_examples, found.accuracy)
        n_unknown = assessment.n_unknown(entry.id)
        entry = replace(entry, sign=sign, accuracy=found.accuracy, n_unknown=n_unknown)
        name = self.snapshot.names.get(found.confused_with or 0)
        if name is None:
            return entry
        return replace(entry, confused_with=name, confused_share=found.n_confused / found.n)
