"""The same class-incremental streams for ours and for what others have: time of all updates."""

from __future__ import annotations

import time
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeClassifier, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from threadpoolctl import threadpool_limits

from benchmarks.data import Array, Split, image_features, mixture
from benchmarks.measure import THREADS, Figure, report, show_table
from evergrow import NCMClassifier, NCMForestClassifier, RLSClassifier
from evergrow.research import ClassStream, Retrained
from evergrow.research.comparison.river_models import softmax


def run(quick: bool) -> None:
    """Batches of 100 next to SGD, and five classes at a time next to all others."""
    split = mixture(4000, 64, 40, n_test=2000) if quick else image_features()
    with threadpool_limits(THREADS):
        _next_to_sgd(split)
        _next_to_all(split, 200 if quick else 4000, 400 if quick else 5000)


def _next_to_sgd(split: Split) -> None:
    order = np.argsort(split.y, kind="stable")
    batches = [order[i : i + 100] for i in range(0, len(order), 100)]
    # The scores of ridge regression, so that the two can be compared exactly.
    model = RLSClassifier(regularization=1.0, recoding=0.0, scoring="regression")
    ours, accuracy = _learn(model, split, batches, ask=False)
    theirs, _ = _learn(SGDClassifier(random_state=0), split, batches, ask=False)
    ridge = RidgeClassifier(alpha=1.0).fit(split.X, split.y)
    difference = abs(accuracy - 100 * ridge.score(split.X_test, split.y_test))
    figures = [
        Figure("time of SGDClassifier / ours", theirs / ours, 1),
        Figure("accuracy points from ridge on everything", difference, 0.1, "at most"),
    ]
    title = f"{split.name}, class after class in batches of 100"
    report("linear", title, figures, bars=split.name.startswith("CIFAR"))


def _next_to_all(split: Split, n_random: int, n_river: int) -> None:
    batches = [step.rows for step in ClassStream(5, 5).steps(split.y)]
    contenders: dict[str, Any] = {
        "RLSClassifier": RLSClassifier(random_state=0),
        f"RLSClassifier, {n_random} random features": RLSClassifier(
            n_random_features=n_random, random_state=0
        ),
        "NCMClassifier": NCMClassifier(),
        "streaming LDA: NCMClassifier, mahalanobis": NCMClassifier(metric="mahalanobis"),
        "NCMForestClassifier(50)": NCMForestClassifier(n_jobs=THREADS, random_state=0),
        "SGDClassifier, hinge": SGDClassifier(random_state=0),
        "SGDClassifier, log loss": SGDClassifier(loss="log_loss", random_state=0),
        "KNeighbors (brute), keeps all": Retrained(
            lambda: KNeighborsClassifier(algorithm="brute", n_jobs=THREADS)
        ),
        "NearestCentroid, retrained": Retrained(NearestCentroid),
    }
    rows = [(name, *_learn(model, split, batches)) for name, model in contenders.items()]
    if find_spec("river"):
        from evergrow.integrations.river import BatchClassifier

        # One example at a time in Python; all of them would take most of an hour.
        labels = np.unique(split.y)
        n_each = n_river // len(labels)
        some = [np.flatnonzero(split.y == label)[:n_each] for label in labels]
        name = f"river SoftmaxRegression, {n_river} examples"
        model = BatchClassifier(softmax(0))
        rows.append((name, *_learn(model, split.head(len(split.y), 1000), some)))
    show_table(
        f"linear: {split.name}, five classes at a time, each example once",
        ["", "updates s", "accuracy %"],
        rows,
    )


def _learn(
    model: Any, split: Split, batches: list[Array], *, ask: bool = True
) -> tuple[float, float]:
    """Seconds of all updates, and accuracy in the end; ``ask`` for an answer after each.

    Some solve only when they are asked: without ``ask`` the answers in the end are timed too.
    """
    told = {"classes": np.unique(split.y)} if isinstance(model, SGDClassifier) else {}
    start = time.perf_counter()
    for batch in batches:
        model.partial_fit(split.X[batch], split.y[batch], **told)
        if ask:
            model.predict(split.X_test[:1])
    seconds = time.perf_counter() - start
    accuracy = 100 * float(np.mean(model.predict(split.X_test) == split.y_test))
    return seconds if ask else time.perf_counter() - start, accuracy
