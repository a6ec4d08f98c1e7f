"""The results of an image classifier: answers to images, and a report on training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import BadImage


@dataclass(frozen=True, eq=False)
class Answers:
    """Predictions for the images that could be read, and the problems with the others.

    Attributes
    ----------
    labels : ndarray of shape (n_answers,)
        The predicted class of each image that could be read, as from ``predict``.
    top_labels : ndarray of shape (n_answers, k)
        The most probable classes, best first.
    top_probabilities : ndarray of shape (n_answers, k)
        Their probabilities.
    kept : ndarray of shape (n_answers,)
        The index of each image in the input.
    problems : tuple of BadImage
        The images that could not be read, and why.
    """

    labels: npt.NDArray[Any]
    top_labels: npt.NDArray[Any]
    top_probabilities: npt.NDArray[np.float64]
    kept: npt.NDArray[np.int64]
    problems: tuple[BadImage, ...]


@dataclass(frozen=True)
class ImageReport:
    """Statistics of one call of ``fit`` or ``partial_fit``.

    Attributes
    ----------
    n_images : int
        Number of training images.
    seconds_features : float
        Time to read the images and compute their features, including learning a vocabulary.
    seconds_learning : float
        Time to train the learner.
    problems : tuple of BadImage
        Images and files that were left out, and why.

    Examples
    --------
    >>> from evergrow.vision import ImageReport
    >>> ImageReport(n_images=200, seconds_features=2.5, seconds_learning=0.1).problems
    ()
    """

    n_images: int
    seconds_features: float
    seconds_learning: float
    problems: tuple[BadImage, ...] = ()
