"""Models of river, which learn one example at a time, as learners of batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

from evergrow.foundation.arrays import Array


class RiverLearner:
    """Gives batches to a river model, which takes one example at a time as a dictionary."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self._dtype: Any = None

    def partial_fit(self, X: Any, y: Any) -> RiverLearner:
        """Learn the examples of a batch one by one, in order."""
        labels = np.asarray(y)
        self._dtype = labels.dtype if self._dtype is None else self._dtype
        for example, label in zip(_examples(X), labels.tolist(), strict=True):
            self.model.learn_one(example, label)
        return self

    def predict(self, X: Any) -> Array:
        """Predict one by one; None where the model does not predict a class."""
        predicted = [self.model.predict_one(example) for example in _examples(X)]
        # As text, None would equal a class with the name "None".
        unsure = any(label is None for label in predicted)
        return np.array(predicted, dtype=object if unsure else self._dtype)


def _examples(X: Any) -> Iterator[dict[int, float]]:
    for row in np.asarray(X):
        yield dict(enumerate(row.tolist()))


def softmax(seed: int) -> Any:  # noqa: ARG001
    """Create river's softmax regression by stochastic gradient descent on scaled features."""
    from river import linear_model, optim, preprocessing

    scaler = preprocessing.StandardScaler()
    return scaler | linear_model.SoftmaxRegression(optimizer=optim.SGD(0.01))


def river_forest(name: str) -> Callable[[int], Any]:
    """Return a function from a seed to a forest of river."""
    return lambda seed: getattr(import_module("river.forest"), name)(seed=seed)
