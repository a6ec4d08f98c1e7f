"""A forest beside least squares, which learns in larger steps and may lack the latest examples."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.forest import NCMForestClassifier
from evergrow.foundation.errors import ModelFileError
from evergrow.workspace.events import Added, Erased, Moved, Removed

__all__ = ["GONE", "Beside"]

Ids = npt.NDArray[np.int64]
Rows = npt.NDArray[np.float32]

# Stands for "no class any more"; real ids begin at 1.
GONE = 0
# The forest learns when this many changes wait, and this share of what it knows.
_FEWEST = 20
_SHARE = 0.05


@dataclass(frozen=True, eq=False)
class Beside:
    """The forest, which examples it has learnt, and what happened since.

    Attributes
    ----------
    seed : int
        Of the forest.
    forest : NCMForestClassifier or None
        Over class ids; None as long as it knows nothing.
    learnt : mapping
        From the id of an example to its number in the forest.
    waiting : tuple of (ids, class ids)
        Changes that it has not learnt, one entry per example, in the order they happened: an
        example is of a class now, or of none.
    """

    seed: int
    forest: NCMForestClassifier | None = None
    learnt: Mapping[int, int] = field(default_factory=dict)
    waiting: tuple[tuple[Ids, Ids], ...] = ()

    @property
    def n_waiting(self) -> int:
        """Number of changes that wait."""
        return sum(len(ids) for ids, _ in self.waiting)

    @property
    def lacks(self) -> int:
        """Number of examples that the forest knows not, or not as what they are, or that went."""
        return len(self._net(self.n_waiting))

    @property
    def is_due(self) -> bool:
        """Whether enough happened for the forest to learn."""
        return self.n_waiting >= max(_FEWEST, _SHARE * len(self.learnt))

    def noted(self, fact: Added | Removed | Moved) -> Beside:
        """With a change that waits."""
        block = fact.block
        if isinstance(fact, Moved):
            # A finer name changes nothing here.
            moved = block.class_ids != fact.to_class_ids
            entry = (block.ids[moved], fact.to_class_ids[moved])
        elif isinstance(fact, Added):
            entry = (block.ids, block.class_ids)
        else:
            entry = (block.ids, np.full(len(block), GONE, dtype=np.int64))
        if not len(entry[0]):
            return self
        return Beside(self.seed, self.forest, self.learnt, (*self.waiting, entry))

    def anew(self, fact: Erased) -> Beside:
        """Without the forest, which waits to learn what is left.

        Its means keep a trace of samples that it forgets one by one; a new one never saw them.
        """
        waiting = ((fact.ids, fact.class_ids),) if len(fact.ids) else ()
        return Beside(self.seed, waiting=waiting)

    def goes_on_from(self, base: Beside, n_changes: int) -> bool:
        """Whether what ``base`` learnt of the first changes is what this one would learn."""
        same_forest = self.forest is base.forest
        return same_forest and self._entries(n_changes) == base._entries(n_changes)

    def updated(self, n_changes: int, rows_of: Callable[[Ids], Rows]) -> Beside:
        """With the first of the waiting changes learnt, as if they had happened at once."""
        net = self._net(n_changes)
        gone = [example for example in net if example in self.learnt]
        new = [example for example, class_id in net.items() if class_id != GONE]
        learnt = {e: number for e, number in self.learnt.items() if e not in net}
        forest = copy.deepcopy(self.forest)
        if forest is not None and gone:
            numbers = [self.learnt[example] for example in gone]
            # A forest cannot be without any sample.
            forest = forest.forget(samples=numbers) if learnt else None
        if new:
            forest = forest or NCMForestClassifier(random_state=self.seed)
            ids = np.array(new, dtype=np.int64)
            classes = np.array([net[example] for example in new], dtype=np.int64)
            forest.partial_fit(rows_of(ids), classes)
            learnt |= dict(zip(new, forest.sample_ids_.tolist(), strict=True))
        return Beside(self.seed, forest, learnt, self._after(n_changes))

    def to_json(self) -> dict[str, Any]:
        """All but the forest itself."""
        return {
            "learnt": [list(item) for item in self.learnt.items()],
            "waiting": [list(item) for item in self._entries(self.n_waiting)],
        }

    @classmethod
    def from_json(
        cls, entry: Mapping[str, Any], seed: int, forest: NCMForestClassifier | None
    ) -> Beside:
        """Back from :meth:`to_json`."""
        learnt = {int(example): int(number) for example, number in entry["learnt"]}
        if forest is not None and not set(forest.stored_ids_.tolist()) >= set(learnt.values()):
            raise ModelFileError("the forest does not hold the samples it is said to")
        waiting = np.array(entry["waiting"], dtype=np.int64).reshape(-1, 2)
        return cls(seed, forest, learnt, ((waiting[:, 0], waiting[:, 1]),) if len(waiting) else ())

    def _entries(self, n_changes: int) -> Sequence[tuple[int, int]]:
        entries = [
            entry
            for ids, classes in self.waiting
            for entry in zip(ids.tolist(), classes.tolist(), strict=True)
        ]
        return entries[:n_changes]

    def _net(self, n_changes: int) -> dict[int, int]:
        """What each example is after some changes, in the order of the last change of each."""
        net: dict[int, int] = {}
        for example, class_id in self._entries(n_changes):
            net.pop(example, None)
            net[example] = class_id
        # What came and went meanwhile was never there.
        return {e: c for e, c in net.items() if c != GONE or e in self.learnt}

    def _after(self, n_changes: int) -> tuple[tuple[Ids, Ids], ...]:
        left = []
        for ids, classes in self.waiting:
            n_done = min(n_changes, len(ids))
            n_changes -= n_done
            if n_done < len(ids):
                left.append((ids[n_done:], classes[n_done:]))
        return tuple(left)
