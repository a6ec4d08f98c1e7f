"""The learners of a comparison: how each is created and what it can do.

To add a learner to all comparisons, add an entry to ``LEARNERS``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal, cast

import numpy as np

from evergrow.compare.data import Array
from evergrow.compare.stream import Learner, Retrained
from evergrow.estimators.forest import IGT, RTST, Regularised
from evergrow.estimators.linear import ReLU
from evergrow.estimators.means import NCMMetric
from evergrow.foundation.errors import InvalidInputError

Family = Literal["forests", "means and least squares", "scikit-learn", "river", "peers"]
# "grows": accepts new classes at any time. "told": learns incrementally, but must know all classes
# in advance. "retrained": is trained again on all examples, which must be stored.
Way = Literal["grows", "told", "retrained"]


@dataclass(frozen=True)
class ComparedLearner:
    """A learner in a comparison: an estimator with parameters, imported when it is built."""

    family: Family
    module: str
    name: str
    """The name for ``--only`` and ``--skip``."""
    title: str
    """The name in tables."""
    estimator: str
    """The name of the class, or the call that ``make`` stands for."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    make: Callable[[int], Any] | None = None
    """Creates a model of river from a seed."""
    way: Way = "grows"
    unit_length: bool = False
    """Whether samples are scaled to length 1 first."""
    threaded: bool = True
    """Whether ``n_jobs`` has an effect, if it is a parameter at all."""
    holds_examples: bool = False
    """Whether the trained model itself stores the examples."""
    on_sample: bool = False
    """Whether it is also measured on the subsample, because it is slow or as a reference."""
    in_quick: bool = True
    """Whether it is fast enough for a quick run."""
    note: str = ""
    """A remark for the tables."""

    @property
    def is_installed(self) -> bool:
        """Whether its module can be imported."""
        try:
            return find_spec(self.module) is not None
        except ModuleNotFoundError:
            return False

    @property
    def code(self) -> str:
        """The Python call that creates it, for display."""
        if self.make:
            return self.estimator
        given = [f"{name}={value!r}" for name, value in self.parameters.items()]
        call = f"{self.estimator}({', '.join(given)})"
        return f"make_pipeline(Normalizer(), {call})" if self.unit_length else call

    def build(self, seed: int, n_jobs: int) -> Any:
        """Create a model; set ``n_jobs`` and ``random_state`` where it has them."""
        if self.make:
            model = self.make(seed)
            # Its module imports river.
            from evergrow.integrations.river import BatchClassifier

            return BatchClassifier(model)
        model = getattr(import_module(self.module), self.estimator)(**self.parameters)
        shared = {"random_state": seed} | ({"n_jobs": n_jobs} if self.threaded else {})
        accepted = model.get_params(deep=False)
        model.set_params(**{name: value for name, value in shared.items() if name in accepted})
        if not self.unit_length:
            return model
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import Normalizer

        return make_pipeline(Normalizer(), model)

    def create(self, seed: int, n_jobs: int, classes: Array) -> Learner:
        """Create an untrained learner for a stream of these classes."""
        if self.way == "retrained":
            return Retrained(lambda: self.build(seed, n_jobs))
        model = cast(Learner, self.build(seed, n_jobs))
        return _Told(model, classes) if self.way == "told" else model


class _Told:
    """Passes all classes of the stream to a model that must know them in advance."""

    def __init__(self, model: Any, classes: Array) -> None:
        self.model, self._classes = model, np.sort(classes)

    def partial_fit(self, X: Any, y: Any) -> _Told:
        self.model.partial_fit(X, y, classes=self._classes)
        return self

    def predict(self, X: Any) -> Array:
        return cast(Array, self.model.predict(X))


def _river_softmax(seed: int) -> Any:  # noqa: ARG001
    from river import linear_model, optim, preprocessing

    scaler = preprocessing.StandardScaler()
    return scaler | linear_model.SoftmaxRegression(optimizer=optim.SGD(0.01))


_forest = partial(ComparedLearner, "forests", "evergrow")
_linear = partial(ComparedLearner, "means and least squares", "evergrow")
_sklearn = partial(ComparedLearner, "scikit-learn", way="retrained")
# The heads of other papers come with the distribution evergrow-papers.
_peer = partial(ComparedLearner, "peers", "evergrow_papers.peers")
_river = partial(ComparedLearner, "river", "river", on_sample=True)
_NCM, _RECOMMENDED = "NCMForestClassifier", {"update": "igt"}
_REGULARISED = {"splits": Regularised(), **_RECOMMENDED}
_TREES, _FEATURES = {"n_estimators": 50}, {"n_random_features": 4000}

