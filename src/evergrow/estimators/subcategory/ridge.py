"""Guessing by ridge regression, its penalty chosen by leave-one-out in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.subcategory.guesser import Codes

__all__ = ["RidgeGuesser"]

# Penalties that are tried, in units of the mean squared distance of a sample from the mean. On
# image features the best lie between 0.1 and 10.
_PENALTIES = 10.0 ** np.arange(-5.0, 3.5, 0.5)

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RidgeGuesser:
    """The fine class with the largest score of a ridge regression on the known ones.

    One regression per coarse class, with a target of 1 for the fine class of a sample and 0 for the
    others. Its penalty is the one with the smallest squared error when each sample is predicted
    from all others, which one eigendecomposition gives for all penalties.

    Parameters
    ----------
    scaling : float, default=0.5
        Power of their standard deviation that features are divided by: 0 leaves them as they are,
        1 standardises. Embeddings are guessed a little better with 0, counts of visual words with
        1; half way costs neither of them more than a fraction of a percent.

    Examples
    --------
    >>> from evergrow.estimators import RidgeGuesser, guess_within
    >>> known, fine = [[0, 0], [0, 9], [1, 0], [1, 9]], [7, 7, 8, 8]
    >>> guess_within(known, fine, [[0, 5], [1, 5]], guesser=RidgeGuesser(scaling=1.0))
    array([7, 8], dtype=int32)
    """

    scaling: float = 0.5

    @property
    def within(self) -> bool:
        """It asks only samples of the same coarse class."""
        return True

    @property
    def discard(self) -> bool:
        """No guess can contradict the coarse class."""
        return False

    def learn(
        self,
        X: npt.NDArray[Any],
        fine: Codes,
        *,
        n_jobs: int | None,  # noqa: ARG002
        seed: int,  # noqa: ARG002
    ) -> Regression:
        """Fit the regression to samples whose fine class is known."""
        return Regression.of(np.asarray(X, dtype=np.float64), fine)


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Centred rows ``Z = U diag(sqrt(e)) V'`` by their directions that vary."""

    mean: Floats
    left: Floats  # U, (n_rows, n_directions)
    variances: Floats  # e, (n_directions,)
    back: Floats  # V diag(1 / sqrt(e)), (n_features, n_directions): Z @ back = U

    @classmethod
    def of(cls, X: Floats) -> Spectrum:
        """Decompose whichever product of the rows is smaller."""
        mean = X.mean(axis=0)
        # Once more for what rounding left of the mean: else it would count as a direction.
        mean += (X - mean).mean(axis=0)
        Z = X - mean
        wide = X.shape[0] <= X.shape[1]
        variances, vectors = np.linalg.eigh(Z @ Z.T if wide else Z.T @ Z)
        # What rounding leaves of directions that do not vary, the constant one among them.
        rounding = max(X.shape) * np.finfo(np.float64).eps * variances[-1]
        real = variances > rounding
        variances, vectors = variances[real], vectors[:, real]
        if wide:
            return cls(mean, vectors, variances, (Z.T @ vectors) / variances)
        back = vectors / np.sqrt(variances)
        return cls(mean, Z @ back, variances, back)


@dataclass(frozen=True, eq=False)
class Regression:
    """A ridge regression of the fine class, with an intercept that is not penalised."""

    spectrum: Spectrum
    fine: Codes
    classes: Codes
    targets: Floats  # (n_rows, n_classes), one 1 per row
    penalty: float

    @classmethod
    def of(cls, X: Floats, fine: Codes) -> Regression:
        """The regression with the penalty that predicts single samples best."""
        classes, columns = np.unique(fine, return_inverse=True)
        spectrum = Spectrum.of(X)
        targets = np.eye(len(classes))[columns]
        unit = spectrum.variances.sum() / len(X)
        # Where nothing varies every penalty gives the mean.
        penalties = _PENALTIES * (unit if unit > 0 else 1.0)
        candidates = [cls(spectrum, fine, classes, targets, float(p)) for p in penalties]
        # Of equals the largest penalty: the flattest answer.
        return min(reversed(candidates), key=Regression.left_out_error)

    @property
    def kept(self) -> Floats:
        """The share of each direction that the penalty leaves."""
        shares: Floats = self.spectrum.variances / (self.spectrum.variances + self.penalty)
        return shares

    @property
    def slopes(self) -> Floats:
        """Weights of the directions, (n_directions, n_classes)."""
        centred = self.targets - self.targets.mean(axis=0)
        weights: Floats = self.kept[:, None] * (self.spectrum.left.T @ centred)
        return weights

    def residuals(self) -> Floats:
        """Targets less their fitted values."""
        fitted: Floats = self.targets.mean(axis=0) + self.spectrum.left @ self.slopes
        return self.targets - fitted

    def left_out_error(self) -> float:
        """Squared error of all targets, each row predicted from all others."""
        # The diagonal of I - H, H being the matrix that fits.
        free = 1.0 - 1.0 / len(self.fine) - np.square(self.spectrum.left) @ self.kept
        return float(np.square(self.residuals() / free[:, None]).sum())

    @property
    def weights(self) -> Floats:
        """Weights of the features as they are, (n_features, n_classes)."""
        weights: Floats = self.spectrum.back @ self.slopes
        return weights

    def scores(self, X: npt.NDArray[Any]) -> Floats:
        """Score of each fine class for each row."""
        seen = np.asarray(X, dtype=np.float64) - self.spectrum.mean
        scores: Floats = seen @ self.weights + self.targets.mean(axis=0)
        return scores

    def guess(self, X: npt.NDArray[Any]) -> Codes:
        """Fine class with the largest score for each row, of equals the lowest."""
        return self._largest(self.scores(X))

    def held_out(self, folds: Places) -> Codes:
        """Fine class of each row by the regression without the rows of its fold."""
        scores = self.held_out_scores(folds)
        if scores is None:
            return np.full(len(self.fine), -1, dtype=np.int32)
        return self._largest(scores)

    def held_out_scores(self, folds: Places) -> Floats | None:
        """Scores of each row by the regression without the rows of its fold.

        None if a fold has all rows. With ``F`` the rows of a fold, their residuals without them are
        the residuals with them times the inverse of ``(I - H)_FF``. The penalty stays.
        """
        n_rows, left = len(self.fine), self.spectrum.left
        residuals = self.residuals()
        predicted = np.empty_like(self.targets)
        for fold in range(int(folds.max()) + 1):
            rows = np.flatnonzero(folds == fold)
            if len(rows) == n_rows:
                return None
            free = np.eye(len(rows)) - 1.0 / n_rows - (left[rows] * self.kept) @ left[rows].T
            predicted[rows] = self.targets[rows] - np.linalg.solve(free, residuals[rows])
        return predicted

    def _largest(self, scores: Floats) -> Codes:
        found: Codes = self.classes[scores.argmax(axis=1)]
        return found
