"""Problems found by a check, with the function that repairs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from evergrow.workspace.records import Finding

RESTORE = "restore a backup of the workspace"
# Items named in a message, so that it stays readable.
MOST_SHOWN = 5


@dataclass(frozen=True)
class Problem:
    """A problem and what repairs it; ``repair`` is None if nothing can, or nothing may."""

    severity: Literal["harmless", "damage"]
    message: str
    remedy: str
    repair: Callable[[], None] | None = None


def repair_and_report(problems: Iterator[Problem], *, repair: bool) -> list[Finding]:
    """The problems as findings; with ``repair`` each is repaired as soon as it is found."""
    findings = []
    for problem in problems:
        repaired = False
        if repair and problem.repair is not None:
            problem.repair()
            repaired = True
        findings.append(Finding(problem.severity, problem.message, problem.remedy, repaired))
    return findings


def first_few(items: Iterable[object]) -> str:
    """The first few items as text, and the number of the others."""
    texts = [str(item) for item in items]
    more = f" and {len(texts) - MOST_SHOWN} more" * (len(texts) > MOST_SHOWN)
    return ", ".join(texts[:MOST_SHOWN]) + more
