"""Claims that several tables of the paper share, and how they are judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from evergrow.research import experiments as ex
from evergrow.research.papers.cvpr2015 import learners
from evergrow.research.papers.cvpr2015.data import usual_seeds

_WITH_HIERARCHY = ("nn", "hierarchical", "nn-h")


def label(method: str) -> str:
    """The name of a method in a sentence."""
    return learners.LABELS[method].replace("\n", " ")


def percent(value: object) -> str:
    """A share in percent; other values unchanged."""
    return f"{value:.0%}" if isinstance(value, float) else str(value)


def judge_best(
    method: str,
    table: ex.Table,
    over: str,
    *,
    column: str = "accuracy",
    among: Sequence[str] = learners.PAPERS_METHODS,
) -> ex.Seen:
    """Whether a method is the best at every value of a column."""
    others = [name for name in among if name != method]
    parts, verdicts = [], []
    for value in table.values(over):
        mine = table.where(**{over: value})
        verdicts.append(
            ex.is_best(mine, column, {"method": method}, [{"method": o} for o in others])
        )
        best = max(others, key=lambda name: mine.mean(column, method=name))
        parts.append(
            f"{ex.format_percent(mine, column, method=method)} against {label(best)} "
            f"{ex.format_percent(mine, column, method=best)} ({ex.say_value(over, value)})"
        )
    return ", ".join(parts), ex.combine_verdicts(verdicts)


def judge_hierarchy(table: ex.Table, over: str, *, column: str = "accuracy") -> ex.Seen:
    """Whether methods that use the hierarchy are on average above those that do not."""
    told = {
        name: name in _WITH_HIERARCHY for name in learners.PAPERS_METHODS if name != "fine-only"
    }
    rows = ex.Table(
        {**r, "told": told[r["method"]]} for r in usual_seeds(table) if r["method"] in told
    )
    parts, verdicts = [], []
    for value in table.values(over):
        mine = rows.where(**{over: value})
        found = ex.compare_means(mine, column, {"told": True}, {"told": False})
        found = replace(
            found, name=f"with the hierarchy against without, {ex.say_value(over, value)}"
        )
        verdicts.append(found.verdict)
        parts.append(f"{100 * found.mean:+.1f} points ({ex.say_value(over, value)})")
    return f"on average {', '.join(parts)}", ex.combine_verdicts(verdicts)


def judge_gain(
    table: ex.Table, over: str, methods: Sequence[str], *, baseline: str = "fine-only"
) -> ex.Seen:
    """Whether methods are above the baseline at every value of a column."""
    found = {
        (name, value): ex.compare_means(
            table.where(**{over: value}), "accuracy", {"method": name}, {"method": baseline}
        )
        for name in methods
        for value in table.values(over)
    }
    (name, value), least = min(found.items(), key=lambda item: item[1].mean)
    gain = f"{100 * least.mean:+.1f} points"
    text = f"the least gain is {gain} ({label(name)}, {ex.say_value(over, value)})"
    return text, ex.combine_verdicts(each.verdict for each in found.values())


def named(reason: Callable[[ex.Table], str]) -> Callable[[ex.Table], str]:
    """The same reason with the name of its data set in front."""
    return lambda table: (
        f"{', '.join(map(str, table.values('data'))).capitalize()}: {reason(table)}"
    )


def format_differences(
    table: ex.Table,
    one: ex.Row,
    other: ex.Row,
    over: str,
    values: Sequence[Any],
    *,
    column: str = "accuracy",
) -> str:
    """Differences between two sides at some values of a column, in points, as text."""
    found = (ex.compare_means(table.where(**{over: value}), column, one, other) for value in values)
    return ", ".join(ex.say_signed(100 * each.mean) for each in found)


def format_gain(table: ex.Table, one: str, other: str, **where: Any) -> str:
    """The difference of accuracy between two methods with its interval, as text."""
    mine = table.where(**where)
    return ex.compare_means(mine, "accuracy", {"method": one}, {"method": other}).interval


def format_trade_off(table: ex.Table, parameter: str, values: Sequence[float]) -> str:
    """Accuracy and comparisons at some values of a parameter, as part of a sentence."""
    return ", ".join(
        f"{ex.format_percent(table, 'accuracy', **{parameter: value})} for "
        f"{table.mean('comparisons', **{parameter: value}):.0f} comparisons at {value:g}"
        for value in values
    )
