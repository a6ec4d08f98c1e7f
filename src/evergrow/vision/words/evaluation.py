"""How well scores tell positives from negatives: the ROC curve and the rate at equal error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["RocCurve", "equal_error_rate", "roc"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RocCurve:
    """What a threshold on the score lets through, for all thresholds.

    Attributes
    ----------
    false_positive_rate : ndarray of shape (n_points,)
        Share of the negatives with a score of at least the threshold, from 0 to 1.
    true_positive_rate : ndarray of shape (n_points,)
        Share of the positives.
    thresholds : ndarray of shape (n_points,)
        Falling; the first is infinite, which lets nothing through.
    """

    false_positive_rate: Floats
    true_positive_rate: Floats
    thresholds: Floats

    @property
    def equal_error_rate(self) -> float:
        """Rate of right answers where both kinds of error are equally frequent."""
        # Rises from -1 to 1 along the curve, at every point.
        surplus = self.true_positive_rate + self.false_positive_rate - 1.0
        after = int(np.argmax(surplus >= 0))
        part = -surplus[after - 1] / (surplus[after] - surplus[after - 1])
        before, at = self.true_positive_rate[after - 1 : after + 1]
        return float(before + part * (at - before))


def roc(scores: npt.ArrayLike, positives: npt.ArrayLike) -> RocCurve:
    """The ROC curve of some scores.

    Parameters
    ----------
    scores : array-like of shape (n_samples,)
        The higher, the more likely positive. Equal scores pass a threshold together.
    positives : array-like of shape (n_samples,)
        True, or 1, for positives; False, or 0, for negatives.

    Returns
    -------
    curve : RocCurve
        One point per different score, and the one where nothing passes.

    Examples
    --------
    >>> from evergrow.vision import roc
    >>> curve = roc([0.9, 0.8, 0.3, 0.1], [True, False, True, False])
    >>> curve.false_positive_rate.tolist(), curve.true_positive_rate.tolist()
    ([0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0])
    """
    values, positive = _checked(scores, positives)
    order = np.argsort(-values, kind="stable")
    values, positive = values[order], positive[order]
    # Equal scores pass together: only the last of them is a point.
    ends = np.flatnonzero(np.r_[values[1:] != values[:-1], True])
    passed = np.cumsum(positive)[ends]
    true_rate = np.r_[0.0, passed / passed[-1]]
    false_rate = np.r_[0.0, (ends + 1 - passed) / (len(values) - passed[-1])]
    return RocCurve(false_rate, true_rate, np.r_[np.inf, values[ends]])


def equal_error_rate(scores: npt.ArrayLike, positives: npt.ArrayLike) -> float:
    """Classification rate at equal error: 1 minus the error where both kinds are equal.

    This is the figure that papers on image classification report "at the equal error rate": the
    share of positives that pass the threshold at which the same share of negatives does not. 1 is
    perfect, about 0.5 is chance. Between two points of the ROC curve it is interpolated.

    Parameters
    ----------
    scores : array-like of shape (n_samples,)
        The higher, the more likely positive.
    positives : array-like of shape (n_samples,)
        True, or 1, for positives; False, or 0, for negatives.

    Returns
    -------
    rate : float
        From 0 to 1.

    Examples
    --------
    >>> from evergrow.vision import equal_error_rate
    >>> equal_error_rate([0.9, 0.8, 0.3, 0.1], [True, False, True, False])
    0.5
    """
    return roc(scores, positives).equal_error_rate


def _checked(
    scores: npt.ArrayLike, positives: npt.ArrayLike
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    values = np.asarray(scores, dtype=np.float64)
    marks: npt.NDArray[Any] = np.asarray(positives)
    if values.ndim != 1 or marks.shape != values.shape:
        raise ValueError(
            "scores and positives must be flat and equally long, "
            f"got the shapes {values.shape} and {marks.shape}"
        )
    if not np.isfinite(values).all():
        raise ValueError("scores must be finite numbers")
    if marks.dtype.kind not in "biuf" or not np.isin(marks, (0, 1)).all():
        raise ValueError("positives must be True or False, or 1 or 0, for each score")
    positive = marks.astype(bool)
    if positive.all() or not positive.any():
        raise ValueError("there must be at least one positive and one negative")
    return values, positive
