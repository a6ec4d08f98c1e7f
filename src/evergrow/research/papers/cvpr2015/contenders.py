"""The classifiers that are compared: how each is made, what it is shown and what it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.research.papers.cvpr2015.levels import Draw

__all__ = ["CONTENDERS", "LABELS", "METHODS", "PAPERS_METHODS", "REGULARISED", "Contender"]

Array = npt.NDArray[Any]

# In the order of the paper's tables.
PAPERS_METHODS = ("fine-only", "stacked", "joint", "nn", "hierarchical", "nn-h")
# The last is ours.
METHODS = (*PAPERS_METHODS, "ridge-h")

# What pictures call them.
LABELS = {
    "class means": "NCM",
    "5 neighbours": "5-NN",
    "svm": "SVM",
    "plain": "NCMF",
    "regularised": "RNCMF",
    "fine-only": "fine\nonly",
    "stacked": "stacked",
    "joint": "J",
    "nn": "NN",
    "hierarchical": "H",
    "nn-h": "NN-H",
    "ridge-h": "ridge-H\n(ours)",
    "full": "all\nfine",
    "coarse": "coarse\nforest",
}

# What a forest with many subsets has unless a run says otherwise.
REGULARISED: dict[str, Any] = {
    "n_subsets": 100,
    "n_assignments": 50,
    "subset_scale": 1.0,
    "cost_weight": 0.001,
    "max_scoring_samples": 1024,
    "min_samples_leaf": 10,
}


@dataclass(frozen=True)
class Contender:
    """How an estimator is made, what it is shown, and what it answers about test samples.

    ``make`` takes the number of trees, the seed and the number of threads, then parameters.
    ``answer`` gives the fine and the coarse classes; a model of coarse classes has no fine ones.
    """

    make: Callable[..., Any]
    teach: Callable[[Any, Draw], Any]
    answer: Callable[[Any, Array, Array], tuple[Array | None, Array]]


def _forest(n_trees: int, seed: int, n_jobs: int, **parameters: Any) -> Any:
    from evergrow import NCMForestClassifier

    return NCMForestClassifier(n_trees, n_jobs=n_jobs, random_state=seed, **parameters)


def _regularised(n_trees: int, seed: int, n_jobs: int, **parameters: Any) -> Any:
    return _forest(n_trees, seed, n_jobs, **(REGULARISED | parameters))


def _subcategories(method: str, n_trees: int, seed: int, n_jobs: int, **parameters: Any) -> Any:
    from evergrow import SubcategoryForestClassifier

    return SubcategoryForestClassifier(
        n_trees, method=method, n_jobs=n_jobs, random_state=seed, **(REGULARISED | parameters)
    )


def _class_means(_n_trees: int, _seed: int, _n_jobs: int, **parameters: Any) -> Any:
    from evergrow import NCMClassifier

    return NCMClassifier(**parameters)


def _neighbours(_n_trees: int, _seed: int, n_jobs: int, **parameters: Any) -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(algorithm="brute", n_jobs=n_jobs, **parameters)


def _svm(_n_trees: int, seed: int, n_jobs: int, **parameters: Any) -> Any:
    """One linear SVM against the rest per class, by stochastic steps as the paper's."""
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    steps = {"alpha": 1e-3, "average": True, "max_iter": 10, "tol": None} | parameters
    svm = SGDClassifier(loss="hinge", random_state=seed, n_jobs=n_jobs, **steps)
    return make_pipeline(StandardScaler(), svm)


def _fine_answers(model: Any, X: Array, parents: Array) -> tuple[Array | None, Array]:
    fine = np.asarray(model.predict(X))
    return fine, parents[fine]


def _both_answers(model: Any, X: Array, _parents: Array) -> tuple[Array | None, Array]:
    return model.predict(X), model.predict_coarse(X)


def _coarse_answers(model: Any, X: Array, _parents: Array) -> tuple[Array | None, Array]:
    return None, model.predict(X)


def _show_both(model: Any, shown: Draw) -> Any:
    return model.fit(shown.X, shown.labels)


def _show_fine_part(model: Any, shown: Draw) -> Any:
    return model.fit(shown.X[shown.known], shown.fine[shown.known])


def _show_all_fine(model: Any, shown: Draw) -> Any:
    return model.fit(shown.X, shown.fine)


def _show_all_coarse(model: Any, shown: Draw) -> Any:
    return model.fit(shown.X, shown.coarse)


CONTENDERS: dict[str, Contender] = {
    **{
        method: Contender(partial(_subcategories, method), _show_both, _both_answers)
        for method in METHODS
    },
    # The same samples, all with their fine labels.
    "full": Contender(_regularised, _show_all_fine, _fine_answers),
    "plain": Contender(_forest, _show_all_fine, _fine_answers),
    # With what NCMForestClassifier takes unless told otherwise.
    "regularised": Contender(partial(_forest, n_subsets=100), _show_all_fine, _fine_answers),
    # The same samples, all with their coarse labels only.
    "coarse": Contender(_regularised, _show_all_coarse, _coarse_answers),
    "class means": Contender(_class_means, _show_fine_part, _fine_answers),
    "5 neighbours": Contender(_neighbours, _show_fine_part, _fine_answers),
    "svm": Contender(_svm, _show_fine_part, _fine_answers),
}