LEARNERS: tuple[ComparedLearner, ...] = (
    _forest("ncm-forest", "NCM forest, recommended update", _NCM, _RECOMMENDED, on_sample=True),
    _forest("ncm-forest-igt", "NCM forest, IGT", _NCM, {"update": IGT(refresh=0.0)}),
    _forest("ncm-forest-rtst", "NCM forest, RTST", _NCM, {"update": RTST(refresh=0.0)}),
    _forest("regularised-forest", "regularised NCM forest", _NCM, _REGULARISED),
    _forest("axis-forest", "forest of thresholds", "AxisForestClassifier"),
    _forest("linear-forest", "forest of random planes", "LinearForestClassifier"),
    _linear("class-means", "class means", "NCMClassifier"),
    _linear(
        "lda",
        "streaming LDA",
        "NCMClassifier",
        {"metric": "mahalanobis"},
        on_sample=True,
        note="class means with one shrunk covariance, all from running sums",
    ),
    _linear(
        "metric-means",
        "class means, learnt metric",
        "NCMClassifier",
        {"metric": NCMMetric(random_state=0)},
        note="the metric is learnt on the first classes and not updated",
    ),
    _linear("least-squares", "least squares", "RLSClassifier", on_sample=True),
    _linear(
        "least-squares-random",
        "least squares, 4000 random features",
        "RLSClassifier",
        {"features": ReLU(4000)},
        in_quick=False,
    ),
    _sklearn("sklearn.ensemble", "random-forest", "RandomForest", "RandomForestClassifier", _TREES),
    _sklearn("sklearn.ensemble", "extra-trees", "ExtraTrees", "ExtraTreesClassifier", _TREES),
    _sklearn(
        "sklearn.svm",
        "linear-svc",
        "LinearSVC",
        "LinearSVC",
        unit_length=True,
        note="one against the rest, samples scaled to length 1",
    ),
    _sklearn(
        "sklearn.linear_model",
        "logistic",
        "logistic regression",
        "LogisticRegression",
        {"C": 10.0, "max_iter": 200},
        unit_length=True,
        threaded=False,
        note="remembers all examples, scaled to length 1",
    ),
    _sklearn("sklearn.linear_model", "ridge", "Ridge", "RidgeClassifier"),
    _sklearn("sklearn.neighbors", "nearest-centroid", "NearestCentroid", "NearestCentroid"),
    _sklearn(
        "sklearn.neighbors",
        "neighbours",
        "5 nearest neighbours",
        "KNeighborsClassifier",
        {"algorithm": "brute"},
        holds_examples=True,
        note="stores all examples and searches them for every prediction",
    ),
    _sklearn(
        "sklearn.linear_model",
        "sgd",
        "SGD, hinge loss",
        "SGDClassifier",
        way="told",
        note="knew all classes in advance; one pass over each batch",
    ),
    _peer(
        "ranpac",
        "RanPAC, 4000 random features",
        "RanPACClassifier",
        _FEATURES,
        in_quick=False,
        note="random projections and ridge regression (McDonnell et al. 2023)",
    ),
    _peer(
        "fly-cl",
        "Fly-CL, 4000 random features",
        "FlyCLClassifier",
        _FEATURES,
        in_quick=False,
        note="winners of a sparse projection and ridge regression (Zou et al. 2025)",
    ),
    _peer(
        "klda",
        "KLDA, 4000 random features",
        "KLDAClassifier",
        _FEATURES,
        in_quick=False,
        note="random Fourier features and one covariance (Momeni et al. 2025)",
    ),
    _peer(
        "slda",
        "SLDA",
        "StreamingLDAClassifier",
        note="running means and covariance, shrunk by 0.0001 (Hayes and Kanan 2020)",
    ),
    _river(
        "adaptive-forest",
        "ARF",
        "forest.ARFClassifier()",
        make=lambda seed: import_module("river.forest").ARFClassifier(seed=seed),
    ),
    _river(
        "mondrian-forest",
        "AMF",
        "forest.AMFClassifier()",
        make=lambda seed: import_module("river.forest").AMFClassifier(seed=seed),
    ),
    _river(
        "softmax",
        "softmax regression",
        "preprocessing.StandardScaler() | linear_model.SoftmaxRegression(optim.SGD(0.01))",
        make=_river_softmax,
    ),
)


def known_learners() -> tuple[ComparedLearner, ...]:
    """Return the learners of a comparison; peers are among them if they are installed."""
    return tuple(each for each in LEARNERS if each.family != "peers" or each.is_installed)


def choose(only: Iterable[str] = (), skip: Iterable[str] = ()) -> tuple[ComparedLearner, ...]:
    """Select learners for a comparison by their names or families."""
    wanted, left_out = ({each for name in names for each in _find(name)} for names in (only, skip))
    chosen = [each for each in known_learners() if not wanted or each.name in wanted]
    chosen = [each for each in chosen if each.name not in left_out]
    if not chosen:
        raise InvalidInputError("every learner was left out; name fewer in skip")
    return tuple(chosen)


def _find(name: str) -> list[str]:
    known = known_learners()
    found = [each.name for each in known if name in (each.name, each.family)]
    if found:
        return found
    if any(name in (each.name, each.family) for each in LEARNERS):
        raise InvalidInputError(
            f"{name!r} comes with the package evergrow-papers: run 'pip install ./papers' in a "
            "checkout of Evergrow"
        )
    allowed = list(dict.fromkeys([*(k.name for k in known), *(k.family for k in known)]))
    near = get_close_matches(name, allowed, 3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"choose from {', '.join(allowed)}"
    raise InvalidInputError(f"unknown learner {name!r}: {hint}")
