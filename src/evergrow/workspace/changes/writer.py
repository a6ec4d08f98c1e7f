"""The half of a workspace that changes it: each change is on disk before its method returns."""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from evergrow.workspace.changes.edits import Editor
from evergrow.workspace.changes.erasure import finish_erasing
from evergrow.workspace.changes.idempotency import digest_of, known_answer, remember
from evergrow.workspace.changes.teach import Plan, Planner, next_number
from evergrow.workspace.changes.undo import undo
from evergrow.workspace.errors import KeyReusedError, WorkspaceFullError
from evergrow.workspace.events import Fact, Follower, Idle
from evergrow.workspace.model.snapshot_files import drop_before
from evergrow.workspace.reader import ReadableWorkspace
from evergrow.workspace.records import Change, Lesson, Request, Taught
from evergrow.workspace.store.clock import Clock
from evergrow.workspace.store.database import Store
from evergrow.workspace.store.disk_errors import telling_problems
from evergrow.workspace.store.event_log import version_of
from evergrow.workspace.store.layout import Layout, Manifest, write_manifest
from evergrow.workspace.store.queries import event_by_number
from evergrow.workspace.store.vectors import Shards

__all__ = ["ChangeableWorkspace"]

_log = logging.getLogger("evergrow.workspace")
_COMMAND_LINE = Request()


