"""The model of a workspace: follows its facts, and answers from immutable snapshots."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.novelty import RejectingClassifier
from evergrow.vision.classifier import ImageClassifier
from evergrow.workspace.events import (
    Added,
    Block,
    Chosen,
    Erased,
    Fact,
    ForestLearnt,
    History,
    Moved,
    Named,
    Removed,
    SplitSet,
    fine_changes,
)
from evergrow.workspace.model.assessment import Assessment, choice_of
from evergrow.workspace.model.evaluation import SAMPLE, assess, is_due
from evergrow.workspace.model.export import HELD_OUT, exported
from evergrow.workspace.model.fine_classes import MOST_GIVEN, FineModel
from evergrow.workspace.model.forest import Beside
from evergrow.workspace.model.least_squares import Learnt
from evergrow.workspace.model.snapshot import Snapshot
from evergrow.workspace.model.snapshot_files import (
    Saved,
    drop_before,
    newest_event,
    read_snapshots,
    write_snapshot,
)

__all__ = ["Model", "Settings"]

Ids = npt.NDArray[np.int64]

# A snapshot is worth writing after this many events: as many are replayed in well under a second.
_SNAPSHOT_EVERY = 1000


@dataclass(frozen=True)
class Settings:
    """What a workspace's manifest asks of its model.

    Attributes
    ----------
    folder : Path
        Where snapshots lie.
    seed : int
        Of all that is random.
    false_alarms : float
        Share of known things that may be called unknown.
    forest : bool
        Whether a forest learns beside.
    """

    folder: Path
    seed: int = 0
    false_alarms: float = 0.1
    forest: bool = False


@dataclass(frozen=True, eq=False)
class _State:
    """All that the model knows, as of one event; replaced whole."""

    event: int
    learnt: Learnt
    assessment: Assessment | None
    beside: Beside | None
    names: Mapping[int, str] = field(default_factory=dict)
    splits: Mapping[int, FineModel] = field(default_factory=dict)
    # Event at which each class was split, of those that are; with or without examples.
    split_at: Mapping[int, int] = field(default_factory=dict)


class Model:
    """Follows a workspace; every thread may read, the writing thread alone changes it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._state = self._nothing()
        self.snapshot = Snapshot.of(0, Learnt(), {})
        # A forest that learnt aside, for the state it began with; taken over when its event comes.
        self._prepared: tuple[Beside, int, Beside] | None = None
        self._saving = threading.Lock()

    @property
    def learnt(self) -> Learnt:
        """What least squares knows."""
        return self._state.learnt

    @property
    def assessment(self) -> Assessment | None:
        """The last assessment that was adopted."""
        return self._state.assessment

    @property
    def forest_lacks(self) -> int | None:
        """Examples that the forest has not learnt; None without one."""
        beside = self._state.beside
        return None if beside is None else beside.lacks

    @property
    def snapshot_event(self) -> int | None:
        """Event of the newest snapshot on disk."""
        return newest_event(self.settings.folder)

    def opened(self, history: History) -> None:
        """Catch up: from the newest whole snapshot, else from the first event on."""
        counts = {
            entry.id: entry.n_examples
            for entry in history.names().values()
            if entry.parent is None and entry.n_examples
        }
        folder, version = self.settings.folder, history.version
        seed, first = self.settings.seed, history.usable_from
        found = read_snapshots(folder, history.nonce, seed=seed, first=first, last=version)
        for saved in found:
            try:
                state = self._replayed(saved, history)
            except ValueError:
                # It is whole, but not of these events.
                continue
            if state.learnt.class_counts == counts:
                self._publish(self._settled(state, history))
                return
        nothing = self._nothing()
        saved = Saved(0, nothing.learnt, nothing.assessment, nothing.beside, {})
        self._publish(self._settled(self._replayed(saved, history), history))

    def applied(self, facts: Sequence[Fact], history: History) -> None:
        """Take over what was just committed."""
        state = self._followed(self._state, facts, history)
        state = replace(state, event=max(state.event, history.version))
        self._publish(self._settled(state, history, fine_changes(facts)))
        if any(isinstance(fact, Erased) for fact in facts):
            drop_before(self.settings.folder, history.usable_from)

    def assess(self, history: History, *, force: bool = False) -> Assessment | None:
        """Assess what is known now; None if that is not due. Takes seconds, and no lock."""
        state = self._state
        if not state.learnt.n_examples:
            return None
        if not (force or is_due(state.assessment, state.learnt.class_counts)):
            return None
        return assess(
            state.learnt,
            _as_of(state.event, history.examples(limit=SAMPLE), history),
            event=state.event,
            false_alarms=self.settings.false_alarms,
            seed=self.settings.seed,
        )

    def prepare_forest(self, history: History, *, force: bool = False) -> int | None:
        """Let the forest learn aside; how many changes it learnt, None if that is not due."""
        beside = self._state.beside
        if beside is None or not beside.n_waiting or not (force or beside.is_due):
            return None
        n_changes = beside.n_waiting
        self._prepared = (beside, n_changes, beside.updated(n_changes, history.rows))
        return n_changes

    def guesses(self, class_id: int, history: History) -> tuple[Ids, Ids, npt.NDArray[np.float64]]:
        """Examples of a split class without a given fine name; the guess for each, how surely."""
        model = self._state.splits.get(class_id)
        others = history.examples(class_id=class_id, given=False)
        if model is None or not len(others):
            nothing = np.zeros(0, dtype=np.int64)
            return nothing, nothing, np.zeros(0)
        return others.ids, *model.guess(others.rows)

    def stale_guesses(self, history: History) -> list[int]:
        """Split classes whose guesses are older than what is known of them."""
        state = self._state
        return [
            class_id
            for class_id in sorted(state.splits)
            if history.guessed_at(class_id)
            < max(history.changed_at(class_id), state.split_at[class_id])
        ]

    def export(
        self, history: History, embedder: Any | None = None
    ) -> RejectingClassifier | ImageClassifier:
        """The model as an estimator over class names, which needs no workspace."""
        state = self._state
        return exported(
            state.learnt,
            state.names,
            None if state.assessment is None else state.assessment.limits,
            _as_of(state.event, history.examples(limit=HELD_OUT), history),
            false_alarms=self.settings.false_alarms,
            embedder=embedder,
        )

    def save(self, history: History, *, force: bool = True) -> bool:
        """Write a snapshot, if it is due or forced; tell whether it was."""
        state = self._state
        with self._saving:
            last = self.snapshot_event or 0
            if state.event <= last or not (force or state.event >= last + _SNAPSHOT_EVERY):
                return False
            saved = Saved(state.event, state.learnt, state.assessment, state.beside, state.split_at)
            write_snapshot(self.settings.folder, saved, history.nonce(state.event))
            # Something may have been erased while it was written.
            drop_before(self.settings.folder, history.usable_from)
        return True

    def _nothing(self) -> _State:
        beside = Beside(self.settings.seed) if self.settings.forest else None
        return _State(0, Learnt(), None, beside)

    def _replayed(self, saved: Saved, history: History) -> _State:
        state = _State(
            saved.event,
            saved.learnt,
            saved.assessment,
            saved.beside if self.settings.forest else None,
            _names(history),
            split_at=saved.split_at,
        )
        version = history.version
        state = self._followed(state, history.facts(saved.event), history)
        return replace(state, event=max(state.event, version))

    def _followed(self, state: _State, facts: Iterable[Fact], history: History) -> _State:
        for fact in facts:
            state = replace(self._after(state, fact, history), event=fact.event)
        return state

    def _after(self, state: _State, fact: Fact, history: History) -> _State:
        """The state after one fact."""
        if isinstance(fact, (Added, Removed, Moved)):
            beside = None if state.beside is None else state.beside.noted(fact)
            return replace(state, learnt=state.learnt.after(fact), beside=beside)
        if isinstance(fact, Chosen):
            whole = Assessment.is_whole(fact.body)
            return replace(
                state,
                learnt=state.learnt.choose(choice_of(fact.body)),
                assessment=Assessment.from_json(fact.body) if whole else None,
            )
        if isinstance(fact, (ForestLearnt, Erased)):
            return replace(state, beside=self._grown(state.beside, fact, history))
        if isinstance(fact, SplitSet):
            others = {k: event for k, event in state.split_at.items() if k != fact.class_id}
            now = {fact.class_id: fact.event} if fact.split else {}
            return replace(state, split_at={**others, **now})
        if isinstance(fact, Named):
            return replace(state, names={**state.names, fact.class_id: fact.name})
        return state

    def _grown(
        self, beside: Beside | None, fact: ForestLearnt | Erased, history: History
    ) -> Beside | None:
        if beside is None:
            return None
        if isinstance(fact, Erased):
            return beside.anew(fact)
        n_changes = int(fact.body["n_changes"])
        prepared, self._prepared = self._prepared, None
        if prepared is not None:
            base, n_learnt, grown = prepared
            if n_learnt == n_changes and beside.goes_on_from(base, n_changes):
                # What came while it learnt waits on.
                return replace(grown, waiting=beside._after(n_changes))
        return beside.updated(n_changes, history.rows)

    def _settled(
        self, state: _State, history: History, stale: frozenset[int] | None = None
    ) -> _State:
        """With all that is read off the examples; of the split classes, ``stale`` ones anew."""
        learnt = state.learnt
        if learnt.is_worn:
            everything = history.examples()
            learnt = Learnt().add(everything.rows, everything.class_ids).choose(learnt.choice)
        names = state.names
        if not names.keys() >= set(learnt.class_ids.tolist()):
            names = _names(history)
        kept = {k: m for k, m in state.splits.items() if stale is not None and k not in stale}
        splits = {}
        for class_id in sorted(state.split_at):
            model = kept.get(class_id) or _fine_model(class_id, history)
            if model is not None:
                splits[class_id] = model
        fine_ids = {fine_id for model in splits.values() for fine_id in model.fine_ids.tolist()}
        if not names.keys() >= fine_ids:
            names = _names(history)
        return replace(state, learnt=learnt, names=names, splits=splits)

    def _publish(self, state: _State) -> None:
        assessment = state.assessment
        snapshot = Snapshot.of(
            state.event,
            state.learnt,
            state.names,
            limits=None if assessment is None else assessment.limits,
            splits=state.splits,
            forest=None if state.beside is None else state.beside.forest,
        )
        self._state = state
        # One assignment: readers see the old or the new one whole.
        self.snapshot = snapshot


def _names(history: History) -> dict[int, str]:
    return {class_id: entry.name for class_id, entry in history.names().items()}


def _fine_model(class_id: int, history: History) -> FineModel | None:
    """What tells the fine classes of a class apart; None where fewer than two are given."""
    given = history.examples(class_id=class_id, given=True, limit=MOST_GIVEN)
    if len(np.unique(given.fine_ids)) < 2:
        return None
    return FineModel.of(given.rows, given.fine_ids)


def _as_of(event: int, sample: Block, history: History) -> Block:
    """Those examples of a sample that are what they were at an event."""
    changed: set[int] = set()
    for fact in history.facts(event):
        if isinstance(fact, (Added, Removed, Moved)):
            changed.update(fact.block.ids.tolist())
    kept = np.array([example not in changed for example in sample.ids.tolist()], dtype=bool)
    return Block(sample.ids[kept], sample.rows[kept], sample.class_ids[kept], sample.fine_ids[kept])
