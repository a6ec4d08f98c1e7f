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
        Number of samples whose fine class was known.
    n_missing : int
        Number of samples whose fine class was missing.
    n_guessed : int
        Number of samples that got a guess. The others have a coarse class without fine classes, or
        their guess was discarded.
    n_checked : int
        Number of known samples that were also guessed without their own label, to measure the rate.
        The only sample of a fine class cannot be checked. It is 0 if fewer than two fine classes
        are known or if a fine class has no known sample.
    n_right : int
        Number of checked samples whose guess was right.
    level : int
        Level of the class; 0 is the coarsest. With more than two levels, the fine classes are those
        directly below this class.
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
    """How many fine labels were guessed, and how often such guesses are right.

    The rate of right guesses is measured on samples whose fine class is known. Each is guessed
    without its own label and without one sample of every other class. For classes with few samples
    this is harder than the actual guesses, so the rate is somewhat too low.

    Attributes
    ----------
    coarse : tuple of CoarseGuesses
        One report for each coarse class. With more than two levels, one for each class that has
        finer ones, level by level. A sample then counts on several levels.
    once : tuple of int or None
        With more than two levels, ``n_known``, ``n_missing`` and ``n_guessed`` with each sample
        counted once. None with two levels, because they are sums over `coarse` then.

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
        """Number of samples whose fine class was known."""
        if self.once is not None:
            return self.once[0]
        return sum(part.n_known for part in self.coarse)

    @property
    def n_missing(self) -> int:
        """Number of samples whose fine class was missing."""
        if self.once is not None:
            return self.once[1]
        return sum(part.n_missing for part in self.coarse)

    @property
    def n_guessed(self) -> int:
        """Number of samples that got a guess."""
        if self.once is not None:
            return self.once[2]
        return sum(part.n_guessed for part in self.coarse)

    @property
    def rate(self) -> float:
        """Share of right guesses overall; NaN if it cannot be measured.

        With more than two levels, it covers the guesses on all levels.
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
        """Return the report as a table.

        Parameters
        ----------
        names : sequence or mapping, default=None
            Names of the coarse classes. None shows their numbers. Reports of an estimator already
            have names, which a mapping may replace.

        Returns
        -------
        table : str
            One line for each class of ``coarse``, and one for all of them.
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