class ChangeableWorkspace(ReadableWorkspace):
    """What can be changed in a workspace, from any thread; changes take turns.

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
        super().__init__(layout, store, manifest)
        self._writing = threading.RLock()
        self._follower: Follower = Idle()
        # The newest event that the follower has heard of; None if it must begin anew.
        self._told: int | None = self._history.version
        with store.reading() as connection:
            newest = event_by_number(connection, version_of(connection))
        self._clock = Clock("" if newest is None else newest.at)

    def teach(self, lessons: Sequence[Lesson]) -> list[Taught]:
        """Teach examples: all of them or, if one cannot be taught, none.

        An image that the class has already is not learnt twice, so that teaching can be repeated.
        Its file is put back if it was lost, and it takes the finer name of the lesson unless it
        was given one before.

        Parameters
        ----------
        lessons : sequence of Lesson
            What to teach, in this order.

        Returns
        -------
        taught : list of Taught
            One answer per lesson, when all of them are on disk.

        Raises
        ------
        evergrow.WorkspaceError
            If a lesson is wrong, with its number if there are several.
        WorkspaceFullError
            If the disk is full; nothing was taught.
        """
        with self._writing:
            planner = Planner(
                self._store.writer,
                at=self._clock(),
                n_features=self.n_features,
                max_classes=self._manifest.max_classes,
            )
            with telling_problems(self._layout.folder):
                plan = planner.plan(lessons)
                self._write(plan)
            self._tell(plan.first_event - 1, self._facts_of(plan))
            return plan.answers

    def relabel(
        self,
        example_id: int | Sequence[int],
        *,
        label: str | None = None,
        fine: str | None = None,
        clear_fine: bool = False,
        request: Request = _COMMAND_LINE,
    ) -> Change:
        """Correct examples: their class, their fine name, or both; or confirm what they are.

        Parameters
        ----------
        example_id : int or sequence of int
            Number of the example, or numbers of up to 500: they are one change, undone at once.
        label : str, default=None
            Its class, known or new; None to leave it. The class that it has is confirmed: the
            model's doubts about it are no longer listed for review.
        fine : str, default=None
            Its fine name; None to leave it, or to have none in another class.
        clear_fine : bool, default=False
            Take its fine name away.
        request : Request
            Who asks.

        Returns
        -------
        change : Change
            What became of it.
        """
        numbers = _numbers(example_id)
        parts = ("relabel", *numbers, label, fine, clear_fine)
        return self._change(
            request,
            parts,
            lambda editor: editor.relabel(numbers, label=label, fine=fine, clear_fine=clear_fine),
        )

    def remove(
        self, example_id: int | Sequence[int], *, request: Request = _COMMAND_LINE
    ) -> Change:
        """Take one example out, or up to 500 at once; undoing brings them back."""
        numbers = _numbers(example_id)
        return self._change(request, ("remove", *numbers), lambda editor: editor.remove(numbers))

    def forget(
        self, label: str, *, erase: bool = False, request: Request = _COMMAND_LINE
    ) -> Change:
        """Forget a class with all its examples.

        Parameters
        ----------
        label : str
            The class; to erase also one that was forgotten before.
        erase : bool, default=False
            Also delete its images and embeddings for good, with those of all examples that were
            taken out before, of whatever class: this cannot be undone, and nothing that came
            before it can be undone any more.
        request : Request
            Who asks.

        Returns
        -------
        change : Change
            What became of it.
        """
        parts = ("forget", label, erase)

        def make(editor: Editor) -> Change:
            return editor.forget(label, erase=erase)

        with self._writing:
            try:
                change = self._change(request, parts, make)
            except WorkspaceFullError:
                if not erase:
                    raise
                # Snapshots hold what is to be erased and go anyway; this may be room enough.
                drop_before(self._layout.models, self.version + 1)
                change = self._change(request, parts, make)
            if erase:
                # It is forgotten; what a full disk keeps from being noted is done on opening.
                with contextlib.suppress(WorkspaceFullError):
                    self._finish_erasing()
            return change

    def rename(
        self, label: str, to: str, *, within: str | None = None, request: Request = _COMMAND_LINE
    ) -> Change:
        """Give a class another name, or a fine class within the class that ``within`` names."""
        parts = ("rename", label, to, within)
        return self._change(request, parts, lambda editor: editor.rename(label, to, within=within))

    def merge(self, source: str, into: str, *, request: Request = _COMMAND_LINE) -> Change:
        """Give all examples of one class to another; the first is gone then."""
        parts = ("merge", source, into)
        return self._change(request, parts, lambda editor: editor.merge(source, into))

    def split(self, label: str, *, request: Request = _COMMAND_LINE) -> Change:
        """Tell the fine classes within a class apart; some examples must have fine names."""
        return self._change(request, ("split", label), lambda editor: editor.split(label))

    def unsplit(self, label: str, *, request: Request = _COMMAND_LINE) -> Change:
        """Stop telling fine classes within a class apart; given fine names are kept."""
        return self._change(request, ("unsplit", label), lambda editor: editor.unsplit(label))

    def undo(
        self,
        *,
        event: int | None = None,
        since: int | None = None,
        count: int = 1,
        request: Request = _COMMAND_LINE,
    ) -> Change:
        """Take back the newest change that was not taken back yet, or several.

        Parameters
        ----------
        event : int, default=None
            Only if that change is this event, so that nobody takes back another's by accident.
        since : int, default=None
            Take back this event and all changes after it: all of them or none.
        count : int, default=1
            Take back this many changes: all of them or none.
        request : Request
            Who asks.

        Returns
        -------
        change : Change
            What became of it.
        """
        parts = ("undo", event, since, count)
        return self._change(
            request, parts, lambda editor: undo(editor, event, since=since, count=count)
        )

    def _change(
        self, request: Request, parts: tuple[object, ...], make: Callable[[Editor], Change]
    ) -> Change:
        digest = digest_of(request, *parts)
        with self._writing:
            known = known_answer(self._store.writer, request, digest)
            if isinstance(known, Change):
                return known
            if known is not None:
                raise KeyReusedError(f"the key {request.key!r} came with a lesson before")
            with self._store.transaction() as connection:
                before = version_of(connection)
                editor = self._editor(connection, request.actor)
                change = make(editor)
                remember(connection, request, digest, change)
            facts = self._history.facts_by(self._store.writer, before, erased=True)
            self._tell(before, itertools.chain(editor.named, facts))
            return change

    def _editor(self, connection: Any, actor: str) -> Editor:
        return Editor(connection, self._clock(), actor, self._manifest.max_classes)

    def _write(self, plan: Plan) -> None:
        """Files first, then the transaction that makes them count."""
        kept: list[str] = []
        before = (self._manifest, self._shards)
        try:
            for sha256, picture in plan.pictures.items():
                if self._images.keep(sha256, picture.content):
                    kept.append(sha256)
                    if picture.thumbnail is not None:
                        self._images.keep_thumbnail(sha256, picture.thumbnail)
            if plan.rows:
                shards = self._shards or self._fix_n_features(len(plan.rows[0]))
                shards.write(plan.first_id - 1, plan.matrix())
            if plan.events or plan.to_remember:
                with self._store.transaction() as connection:
                    plan.write(connection)
        except BaseException:
            # An interruption can come when all is done: then nothing is taken back.
            if next_number(self._store.writer, "event") == plan.first_event:
                self._take_back(plan, kept)
                # The first example fixes the length of embeddings only if it is taught.
                self._manifest, self._shards = before
            raise

    def _facts_of(self, plan: Plan) -> Iterable[Fact]:
        if not plan.relabels:
            return plan.facts()
        before = plan.first_event - 1
        facts = self._history.facts_by(self._store.writer, before, erased=True)
        return itertools.chain(plan.book.named(plan.version), facts)

    def _take_back(self, plan: Plan, kept: Sequence[str]) -> None:
        """Give back the room of what was not taught; were it left, nothing would be wrong."""
        with contextlib.suppress(OSError):
            for sha256 in kept:
                # One that was lost and came again is an example's own.
                if not self._store.writer.execute(
                    "SELECT 1 FROM picture WHERE sha256 = ?", (sha256,)
                ).fetchone():
                    self._images.drop(sha256)
            if self._shards is not None:
                self._shards.take_back(plan.first_id - 1, len(plan.rows))

    def _fix_n_features(self, n_features: int) -> Shards:
        manifest = self._manifest.with_n_features(n_features)
        write_manifest(self._layout, manifest)
        # Left by a first lesson of another length that was interrupted.
        for leftover in self._layout.embeddings.glob("*.npy"):
            leftover.unlink()
        self._manifest = manifest
        self._shards = Shards(self._layout.embeddings, manifest.rows_per_shard, n_features)
        return self._shards

    def _finish_erasing(self) -> None:
        """Do to files what was erased in the database; also for a crash in between."""
        if self._shards is not None:
            finish_erasing(self._layout, self._store, self._shards)

    def _tell(self, before: int, facts: Iterable[Fact]) -> None:
        """Hand facts to the follower that were committed after an event.

        One that failed, or missed something because a thread was interrupted, begins anew. The
        change is on disk and must be acknowledged, whatever goes wrong here: should the follower
        not even begin anew, it answers as before and is tried again with the next change.
        """
        told, self._told = self._told, None
        try:
            news = list(facts)
            if not news:
                # There are changes that nothing follows, such as that a label was confirmed.
                self._told = version_of(self._store.writer) if told == before else told
            elif told == before:
                self._follower.applied(news, self._history)
                self._told = news[-1].event
        except Exception:  # noqa: BLE001
            _log.exception("the model could not follow a change and begins anew")
        if self._told is None:
            try:
                self._open_follower()
            except Exception:  # noqa: BLE001
                _log.exception("the model could not be opened anew; the next change tries again")

    def _open_follower(self) -> None:
        self._told = erased = None
        # Rows that another process erases meanwhile were read as nothing: then it begins again.
        while erased != self._history.usable_from:
            with self._history.at_once() as history:
                erased = history.usable_from
                self._follower.opened(history)
                self._told = history.version


def _numbers(example_id: int | Sequence[int]) -> Sequence[int]:
    return tuple(example_id) if isinstance(example_id, Sequence) else (example_id,)
