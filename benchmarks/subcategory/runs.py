"""One run: a contender trained on one draw of a data set and asked about the test samples."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import balanced_accuracy_score
from sklearn.neighbors import KNeighborsClassifier

from benchmarks.data import Array
from benchmarks.measure import THREADS
from benchmarks.subcategory.data import TwoLevels
from benchmarks.subcategory.protocol import Draw, draw
from benchmarks.subcategory.results import Results, Summary, Values
from evergrow import NCMClassifier, NCMForestClassifier, NCMMetric, SubcategoryForestClassifier

__all__ = ["CONTENDERS", "METHODS", "REGULARISED", "Bench", "Setting"]

# In the order of the paper's tables; the last is ours.
METHODS = ("fine-only", "stacked", "joint", "nn", "hierarchical", "nn-h", "ridge-h")

# What a forest with many subsets has unless a run says otherwise.
REGULARISED: dict[str, Any] = {
    "n_subsets": 100,
    "n_assignments": 50,
    "subset_scale": 1.0,
    "cost_weight": 0.001,
    "max_scoring_samples": 1024,
    "min_samples_leaf": 10,
}
OWN_DEFAULTS = REGULARISED | {"max_scoring_samples": "auto"}
# What each method takes for "auto", and what else a run may name.
OWN_CHOICES: dict[str, dict[str, Any]] = {
    "joint": {"coarse_weight": 0.1, "class_means": "both"},
    "nn": {"guess": "nn"},
    "hierarchical": {"coarse_weight": 1.0, "class_means": "both"},
    "nn-h": {"coarse_weight": 1.0, "class_means": "both", "guess": "nn"},
    "ridge-h": {"coarse_weight": 1.0, "class_means": "both", "guess": "ridge"},
}


@dataclass(frozen=True)
class Contender:
    """How an estimator is made, what it is shown, and what it answers about test samples.

    ``answer`` gives the fine and the coarse classes; a model of coarse classes has no fine ones.
    ``usual`` are parameters that it has unless told otherwise: a run that names them is no other.
    """

    make: Callable[..., Any]
    teach: Callable[[Any, Draw], Any]
    answer: Callable[[Any, Array, Array], tuple[Array | None, Array]]
    usual: Mapping[str, Any] = field(default_factory=dict)


def _forest(n_trees: int, seed: int, **parameters: Any) -> Any:
    return NCMForestClassifier(n_trees, n_jobs=THREADS, random_state=seed, **parameters)


def _subcategories(method: str, n_trees: int, seed: int, **parameters: Any) -> Any:
    return SubcategoryForestClassifier(
        n_trees, method=method, n_jobs=THREADS, random_state=seed, **(REGULARISED | parameters)
    )


def _without_seed(make: Callable[..., Any], _n_trees: int, _seed: int, **parameters: Any) -> Any:
    return make(**parameters)


def _fine_answers(model: Any, X: Array, parents: Array) -> tuple[Array | None, Array]:
    fine = model.predict(X)
    return fine, parents[fine]


def _both_answers(model: Any, X: Array, _parents: Array) -> tuple[Array | None, Array]:
    return model.predict(X), model.predict_coarse(X)


def _coarse_answers(model: Any, X: Array, _parents: Array) -> tuple[Array | None, Array]:
    return None, model.predict(X)


def _show_fine_part(model: Any, shown: Draw) -> Any:
    return model.fit(shown.X[shown.known], shown.fine[shown.known])


def _show_all_fine(model: Any, shown: Draw) -> Any:
    return model.fit(shown.X, shown.fine)


def _method(method: str) -> Contender:
    return Contender(
        partial(_subcategories, method),
        lambda model, shown: model.fit(shown.X, shown.labels),
        _both_answers,
        REGULARISED | OWN_CHOICES.get(method, {}),
    )


def _peer(make: Callable[..., Any]) -> Contender:
    return Contender(partial(_without_seed, make), _show_fine_part, _fine_answers)


CONTENDERS: dict[str, Contender] = {
    **{method: _method(method) for method in METHODS},
    # The same samples, all with their fine labels.
    "full": Contender(partial(_forest, **REGULARISED), _show_all_fine, _fine_answers, REGULARISED),
    "plain": Contender(_forest, _show_all_fine, _fine_answers),
    # With what NCMForestClassifier takes unless told otherwise.
    "regularised": Contender(
        partial(_forest, n_subsets=100), _show_all_fine, _fine_answers, OWN_DEFAULTS
    ),
    # The same samples, all with their coarse labels only.
    "coarse": Contender(
        partial(_forest, **REGULARISED),
        lambda model, shown: model.fit(shown.X, shown.coarse),
        _coarse_answers,
        REGULARISED,
    ),
    "class means": _peer(NCMClassifier),
    "5 neighbours": _peer(partial(KNeighborsClassifier, algorithm="brute", n_jobs=THREADS)),
    "ridge classifier": _peer(RidgeClassifier),
}


@dataclass(frozen=True)
class Setting:
    """What is trained on what; ``metric`` is the part that a metric is learnt on, if any."""

    contender: str
    fine_share: float = 0.5
    coarse_share: float = 0.5
    metric: str = "none"
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Bench:
    """Where results are kept, and how large the runs are."""

    results: Results
    seeds: Sequence[int] = (0, 1, 2)
    n_trees: int = 50
    quick: bool = False

    def summary(self, data: TwoLevels, setting: Setting) -> Summary:
        """Runs of a setting with every seed."""
        return Summary(tuple(self.run(data, setting, seed) for seed in self.seeds))

    def run(self, data: TwoLevels, setting: Setting, seed: int) -> Values:
        """One run, or what it gave when it was made before."""
        usual = CONTENDERS[setting.contender].usual
        named = setting.parameters.items()
        unusual = {name: repr(value) for name, value in named if usual.get(name) != value}
        key = {
            "data": data.name,
            "contender": setting.contender,
            "fine": setting.fine_share,
            "coarse": setting.coarse_share,
            "metric": setting.metric,
            "trees": self.n_trees,
            "seed": seed,
            **unusual,
        }
        return self.results.of(key, lambda: train_and_ask(data, setting, seed, self.n_trees))


def train_and_ask(data: TwoLevels, setting: Setting, seed: int, n_trees: int) -> Values:
    """Accuracy on both levels, comparisons per tree and test sample, and seconds."""
    shown, X_test = prepared(data, seed, setting.fine_share, setting.coarse_share, setting.metric)
    contender = CONTENDERS[setting.contender]
    model = contender.make(n_trees, seed, **setting.parameters)
    start = time.perf_counter()
    contender.teach(model, shown)
    seconds = time.perf_counter() - start
    fine, coarse = contender.answer(model, X_test, data.parents)
    values = {"fit s": seconds}
    if fine is not None:
        values["accuracy"] = float(np.mean(fine == data.fine_test))
    # The paper asks about as many samples of every coarse class.
    values["coarse accuracy"] = float(balanced_accuracy_score(data.coarse_test, coarse))
    if hasattr(model, "comparisons"):
        values["comparisons"] = float(model.comparisons(X_test))
    return values


# The metric takes longer than some forests, and several contenders in turn look through it.
@lru_cache(maxsize=2)
def prepared(
    data: TwoLevels, seed: int, fine_share: float, coarse_share: float, metric: str
) -> tuple[Draw, Array]:
    """Training samples of a draw and all test samples, seen through a metric if one is named."""
    shown = draw(data, seed, fine_share, coarse_share)
    if metric == "none":
        return shown, data.X_test
    rows, labels = METRIC_PARTS[metric](shown)
    learnt = NCMMetric(random_state=seed).fit(shown.X[rows], labels[rows])
    seen = Draw(learnt.transform(shown.X), shown.coarse, shown.fine, shown.known)
    return seen, learnt.transform(data.X_test)


# Which samples a metric is learnt from, and with which labels: table 2 of Ristin 2015.
METRIC_PARTS: dict[str, Callable[[Draw], tuple[Array, Array]]] = {
    "coarse": lambda shown: (~shown.known, shown.coarse),
    "fine": lambda shown: (shown.known, shown.fine),
    "all": lambda shown: (np.ones(len(shown.fine), dtype=bool), shown.fine),
}
