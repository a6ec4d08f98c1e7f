"""Counts and times of one update."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class UpdateReport:
    """Counts and times of the last ``fit``, ``partial_fit`` or ``forget`` of a forest.

    Counts are sums over all trees.

    Attributes
    ----------
    strategy : str
        ``"fit"``, ``"forget"``, ``"refine"`` or the update strategy. It is also ``"fit"`` as long
        as there are so few samples that ``partial_fit`` grows the whole forest again.
    n_samples : int
        Number of samples added or removed.
    n_new_classes : int
        Number of new classes.
    n_added : int
        Number of samples added to leaves.
    n_chosen : int
        Number of splitting nodes that were chosen for a possible change.
    n_edited : int
        Number of nodes that gained or lost a class mean.
    n_cut : int
        Number of splitting nodes that became leaves, because their subtree is grown again or its
        leaves were too small.
    n_grown : int
        Number of leaves that the update tried to split.
    n_rerouted : int
        Number of stored samples that moved to the other child of a node.
    n_refreshed : int
        Number of trees grown again from scratch.
    n_comparisons : int
        Number of distances computed.
    seconds : float
        Wall-clock time of the call.
    pass_seconds : float
        Time to pass samples down the trees and edit nodes, summed over all threads.
    grow_seconds : float
        Time to grow leaves, summed over all threads.
    pack_seconds : float
        Time to compact trees, summed over all threads.

    Examples
    --------
    >>> from evergrow import NCMForestClassifier
    >>> forest = NCMForestClassifier(5, min_samples_leaf=1, random_state=0)
    >>> forest = forest.fit([[0], [1], [8], [9]], [0, 0, 1, 1])
    >>> forest.update_report_.strategy, forest.update_report_.n_samples
    ('fit', 4)
    """

    strategy: str
    n_samples: int
    n_new_classes: int = 0
    n_added: int = 0
    n_chosen: int = 0
    n_edited: int = 0
    n_cut: int = 0
    n_grown: int = 0
    n_rerouted: int = 0
    n_refreshed: int = 0
    n_comparisons: int = 0
    seconds: float = 0.0
    pass_seconds: float = 0.0
    grow_seconds: float = 0.0
    pack_seconds: float = 0.0

    def after(self, earlier: UpdateReport) -> UpdateReport:
        """Sum of two steps of one call, with the strategy of this later one.

        :meta private:
        """
        sums = {
            field.name: getattr(self, field.name) + getattr(earlier, field.name)
            for field in fields(self)[1:]
        }
        return UpdateReport(self.strategy, **sums)

    def __str__(self) -> str:
        """Write one line per count or time that is not zero."""
        lines = [f"{self.strategy}: {self.n_samples} samples in {self.seconds:.3f} s"]
        for field in fields(self)[2:]:
            value: Any = getattr(self, field.name)
            if value and field.name != "seconds":
                shown = f"{value:.3f}" if isinstance(value, float) else str(value)
                lines.append(f"  {field.name}: {shown}")
        return "\n".join(lines)
