"""river's models, which take one example at a time as a dictionary, behind batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["RiverLearner", "adaptive_forest", "mondrian_forest", "softmax"]

Array = npt.NDArray[Any]


class RiverLearner:
    """A model of river's that follows a stream."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self._dtype: Any = None

    def partial_fit(self, X: Any, y: Any) -> RiverLearner:
        """Learn the examples of a batch one by one, in their order."""
        labels = np.asarray(y)
        self._dtype = labels.dtype if self._dtype is None else self._dtype
        for example, label in zip(_examples(X), labels.tolist(), strict=True):
            self.model.learn_one(example, label)
        return self

    def predict(self, X: Any) -> Array:
        """Answer one by one; None, which is no class, where the model gives no answer."""
        answers = [self.model.predict_one(example) for example in _examples(X)]
        # Else the text "None" might be taken for a class of that name.
        unsure = any(answer is None for answer in answers)
        return np.array(answers, dtype=object if unsure else self._dtype)


def _examples(X: Any) -> Iterator[dict[int, float]]:
    for row in np.asarray(X):
        yield dict(enumerate(row.tolist()))


def softmax(seed: int) -> Any:  # noqa: ARG001
    """Softmax regression by stochastic gradients on features that are scaled on the way."""
    from river import linear_model, optim, preprocessing

    scaler = preprocessing.StandardScaler()
    return scaler | linear_model.SoftmaxRegression(optimizer=optim.SGD(0.01))


def mondrian_forest(seed: int) -> Any:
    """Aggregated Mondrian forest."""
    from river import forest

    return forest.AMFClassifier(seed=seed)


def adaptive_forest(seed: int) -> Any:
    """Adaptive random forest."""
    from river import forest

    return forest.ARFClassifier(seed=seed)
