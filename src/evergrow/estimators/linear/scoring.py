"""From weights times features to the scores that are compared between classes.

The paper compares regressions: ``s_k = w_k.x``, times how rare the class is [Camoriano2017 Eq. 21].
With many classes these are not on one scale: a class that is far from the others fits its target
better. Cosines are: with ``A`` the penalised matrix (:mod:`evergrow.estimators.linear.equations`)
and ``m_k`` the mean of a class, both seen from the mean of all, ``x' A^-1 m_k`` divided by the root
of ``m_k' A^-1 m_k`` is ``|x|`` times the cosine of ``x`` and ``m_k`` in the metric of ``A``. The
root of the number of examples follows as a factor, so that recoding has the same meaning for
both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evergrow.estimators.linear.equations import Ridge, intercept_penalty, mean_counts
from evergrow.estimators.sums.moments import Moments

Floats = npt.NDArray[np.float64]
# Squared lengths of class means below this are rounding errors.
_SMALLEST = 1e-12


def recode(moments: Moments, recoding: float) -> Floats:
    """Return ``(total / count)^alpha`` per class, 0 without examples [Camoriano2017 Eq. 21]."""
    counts = moments.class_weights
    known = counts > 0
    ratio = np.divide(counts.sum(), counts, out=np.ones_like(counts), where=known)
    return np.where(known, ratio**recoding, 0.0)


def normalising_factors(moments: Moments, recoding: float) -> Floats:
    """Return factors that recode scores and keep their scale; 0 for classes without examples."""
    factors = recode(moments, recoding)
    shares = moments.class_weights / moments.class_weights.sum()
    return factors / float(shares @ factors)


def mean_product(total: npt.ArrayLike, ridge: Ridge) -> Floats:
    """Return what the constant feature adds to every product ``x' A^-1 y``.

    ``total`` is how often all class means count together. Without an intercept it is nothing.
    """
    totals = np.asarray(total, dtype=np.float64)
    if not ridge.intercept:
        return np.zeros_like(totals)
    return np.asarray(1.0 / (totals + intercept_penalty(ridge)))


def cosine_factors(squares: Floats) -> Floats:
    """Return factors that turn products with class means into cosines times the length of a row.

    ``squares`` are the squared lengths of the means. Products with a mean of no length are zero,
    and stay.
    """
    return np.asarray(1.0 / np.sqrt(np.where(squares > _SMALLEST, squares, 1.0)))


@dataclass(frozen=True, eq=False)
class ClassScale:
    """What scores of the classes are reduced by, and the factors that follow.

    Attributes
    ----------
    offsets : ndarray of shape (n_classes,)
        The mean score over all classes; zero for regressions and without an intercept.
    factors : ndarray of shape (n_classes,)
        0 for classes without examples, whose scores are minus infinity.
    """

    offsets: Floats
    factors: Floats

    @classmethod
    def of(
        cls,
        moments: Moments,
        own_scores: Floats,
        recoding: float,
        ridge: Ridge,
        *,
        normalised: bool = False,
    ) -> ClassScale:
        """Return the scale for given own scores.

        ``normalised`` keeps the mean factor of the recoding at one, for probabilities.
        """
        factors = (normalising_factors if normalised else recode)(moments, recoding)
        counts = moments.class_weights
        if ridge.scoring == "regression":
            return cls(np.zeros_like(counts), factors)
        times = mean_counts(counts, ridge)
        origin = mean_product(times.sum(), ridge)
        # From weights and scores of right sides to those of means.
        per_mean = 1.0 / np.where(times > 0, times, 1.0)
        lengths = cosine_factors(own_scores * per_mean**2 - origin)
        return cls(times * origin, factors * np.sqrt(counts) * per_mean * lengths)

    def apply(self, scores: Floats) -> Floats:
        """Scale scores of regressions."""
        scaled: Floats = (scores - self.offsets) * self.factors
        return scaled
