"""The model as a projection of the event log; predictions come from immutable snapshots."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from evergrow.estimators.novelty import RejectingClassifier
from evergrow.foundation.errors import WorkspaceError
from evergrow.vision.classifier import ImageClassifier
from evergrow.workspace.events import (
    AssessmentAdopted,
    ClassNamed,
    DomainEvent,
    ExampleBlock,
    ExamplesAdded,
    ExamplesErased,
    ExamplesMoved,
    ExamplesRemoved,
    ForestTrained,
    Ids,
    PicturesEmbedded,
    Rows,
    SplitChanged,
    changed_fine_classes,
)
from evergrow.workspace.model.assessment import Assessment, hyperparameters_from
from evergrow.workspace.model.evaluation import SAMPLE, assess, is_due
from evergrow.workspace.model.export import HOLDOUT, export_model
from evergrow.workspace.model.fine_classes import MOST_GIVEN, FineModel
from evergrow.workspace.model.forest import BackgroundForest
from evergrow.workspace.model.least_squares import Hyperparameters, TrainedModel
from evergrow.workspace.model.snapshot import Snapshot
from evergrow.workspace.model.snapshot_files import (
    SavedState,
    delete_before,
    newest_event,
    read_snapshots,
    write_snapshot,
)
from evergrow.workspace.store.event_log import EventLog
from evergrow.workspace.store.layout import Manifest
from evergrow.workspace.store.trust import report_damage

# Events after which a snapshot is due: that many are replayed in well under a second.
_SNAPSHOT_EVERY = 1000


@dataclass(frozen=True, eq=False)
class _State(SavedState):
    """Everything that the model has learnt, as of one event; replaced as a whole."""

    names: Mapping[int, str] = field(default_factory=dict)
    splits: Mapping[int, FineModel] = field(default_factory=dict)


class ModelProjection:
    """Learns from the events of a workspace; any thread may read, only the writer changes it.

    Snapshots are saved in ``folder``; the settings say whether a forest is trained as well.
    """

    def __init__(self, folder: Path, settings: Manifest) -> None:
        self._folder = folder
        self._settings = settings
        self._blocks = settings.block_widths
        self._state = self._initial()
        self.snapshot = Snapshot.of(0, self._state.trained, {})
        # A forest trained in the background: its base, the number of changes, and the result. It is
        # adopted when its event is applied.
        self._prepared: tuple[BackgroundForest, int, BackgroundForest] | None = None
        self._saving = threading.Lock()

    @property
    def assessment(self) -> Assessment | None:
        """The last assessment that was adopted."""
        return self._state.assessment

    @property
    def forest_lacks(self) -> int | None:
        """Number of examples that the forest was not trained on; None without a forest."""
        forest = self._state.forest
        return None if forest is None else forest.n_missing

    @property
    def snapshot_event(self) -> int | None:
        """Event of the newest snapshot on disk."""
        return newest_event(self._folder)

    def rebuild(self, log: EventLog) -> None:
        """Replay the log from the newest usable snapshot, else from the first event."""
        counts = {
            one.id: one.n_examples
            for one in log.classes().values()
            if one.parent is None and one.n_examples
        }
        found = read_snapshots(
            self._folder,
            log.nonce,
            seed=self._settings.seed,
            first=log.last_erasure,
            last=log.version,
        )
        for saved in found:
            try:
                state = self._replay(saved, log)
            except ValueError:
                # It is intact, but does not fit these events.
                continue
            if state.trained.class_counts == counts:
                self._publish(self._complete(state, log))
                return
        with report_damage(self._folder.parent):
            state = self._complete(self._replay(self._initial(), log), log)
        self._publish(state)

    def apply(self, events: Sequence[DomainEvent], log: EventLog) -> None:
        """Apply events that were just committed."""
        state = self._apply_all(self._state, events, log)
        state = replace(state, event=max(state.event, log.version))
        self._publish(self._complete(state, log, changed_fine_classes(events)))
        if any(isinstance(event, ExamplesErased) for event in events):
            delete_before(self._folder, log.last_erasure)

    def assess(self, log: EventLog, *, force: bool = False) -> Assessment | None:
        """Assess the current model; None if that is not due. Takes seconds, and no lock."""
        state = self._state
        if not state.trained.n_examples:
            return None
        if not (force or is_due(state.assessment, state.trained.class_counts)):
            return None
        return assess(
            state.trained,
            _unchanged_since(state.event, log.examples(limit=SAMPLE), log),
            event=state.event,
            false_alarms=self._settings.false_alarms,
            seed=self._settings.seed,
        )

    def prepare_forest(self, log: EventLog, *, force: bool = False) -> int | None:
        """Train the forest in the background; the number of changes, None if it is not due."""
        forest = self._state.forest
        if forest is None or not forest.n_pending or not (force or forest.is_due):
            return None
        n_changes = forest.n_pending
        self._prepared = (forest, n_changes, forest.train(n_changes, self._first_block_of(log)))
        return n_changes

    def guesses(self, class_id: int, log: EventLog) -> list[tuple[int, int, float]]:
        """Guesses within a split class: example, fine class and probability of each."""
        model = self._state.splits.get(class_id)
        others = log.examples(class_id=class_id, given=False)
        if model is None or not len(others):
            return []
        fine_ids, probabilities = model.guess(others.rows)
        return list(
            zip(others.ids.tolist(), fine_ids.tolist(), probabilities.tolist(), strict=True)
        )

    def stale_guesses(self, log: EventLog) -> list[int]:
        """Split classes that changed since their fine classes were guessed."""
        state = self._state
        return [
            class_id
            for class_id in sorted(state.splits)
            if log.guessed_at(class_id) < max(log.changed_at(class_id), state.split_at[class_id])
        ]

    def export(
        self, log: EventLog, embedder: Any | None = None
    ) -> RejectingClassifier | ImageClassifier:
        """The model as an estimator over class names, which needs no workspace."""
        state = self._state
        return export_model(
            state.trained,
            state.names,
            None if state.assessment is None else state.assessment.limits,
            _unchanged_since(state.event, log.examples(limit=HOLDOUT), log),
            false_alarms=self._settings.false_alarms,
            embedder=embedder,
        )

    def save(self, log: EventLog, *, force: bool = True) -> bool:
        """Write a snapshot if it is due or forced; return whether one was written."""
        state = self._state
        with self._saving:
            last = self.snapshot_event or 0
            if state.event <= last or not (force or state.event >= last + _SNAPSHOT_EVERY):
                return False
            write_snapshot(self._folder, state, log.nonce(state.event))
            # Examples may have been erased while it was written.
            delete_before(self._folder, log.last_erasure)
        return True

    def _initial(self) -> _State:
        forest = BackgroundForest(self._settings.seed) if self._settings.forest else None
        return _State(0, TrainedModel(blocks=self._blocks), None, forest, {})

    def _replay(self, saved: SavedState, log: EventLog) -> _State:
        if saved.trained.blocks != self._blocks and saved.trained.n_examples:
            raise WorkspaceError("the snapshot has other blocks of features than the workspace")
        forest = saved.forest if self._settings.forest else None
        state = _State(
            saved.event,
            replace(saved.trained, blocks=self._blocks),
            saved.assessment,
            forest,
            saved.split_at,
            _names(log),
        )
        version = log.version
        state = self._apply_all(state, log.replay(saved.event), log)
        if state.trained.hyperparameters.used_blocks[-1] >= max(1, len(self._blocks)):
            raise WorkspaceError(
                "the log has chosen blocks of features that the workspace does not have: restore "
                "workspace.json from a backup"
            )
        if not state.trained.class_counts.keys() <= _names(log).keys():
            raise WorkspaceError(
                "the log has examples of classes that the workspace does not list: restore a backup"
            )
        return replace(state, event=max(state.event, version))

    def _apply_all(self, state: _State, events: Iterable[DomainEvent], log: EventLog) -> _State:
        for event in events:
            state = replace(self._apply_one(state, event, log), event=event.seq)
        return state

    def _apply_one(self, state: _State, event: DomainEvent, log: EventLog) -> _State:
        """The state after one event."""
        if isinstance(event, (ExamplesAdded, ExamplesRemoved, ExamplesMoved)):
            forest = None if state.forest is None else state.forest.with_change(event)
            return replace(state, trained=state.trained.apply(event), forest=forest)
        if isinstance(event, (AssessmentAdopted, PicturesEmbedded)):
            chosen, assessment = Hyperparameters(), None
            if isinstance(event, AssessmentAdopted):
                is_whole = Assessment.is_whole(event.body)
                chosen = hyperparameters_from(event.body)
                assessment = Assessment.from_json(event.body) if is_whole else None
            trained = state.trained.with_hyperparameters(chosen)
            return replace(state, trained=trained, assessment=assessment)
        if isinstance(event, (ForestTrained, ExamplesErased)):
            return replace(state, forest=self._update_forest(state.forest, event, log))
        if isinstance(event, SplitChanged):
            others = {k: seq for k, seq in state.split_at.items() if k != event.class_id}
            now = {event.class_id: event.seq} if event.split else {}
            return replace(state, split_at={**others, **now})
        if isinstance(event, ClassNamed):
            return replace(state, names={**state.names, event.class_id: event.name})
        return state

    def _update_forest(
        self, forest: BackgroundForest | None, event: ForestTrained | ExamplesErased, log: EventLog
    ) -> BackgroundForest | None:
        if forest is None:
            return None
        if isinstance(event, ExamplesErased):
            return forest.reset(event)
        n_changes = int(event.body["n_changes"])
        prepared, self._prepared = self._prepared, None
        if prepared is not None:
            base, n_trained, result = prepared
            if n_trained == n_changes and forest.continues(base, n_changes):
                # Changes since the training began stay pending.
                return replace(result, pending=forest.pending_after(n_changes))
        return forest.train(n_changes, self._first_block_of(log))

    def _first_block_of(self, log: EventLog) -> Callable[[Ids], Rows]:
        """Reads the first block of embeddings, for models that do not choose among blocks."""
        return lambda ids: self._first_block(log.rows(ids))

    def _first_block(self, rows: Rows) -> Rows:
        return rows[:, : self._blocks[0]] if self._blocks else rows

    def _complete(
        self, state: _State, log: EventLog, stale: frozenset[int] | None = None
    ) -> _State:
        """Add what is read from the examples; fine models are trained again if ``stale``.

        Without ``stale`` all of them are.
        """
        trained = state.trained
        if trained.is_stale:
            current = log.examples()
            chosen = trained.hyperparameters
            trained = TrainedModel(blocks=self._blocks).add(current.rows, current.class_ids)
            trained = trained.with_hyperparameters(chosen)
        names = state.names
        if not names.keys() >= set(trained.class_ids.tolist()):
            names = _names(log)
        fresh = {k: m for k, m in state.splits.items() if stale is not None and k not in stale}
        splits = {}
        for class_id in sorted(state.split_at):
            model = fresh.get(class_id) or self._train_fine_model(class_id, log)
            if model is not None:
                splits[class_id] = model
        fine_ids = {fine_id for model in splits.values() for fine_id in model.fine_ids.tolist()}
        if not names.keys() >= fine_ids:
            names = _names(log)
        return replace(state, trained=trained, names=names, splits=splits)

    def _train_fine_model(self, class_id: int, log: EventLog) -> FineModel | None:
        """The model of the fine classes of a class; None if fewer than two are given."""
        given = log.examples(class_id=class_id, given=True, limit=MOST_GIVEN)
        if len(np.unique(given.fine_ids)) < 2:
            return None
        return FineModel.of(self._first_block(given.rows), given.fine_ids)

    def _publish(self, state: _State) -> None:
        assessment = state.assessment
        snapshot = Snapshot.of(
            state.event,
            state.trained,
            state.names,
            limits=None if assessment is None else assessment.limits,
            splits=state.splits,
            forest=None if state.forest is None else state.forest.forest,
        )
        self._state = state
        # A single assignment: readers see either the old or the new snapshot.
        self.snapshot = snapshot


def _names(log: EventLog) -> dict[int, str]:
    return {class_id: one.name for class_id, one in log.classes().items()}


def _unchanged_since(seq: int, sample: ExampleBlock, log: EventLog) -> ExampleBlock:
    """The examples of a sample that did not change after an event."""
    changed: set[int] = set()
    for event in log.replay(seq):
        if isinstance(event, (ExamplesAdded, ExamplesRemoved, ExamplesMoved)):
            changed.update(event.block.ids.tolist())
    same = np.array([example not in changed for example in sample.ids.tolist()], dtype=bool)
    return ExampleBlock(
        sample.ids[same], sample.rows[same], sample.class_ids[same], sample.fine_ids[same]
    )
