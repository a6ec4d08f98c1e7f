"""The seam between the durable half of a workspace and whatever follows it, such as its model.

The durable half commits a change first and then hands over what became true, as facts. On opening,
the same facts can be had again in the recorded order: whoever followed them live, and whoever
replays them, must end in the same state. Undoing is no fact of its own: it shows as the facts that
lead back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = [
    "NO_FINE",
    "Added",
    "Block",
    "Chosen",
    "ClassName",
    "Erased",
    "Fact",
    "Follower",
    "ForestLearnt",
    "Guessed",
    "History",
    "Idle",
    "Moved",
    "Named",
    "Removed",
    "SplitSet",
    "fine_changes",
]

Ids: TypeAlias = npt.NDArray[np.int64]
Rows: TypeAlias = npt.NDArray[np.float32]

# Stands for "no given fine class" in arrays of ids; real ids begin at 1.
NO_FINE = 0


@dataclass(frozen=True, eq=False)
class Block:
    """Examples as arrays, all of one length n.

    Attributes
    ----------
    ids : ndarray of shape (n,)
        Numbers of the examples.
    rows : ndarray of shape (n, n_features)
        Their embeddings.
    class_ids : ndarray of shape (n,)
        The coarse class of each.
    fine_ids : ndarray of shape (n,)
        The fine class that someone gave, ``NO_FINE`` where nobody did. Guesses are never here.
    """

    ids: Ids
    rows: Rows
    class_ids: Ids
    fine_ids: Ids

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, eq=False)
class Added:
    """Examples came, by teaching or because their removal was undone."""

    event: int
    block: Block


@dataclass(frozen=True, eq=False)
class Removed:
    """Examples went; the block says where they were."""

    event: int
    block: Block


@dataclass(frozen=True, eq=False)
class Moved:
    """Examples changed their coarse class, their given fine class, or both."""

    event: int
    # Where they were.
    block: Block
    to_class_ids: Ids
    to_fine_ids: Ids


@dataclass(frozen=True, eq=False)
class Erased:
    """Examples were erased, now or when they went: whatever still holds them must let them go.

    A replay shows only the last one. It hides all that was erased by then, so that whatever was
    learnt from it before cannot be had again: who let it go begins with what is left.
    """

    event: int
    # What is left, in order of id.
    ids: Ids
    class_ids: Ids


@dataclass(frozen=True)
class SplitSet:
    """A class was split into its fine classes, or joined again.

    It stays so while the class has no examples, as their removal can be undone.
    """

    event: int
    class_id: int
    split: bool


@dataclass(frozen=True)
class Named:
    """A class, coarse or fine, is new, is there again or has another name now.

    Never part of a replay: what the names are now is in :meth:`History.names`.
    """

    event: int
    class_id: int
    name: str
    # The coarse class of a fine one.
    parent: int | None


@dataclass(frozen=True)
class Chosen:
    """An assessment's choices were adopted.

    The body of the last one is all that was found out, of earlier ones only what they chose.
    """

    event: int
    body: Mapping[str, Any]


@dataclass(frozen=True)
class ForestLearnt:
    """The forest learnt what was true up to an event; the body is what was recorded."""

    event: int
    body: Mapping[str, Any]


@dataclass(frozen=True)
class Guessed:
    """Fine names of a split class were guessed and written down. Never part of a replay."""

    event: int
    class_id: int


Fact: TypeAlias = (
    Added | Removed | Moved | Erased | SplitSet | Named | Chosen | ForestLearnt | Guessed
)


def fine_changes(facts: Sequence[Fact]) -> frozenset[int]:
    """Classes whose given fine names may be others after these facts."""
    changed: set[int] = set()
    for fact in facts:
        if isinstance(fact, (Added, Removed, Moved)):
            given = fact.block.fine_ids != NO_FINE
            if isinstance(fact, Moved):
                given |= fact.to_fine_ids != NO_FINE
                changed.update(fact.to_class_ids[given].tolist())
            changed.update(fact.block.class_ids[given].tolist())
        elif isinstance(fact, SplitSet):
            changed.add(fact.class_id)
    return frozenset(changed)


@dataclass(frozen=True)
class ClassName:
    """A class that has examples, coarse or fine."""

    id: int
    name: str
    parent: int | None
    split: bool
    # Examples of a coarse class; given ones of a fine class.
    n_examples: int


class History(Protocol):
    """What a follower may read, from any thread; each call sees one committed state."""

    @property
    def version(self) -> int:
        """Number of the newest event; 0 if there is none."""

    @property
    def usable_from(self) -> int:
        """A snapshot of an event before this one holds what was erased: it must not be used."""

    def nonce(self, event: int) -> str | None:
        """What tells an event from the same one of a copy that went another way; None if none."""

    @property
    def n_features(self) -> int | None:
        """Length of an embedding; None before the first example."""

    def facts(self, after: int = 0) -> Iterator[Fact]:
        """Facts of the events after one, in order; teaching in a row comes as blocks.

        Examples that were erased do not show at all, but for the fact that some were.
        """

    def names(self) -> Mapping[int, ClassName]:
        """All classes that have examples now, by id, in order of creation."""

    def rows(self, ids: Ids) -> Rows:
        """Embeddings of examples."""

    def examples(
        self, *, class_id: int | None = None, given: bool | None = None, limit: int | None = None
    ) -> Block:
        """Examples there are now, in order of id.

        Of one class or of all; ``given`` asks for those with or without a given fine class. With
        a limit it is a uniform sample, the same for the same examples.
        """

    def guessed_at(self, class_id: int) -> int:
        """Event of the last guesses within a class; 0 if there was none."""

    def changed_at(self, class_id: int) -> int:
        """Newest event that brought, took or relabelled examples of a class; 0 if none."""


class Follower(Protocol):
    """Follows the facts of a workspace; calls come one at a time, from the writing thread."""

    def opened(self, history: History) -> None:
        """Catch up with everything there is; called once on opening.

        Called again should ``applied`` ever fail: then forget what is known and begin anew.
        """

    def applied(self, facts: Sequence[Fact], history: History) -> None:
        """Take over what was just committed."""


class Idle:
    """A follower that does nothing."""

    def opened(self, history: History) -> None:
        """Nothing to catch up with."""

    def applied(self, facts: Sequence[Fact], history: History) -> None:
        """Nothing to take over."""
