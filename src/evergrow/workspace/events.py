"""Domain events: what a projection, such as the model, learns about a workspace.

The workspace is event-sourced. A change is committed to the event log first; then the domain events
that follow from it are published to a projection. On opening, the same events can be replayed from
the log. A projection that applied them live and one that replays them must reach the same state. An
undo has no event of its own: it is published as the events that lead back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from evergrow.workspace.store.event_log import EventLog

Ids: TypeAlias = npt.NDArray[np.int64]
Rows: TypeAlias = npt.NDArray[np.float32]

# Means "no fine class was given" in arrays of ids; real ids start at 1.
NO_FINE = 0


@dataclass(frozen=True, eq=False)
class ExampleBlock:
    """Examples as arrays, all of one length n.

    Attributes
    ----------
    ids : ndarray of shape (n,)
        Ids of the examples.
    rows : ndarray of shape (n, n_features)
        Their embeddings.
    class_ids : ndarray of shape (n,)
        Their coarse classes.
    fine_ids : ndarray of shape (n,)
        Their given fine classes, ``NO_FINE`` where none was given. Guesses are not included.
    """

    ids: Ids
    rows: Rows
    class_ids: Ids
    fine_ids: Ids

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, eq=False)
class ExamplesAdded:
    """Examples were added, by teaching or because their removal was undone."""

    seq: int
    block: ExampleBlock


@dataclass(frozen=True, eq=False)
class ExamplesRemoved:
    """Examples were removed; the block holds the classes that they had."""

    seq: int
    block: ExampleBlock


@dataclass(frozen=True, eq=False)
class ExamplesMoved:
    """Examples changed their coarse class, their given fine class, or both."""

    seq: int
    # With the classes before the change.
    block: ExampleBlock
    to_class_ids: Ids
    to_fine_ids: Ids


@dataclass(frozen=True, eq=False)
class ExamplesErased:
    """Examples were erased: a projection must drop everything that still contains them.

    A replay contains only the newest of these events and hides all examples erased by then. What
    was learnt from them cannot be reproduced, so a projection starts again from what is left. If
    all pictures were embedded again, the old embeddings of all examples are what was erased.
    """

    seq: int
    # The remaining examples, in order of id.
    ids: Ids
    class_ids: Ids


@dataclass(frozen=True)
class SplitChanged:
    """A class was split into its fine classes, or a split was reversed.

    It stays in force while the class has no examples, because their removal can be undone.
    """

    seq: int
    class_id: int
    split: bool


@dataclass(frozen=True)
class ClassNamed:
    """A coarse or fine class was created, restored or renamed.

    Not part of a replay: :meth:`EventLog.classes` has the current names.
    """

    seq: int
    class_id: int
    name: str
    # The coarse class of a fine class.
    parent: int | None


@dataclass(frozen=True)
class AssessmentAdopted:
    """The hyperparameters of an assessment were adopted.

    The newest event carries the whole assessment, earlier ones only the hyperparameters.
    """

    seq: int
    body: Mapping[str, Any]


@dataclass(frozen=True)
class PicturesEmbedded:
    """All pictures were embedded again; what was selected for the old embeddings is void.

    Every event of the log has the new embeddings since.
    """

    seq: int


@dataclass(frozen=True)
class ForestTrained:
    """The forest was trained on pending changes; the body is what was recorded."""

    seq: int
    body: Mapping[str, Any]


@dataclass(frozen=True)
class FineNamesGuessed:
    """Fine names within a split class were guessed. Not part of a replay."""

    seq: int
    class_id: int


DomainEvent: TypeAlias = (
    ExamplesAdded
    | ExamplesRemoved
    | ExamplesMoved
    | ExamplesErased
    | SplitChanged
    | ClassNamed
    | AssessmentAdopted
    | PicturesEmbedded
    | ForestTrained
    | FineNamesGuessed
)


def changed_fine_classes(events: Sequence[DomainEvent]) -> frozenset[int]:
    """Ids of the classes whose given fine classes may differ after these events."""
    changed: set[int] = set()
    for event in events:
        if isinstance(event, (ExamplesAdded, ExamplesRemoved, ExamplesMoved)):
            given = event.block.fine_ids != NO_FINE
            if isinstance(event, ExamplesMoved):
                given |= event.to_fine_ids != NO_FINE
                changed.update(event.to_class_ids[given].tolist())
            changed.update(event.block.class_ids[given].tolist())
        elif isinstance(event, SplitChanged):
            changed.add(event.class_id)
    return frozenset(changed)


@dataclass(frozen=True)
class ClassInfo:
    """A coarse or fine class that has examples."""

    id: int
    name: str
    parent: int | None
    split: bool
    # Of a fine class only the examples that were given its name, not guesses.
    n_examples: int


class Projection(Protocol):
    """State derived from the event log; called by one thread at a time, the one that writes."""

    def rebuild(self, log: EventLog) -> None:
        """Replay the log from the start or from a snapshot.

        Called on opening, and again if ``apply`` failed; then all earlier state is discarded.
        """

    def apply(self, events: Sequence[DomainEvent], log: EventLog) -> None:
        """Apply events that were just committed."""


class NullProjection:
    """A projection that ignores all events."""

    def rebuild(self, log: EventLog) -> None:
        """Do nothing."""

    def apply(self, events: Sequence[DomainEvent], log: EventLog) -> None:
        """Do nothing."""
