"""The same class-incremental stream for ours and for what others have."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import SGDClassifier
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from threadpoolctl import threadpool_limits

from benchmarks.data import Array, Split, image_features, mixture
from benchmarks.measure import THREADS, show_table
from evergrow import NCMClassifier, NCMForestClassifier, RLSClassifier

__all__ = ["run"]

# river learns one example at a time in Python; all of them would take most of an hour.
RIVER_EXAMPLES = 5000


class _Retrained:
    """Keeps all examples and trains anew with every batch."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make, self.X, self.y = make, [], []  # type: ignore[var-annotated]

    def partial_fit(self, X: Array, y: Array) -> None:
        self.X.append(X)
        self.y.append(y)
        self.model = self.make().fit(np.concatenate(self.X), np.concatenate(self.y))

    def predict(self, X: Array) -> Array:
        answers: Array = self.model.predict(X)
        return answers

    def score(self, X: Array, y: Array) -> float:
        return float(self.model.score(X, y))


def _learn(model: Any, split: Split, batches: list[Array], **options: Any) -> tuple[float, float]:
    """Seconds of all updates with an answer after each, and accuracy in the end."""
    start = time.perf_counter()
    for batch in batches:
        model.partial_fit(split.X[batch], split.y[batch], **options)
        # Some solve only when they are asked.
        model.predict(split.X_test[:1])
    seconds = time.perf_counter() - start
    return seconds, 100 * float(model.score(split.X_test, split.y_test))


def _river(split: Split, n: int) -> tuple[float, float] | None:
    """river's softmax regression on the first examples of each class, class after class."""
    try:
        from river import linear_model, optim, preprocessing
    except ImportError:
        return None
    per_class = max(1, n // len(np.unique(split.y)))
    chosen = np.concatenate([np.flatnonzero(split.y == c)[:per_class] for c in np.unique(split.y)])
    model: Any = preprocessing.StandardScaler() | linear_model.SoftmaxRegression(optim.SGD(0.01))
    names = list(range(split.X.shape[1]))
    start = time.perf_counter()
    for i in chosen.tolist():
        model.learn_one(dict(zip(names, split.X[i].tolist(), strict=True)), int(split.y[i]))
    seconds = time.perf_counter() - start
    tested = np.random.default_rng(0).permutation(len(split.y_test))[:1000]
    answers = [
        model.predict_one(dict(zip(names, split.X_test[i].tolist(), strict=True)))
        for i in tested.tolist()
    ]
    return seconds, 100 * float(np.mean(np.array(answers) == split.y_test[tested]))


def run(quick: bool) -> None:
    """Five classes at a time, each example shown once."""
    split = mixture(2000, 32, 20, n_test=1000) if quick else image_features()
    classes = np.random.default_rng(0).permutation(np.unique(split.y))
    batches = [
        np.flatnonzero(np.isin(split.y, classes[i : i + 5])) for i in range(0, len(classes), 5)
    ]
    n_random = 200 if quick else 4000
    contenders: dict[str, tuple[Any, dict[str, Any]]] = {
        "RLSClassifier": (RLSClassifier(random_state=0), {}),
        f"RLSClassifier, {n_random} random features": (
            RLSClassifier(n_random_features=n_random, random_state=0),
            {},
        ),
        "NCMClassifier": (NCMClassifier(), {}),
        "streaming LDA: NCMClassifier, mahalanobis": (NCMClassifier(metric="mahalanobis"), {}),
        "NCMForestClassifier(50)": (NCMForestClassifier(n_jobs=THREADS, random_state=0), {}),
        "SGDClassifier, hinge": (SGDClassifier(random_state=0), {"classes": classes}),
        "SGDClassifier, log loss": (
            SGDClassifier(loss="log_loss", random_state=0),
            {"classes": classes},
        ),
        "KNeighbors (brute), keeps all": (
            _Retrained(lambda: KNeighborsClassifier(algorithm="brute", n_jobs=THREADS)),
            {},
        ),
        "NearestCentroid, retrained": (_Retrained(NearestCentroid), {}),
    }
    rows: list[tuple[str, object, object]] = []
    with threadpool_limits(THREADS):
        for name, (model, options) in contenders.items():
            rows.append((name, *_learn(model, split, batches, **options)))
        found = _river(split, 400 if quick else RIVER_EXAMPLES)
    name = f"river SoftmaxRegression, {400 if quick else RIVER_EXAMPLES} examples"
    rows.append((name, *(("not installed", "") if found is None else found)))
    show_table(
        f"linear: {split.name}, five classes at a time, each example once",
        ["", "updates s", "accuracy %"],
        rows,
    )
