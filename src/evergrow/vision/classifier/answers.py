"""What a classifier says of images, some of which it may not be able to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import BadImage

__all__ = ["Answers", "best_classes"]


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers to the images that could be read, and why there is none to the others.

    Attributes
    ----------
    labels : ndarray of shape (n_answers,)
        The answer to each image that could be read, as ``predict`` gives it.
    top_labels : ndarray of shape (n_answers, k)
        The best classes, best first.
    top_probabilities : ndarray of shape (n_answers, k)
        Their probabilities.
    kept : ndarray of shape (n_answers,)
        The place of each image among those asked about.
    problems : tuple of BadImage
        The others.
    """

    labels: npt.NDArray[Any]
    top_labels: npt.NDArray[Any]
    top_probabilities: npt.NDArray[np.float64]
    kept: npt.NDArray[np.int64]
    problems: tuple[BadImage, ...]


def best_classes(
    learner: Any, matrix: npt.NDArray[Any], k: int
) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
    """The ``k`` best classes of each row and their probabilities."""
    probabilities = learner.predict_proba(matrix)
    columns = np.argsort(-probabilities, axis=1, kind="stable")[:, :k]
    if hasattr(learner, "predict_top_k"):
        # Probabilities may be equal in rounding where scores are not.
        column_of = {label: k for k, label in enumerate(learner.classes_.tolist())}
        best = learner.predict_top_k(matrix, k).tolist()
        columns = np.array([[column_of[label] for label in row] for row in best], dtype=np.intp)
    return learner.classes_[columns], np.take_along_axis(probabilities, columns, axis=1)
