"""Every method at several shares of labels of one level, beside the fine part alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evergrow.research.experiments.experiment import Run
from evergrow.research.experiments.lab import Lab
from evergrow.research.experiments.table import Row, Table
from evergrow.research.papers.cvpr2015.comparing import compare, methods, printed, relative_to
from evergrow.research.papers.cvpr2015.dots import draw_methods
from evergrow.research.papers.cvpr2015.sources import settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SHARES", "ShareSweep"]

SHARES = (0.1, 0.2, 0.5)
_BASELINE = {"method": "fine-only"}


@dataclass(frozen=True)
class ShareSweep:
    """What tables 3 and 4 have in common: one varies fine labels, the other coarse ones."""

    column: str
    """Which share varies: "fine" or "coarse"."""
    said: str
    """What a share is of, for the legend."""
    names: Sequence[str]
    """The methods to measure."""
    percentages: Mapping[str, Sequence[float]]
    """The paper's accuracies of each method, one for each share."""

    @property
    def published(self) -> tuple[Row, ...]:
        """The paper's rows, with what they are relative to the fine part alone."""
        rows = printed(self.percentages, [{self.column: share} for share in SHARES])
        return tuple(relative_to(rows, _BASELINE, [self.column]))

    def runs(self, lab: Lab) -> list[Run]:
        """One run per seed, data set and share."""
        return [*settings(lab, **{self.column: SHARES})]

    def measure(self, lab: Lab, run: Run) -> list[Row]:
        """All methods at one share."""
        share = {self.column: run[self.column]}
        return [*relative_to(compare(lab, run, methods(self.names), **share), _BASELINE, [*share])]

    def draw(self, figure: Figure, table: Table) -> None:
        """Accuracies relative to the fine part alone, the paper's beside ours."""
        draw_methods(
            figure,
            table,
            {"paper": Table(self.published)},
            group=self.column,
            groups={share: f"{share:.0%} {self.said}" for share in SHARES},
            ylabel="accuracy / fine only",
        )
