"""Claims on orders that several tables of the paper make alike."""

from __future__ import annotations

from collections.abc import Sequence

from evergrow.research.experiments.contrasts import combined, contrast, leads, shown
from evergrow.research.experiments.table import Table
from evergrow.research.papers.cvpr2015.contenders import LABELS, PAPERS_METHODS

__all__ = ["above_baseline", "best_is", "in_words", "percent", "with_hierarchy"]

_WITH_HIERARCHY = ("nn", "hierarchical", "nn-h")

Seen = tuple[str, bool | None]


def in_words(method: str) -> str:
    """A method's name in a sentence."""
    return LABELS[method].replace("\n", " ")


def percent(value: object) -> str:
    """A share of the samples as people say it; other settings as they are."""
    return f"{value:.0%}" if isinstance(value, float) else str(value)


def best_is(
    method: str,
    table: Table,
    over: str,
    *,
    column: str = "accuracy",
    among: Sequence[str] = PAPERS_METHODS,
) -> Seen:
    """Whether a method is the best at every value of a column."""
    others = [name for name in among if name != method]
    parts, verdicts = [], []
    for value in table.values(over):
        mine = table.where(**{over: value})
        verdicts.append(leads(mine, column, {"method": method}, [{"method": o} for o in others]))
        best = max(others, key=lambda name: mine.mean(column, method=name))
        parts.append(
            f"{shown(mine, column, method=method)} beside {in_words(best)} "
            f"{shown(mine, column, method=best)} ({over} {percent(value)})"
        )
    return ", ".join(parts), combined(verdicts)


def with_hierarchy(table: Table, over: str, *, column: str = "accuracy") -> Seen:
    """Whether methods that use the hierarchy are on average above those that do not."""
    told = {name: name in _WITH_HIERARCHY for name in PAPERS_METHODS if name != "fine-only"}
    rows = Table({**r, "told": told[r["method"]]} for r in table if r["method"] in told)
    parts, verdicts = [], []
    for value in table.values(over):
        mine = rows.where(**{over: value})
        found = contrast(mine, column, {"told": True}, {"told": False})
        verdicts.append(found.verdict)
        parts.append(f"{100 * found.difference:+.1f} points ({over} {percent(value)})")
    return f"on average {', '.join(parts)}", combined(verdicts)


def above_baseline(
    table: Table, over: str, methods: Sequence[str], *, baseline: str = "fine-only"
) -> Seen:
    """Whether methods are above the baseline at every value of a column."""
    found = {
        (name, value): contrast(
            table.where(**{over: value}), "accuracy", {"method": name}, {"method": baseline}
        )
        for name in methods
        for value in table.values(over)
    }
    (name, value), least = min(found.items(), key=lambda item: item[1].difference)
    gain = f"{100 * least.difference:+.1f} points"
    text = f"the least gain is {gain} ({in_words(name)}, {over} {percent(value)})"
    return text, combined(each.verdict for each in found.values())
