"""Evaluation of scores: the ROC curve and the rate at equal error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RocCurve:
    """A ROC curve: the shares of positives and negatives above each threshold.

    Attributes
    ----------
    false_positive_rate : ndarray of shape (n_points,)
        Share of the negatives with at least the score of the threshold, from 0 to 1.
    true_positive_rate : ndarray of shape (n_points,)
        Share of the positives with at least the score of the threshold.
    thresholds : ndarray of shape (n_points,)
        The thresholds in descending order. The first is infinite.
    """

    false_positive_rate: Floats
    true_positive_rate: Floats
    thresholds: Floats

    @property
    def equal_error_rate(self) -> float:
        """Rate of correct answers at the threshold where both error rates are equal."""
        # Strictly increasing from -1 to 1 along the curve.
        surplus = self.true_positive_rate + self.false_positive_rate - 1.0
        after = int(np.argmax(surplus >= 0))
        part = -surplus[after - 1] / (surplus[after] - surplus[after - 1])
        before, at = self.true_positive_rate[after - 1 : after + 1]
        return float(before + part * (at - before))


def roc(scores: npt.ArrayLike, positives: npt.ArrayLike) -> RocCurve:
    """Compute the ROC curve of scores.

    Parameters
    ----------
    scores : array-like of shape (n_samples,)
        Higher scores mean more likely positive. Equal scores reach a threshold together.
    positives : array-like of shape (n_samples,)
        True, or 1, for positives; False, or 0, for negatives.

    Returns
    -------
    curve : RocCurve
        One point per distinct score, and the one that no score reaches.

    Examples
    --------
    >>> from evergrow.vision import roc
    >>> curve = roc([0.9, 0.8, 0.3, 0.1], [True, False, True, False])
    >>> curve.false_positive_rate.tolist(), curve.true_positive_rate.tolist()
    ([0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0])
    """
    values, positive = _check_scores(scores, positives)
    order = np.argsort(-values, kind="stable")
    values, positive = values[order], positive[order]
    # Equal scores reach a threshold together: only the last of them is a point.
    ends = np.flatnonzero(np.r_[values[1:] != values[:-1], True])
    passed = np.cumsum(positive)[ends]
    true_rate = np.r_[0.0, passed / passed[-1]]
    false_rate = np.r_[0.0, (ends + 1 - passed) / (len(values) - passed[-1])]
    return RocCurve(false_rate, true_rate, np.r_[np.inf, values[ends]])


def equal_error_rate(scores: npt.ArrayLike, positives: npt.ArrayLike) -> float:
    """Compute the rate of correct answers at the threshold where both error rates are equal.

    At this threshold, the same share of positives is above as of negatives is below. Papers on
    image classification report this share as the rate "at the equal error rate". 1 is perfect,
    about 0.5 is chance. It is interpolated between two points of the ROC curve.

    Parameters
    ----------
    scores : array-like of shape (n_samples,)
        Higher scores mean more likely positive.
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


def _check_scores(
    scores: npt.ArrayLike, positives: npt.ArrayLike
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    values = np.asarray(scores, dtype=np.float64)
    marks: npt.NDArray[Any] = np.asarray(positives)
    if values.ndim != 1 or marks.shape != values.shape:
        raise InvalidInputError(
            "scores and positives must be one-dimensional and of equal length, "
            f"got the shapes {values.shape} and {marks.shape}"
        )
    if not np.isfinite(values).all():
        raise InvalidInputError("scores must be finite numbers")
    if marks.dtype.kind not in "biuf" or not np.isin(marks, (0, 1)).all():
        raise InvalidInputError("positives must be True or False, or 1 or 0, for each score")
    positive = marks.astype(bool)
    if positive.all() or not positive.any():
        raise InvalidInputError("there must be at least one positive and one negative")
    return values, positive
