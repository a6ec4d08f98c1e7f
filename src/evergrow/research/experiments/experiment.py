"""What an experiment is: its runs as data, how one is measured, drawn and judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evergrow.research.datasets import Dataset
from evergrow.research.experiments.table import Row, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from evergrow.research.experiments.lab import Lab

__all__ = ["Experiment", "Finding", "Run", "Source"]

Run = Mapping[str, Any]


@dataclass(frozen=True)
class Source:
    """Where a data set of an experiment comes from.

    A full run takes ``file`` of the folder in ``EVERGROW_DATA`` when it is there; otherwise, and
    in quick runs, ``built_in`` makes one that needs no file.
    """

    file: str | None
    built_in: Callable[[], Dataset]
    prepare: Callable[[Dataset], Dataset] | None = None
    """What is done to features read from a file before use, as taking square roots of counts."""


@dataclass(frozen=True)
class Finding:
    """One claim of the paper beside what was measured here."""

    claim: str
    """What the paper says, in our words, as a sentence."""
    here: str
    """What was measured, with its numbers, as a sentence."""
    agrees: bool | None
    """None where this run cannot tell."""

    @property
    def verdict(self) -> str:
        """One word for lists."""
        return {True: "agrees", False: "differs", None: "open"}[self.agrees]


@dataclass(frozen=True)
class Experiment:
    """One table or figure of a paper.

    ``runs`` lists all settings to measure, each a mapping of plain values and each independent of
    the others; ``measure`` gives the rows of one. Columns in ``keys`` tell rows apart, those in
    ``exact`` are the same whenever a run is repeated, those in ``timed`` are seconds, which are
    not. ``published`` are rows of the same shape with the numbers that the paper prints.
    """

    name: str
    title: str
    shows: str
    """What there is to see, in one line."""
    sources: Mapping[str, Source]
    """Data sets by the name under which runs ask for them."""
    runs: Callable[[Lab], Sequence[Run]]
    measure: Callable[[Lab, Run], Sequence[Row]]
    draw: Callable[[Figure, Table], None]
    judge: Callable[[Table], Sequence[Finding]]
    keys: tuple[str, ...]
    exact: tuple[str, ...]
    timed: tuple[str, ...] = ()
    published: tuple[Row, ...] = ()
    complete: Callable[[Table], Table] | None = None
    """Adds columns that need the rows of several runs, such as shares of a baseline's accuracy."""
    size: tuple[float, float] = (9.0, 3.2)
    """Width and height of the picture in inches."""
    notes: tuple[str, ...] = ()
    """What a reader must know: other data than the paper's, other settings, and why."""
    extras: tuple[str, ...] = field(default=())
    """Packages to install beyond the experiments' own, such as "vision"."""

    @property
    def paper(self) -> str:
        """The paper's short name."""
        return self.name.split("-")[0]

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of the exact table."""
        return (*self.keys, *self.exact)
