"""The learners that are compared: how to make them, train them and predict with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from evergrow.foundation.arrays import Array
from evergrow.research.papers.cvpr2015.levels import Draw
from evergrow.research.papers.settings import NCM_TREES, SUBCATEGORY_TREES

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
    **SUBCATEGORY_TREES,
    "n_subsets": 100,
    "n_assignments": 50,
    "subset_scale": 1.0,
    "cost_weight": 0.001,
    "max_scoring_samples": 1024,
}


# The samples and labels that a learner is trained on.
_TRAINING: dict[str, Callable[[Draw], tuple[Array, Array]]] = {
    "both levels": lambda train: (train.X, train.labels),
    "fine part": lambda train: (train.X[train.known], train.fine[train.known]),
    "all fine": lambda train: (train.X, train.fine),
    "all coarse": lambda train: (train.X, train.coarse),
}


@dataclass(frozen=True)
class LearnerSpec:
    """How to make an estimator, and what it learns: a key of ``_TRAINING``.

    ``make`` takes the number of trees, the seed, the number of threads, and parameters; ``scale``
    is the parameter that divides features by their deviation, if there is one.
    """

    make: Callable[..., Any]
    learns: str
    scale: str | None = "standardize"

    def fit(self, model: Any, train: Draw) -> None:
        """Train the estimator on its part of the samples."""
        model.fit(*_TRAINING[self.learns](train))

    def keeping_scale(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters with which the learner keeps the scale of its input.

        A learnt metric is a scale: dividing each of its features by its deviation would undo it.
        """
        return {**parameters, self.scale: False} if self.scale else dict(parameters)

    def predict(self, model: Any, X: Array, parents: Array) -> tuple[Array | None, Array]:
        """Fine and coarse classes; a model of coarse classes predicts no fine ones."""
        predicted = np.asarray(model.predict(X))
        if self.learns == "both levels":
            return predicted, model.predict_coarse(X)
        return (None, predicted) if self.learns == "all coarse" else (predicted, parents[predicted])


def _forest(n_trees: int, seed: int, n_jobs: int, **parameters: Any) -> Any:
    from evergrow import NCMForestClassifier

    given = {**NCM_TREES, **parameters}
    return NCMForestClassifier(n_trees, n_jobs=n_jobs, random_state=seed, **given)


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


def _svm(
    _n_trees: int, seed: int, n_jobs: int, *, standardize: bool = True, **parameters: Any
) -> Any:
    """One-versus-rest linear SVMs, trained by stochastic gradient descent as in the paper."""
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    steps = {"alpha": 1e-3, "average": True, "max_iter": 10, "tol": None} | parameters
    svm = SGDClassifier(loss="hinge", random_state=seed, n_jobs=n_jobs, **steps)
    return make_pipeline(StandardScaler(), svm) if standardize else svm


LEARNERS: dict[str, LearnerSpec] = {
    **{method: LearnerSpec(partial(_subcategories, method), "both levels") for method in METHODS},
    # The same samples, all with fine labels.
    "full": LearnerSpec(_regularised, "all fine"),
    "plain": LearnerSpec(_forest, "all fine"),
    # With the leaves and centroids of the paper and other defaults of NCMForestClassifier.
    "regularised": LearnerSpec(partial(_forest, n_subsets=100), "all fine"),
    # The same samples, all with coarse labels only.
    "coarse": LearnerSpec(_regularised, "all coarse"),
    "class means": LearnerSpec(_class_means, "fine part", scale=None),
    "5 neighbours": LearnerSpec(_neighbours, "fine part", scale=None),
    "svm": LearnerSpec(_svm, "fine part"),
}
