"""Guessing by the nearest neighbour: Sec. 4.3 of Ristin 2015."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.subcategory.guesser import Codes
from evergrow.foundation.blocks import float_blocks

__all__ = ["NearestGuesser", "nearest_rows"]

# Rows of a block: enough for a product to run at full speed, and a block of scores stays small.
_BLOCK_ROWS = 1024
# Pairs of rows that are compared number by number at a time.
_PAIR_BYTES = 8 << 20

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class NearestGuesser:
    """The fine class of the nearest sample whose fine class is known.

    Parameters
    ----------
    within : bool, default=True
        Ask only samples of the same coarse class. Without it a guess may contradict the coarse
        class, which is rarely worth anything but a comparison.
    discard : bool, default=False
        Throw away guesses that contradict the coarse class.
    scaling : float, default=0.0
        Power of their standard deviation that features are divided by: 0 leaves them as they are,
        1 standardises. Raise it where features have units that cannot be compared; on image
        features guesses get worse, on bags of words much worse.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow.estimators import NearestGuesser, guess_within
    >>> guess_within([[0.0], [4.0]], [7, 8], [[1.0], [3.0]], guesser=NearestGuesser())
    array([7, 8], dtype=int32)
    """

    within: bool = True
    discard: bool = False
    scaling: float = 0.0

    def learn(
        self,
        X: npt.NDArray[Any],
        fine: Codes,
        *,
        n_jobs: int | None,  # noqa: ARG002
        seed: int,  # noqa: ARG002
    ) -> KnownSamples:
        """Take in samples whose fine class is known."""
        return KnownSamples(X, fine)


@dataclass(frozen=True, eq=False)
class KnownSamples:
    """Samples that others are compared with."""

    X: npt.NDArray[Any]
    fine: Codes

    def guess(self, X: npt.NDArray[Any]) -> Codes:
        """Fine class of the nearest sample of each row."""
        found: Codes = self.fine[nearest_rows(self.X, X)]
        return found

    def held_out(self, folds: Places) -> Codes:
        """Fine class of the nearest sample of another fold; -1 where there is none."""
        nearest = nearest_rows(self.X, self.X, folds)
        return np.where(nearest < 0, -1, self.fine[nearest]).astype(np.int32)


def nearest_rows(
    known: npt.NDArray[Any], queries: npt.NDArray[Any], folds: Places | None = None
) -> Places:
    """The known row nearest to each query by Euclidean distance, of equals the first.

    Products of blocks find the few rows that may be nearest, and differences in double precision
    decide between them: rounding changes no answer, however far the data lie from zero.

    With ``folds``, one per row, the queries are the known rows themselves and each looks only at
    rows of other folds; -1 where there is none.

    >>> nearest_rows(np.array([[0.0], [2.0], [2.0]]), np.array([[1.0], [1.5]]))
    array([0, 1])
    """
    middle, reach = _middle(known)
    found = np.full(queries.shape[0], -1, dtype=np.int64)
    for rows, block in float_blocks(queries, _BLOCK_ROWS):
        search = _Search(np.asarray(block, dtype=np.float64), middle, reach)
        own = None if folds is None else folds[rows]
        for places, candidates in float_blocks(known, _BLOCK_ROWS):
            excluded = None
            if own is not None and folds is not None:
                excluded = own[:, None] == folds[places]
            search.look_at(np.asarray(candidates, dtype=np.float64), places.start, excluded)
        found[rows] = search.place
    return found


class _Search:
    """The nearest rows so far of one block of queries."""

    def __init__(self, queries: Floats, middle: Floats, reach: float) -> None:
        self._queries = queries
        self._middle = middle
        # Seen from the middle of the known rows, a common offset costs no digits.
        self._seen = queries - middle
        lengths = np.sqrt(np.einsum("ij,ij->i", self._seen, self._seen))
        rounding = (queries.shape[1] + 4) * np.finfo(np.float64).eps
        # Twice what rounding may change of a score: two scores are compared.
        self._doubt = 2 * rounding * reach * (lengths + reach)
        self._score = np.full(len(queries), np.inf)
        self._distance = np.full(len(queries), np.inf)
        self.place = np.full(len(queries), -1, dtype=np.int64)

    def look_at(self, known: Floats, first: int, excluded: npt.NDArray[np.bool_] | None) -> None:
        """Take a block of known rows, the first of which has the place ``first``."""
        seen = known - self._middle
        # Half the squared distance, but for what all known rows have in common.
        scores = self._seen @ seen.T
        np.subtract(0.5 * np.einsum("ij,ij->i", seen, seen), scores, out=scores)
        if excluded is not None:
            scores[excluded] = np.inf
        np.minimum(self._score, scores.min(axis=1), out=self._score)
        limits = np.minimum(self._score + self._doubt, np.finfo(np.float64).max)
        rows, columns = np.nonzero(scores <= limits[:, None])
        distances = _distances(self._queries, rows, known, columns)
        # By distance within a query, of equals the first row; then the first of each query.
        order = np.lexsort((columns, distances, rows))
        queries, starts = np.unique(rows[order], return_index=True)
        best = order[starts]
        nearer = distances[best] < self._distance[queries]
        self._distance[queries[nearer]] = distances[best[nearer]]
        self.place[queries[nearer]] = first + columns[best[nearer]]


def _middle(known: npt.NDArray[Any]) -> tuple[Floats, float]:
    """Mean of the rows, and the largest distance of a row from it."""
    total = np.zeros(known.shape[1])
    for _, block in float_blocks(known):
        total += block.sum(axis=0, dtype=np.float64)
    middle = total / known.shape[0]
    squares = 0.0
    for _, block in float_blocks(known):
        seen = block - middle
        squares = max(squares, float(np.einsum("ij,ij->i", seen, seen).max()))
    return middle, float(np.sqrt(squares))


def _distances(queries: Floats, rows: Places, known: Floats, columns: Places) -> Floats:
    """Squared distances of pairs of rows."""
    found = np.empty(len(rows))
    for part in _parts(len(rows), max(1, _PAIR_BYTES // (8 * known.shape[1]))):
        differences = queries[rows[part]] - known[columns[part]]
        found[part] = np.square(differences).sum(axis=1)
    return found


def _parts(n_rows: int, step: int) -> Iterator[slice]:
    return (slice(first, first + step) for first in range(0, n_rows, step))
