"""Everybody who takes part: a new learner is a new entry of this table."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from evergrow.estimators.forest import RUST
from evergrow.estimators.means import NCMMetric
from evergrow.research.comparison.contender import Contender, Estimator, RiverModel
from evergrow.research.comparison.river_learner import adaptive_forest, mondrian_forest, softmax

__all__ = ["CONTENDERS", "choose"]

CONTENDERS: tuple[Contender, ...] = (
    Contender(
        "ncm-forest",
        "NCM forest, recommended update",
        "forests",
        Estimator(
            "evergrow",
            "NCMForestClassifier",
            {"update": RUST(share=0.3), "refresh": 0.1},
        ),
        holds_examples=True,
        on_sample=True,
    ),
    Contender(
        "ncm-forest-igt",
        "NCM forest, IGT",
        "forests",
        Estimator("evergrow", "NCMForestClassifier", {"update": "igt"}),
        holds_examples=True,
    ),
    Contender(
        "ncm-forest-rtst",
        "NCM forest, RTST",
        "forests",
        Estimator("evergrow", "NCMForestClassifier", {"update": "rtst"}),
        holds_examples=True,
    ),
    Contender(
        "regularised-forest",
        "regularised NCM forest",
        "forests",
        Estimator(
            "evergrow",
            "NCMForestClassifier",
            {"n_subsets": 100, "update": RUST(share=0.3), "refresh": 0.1},
        ),
        holds_examples=True,
    ),
    Contender(
        "axis-forest",
        "forest of thresholds",
        "forests",
        Estimator("evergrow", "AxisForestClassifier"),
        holds_examples=True,
    ),
    Contender(
        "linear-forest",
        "forest of random planes",
        "forests",
        Estimator("evergrow", "LinearForestClassifier"),
        holds_examples=True,
    ),
    Contender(
        "class-means",
        "class means",
        "means and least squares",
        Estimator("evergrow", "NCMClassifier"),
    ),
    Contender(
        "lda",
        "streaming LDA",
        "means and least squares",
        Estimator("evergrow", "NCMClassifier", {"metric": "mahalanobis"}),
        on_sample=True,
        note="class means with one shrunk covariance, all from running sums",
    ),
    Contender(
        "metric-means",
        "class means, learnt metric",
        "means and least squares",
        Estimator("evergrow", "NCMClassifier", {"metric": NCMMetric(random_state=0)}),
        note="the metric is learnt on the first classes and kept",
    ),
    Contender(
        "least-squares",
        "least squares",
        "means and least squares",
        Estimator("evergrow", "RLSClassifier"),
        on_sample=True,
    ),
    Contender(
        "least-squares-random",
        "least squares, 4000 random features",
        "means and least squares",
        Estimator("evergrow", "RLSClassifier", {"n_random_features": 4000}),
        in_quick=False,
    ),
    Contender(
        "random-forest",
        "RandomForest",
        "scikit-learn",
        Estimator("sklearn.ensemble", "RandomForestClassifier", {"n_estimators": 50}),
        way="retrained",
    ),
    Contender(
        "extra-trees",
        "ExtraTrees",
        "scikit-learn",
        Estimator("sklearn.ensemble", "ExtraTreesClassifier", {"n_estimators": 50}),
        way="retrained",
    ),
    Contender(
        "linear-svc",
        "LinearSVC",
        "scikit-learn",
        Estimator("sklearn.svm", "LinearSVC", unit_length=True),
        way="retrained",
        note="one against the rest, samples scaled to length 1",
    ),
    Contender(
        "ridge",
        "Ridge",
        "scikit-learn",
        Estimator("sklearn.linear_model", "RidgeClassifier"),
        way="retrained",
    ),
    Contender(
        "nearest-centroid",
        "NearestCentroid",
        "scikit-learn",
        Estimator("sklearn.neighbors", "NearestCentroid"),
        way="retrained",
    ),
    Contender(
        "neighbours",
        "5 nearest neighbours",
        "scikit-learn",
        Estimator("sklearn.neighbors", "KNeighborsClassifier", {"algorithm": "brute"}),
        way="retrained",
        holds_examples=True,
        note="keeps all examples and looks through them for every answer",
    ),
    Contender(
        "sgd",
        "SGD, hinge loss",
        "scikit-learn",
        Estimator("sklearn.linear_model", "SGDClassifier"),
        way="told",
        note="was told all classes beforehand; one pass over each batch",
    ),
    Contender(
        "adaptive-forest",
        "ARF",
        "river",
        RiverModel("forest.ARFClassifier()", adaptive_forest),
        on_sample=True,
    ),
    Contender(
        "mondrian-forest",
        "AMF",
        "river",
        RiverModel("forest.AMFClassifier()", mondrian_forest),
        on_sample=True,
    ),
    Contender(
        "softmax",
        "softmax regression",
        "river",
        RiverModel(
            "preprocessing.StandardScaler() | linear_model.SoftmaxRegression(optim.SGD(0.01))",
            softmax,
        ),
        on_sample=True,
    ),
)


def choose(only: Iterable[str] = (), skip: Iterable[str] = ()) -> tuple[Contender, ...]:
    """Those named in ``only``, or all, without those in ``skip``; a family's name means all of it.

    Examples
    --------
    >>> from evergrow.research import choose
    >>> [contender.name for contender in choose(only=["ridge", "lda"])]
    ['lda', 'ridge']
    """
    wanted, left_out = ({each for name in names for each in _meant(name)} for names in (only, skip))
    chosen = tuple(
        each
        for each in CONTENDERS
        if (not wanted or each.name in wanted) and each.name not in left_out
    )
    if not chosen:
        raise ValueError("every learner was left out; name fewer in skip")
    return chosen


def _meant(name: str) -> list[str]:
    found = [each.name for each in CONTENDERS if name in (each.name, each.family)]
    if not found:
        allowed = [*(each.name for each in CONTENDERS), "scikit-learn", "river", "forests"]
        near = get_close_matches(name, allowed, 3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(allowed)}"
        raise ValueError(f"there is no learner {name!r}: {hint}")
    return found
