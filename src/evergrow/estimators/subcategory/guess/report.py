"""Reports on guesses: how many there are, and how often they are right."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class CoarseGuesses:
    """Numbers of guesses within one coarse class, and how many were right.

    Attributes
    ----------
    coarse : int or str
        Code or name of the coarse class.
    n_known : int
        Samples whose fine class was known.
    n_missing : int
        Samples whose fine class was missing.
    n_guessed : int
        Those of them that got a guess. The others are of a coarse class without fine ones, or
        their guess was discarded.
    n_checked : int
        Known samples whose fine class was also guessed without their own label. Single samples of
        a fine class are left out: no sample would be left to guess it from. 0 if the known samples
        do not cover all fine classes of the coarse class, and at least two: their rate would say
        nothing about the others.
    n_right : int
        Those of them whose guess was right.
    level : int
        Level of the class, 0 for a coarse one. With more than two levels, ``coarse`` may be a class
        of any level but the last, and the fine classes are those directly below it.
    """

    coarse: Any
    n_known: int = 0
    n_missing: int = 0
    n_guessed: int = 0
    n_checked: int = 0
    n_right: int = 0
    level: int = 0

    @property
    def rate(self) -> float:
        """Share of right guesses, measured on known samples; NaN if it cannot be measured."""
        return self.n_right / self.n_checked if self.n_checked else math.nan

    @property
    def standard_error(self) -> float:
        """Standard error of the rate; NaN without a rate."""
        if not self.n_checked:
            return math.nan
        # Counts one more right and one more wrong, so that 5 of 5 do not give an error of 0.
        share = (self.n_right + 1) / (self.n_checked + 2)
        return math.sqrt(share * (1 - share) / self.n_checked)


@dataclass(frozen=True)
class GuessReport:
    """Numbers of guesses and how often they are right, by coarse class and overall.

    The rate is measured on samples whose fine class is known: each is guessed without its own label
    and without one sample of every other class. If a class has few samples, that is harder than
    the actual guesses, and the rate is somewhat too low.

    Attributes
    ----------
    coarse : tuple of CoarseGuesses
        One for each coarse class, in the order of their codes. With more than two levels, one for
        each class with finer ones, level by level; a sample counts on every level on which it is
        known or guessed.
    once : tuple of int or None
        With more than two levels, the numbers of samples that guesses were made from and that were
        not guessed themselves, of those that miss a class, and of those that got a guess: each
        sample counts once. None with two levels, where the numbers are the sums over the coarse
        classes.

    Examples
    --------
    >>> from evergrow.estimators import CoarseGuesses, GuessReport
    >>> cats = CoarseGuesses(0, n_known=20, n_missing=30, n_guessed=30, n_checked=20, n_right=15)
    >>> cows = CoarseGuesses(1, n_missing=5)
    >>> print(GuessReport((cats, cows)).table(["cat", "cow"]))
    coarse class  known  missing  guessed  right
    cat              20       30       30  0.750 +- 0.100
    cow               0        5        0  -
    all              20       35       30  0.750 +- 0.100
    """

    coarse: tuple[CoarseGuesses, ...]
    once: tuple[int, int, int] | None = None

    @property
    def n_known(self) -> int:
        """Samples whose fine class was known."""
        if self.once is not None:
            return self.once[0]
        return sum(part.n_known for part in self.coarse)

    @property
    def n_missing(self) -> int:
        """Samples whose fine class was missing."""
        if self.once is not None:
            return self.once[1]
        return sum(part.n_missing for part in self.coarse)

    @property
    def n_guessed(self) -> int:
        """Samples that got a guess."""
        if self.once is not None:
            return self.once[2]
        return sum(part.n_guessed for part in self.coarse)

    @property
    def rate(self) -> float:
        """Share of right guesses overall; NaN if it cannot be measured.

        With more than two levels, of the guesses on all levels, each within the class above it.
        """
        parts = self._measured()
        weight = sum(part.n_guessed for part in parts)
        return sum(part.n_guessed * part.rate for part in parts) / weight if weight else math.nan

    @property
    def standard_error(self) -> float:
        """Standard error of the rate; NaN without a rate."""
        parts = self._measured()
        weight = sum(part.n_guessed for part in parts)
        squares = sum((part.n_guessed * part.standard_error) ** 2 for part in parts)
        return math.sqrt(squares) / weight if weight else math.nan

    def _measured(self) -> list[CoarseGuesses]:
        return [part for part in self.coarse if part.n_guessed and not math.isnan(part.rate)]

    def table(self, names: Sequence[object] | Mapping[Any, object] | None = None) -> str:
        """The report as a table.

        Parameters
        ----------
        names : sequence or mapping, default=None
            Name of the coarse class of each code; None to show the codes. Reports of an estimator
            have names already, which a mapping may replace.

        Returns
        -------
        table : str
            One line for each coarse class and one for all; with more than two levels, one for each
            class with finer ones, and its level.
        """
        shown = [str(_name(part.coarse, names)) for part in self.coarse]
        heading = "coarse class" if self.once is None else "class"
        width = max(len(name) for name in [heading, *shown, "all"])
        levels = [""] * (len(shown) + 2)
        if self.once is not None:
            levels = ["  level", *(f"  {part.level:5}" for part in self.coarse), " " * 7]
        lines = [f"{heading:{width}}{levels[0]}  known  missing  guessed  right"]
        parts: list[CoarseGuesses | GuessReport] = [*self.coarse, self]
        for name, level, part in zip([*shown, "all"], levels[1:], parts, strict=True):
            counts = f"{part.n_known:5}  {part.n_missing:7}  {part.n_guessed:7}"
            rate = "-"
            if not math.isnan(part.rate):
                rate = f"{part.rate:.3f} +- {part.standard_error:.3f}"
            lines.append(f"{name:{width}}{level}  {counts}  {rate}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.table()


def _name(coarse: Any, names: Sequence[object] | Mapping[Any, object] | None) -> object:
    if isinstance(names, Mapping):
        return names.get(coarse, coarse)
    return coarse if names is None or not isinstance(coarse, int) else names[coarse]
