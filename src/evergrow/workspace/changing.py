"""The half of a workspace that changes it: each change is on disk before its method returns."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from evergrow.workspace.clock import Clock
from evergrow.workspace.editing import Editor
from evergrow.workspace.following import Chosen, Fact, Follower, ForestLearnt, Guessed, Idle
from evergrow.workspace.history import version_of
from evergrow.workspace.keys import digest_of, known_answer, remember
from evergrow.workspace.layout import Layout, Manifest, write_manifest
from evergrow.workspace.listing import event_by_number
from evergrow.workspace.problems import KeyReusedError, WorkspaceFullError
from evergrow.workspace.reading import ReadableWorkspace
from evergrow.workspace.records import Change, Lesson, Request, Taught
from evergrow.workspace.room import telling_problems
from evergrow.workspace.shards import Shards
from evergrow.workspace.store import Store
from evergrow.workspace.teaching import Plan, Planner, next_number
from evergrow.workspace.undoing import undo

__all__ = ["ChangeableWorkspace"]

_COMMAND_LINE = Request()
# Facts that an event of its own stands for, by its kind.
_RECORDED: dict[str, type[Chosen | ForestLearnt]] = {
    "choose": Chosen,
    "forest": ForestLearnt,
}


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
            self._tell(plan.first_event - 1, plan.facts())
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
            The class.
        erase : bool, default=False
            Also delete its images and embeddings for good. This cannot be undone, and nothing
            that came before it can be undone any more.
        request : Request
            Who asks.

        Returns
        -------
        change : Change
            What became of it.
        """
        parts = ("forget", label, erase)
        with self._writing:
            change = self._change(request, parts, lambda editor: editor.forget(label, erase=erase))
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

    def undo(self, *, event: int | None = None, request: Request = _COMMAND_LINE) -> Change:
        """Take back the newest change that was not taken back yet.

        Parameters
        ----------
        event : int, default=None
            Only if that change is this event, so that nobody takes back another's by accident.
        request : Request
            Who asks.

        Returns
        -------
        change : Change
            What became of it.
        """
        return self._change(request, ("undo", event), lambda editor: undo(editor, event))

    def record(self, kind: str, body: Mapping[str, Any], *, actor: str = "model") -> int:
        """Write down what the model chose ("choose") or learnt beside ("forest")."""
        with self._writing:
            with self._store.transaction() as connection:
                seq = self._editor(connection, actor).record(kind, body)
            self._tell(seq - 1, [_RECORDED[kind](seq, body)])
            return seq

    def record_guesses(
        self, class_id: int, guesses: Sequence[tuple[int, int, float]], *, actor: str = "model"
    ) -> int:
        """Replace the guesses within a split class: example, fine class and probability of each."""
        with self._writing:
            with self._store.transaction() as connection:
                seq = self._editor(connection, actor).guess(class_id, guesses)
            self._tell(seq - 1, [Guessed(seq, class_id)])
            return seq

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
            facts = list(self._history.facts_by(self._store.writer, before, erased=True))
            self._tell(before, [*editor.named, *facts])
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

    def _take_back(self, plan: Plan, kept: Sequence[str]) -> None:
        """Give back the room of what was not taught; were it left, nothing would be wrong."""
        with contextlib.suppress(OSError):
            for sha256 in kept:
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
        writer = self._store.writer
        found = writer.execute(
            "SELECT id, image FROM example WHERE erased = 1 AND row_sha256 != ''"
        ).fetchall()
        if not found or self._shards is None:
            return
        with telling_problems(self._layout.folder):
            self._shards.erase(np.array([number - 1 for number, _ in found], dtype=np.int64))
            unused = [
                (image,)
                for image in sorted({image for _, image in found if image is not None})
                if not writer.execute(
                    "SELECT 1 FROM example WHERE image = ? AND class_id IS NOT NULL", (image,)
                ).fetchone()
            ]
            for (image,) in unused:
                self._images.drop(image)
            with self._store.transaction() as connection:
                connection.execute(
                    "UPDATE example SET row_sha256 = '', image = NULL"
                    " WHERE erased = 1 AND row_sha256 != ''"
                )
                # Examples that were taken out of other classes cannot come back any more.
                connection.executemany("UPDATE example SET image = NULL WHERE image = ?", unused)
                connection.executemany("DELETE FROM picture WHERE sha256 = ?", unused)

    def _tell(self, before: int, facts: Sequence[Fact]) -> None:
        """Hand facts to the follower that were committed after an event.

        One that failed, or missed something because a thread was interrupted, begins anew.
        """
        if not facts:
            # There are changes that nothing follows, such as that a label was confirmed.
            if self._told == before:
                self._told = version_of(self._store.writer)
            return
        told, self._told = self._told, None
        try:
            if told == before:
                self._follower.applied(facts, self._history)
                self._told = facts[-1].event
        except Exception:  # noqa: BLE001
            # The change is on disk and must be acknowledged, whatever the follower met.
            told = None
        if told != before:
            self._open_follower()

    def _open_follower(self) -> None:
        self._told = None
        self._follower.opened(self._history)
        self._told = self._history.version


def _numbers(example_id: int | Sequence[int]) -> Sequence[int]:
    return tuple(example_id) if isinstance(example_id, Sequence) else (example_id,)
