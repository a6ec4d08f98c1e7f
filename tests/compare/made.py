"""Generated classes, and invented measurements for tests of the recommendation and the page."""

import math
from dataclasses import fields

import numpy as np

from evergrow.compare import Dataset
from evergrow.compare.learners import ComparedLearner
from evergrow.compare.measurement import Point, Result, Standing


def mixture(n_classes=20, n_features=32, n_train=50, n_test=20, *, distance=0.35, random_state=0):
    """Overlapping Gaussian classes; ``distance`` is that of centres, relative to the spread."""
    rng = np.random.default_rng(random_state)
    centres = distance * rng.standard_normal((n_classes, n_features))
    y = np.repeat(np.arange(n_classes), n_train + n_test)
    X = (rng.standard_normal((len(y), n_features)) + centres[y]).astype(np.float32)
    train = np.arange(len(y)) % (n_train + n_test) < n_train
    return Dataset("mixture", X[train], y[train], X[~train], y[~train])


def learner(name="lda", **changes):
    family = changes.pop("family", "means and least squares")
    return ComparedLearner(family, "evergrow", name, f"the {name}", "NCMClassifier", **changes)


def result(**changes):
    """A result with only the given values measured."""
    nothing = dict.fromkeys((field.name for field in fields(Result)), math.nan)
    nothing |= dict.fromkeys(("points", "answers", "remarks"), ())
    nothing |= {"n_bytes": 0, "model_bytes": 0, "stopped_at": None, "time_limit": math.inf}
    return Result(**{**nothing, **changes})


def answers(share, n=1000):
    """This share of correct answers, the correct ones first."""
    right = round(share * n)
    return "1" * right + "0" * (n - right)


def answered(name, by_class, *, seconds=1.0, n_bytes=10_000, newest=None, **changes):
    """A learner that gave these answers, a text for each class."""
    shares = [each.count("1") / len(each) for each in by_class if each]
    accuracy = "".join(by_class).count("1") / len("".join(by_class))
    mean = sum(shares) / len(shares)
    n = len(by_class)
    last = Point(n, accuracy, mean, mean if newest is None else newest)
    found = result(
        points=(Point(2, 0.9, 0.9, 0.9), Point(6, 0.8, 0.8, 0.8), last),
        answers=tuple(by_class),
        forgetting=0.1,
        seconds_per_update=seconds,
        last_seconds=seconds,
        answer_seconds=1e-5,
        n_bytes=n_bytes,
        model_bytes=n_bytes,
    )
    return Standing(learner(name, **changes), (found,), (2, 6, n))


def standing(name, accuracy, *, spread=0.0, **changes):
    """A learner with this accuracy; ``spread`` is how far classes lie above and below it."""
    by_class = [answers(accuracy + (spread if i % 2 else -spread)) for i in range(10)]
    return answered(name, by_class, **changes)


def stopped(name, **changes):
    found = result(points=(Point(2, 0.9, 0.9, 0.9),), stopped_at=2, time_limit=5.0)
    return Standing(learner(name, **changes), (found,), (2, 6, 10))
