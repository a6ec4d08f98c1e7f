"""An experiment as a value: its runs as data, and how they are measured, drawn and judged."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evergrow.research.datasets import Dataset
from evergrow.research.experiments.table import Row, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from evergrow.research.experiments.context import ExperimentContext

Run = Mapping[str, Any]


@dataclass(frozen=True)
class Source:
    """Where a data set of an experiment comes from.

    A full run reads `file` in the folder ``EVERGROW_DATA`` if it exists. Otherwise, and in quick
    runs, `built_in` generates a data set.

    Attributes
    ----------
    file : str or None
        Name of the file or folder.
    built_in : callable
        Generates a data set.
    prepare : callable or None
        Applied to data read from a file, for example to take the square roots of counts.
    """

    file: str | None
    built_in: Callable[[], Dataset]
    prepare: Callable[[Dataset], Dataset] | None = None


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds, and the difference that decided it.

    Attributes
    ----------
    agrees : bool or None
        Whether the claim holds; None if it is undecided.
    contrast : str
        The difference that decides, with its interval, as text.
    distance : float
        How far the difference is from its bound, in half-widths of the interval.
    n_parts : int
        Number of differences that were judged for it.
    n_deciding : int
        Number of these with the same verdict; the contrast is of one of them.
    """

    agrees: bool | None
    contrast: str = ""
    distance: float = math.inf
    n_parts: int = 1
    n_deciding: int = 1


@dataclass(frozen=True)
class Finding:
    """One claim of a paper, and what was measured here.

    Attributes
    ----------
    claim : str
        What the paper says, in our words.
    here : str
        What was measured, with its numbers.
    decision : Verdict, bool or None
        The verdict; None if this run cannot decide.
    printed : str
        The numbers that the paper prints for it; empty if there are none.
    reason : str
        Why the claim differs here, as measured.
    """

    claim: str
    here: str
    decision: Verdict | bool | None
    printed: str = ""
    reason: str = ""

    @property
    def agrees(self) -> bool | None:
        """Whether the claim holds; None where it is open."""
        decision = self.decision
        return decision.agrees if isinstance(decision, Verdict) else decision

    @property
    def contrast(self) -> str:
        """The difference that decided, with its interval; empty for exact comparisons."""
        return self.decision.contrast if isinstance(self.decision, Verdict) else ""

    @property
    def why(self) -> str:
        """The reason where the claim differs; empty otherwise."""
        return self.reason if self.agrees is False else ""

    @property
    def verdict(self) -> str:
        """The verdict as one word."""
        return {True: "agrees", False: "differs", None: "open"}[self.agrees]


@dataclass(frozen=True)
class Experiment:
    """One table or figure of a paper, as an experiment that can be repeated.

    Attributes
    ----------
    name : str
        Name of the experiment, such as "cvpr2014-fig5".
    title : str
        Title of the page.
    shows : str
        What the figure shows, in one line.
    sources : mapping of str to Source
        Data sets by the name that runs use.
    runs : callable
        Lists all settings to measure, as independent mappings of plain values.
    measure : callable
        Measures one run and returns its rows.
    draw : callable
        Draws the figure from the table.
    judge : callable
        Compares the table with the claims of the paper.
    keys : tuple of str
        Columns that identify a row.
    exact : tuple of str
        Columns that are the same when a run is repeated.
    timed : tuple of str
        Columns of times, which differ from run to run.
    drawn : tuple of str
        Columns that only the figure needs, such as pictures. No file has them, so the figure cannot
        be drawn again from stored results.
    published : tuple
        Rows with the numbers that the paper prints.
    complete : callable or None
        Adds columns that need the rows of several runs, such as accuracy relative to a baseline.
    summarize : callable or None
        Returns a table of the numbers as Markdown, for the page.
    size : tuple of float
        Width and height of the figure in inches.
    notes : tuple of str
        Differences from the paper that a reader must know, and their reasons.
    extras : tuple of str
        Optional dependencies to install in addition, such as "vision".
    """

    name: str
    title: str
    shows: str
    sources: Mapping[str, Source]
    runs: Callable[[ExperimentContext], Sequence[Run]]
    measure: Callable[[ExperimentContext, Run], Sequence[Row]]
    draw: Callable[[Figure, Table], None]
    judge: Callable[[Table], Sequence[Finding]]
    keys: tuple[str, ...]
    exact: tuple[str, ...]
    timed: tuple[str, ...] = ()
    drawn: tuple[str, ...] = ()
    published: tuple[Row, ...] = ()
    complete: Callable[[Table], Table] | None = None
    summarize: Callable[[Table], str] | None = None
    size: tuple[float, float] = (9.0, 3.2)
    notes: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of the exact table."""
        return (*self.keys, *self.exact)

    @property
    def can_draw_stored(self) -> bool:
        """Whether the stored tables are enough to draw the figure."""
        return not self.drawn
