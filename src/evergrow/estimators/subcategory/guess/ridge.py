"""Guesses by ridge regression, with a penalty chosen by leave-one-out in closed form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from evergrow.estimators.subcategory.guess.nearest import Codes
from evergrow.foundation.device import array_module, as_double, is_tensor, place_like, to_host

# Penalties to try, in units of the mean squared distance of a sample from the mean. On image
# features the best ones lie between 0.1 and 10.
_PENALTIES = 10.0 ** np.arange(-5.0, 3.5, 0.5)

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RidgeGuesser:
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
    device : str, default=None
        Where to compute: on the CPU (``"cpu"``), on a GPU such as ``"cuda"``, or, with None,
        wherever the samples are (:doc:`/gpu`). It is not saved in model files.

    Examples
    --------
    >>> from evergrow.estimators import RidgeGuesser, guess_within
    >>> known, fine = [[0, 0], [0, 9], [1, 0], [1, 9]], [7, 7, 8, 8]
    >>> guess_within(known, fine, [[0, 5], [1, 5]], guesser=RidgeGuesser(scaling=1.0))
    array([7, 8], dtype=int32)
    """

    scaling: float = 0.5
    device: str | None = None

    def learn(self, X: npt.NDArray[Any], fine: Codes) -> RidgeRegression:
        """Fit the regression to samples whose fine class is known.

        :meta private:
        """
        return RidgeRegression.of(as_double(X), fine)


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Decomposition of centred rows, ``Z = U diag(sqrt(e)) V'``, without constant directions.

    Of a tensor all parts are tensors.
    """

    mean: Floats
    left: Floats  # U, (n_rows, n_directions)
    variances: Floats  # e, (n_directions,)
    back: Floats  # V diag(1 / sqrt(e)), (n_features, n_directions): Z @ back = U

    @classmethod
    def of(cls, X: Floats) -> Spectrum:
        """Decompose the smaller one of ``Z Z'`` and ``Z' Z``."""
        mean = X.mean(axis=0)
        # A second pass removes rounding errors, which would otherwise count as a direction.
        mean += (X - mean).mean(axis=0)
        Z = X - mean
        wide = X.shape[0] <= X.shape[1]
        module = array_module(X)
        variances, vectors = module.linalg.eigh(Z @ Z.T if wide else Z.T @ Z)
        # Constant directions are zero up to rounding.
        rounding = max(X.shape) * np.finfo(np.float64).eps * variances[-1]
        real = variances > rounding
        variances, vectors = variances[real], vectors[:, real]
        if wide:
            return cls(mean, vectors, variances, (Z.T @ vectors) / variances)
        back = vectors / module.sqrt(variances)
        return cls(mean, Z @ back, variances, back)


@dataclass(frozen=True, eq=False)
class RidgeRegression:
    """A ridge regression of the fine class; its intercept is not penalised."""

    spectrum: Spectrum
    fine: Codes
    classes: Codes
    targets: Floats  # (n_rows, n_classes), one 1 per row
    penalty: float

    @classmethod
    def of(cls, X: Floats, fine: Codes) -> RidgeRegression:
        """The regression with the smallest leave-one-out error."""
        classes, columns = np.unique(fine, return_inverse=True)
        spectrum = Spectrum.of(X)
        targets = place_like(np.eye(len(classes))[columns], X)
        unit = float(spectrum.variances.sum() / len(X))
        # For constant features every penalty predicts the mean.
        penalties = _PENALTIES * (unit if unit > 0 else 1.0)
        candidates = [cls(spectrum, fine, classes, targets, float(p)) for p in penalties]
        # Among equals the largest penalty, which is the smoothest.
        return min(reversed(candidates), key=RidgeRegression.left_out_error)

    @property
    def shrinkage(self) -> Floats:
        """Shrinkage factor of each direction."""
        return self.spectrum.variances / (self.spectrum.variances + self.penalty)

    @property
    def slopes(self) -> Floats:
        """Weights of the directions, (n_directions, n_classes)."""
        centred = self.targets - self.targets.mean(axis=0)
        return self.shrinkage[:, None] * cast(Floats, self.spectrum.left.T @ centred)

    def residuals(self) -> Floats:
        """Targets minus their fitted values."""
        fitted: Floats = self.targets.mean(axis=0) + self.spectrum.left @ self.slopes
        return self.targets - fitted

    def left_out_error(self) -> float:
        """Leave-one-out squared error, summed over all rows and targets."""
        # The diagonal of I - H, where H maps targets to fitted values.
        square = array_module(self.targets).square
        free = 1.0 - 1.0 / len(self.fine) - square(self.spectrum.left) @ self.shrinkage
        return float(square(self.residuals() / free[:, None]).sum())

    @property
    def weights(self) -> Floats:
        """Weights of the features, (n_features, n_classes)."""
        return self.spectrum.back @ self.slopes

    def scores(self, X: npt.NDArray[Any]) -> Floats:
        """Score of each fine class for each row."""
        centred = as_double(X) - self.spectrum.mean
        return cast(Floats, centred @ self.weights + self.targets.mean(axis=0))

    def guess(self, X: npt.NDArray[Any]) -> Codes:
        """Fine class with the highest score for each row, among equals the lowest."""
        return self._largest(self.scores(X))

    def held_out(self, folds: Places) -> Codes:
        """Fine class of each row by the regression without the rows of its fold."""
        scores = self.held_out_scores(folds)
        if scores is None:
            return np.full(len(self.fine), -1, dtype=np.int32)
        return self._largest(scores)

    def held_out_scores(self, folds: Places) -> Floats | None:
        """Scores of each row by the regression without the rows of its fold.

        None if a fold has all rows. The residuals of the rows ``F`` of a fold, in the fit without
        them, are ``(I - H)_FF^-1`` times those in the full fit. The penalty is the same.
        """
        n_rows, left = len(self.fine), self.spectrum.left
        residuals, module = self.residuals(), array_module(left)
        predicted: Floats = module.empty_like(self.targets)
        for rows in _rows_by_fold(folds, together=is_tensor(left)):
            if rows.shape[1] == n_rows:
                return None
            # One matrix per fold.
            own, eye = left[rows], place_like(np.eye(rows.shape[1]), left)
            free = eye - 1.0 / n_rows - (own * self.shrinkage) @ own.swapaxes(1, 2)
            predicted[rows] = self.targets[rows] - module.linalg.solve(free, residuals[rows])
        return predicted

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
