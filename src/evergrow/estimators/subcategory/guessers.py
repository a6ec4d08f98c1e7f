"""Two ways to guess fine classes: ridge regression, and the nearest neighbour [Ristin2015]."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from evergrow.estimators.linear.ridge import RidgeFit, RotatedRidge
from evergrow.foundation.device import array_module, as_double, is_tensor, place_like, to_host
from evergrow.foundation.params import Choice, Number, OneOf, Rule, Value

Codes = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

# Penalties to try, in units of the mean squared distance of a sample from the mean. On image
# features the best ones lie between 0.1 and 10.
_PENALTIES = 10.0 ** np.arange(-5.0, 3.5, 0.5)

# Rows of a block, and memory for the differences of pairs of rows: enough for a fast matrix
# product, and a block of scores stays small.
_ROWS, _PAIR_BYTES = 1024, 8 << 20
# The same on a GPU: 512 MiB of scores, and differences of as much.
_DEVICE_ROWS, _DEVICE_PAIR_BYTES = 8192, 512 << 20


@dataclass(frozen=True, repr=False)
class RidgeGuesser(Value):
    """Guess fine classes by ridge regression within each coarse class.

    The regression has a target of 1 for the fine class of a sample and 0 for the others. The fine
    class with the highest score is the guess. The penalty is the one with the smallest squared
    leave-one-out error. Pass a `RidgeGuesser` as `guesser` to :func:`guess_fine`, or
    as `guess` to :class:`~evergrow.SubcategoryForestClassifier`.

    Parameters
    ----------
    scaling : float, default=0.5
        Each feature is divided by its standard deviation to this power: 0 leaves features as they
        are, 1 standardises them. 0 is a little better for embeddings, 1 for counts of visual words.
        With 0.5 the loss is below one percent for both.

    Examples
    --------
    >>> from evergrow.estimators import RidgeGuesser, guess_within
    >>> known, fine = [[0, 0], [0, 9], [1, 0], [1, 9]], [7, 7, 8, 8]
    >>> guess_within(known, fine, [[0, 5], [1, 5]], guesser=RidgeGuesser(scaling=1.0))
    array([7, 8], dtype=int32)
    """

    _rules: ClassVar[dict[str, list[Rule]]] = {"scaling": [Number(0.0, 1.0)]}

    scaling: float = 0.5

    def learn(self, X: npt.NDArray[Any], fine: Codes) -> RidgeRegression:
        """Fit the regression to samples whose fine class is known.

        :meta private:
        """
        return RidgeRegression.of(as_double(X), fine)


@dataclass(frozen=True, eq=False)
class RidgeRegression:
    """A ridge regression of the fine class; its intercept is not penalised."""

    fit: RidgeFit
    classes: Codes

    @classmethod
    def of(cls, X: Floats, fine: Codes) -> RidgeRegression:
        """The regression with the smallest leave-one-out error."""
        classes, columns = np.unique(fine, return_inverse=True)
        codes = columns.astype(np.int32)
        ridge = RotatedRidge.of(X, codes, len(classes), np.float64)
        rotated = ridge.rotated(X)
        unit = float(ridge.eigenvalues.sum() / len(X))
        # For constant features every penalty predicts the mean.
        penalties = _PENALTIES * (unit if unit > 0 else 1.0)

        def left_out_error(penalty: float) -> float:
            """Squared error, summed over all rows and classes."""
            errors = ridge.left_out(rotated, codes, penalty)
            errors[np.arange(len(codes)), codes] -= 1.0
            return float((errors**2).sum())

        # Among equals the largest penalty, which is the smoothest.
        penalty = min(penalties[::-1].tolist(), key=left_out_error)
        return cls(ridge.fit(penalty, X, codes), classes)

    def guess(self, X: npt.NDArray[Any]) -> Codes:
        """Fine class with the highest score for each row, among equals the lowest."""
        return self._largest(self.fit.scores(X))

    def held_out(self, folds: Places) -> Codes:
        """Fine class of each row by the regression without the rows of its fold."""
        scores = self.held_out_scores(folds)
        if scores is None:
            return np.full(len(folds), -1, dtype=np.int32)
        return self._largest(scores)

    def held_out_scores(self, folds: Places) -> Floats | None:
        """Scores of each row by the regression without the rows of its fold.

        None if a fold has all rows. The residuals of the rows ``F`` of a fold, in the fit without
        them, are ``(I - H)_FF^-1`` times those in the full fit. The penalty is the same.
        """
        fit, ridge, everything = self.fit, self.fit.ridge, slice(None)
        rotated = ridge.rotated(fit.rows)
        inverse = 1.0 / (ridge.eigenvalues + fit.penalty)
        residuals = fit.residuals(everything, fit.centred(everything))
        scores, module = -residuals, array_module(rotated)
        for rows in _rows_by_fold(folds, together=is_tensor(rotated)):
            if rows.shape[1] == len(folds):
                return None
            # One matrix per fold.
            own, eye = rotated[rows], place_like(np.eye(rows.shape[1]), rotated)
            free = eye - 1.0 / len(folds) - (own * inverse) @ own.swapaxes(1, 2)
            scores[rows] = -module.linalg.solve(free, residuals[rows])
        scores[np.arange(len(folds)), fit.codes] += 1.0
        return cast(Floats, scores)

    def _largest(self, scores: Floats) -> Codes:
        return cast(Codes, self.classes[to_host(scores.argmax(axis=1))])


def _rows_by_fold(folds: Places, *, together: bool) -> Iterator[Places]:
    """Yield the rows of folds, (n_folds, n_rows): one fold, or all folds of the same size.

    A GPU solves many small systems at once in about the time of one.

    >>> [rows.tolist() for rows in _rows_by_fold(np.array([0, 1, 0, 2]), together=True)]
    [[[1], [3]], [[0, 2]]]
    """
    order = np.argsort(folds, kind="stable")
    sizes = np.bincount(folds)
    ends = np.cumsum(sizes)
    if not together:
        yield from (order[None, end - size : end] for size, end in zip(sizes, ends, strict=True))
        return
    for size in np.unique(sizes[sizes > 0]):
        yield order[(ends[sizes == size] - size)[:, None] + np.arange(size)]


@dataclass(frozen=True, repr=False)
class NearestGuesser(Value):
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

    _rules: ClassVar[dict[str, list[Rule]]] = {"scaling": [Number(0.0, 1.0)]}

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


Guesser = RidgeGuesser | NearestGuesser
GUESSERS: dict[str, type[Guesser]] = {"ridge": RidgeGuesser, "nn": NearestGuesser}
# A parameter that takes a guesser: its name, or a value with options.
GUESSER_RULES: list[Rule] = [Choice(tuple(GUESSERS)), OneOf(tuple(GUESSERS.values()))]


def guesser_of(guess: str | Guesser) -> Guesser:
    """The guesser with a name, or the given one."""
    return GUESSERS[guess]() if isinstance(guess, str) else guess


def leave_one_of_each_out(fine: Codes, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """Assign folds so that no fold has two samples of one class.

    Leaving out a single sample would put its class at a disadvantage, since the others keep all
    their samples. With three samples per class the guesses would look much worse than they are.

    >>> leave_one_of_each_out(np.array([5, 5, 7], dtype=np.int32), np.random.default_rng(0))
    array([0, 1, 0])
    """
    order = random.permutation(len(fine))
    order = order[np.argsort(fine[order], kind="stable")]
    _, firsts, counts = np.unique(fine[order], return_index=True, return_counts=True)
    folds = np.empty(len(fine), dtype=np.int64)
    folds[order] = np.arange(len(fine)) - np.repeat(firsts, counts)
    return folds
