"""Counts and times of one update."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class UpdateReport:
    """What the last ``fit``, ``partial_fit`` or ``forget`` did, over all trees.

    Attributes
    ----------
    strategy : str
        ``"fit"``, ``"forget"``, ``"refine"`` or the update strategy. Also ``"fit"`` while there are
        so few samples that ``partial_fit`` grows the forest again from all of them.
    n_samples : int
        Samples added or removed.
    n_new_classes : int
        Classes never seen before.
    n_added : int
        Training rows added to leaves.
    n_chosen : int
        Splitting nodes drawn for a possible change.
    n_edited : int
        Nodes that gained or lost a class mean.
    n_cut : int
        Splitting nodes turned into leaves, to be grown again or because leaves were too small.
    n_grown : int
        Leaves that were tried for a split.
    n_rerouted : int
        Stored rows that changed sides at a node.
    n_refreshed : int
        Trees grown again from scratch.
    n_comparisons : int
        Distances computed.
    seconds : float
        Wall-clock time of the call.
    pass_seconds, grow_seconds, pack_seconds : float
        Summed over all threads: routing rows and editing nodes, growing leaves, compacting.
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
        """Sum of two steps of one call, with the strategy of this later one."""
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
