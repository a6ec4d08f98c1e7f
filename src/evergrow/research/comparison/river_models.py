"""Models of river with the parameters that a comparison uses."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def softmax(seed: int) -> Any:  # noqa: ARG001
    """Create river's softmax regression by stochastic gradient descent on scaled features."""
    from river import linear_model, optim, preprocessing

    scaler = preprocessing.StandardScaler()
    return scaler | linear_model.SoftmaxRegression(optimizer=optim.SGD(0.01))


def river_forest(name: str) -> Callable[[int], Any]:
    """Return a function from a seed to a forest of river."""
    return lambda seed: getattr(import_module("river.forest"), name)(seed=seed)
