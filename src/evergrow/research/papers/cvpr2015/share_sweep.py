"""Every method at several shares of labels of one level, relative to the fine part alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evergrow.research import experiments as ex
from evergrow.research.papers.cvpr2015 import evaluation, plots
from evergrow.research.papers.cvpr2015.data import settings

SHARES = (0.1, 0.2, 0.5)
_BASELINE = {"method": "fine-only"}


@dataclass(frozen=True)
class ShareSweep:
    """What tables 3 and 4 have in common: one varies fine labels, the other coarse ones."""

    column: str
    """Which share varies: "fine" or "coarse"."""
    said: str
    """The labels that are shared out, for the legend."""
    names: Sequence[str]
    """The methods to measure."""
    percentages: Mapping[str, Sequence[float]]
    """The paper's accuracies of each method, one for each share."""

    @property
    def published(self) -> tuple[ex.Row, ...]:
        """The paper's rows, also relative to the fine part alone."""
        rows = evaluation.published_rows(
            self.percentages, [{self.column: share} for share in SHARES]
        )
        return tuple(evaluation.relative_to(rows, _BASELINE, [self.column]))

    def runs(self, context: ex.ExperimentContext) -> list[ex.Run]:
        """One run per seed, data set and share."""
        return settings(context, **{self.column: SHARES})

    def measure(self, context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
        """All methods at one share."""
        share = {self.column: run[self.column]}
        rows = evaluation.compare(context, run, evaluation.methods(self.names), **share)
        return evaluation.relative_to(rows, _BASELINE, [*share])

    def draw(self, figure: ex.Figure, table: ex.Table) -> None:
        """Accuracies relative to the fine part alone, with the paper's."""
        plots.draw_methods(
            figure,
            table,
            {"paper": ex.Table(self.published)},
            group=self.column,
            groups={share: f"{share:.0%} {self.said}" for share in SHARES},
            ylabel="accuracy / fine only",
        )
