"""An optional forest, trained in the background; it may lag behind the newest examples."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.forest import NCMForestClassifier
from evergrow.foundation.errors import ModelFileError
from evergrow.workspace.events import ExamplesAdded, ExamplesErased, ExamplesMoved, ExamplesRemoved

Ids = npt.NDArray[np.int64]
Rows = npt.NDArray[np.float32]

# Means "in no class any more"; real ids start at 1.
GONE = 0
# Training is due after this many pending changes, and this share of its examples.
_FEWEST = 20
_SHARE = 0.05


@dataclass(frozen=True, eq=False)
class BackgroundForest:
    """A forest, the examples it was trained on, and the changes since.

    Attributes
    ----------
    seed : int
        Seed of the forest.
    forest : NCMForestClassifier or None
        Classifier over class ids; None while it has no examples.
    sample_ids : mapping
        From the id of an example to its sample id in the forest.
    pending : tuple of (ids, class ids)
        Changes since the last training in order, one entry per example: its class, or ``GONE``.
    """

    seed: int
    forest: NCMForestClassifier | None = None
    sample_ids: Mapping[int, int] = field(default_factory=dict)
    pending: tuple[tuple[Ids, Ids], ...] = ()

    @property
    def n_pending(self) -> int:
        """Number of pending changes."""
        return sum(len(ids) for ids, _ in self.pending)

    @property
    def n_missing(self) -> int:
        """Number of examples that differ between the workspace and the forest."""
        return len(self._net(self.n_pending))

    @property
    def is_due(self) -> bool:
        """Whether there are enough pending changes to train the forest."""
        return self.n_pending >= max(_FEWEST, _SHARE * len(self.sample_ids))

    def with_change(
        self, event: ExamplesAdded | ExamplesRemoved | ExamplesMoved
    ) -> BackgroundForest:
        """A copy with one more pending change."""
        block = event.block
        if isinstance(event, ExamplesMoved):
            # Fine names do not concern the forest.
            moved = block.class_ids != event.to_class_ids
            entry = (block.ids[moved], event.to_class_ids[moved])
        elif isinstance(event, ExamplesAdded):
            entry = (block.ids, block.class_ids)
        else:
            entry = (block.ids, np.full(len(block), GONE, dtype=np.int64))
        if not len(entry[0]):
            return self
        return BackgroundForest(self.seed, self.forest, self.sample_ids, (*self.pending, entry))

    def reset(self, event: ExamplesErased) -> BackgroundForest:
        """A copy without a forest, in which all remaining examples are pending.

        The means of a forest keep a trace of forgotten samples; a new forest never saw them.
        """
        pending = ((event.ids, event.class_ids),) if len(event.ids) else ()
        return BackgroundForest(self.seed, pending=pending)

    def continues(self, base: BackgroundForest, n_changes: int) -> bool:
        """Whether training ``base`` on the first changes gives what training this one would."""
        same_forest = self.forest is base.forest
        return same_forest and self._entries(n_changes) == base._entries(n_changes)

    def train(self, n_changes: int, rows_of: Callable[[Ids], Rows]) -> BackgroundForest:
        """A copy trained on the first pending changes, as if they had happened at once."""
        net = self._net(n_changes)
        gone = [example for example in net if example in self.sample_ids]
        new = [example for example, class_id in net.items() if class_id != GONE]
        sample_ids = {e: number for e, number in self.sample_ids.items() if e not in net}
        forest = copy.deepcopy(self.forest)
        if forest is not None and gone:
            numbers = [self.sample_ids[example] for example in gone]
            # A forest needs at least one sample.
            forest = forest.forget(samples=numbers) if sample_ids else None
        if new:
            forest = forest or NCMForestClassifier(random_state=self.seed)
            ids = np.array(new, dtype=np.int64)
            classes = np.array([net[example] for example in new], dtype=np.int64)
            forest.partial_fit(rows_of(ids), classes)
            sample_ids |= dict(zip(new, forest.sample_ids_.tolist(), strict=True))
        return BackgroundForest(self.seed, forest, sample_ids, self.pending_after(n_changes))

    def to_json(self) -> dict[str, Any]:
        """Everything but the forest itself."""
        return {
            "learnt": [list(item) for item in self.sample_ids.items()],
            "waiting": [list(item) for item in self._entries(self.n_pending)],
        }

    @classmethod
    def from_json(
        cls, entry: Mapping[str, Any], seed: int, forest: NCMForestClassifier | None
    ) -> BackgroundForest:
        """The inverse of :meth:`to_json`."""
        sample_ids = {int(example): int(number) for example, number in entry["learnt"]}
        if forest is not None and not set(forest.stored_ids_.tolist()) >= set(sample_ids.values()):
            raise ModelFileError("the forest does not contain the samples listed in the snapshot")
        pending = np.array(entry["waiting"], dtype=np.int64).reshape(-1, 2)
        return cls(
            seed, forest, sample_ids, ((pending[:, 0], pending[:, 1]),) if len(pending) else ()
        )

    def _entries(self, n_changes: int) -> Sequence[tuple[int, int]]:
        entries = [
            entry
            for ids, classes in self.pending
            for entry in zip(ids.tolist(), classes.tolist(), strict=True)
        ]
        return entries[:n_changes]

    def _net(self, n_changes: int) -> dict[int, int]:
        """The class of each example after some changes, in the order of its last change."""
        net: dict[int, int] = {}
        for example, class_id in self._entries(n_changes):
            net.pop(example, None)
            net[example] = class_id
        # An example that was added and removed meanwhile never reached the forest.
        return {e: c for e, c in net.items() if c != GONE or e in self.sample_ids}

    def pending_after(self, n_changes: int) -> tuple[tuple[Ids, Ids], ...]:
        """The pending changes without the first ones."""
        left = []
        for ids, classes in self.pending:
            n_done = min(n_changes, len(ids))
            n_changes -= n_done
            if n_done < len(ids):
                left.append((ids[n_done:], classes[n_done:]))
        return tuple(left)
