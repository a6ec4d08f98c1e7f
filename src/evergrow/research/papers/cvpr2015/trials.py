"""One trial: a contender taught what a draw tells, and asked about the test samples."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.research.papers.cvpr2015.contenders import CONTENDERS
from evergrow.research.papers.cvpr2015.levels import Draw, TwoLevels

__all__ = ["METRIC_PARTS", "Values", "attempt", "through_metric"]

Array = npt.NDArray[Any]
Values = dict[str, float]

# Bounds the time on birds, where learning goes on longest; CIFAR-100 stops before of itself.
_MAX_EPOCHS = 15


def attempt(
    name: str,
    shown: Draw,
    data: TwoLevels,
    *,
    n_trees: int,
    seed: int,
    n_jobs: int,
    parameters: Mapping[str, Any] | None = None,
) -> Values:
    """Accuracy on both levels, comparisons per tree and test sample, and seconds of training.

    ``shown`` and the test samples of ``data`` are seen as they are: through a metric, if any, of
    :func:`through_metric`. As in the paper accuracy is the mean over classes.
    """
    from sklearn.metrics import balanced_accuracy_score

    contender = CONTENDERS[name]
    model = contender.make(n_trees, seed, n_jobs, **(parameters or {}))
    start = time.perf_counter()
    contender.teach(model, shown)
    values: Values = {"seconds": time.perf_counter() - start}
    fine, coarse = contender.answer(model, data.X_test, data.parents)
    if fine is not None:
        values["accuracy"] = float(balanced_accuracy_score(data.fine_test, fine))
    values["coarse_accuracy"] = float(balanced_accuracy_score(data.coarse_test, coarse))
    if hasattr(model, "comparisons"):
        values["comparisons"] = float(model.comparisons(data.X_test))
    return values


def through_metric(metric: str, shown: Draw, data: TwoLevels, seed: int) -> tuple[Draw, TwoLevels]:
    """Training and test samples as a metric, learnt on a part of the draw, shows them."""
    from evergrow import NCMMetric

    if metric == "none":
        return shown, data
    rows, labels = METRIC_PARTS[metric](shown)
    learnt = NCMMetric(max_iter=_MAX_EPOCHS, random_state=seed).fit(shown.X[rows], labels[rows])
    return (
        replace(shown, X=learnt.transform(shown.X)),
        replace(data, X_test=learnt.transform(data.X_test)),
    )


# Which samples a metric is learnt from, and with which labels.
METRIC_PARTS: dict[str, Callable[[Draw], tuple[Array, Array]]] = {
    "coarse": lambda shown: (~shown.known, shown.coarse),
    "fine": lambda shown: (shown.known, shown.fine),
    "all": lambda shown: (np.ones(len(shown.fine), dtype=bool), shown.fine),
}
