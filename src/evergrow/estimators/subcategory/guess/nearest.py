"""Guesses by the nearest neighbour [Ristin2015 Sec. 4.3]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.subcategory.guess.guesser import Codes
from evergrow.foundation.device import Tensor, import_torch, is_tensor, place_like, to_host
from evergrow.foundation.rows import float_blocks

# Rows of a block: enough for a fast matrix product, and a block of scores stays small.
_BLOCK_ROWS = 1024
# Memory for the differences of pairs of rows.
_PAIR_BYTES = 8 << 20

# The same on a GPU: 512 MiB of scores, and differences of as much.
_DEVICE_ROWS = 8192
_DEVICE_PAIR_BYTES = 512 << 20

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class NearestGuesser:
    """Guess the fine class of the nearest sample whose fine class is known.

    Pass a `NearestGuesser` as `guesser` to :func:`guess_fine`, or as `guess` to
    :class:`~evergrow.SubcategoryForestClassifier`.

    Parameters
    ----------
    within : bool, default=True
        Whether only samples of the same coarse class are used. With False, a guess may contradict
        the coarse class, which is useful only for comparisons.
    discard : bool, default=False
        Whether guesses that contradict the coarse class are discarded.
    scaling : float, default=0.0
        Each feature is divided by its standard deviation to this power: 0 leaves features as they
        are, 1 standardises them. Raise it for features with different units. On image features it
        makes guesses worse, on bags of words much worse.
    device : str, default=None
        Where to compute: on the CPU (``"cpu"``), on a GPU such as ``"cuda"``, or, with None,
        wherever the samples are (:doc:`/gpu`). It is not saved in model files.

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
    device: str | None = None

    def learn(self, X: npt.NDArray[Any], fine: Codes, **_: Any) -> FittedNearest:
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
    from zero.

    Tensors are compared where they lie; the result is an array in any case.

    With ``folds``, one per row, the queries must be the known rows, and each is compared only with
    rows of other folds; -1 if there are none.

    >>> nearest_rows(np.array([[0.0], [2.0], [2.0]]), np.array([[1.0], [1.5]]))
    array([0, 1])
    """
    if is_tensor(known):
        return _nearest_on_device(known, queries, folds)
    middle, reach = _middle(known)
    found = np.full(queries.shape[0], -1, dtype=np.int64)
    for rows, block in float_blocks(queries, _BLOCK_ROWS):
        search = _Search(np.asarray(block, dtype=np.float64), middle, reach)
        own = None if folds is None else folds[rows]
        for places, candidates in float_blocks(known, _BLOCK_ROWS):
            excluded = None
            if own is not None and folds is not None:
                excluded = own[:, None] == folds[places]
            search.update(np.asarray(candidates, dtype=np.float64), places.start, excluded)
        found[rows] = search.place
    return found


def _nearest_on_device(known: Tensor, queries: Tensor, folds: Places | None) -> Places:
    """The same by tensors, with larger blocks."""
    torch = import_torch()
    total = sum(block.double().sum(0) for block in known.split(_DEVICE_ROWS))
    middle = total / len(known)
    lengths = [((block - middle) ** 2).sum(1).max() for block in known.split(_DEVICE_ROWS)]
    reach = torch.stack(lengths).max().sqrt()
    groups = None if folds is None else place_like(folds, known)
    found = []
    for first in range(0, len(queries), _DEVICE_ROWS):
        own = slice(first, first + _DEVICE_ROWS)
        search = _DeviceSearch(queries[own].double(), middle, reach)
        for start in range(0, len(known), _DEVICE_ROWS):
            part = slice(start, start + _DEVICE_ROWS)
            excluded = None if groups is None else groups[own, None] == groups[part]
            search.update(known[part].double(), start, excluded)
        found.append(search.place)
    return to_host(torch.cat(found))


class _DeviceSearch:
    """As :class:`_Search`, over tensors."""

    def __init__(self, queries: Tensor, middle: Tensor, reach: Tensor) -> None:
        torch = import_torch()
        self._queries, self._middle = queries, middle
        self._centred = queries - middle
        lengths = (self._centred**2).sum(1).sqrt()
        rounding = (queries.shape[1] + 4) * torch.finfo(torch.float64).eps
        self._tolerance = 2 * rounding * reach * (lengths + reach)
        self._score = torch.full_like(lengths, torch.inf)
        self._distance = self._score.clone()
        self.place = torch.full_like(lengths, -1, dtype=torch.int64)

    def update(self, known: Tensor, first: int, excluded: Tensor | None) -> None:
        """Compare with a block of known rows; ``first`` is the index of its first row."""
        torch = import_torch()
        centred = known - self._middle
        scores = torch.addmm(0.5 * (centred**2).sum(1), self._centred, centred.T, alpha=-1)
        if excluded is not None:
            scores[excluded] = torch.inf
        self._score = torch.minimum(self._score, scores.amin(1))
        limits = (self._score + self._tolerance).clamp(max=torch.finfo(torch.float64).max)
        rows, columns = (scores <= limits[:, None]).nonzero(as_tuple=True)
        distances = self._distances(rows, known, columns)
        best = torch.full_like(self._score, torch.inf).scatter_reduce_(0, rows, distances, "amin")
        # The first of the nearest rows; minima do not depend on the order in which they are taken.
        is_best = distances == best[rows]
        places = torch.full_like(self.place, len(known))
        places.scatter_reduce_(0, rows[is_best], columns[is_best], "amin")
        nearer = best < self._distance
        self._distance = torch.where(nearer, best, self._distance)
        self.place = torch.where(nearer, first + places, self.place)

    def _distances(self, rows: Tensor, known: Tensor, columns: Tensor) -> Tensor:
        """Squared distances of pairs of rows."""
        step = max(1, _DEVICE_PAIR_BYTES // (8 * known.shape[1]))
        pairs = zip(rows.split(step), columns.split(step), strict=True)
        parts = [((self._queries[row] - known[column]) ** 2).sum(1) for row, column in pairs]
        return import_torch().cat(parts)


class _Search:
    """The nearest rows so far of one block of queries."""

    def __init__(self, queries: Floats, middle: Floats, reach: float) -> None:
        self._queries = queries
        self._middle = middle
        # Centred on the known rows, so that a common offset costs no precision.
        self._centred = queries - middle
        lengths = np.sqrt(np.einsum("ij,ij->i", self._centred, self._centred))
        rounding = (queries.shape[1] + 4) * np.finfo(np.float64).eps
        # Twice the largest rounding error of a score, as two scores are compared.
        self._tolerance = 2 * rounding * reach * (lengths + reach)
        self._score = np.full(len(queries), np.inf)
        self._distance = np.full(len(queries), np.inf)
        self.place = np.full(len(queries), -1, dtype=np.int64)

    def update(self, known: Floats, first: int, excluded: npt.NDArray[np.bool_] | None) -> None:
        """Compare with a block of known rows; ``first`` is the index of its first row."""
        centred = known - self._middle
        # Half the squared distance, up to a constant of the query.
        scores = self._centred @ centred.T
        np.subtract(0.5 * np.einsum("ij,ij->i", centred, centred), scores, out=scores)
        if excluded is not None:
            scores[excluded] = np.inf
        np.minimum(self._score, scores.min(axis=1), out=self._score)
        limits = np.minimum(self._score + self._tolerance, np.finfo(np.float64).max)
        rows, columns = np.nonzero(scores <= limits[:, None])
        distances = _distances(self._queries, rows, known, columns)
        # Sort by query, distance and row, and take the first entry of each query.
        order = np.lexsort((columns, distances, rows))
        queries, starts = np.unique(rows[order], return_index=True)
        best = order[starts]
        nearer = distances[best] < self._distance[queries]
        self._distance[queries[nearer]] = distances[best[nearer]]
        self.place[queries[nearer]] = first + columns[best[nearer]]


def _middle(known: npt.NDArray[Any]) -> tuple[Floats, float]:
    """Mean of the rows, and the largest distance from it."""
    total = np.zeros(known.shape[1])
    for _, block in float_blocks(known):
        total += block.sum(axis=0, dtype=np.float64)
    middle = total / known.shape[0]
    squares = 0.0
    for _, block in float_blocks(known):
        centred = block - middle
        squares = max(squares, float(np.einsum("ij,ij->i", centred, centred).max()))
    return middle, float(np.sqrt(squares))


def _distances(queries: Floats, rows: Places, known: Floats, columns: Places) -> Floats:
    """Squared distances of pairs of rows."""
    found = np.empty(len(rows))
    step = max(1, _PAIR_BYTES // (8 * known.shape[1]))
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        differences = queries[rows[part]] - known[columns[part]]
        found[part] = np.square(differences).sum(axis=1)
    return found
