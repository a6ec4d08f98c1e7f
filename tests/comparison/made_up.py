"""Measurements that nobody made, to try rules and pages on."""

import math

from evergrow.comparison import Contender, Estimator, Result, Standing
from evergrow.comparison.result import Point


def contender(name="lda", **changes):
    recipe = Estimator("evergrow", "NCMClassifier", {"metric": "mahalanobis"})
    settings = {"family": "means and least squares", "recipe": recipe, **changes}
    return Contender(name, f"the {name}", **settings)


def standing(name, accuracy, *, seconds=1.0, n_bytes=10_000, newest=None, spread=0.0, **changes):
    """A learner with this accuracy; ``spread`` is how far classes lie above and below it."""
    classes = tuple(accuracy + (spread if i % 2 else -spread) for i in range(10))
    last = Point(10, accuracy, accuracy if newest is None else newest)
    result = Result(
        points=(Point(2, 0.9, 0.9), Point(6, 0.8, 0.8), last),
        class_accuracies=classes,
        forgetting=0.1,
        seconds_per_update=seconds,
        last_seconds=seconds,
        answer_seconds=1e-5,
        n_bytes=n_bytes,
        model_bytes=n_bytes,
    )
    return Standing(contender(name, **changes), (result,), (2, 6, 10))


def stopped(name, **changes):
    result = Result(points=(Point(2, 0.9, 0.9),), stopped_at=2, time_limit=5.0)
    return Standing(contender(name, **changes), (result,), (2, 6, 10))


def is_missing(number):
    return math.isnan(number)
