"""The classifiers that fig. 10 sets beside the forest, each with one fixed setting."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy.typing as npt

from evergrow.estimators.forest import AxisForestClassifier
from evergrow.estimators.means import NCMClassifier, NCMMetric
from evergrow.research.experiments.lab import Lab
from evergrow.research.papers.cvpr2014.growing import N_TREES, N_TREES_QUICK, forest

__all__ = ["METRICS", "RIVALS", "metric_means"]

N_NEIGHBORS = 10
# On 50 classes of features ten times more is as accurate and trains three times as long.
SVM_C = 0.001
SVM_ITERATIONS = 100
# The metric in the paper is of low rank; so many features make one dimension of ours.
FEATURES_PER_DIMENSION = 8


class _MulticlassSVM:
    """Crammer and Singer's linear SVM on standardised features."""

    def __init__(self, seed: int) -> None:
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import LinearSVC

        self._scaler = StandardScaler()
        self._svm = LinearSVC(
            C=SVM_C, multi_class="crammer_singer", max_iter=SVM_ITERATIONS, random_state=seed
        )

    def fit(self, X: npt.NDArray[Any], y: npt.NDArray[Any]) -> Self:
        from sklearn.exceptions import ConvergenceWarning

        with warnings.catch_warnings():
            # Its answers settle long before its solver's tolerance is met.
            warnings.simplefilter("ignore", ConvergenceWarning)
            self._svm.fit(self._scaler.fit_transform(X), y)
        return self

    def predict(self, X: npt.NDArray[Any]) -> npt.NDArray[Any]:
        answers: npt.NDArray[Any] = self._svm.predict(self._scaler.transform(X))
        return answers


def metric_means(seed: int, n_components: int | None = None) -> NCMClassifier:
    """Class means under a metric learnt from the first classes: MET + NCM."""
    return NCMClassifier(metric=NCMMetric(n_components, random_state=seed))


def _low_rank(seed: int, n_features: int) -> NCMClassifier:
    return metric_means(seed, max(2, n_features // FEATURES_PER_DIMENSION))


def _neighbors(lab: Lab, seed: int) -> Any:  # noqa: ARG001
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(N_NEIGHBORS, algorithm="brute", n_jobs=lab.n_jobs)


def _axis_forest(lab: Lab, seed: int) -> AxisForestClassifier:
    n_trees = lab.scaled(N_TREES, N_TREES_QUICK)
    return AxisForestClassifier(n_trees, n_jobs=lab.n_jobs, random_state=seed)


# Trained on all classes at once; each takes the lab and a seed.
RIVALS: dict[str, Callable[[Lab, int], Any]] = {
    "ncmf": forest,
    "met": lambda lab, seed: metric_means(seed),  # noqa: ARG005
    "svm": lambda lab, seed: _MulticlassSVM(seed),  # noqa: ARG005
    "knn": _neighbors,
    "rf": _axis_forest,
    "ncm": lambda lab, seed: NCMClassifier(),  # noqa: ARG005
}

# Learnt on the first classes and then kept; each takes a seed and the number of features.
METRICS: dict[str, Callable[[int, int], NCMClassifier]] = {
    "met_low_rank": _low_rank,
    "met": lambda seed, n_features: metric_means(seed),  # noqa: ARG005
}
