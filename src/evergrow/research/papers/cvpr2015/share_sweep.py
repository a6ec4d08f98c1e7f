"""Every method at several shares of labels of one level, relative to the fine part alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from evergrow.research import experiments as ex
from evergrow.research.papers.cvpr2015 import claims, evaluation, plots
from evergrow.research.papers.cvpr2015.data import FURTHER, further_seeds, settings, usual_seeds

SHARES = (0.1, 0.2, 0.5)
_BASELINE = {"method": "fine-only"}
# J whose nodes compare with means of fine classes only, which explains verdicts on J.
FINE_MEANS = "means of fine classes"


def why_not_best(column: str) -> Callable[[ex.Table], str]:
    """Why NN-H is not the best at every share: its guesses."""

    def reason(table: ex.Table) -> str:
        shares = [share for share in SHARES if share in table.values(column)]
        nearest, ridge, full = (
            claims.format_differences(
                table, {"method": name}, {"method": "hierarchical"}, column, shares
            )
            for name in ("nn-h", "ridge-h", "full")
        )
        told = "" if "nan" in full else f", and a forest with all fine labels {full}"
        return (
            f"It depends on the guesses. At {', '.join(map(claims.percent, shares))} NN-H has "
            f"{nearest} points compared with H; ridge-H, which is the same with guesses that are "
            f"right more often ([guesses](cvpr2015-guesses.md)), has {ridge}{told}. Trees, subsets "
            "and samples as many as the paper's are in [sizes](cvpr2015-sizes.md)."
        )

    return reason


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
    further: Mapping[str, Sequence[str]]
    """The methods of further seeds, for each data set that has them."""
    n_seeds: int
    """The number of seeds of these."""

    @property
    def published(self) -> tuple[ex.Row, ...]:
        """The paper's rows, also relative to the fine part alone."""
        rows = evaluation.published_rows(
            self.percentages, [{self.column: share} for share in SHARES]
        )
        return tuple(evaluation.relative_to(rows, _BASELINE, [self.column]))

    def runs(self, context: ex.ExperimentContext) -> list[ex.Run]:
        """One run per seed, data set and share; then those that explain verdicts."""
        shares = {self.column: SHARES}
        return [
            *settings(context, **shares),
            *further_seeds(context, self.n_seeds, self.further, **shares),
            *settings(context, context.seeds(quick=1), **shares, check=[FINE_MEANS]),
        ]

    def measure(self, context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
        """All methods at one share."""
        share = {self.column: run[self.column]}
        if evaluation.CHECK in run:
            name = evaluation.checked("joint", FINE_MEANS)
            entry = ("joint", {"method": name}, {"class_means": "fine"})
            return evaluation.compare(context, run, [entry], **share)
        names = self.further[run["data"]] if FURTHER in run else self.names
        rows = evaluation.compare(context, run, evaluation.methods(names), **share)
        if _BASELINE["method"] not in names:
            return rows
        return evaluation.relative_to(rows, _BASELINE, [*share])

    def draw(self, figure: ex.Figure, table: ex.Table) -> None:
        """Accuracies relative to the fine part alone, with the paper's."""
        plots.draw_methods(
            figure,
            usual_seeds(evaluation.main_rows(table)),
            {"paper": ex.Table(self.published)},
            group=self.column,
            groups={share: f"{share:.0%} {self.said}" for share in SHARES},
            ylabel="accuracy / fine only",
        )
