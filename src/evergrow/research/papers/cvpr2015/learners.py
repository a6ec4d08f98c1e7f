"""The learners that are compared: how to make them, train them and predict with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.research.papers.cvpr2015.levels import Draw

Array = npt.NDArray[Any]

# In the order of the paper's tables.
PAPERS_METHODS = ("fine-only", "stacked", "joint", "nn", "hierarchical", "nn-h")
# The last is ours.
METHODS = (*PAPERS_METHODS, "ridge-h")

# Labels in figures.
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

# Default parameters of a forest with many subsets.
REGULARISED: dict[str, Any] = {
    "n_subsets": 100,
    "n_assignments": 50,
    "subset_scale": 1.0,
    "cost_weight": 0.001,
    "max_scoring_samples": 1024,
    "min_samples_leaf": 10,
}


@dataclass(frozen=True)
class LearnerSpec:
    """How to make an estimator, train it, and predict with it.

    ``make`` takes the number of trees, the seed, the number of threads, and parameters.
    ``predict`` returns fine and coarse classes; a model of coarse classes returns no fine ones.
    """

    make: Callable[..., Any]
    fit: Callable[[Any, Draw], Any]
    predict: Callable[[Any, Array, Array], tuple[Array | None, Array]]


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
    """One-versus-rest linear SVMs, trained by stochastic gradient descent as in the paper."""
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    steps = {"alpha": 1e-3, "average": True, "max_iter": 10, "tol": None} | parameters
    svm = SGDClassifier(loss="hinge", random_state=seed, n_jobs=n_jobs, **steps)
    return make_pipeline(StandardScaler(), svm)


def _predict_fine(model: Any, X: Array, parents: Array) -> tuple[Array | None, Array]:
    fine = np.asarray(model.predict(X))
    return fine, parents[fine]


def _predict_both(model: Any, X: Array, _parents: Array) -> tuple[Array | None, Array]:
    return model.predict(X), model.predict_coarse(X)


def _predict_coarse(model: Any, X: Array, _parents: Array) -> tuple[Array | None, Array]:
    return None, model.predict(X)


def _fit_both(model: Any, train: Draw) -> Any:
    return model.fit(train.X, train.labels)


def _fit_fine_part(model: Any, train: Draw) -> Any:
    return model.fit(train.X[train.known], train.fine[train.known])


def _fit_all_fine(model: Any, train: Draw) -> Any:
    return model.fit(train.X, train.fine)


def _fit_all_coarse(model: Any, train: Draw) -> Any:
    return model.fit(train.X, train.coarse)


LEARNERS: dict[str, LearnerSpec] = {
    **{
        method: LearnerSpec(partial(_subcategories, method), _fit_both, _predict_both)
        for method in METHODS
    },
    # The same samples, all with fine labels.
    "full": LearnerSpec(_regularised, _fit_all_fine, _predict_fine),
    "plain": LearnerSpec(_forest, _fit_all_fine, _predict_fine),
    # With the defaults of NCMForestClassifier.
    "regularised": LearnerSpec(partial(_forest, n_subsets=100), _fit_all_fine, _predict_fine),
    # The same samples, all with coarse labels only.
    "coarse": LearnerSpec(_regularised, _fit_all_coarse, _predict_coarse),
    "class means": LearnerSpec(_class_means, _fit_fine_part, _predict_fine),
    "5 neighbours": LearnerSpec(_neighbours, _fit_fine_part, _predict_fine),
    "svm": LearnerSpec(_svm, _fit_fine_part, _predict_fine),
}
