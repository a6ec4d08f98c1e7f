"""Guesses by the nearest neighbour [Ristin2015 Sec. 4.3]."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.device import array_module, as_double, is_tensor, place_like, to_host

Codes = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

# Rows of a block, and memory for the differences of pairs of rows: enough for a fast matrix
# product, and a block of scores stays small.
_ROWS, _PAIR_BYTES = 1024, 8 << 20
# The same on a GPU: 512 MiB of scores, and differences of as much.
_DEVICE_ROWS, _DEVICE_PAIR_BYTES = 8192, 512 << 20


@dataclass(frozen=True)
class NearestGuesser:
    """Guess the fine class of the nearest sample of the same coarse class.

    Pass a `NearestGuesser` as `guesser` to :func:`guess_fine`, or as `guess` to
    :class:`~evergrow.SubcategoryForestClassifier`.

    Parameters
    ----------
    scaling : float, default=0.0
        Each feature is divided by its standard deviation to this power: 0 leaves features as they
        are, 1 standardises them. Raise it for features with different units. On image features it
        makes guesses worse, on bags of words much worse.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow.estimators import NearestGuesser, guess_within
    >>> guess_within([[0.0], [4.0]], [7, 8], [[1.0], [3.0]], guesser=NearestGuesser())
    array([7, 8], dtype=int32)
    """

    scaling: float = 0.0

    def learn(self, X: npt.NDArray[Any], fine: Codes) -> FittedNearest:
        """Store samples whose fine class is known.

        :meta private:
        """
        return FittedNearest(X, fine)


@dataclass(frozen=True, eq=False)
class FittedNearest:
    """Known samples, which others are compared with."""

    X: npt.NDArray[Any]
    fine: Codes

    def guess(self, X: npt.NDArray[Any]) -> Codes:
        """Fine class of the nearest known sample for each row."""
        return self.fine[nearest_rows(self.X, X)]

    def held_out(self, folds: Places) -> Codes:
        """Fine class of the nearest sample of another fold; -1 if there is none."""
        nearest = nearest_rows(self.X, self.X, folds)
        return np.where(nearest < 0, -1, self.fine[nearest]).astype(np.int32)


def nearest_rows(
    known: npt.NDArray[Any], queries: npt.NDArray[Any], folds: Places | None = None
) -> Places:
    """Index of the known row nearest to each query by Euclidean distance, the first of equals.

    Matrix products of blocks find the few rows that may be nearest, and differences in double
    precision decide between them. So rounding never changes the result, however far the data are
    from zero. Tensors are compared where they lie; the result is an array in any case.

    With ``folds``, one per row, the queries must be the known rows, and each is compared only with
    rows of other folds; -1 if there are none.

    >>> nearest_rows(np.array([[0.0], [2.0], [2.0]]), np.array([[1.0], [1.5]]))
    array([0, 1])
    """
    groups = None if folds is None else place_like(folds, known)
    # Centred on the known rows, so that a common offset costs no precision.
    middle = sum(block.sum(axis=0) for _, block in _blocks(known)) / len(known)
    reach = max(float(((block - middle) ** 2).sum(axis=1).max()) for _, block in _blocks(known))
    found = np.empty(len(queries), dtype=np.int64)
    for own, block in _blocks(queries):
        search = _Search(block, middle, reach**0.5)
        for part, candidates in _blocks(known):
            excluded = None if groups is None else groups[own][:, None] == groups[part]
            search.update(candidates, part.start, excluded)
        found[own] = to_host(search.place)
    return found


def _blocks(rows: npt.NDArray[Any]) -> Iterator[tuple[slice, Floats]]:
    """Rows in double precision, a block at a time."""
    step = _DEVICE_ROWS if is_tensor(rows) else _ROWS
    for start in range(0, len(rows), step):
        place = slice(start, start + step)
        yield place, as_double(rows[place])


class _Search:
    """The nearest rows so far of one block of queries, which are an array or a tensor."""

    def __init__(self, queries: Floats, middle: Floats, reach: float) -> None:
        module = self._module = array_module(queries)
        self._queries, self._middle = queries, middle
        self._centred = queries - middle
        lengths = module.sqrt((self._centred**2).sum(axis=1))
        rounding = (queries.shape[1] + 4) * np.finfo(np.float64).eps
        # Twice the largest rounding error of a score, as two scores are compared.
        self._tolerance = 2 * rounding * reach * (lengths + reach)
        self._score = module.full_like(lengths, np.inf)
        self._distance = module.full_like(lengths, np.inf)
        self.place: Places = module.full_like(lengths, -1, dtype=module.int64)

    def update(self, known: Floats, first: int, excluded: Any) -> None:
        """Compare with a block of known rows; ``first`` is the index of its first row."""
        module = self._module
        centred = known - self._middle
        # Half the squared distance, up to a constant of the query.
        scores = self._centred @ centred.T
        scores *= -1
        scores += 0.5 * (centred**2).sum(axis=1)
        if excluded is not None:
            scores[excluded] = np.inf
        self._score = module.minimum(self._score, module.amin(scores, axis=1))
        limits = module.clip(self._score + self._tolerance, None, np.finfo(np.float64).max)
        rows, columns = module.where(scores <= limits[:, None])
        scores[:] = np.inf
        pair_bytes = _DEVICE_PAIR_BYTES if is_tensor(known) else _PAIR_BYTES
        step = max(1, pair_bytes // (8 * known.shape[1]))
        for start in range(0, len(rows), step):
            row, column = rows[start : start + step], columns[start : start + step]
            scores[row, column] = ((self._queries[row] - known[column]) ** 2).sum(axis=1)
        distances = module.amin(scores, axis=1)
        # The first of equals, here and between blocks.
        nearer = distances < self._distance
        self._distance = module.where(nearer, distances, self._distance)
        self.place = module.where(nearer, first + scores.argmin(axis=1), self.place)
