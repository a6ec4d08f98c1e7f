"""The classifiers that fig. 10 compares with the forest, each with one fixed setting."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from evergrow.estimators.forest import AxisForestClassifier
from evergrow.estimators.means import NCMClassifier, NCMMetric
from evergrow.research import experiments as ex
from evergrow.research.papers.cvpr2014 import protocol
from evergrow.research.papers.settings import TREES

N_NEIGHBORS = 10
# On 50 classes of features a tenfold C is as accurate and takes three times as long to train.
SVM_C = 0.001
SVM_ITERATIONS = 100
# The paper's metric has a low rank: ours has one dimension for so many features.
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
            # The predictions settle long before the tolerance of the solver is met.
            warnings.simplefilter("ignore", ConvergenceWarning)
            self._svm.fit(self._scaler.fit_transform(X), y)
        return self

    def predict(self, X: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.asarray(self._svm.predict(self._scaler.transform(X)))


def metric_means(seed: int, n_components: int | None = None) -> NCMClassifier:
    """Class means with a metric learnt from the first classes: MET + NCM."""
    return NCMClassifier(metric=NCMMetric(n_components, random_state=seed))


def _neighbors(context: ex.ExperimentContext, seed: int) -> Any:  # noqa: ARG001
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(N_NEIGHBORS, algorithm="brute", n_jobs=context.n_jobs)


def _axis_forest(context: ex.ExperimentContext, seed: int) -> AxisForestClassifier:
    n_trees = context.scaled(protocol.N_TREES, protocol.N_TREES_QUICK)
    return AxisForestClassifier(n_trees, n_jobs=context.n_jobs, random_state=seed, **TREES)


# Trained on all classes at once; each is made from the context and a seed.
CLASSIFIERS: dict[str, Callable[[ex.ExperimentContext, int], Any]] = {
    "ncmf": protocol.forest,
    "met": lambda context, seed: metric_means(seed),  # noqa: ARG005
    "svm": lambda context, seed: _MulticlassSVM(seed),  # noqa: ARG005
    "knn": _neighbors,
    "rf": _axis_forest,
    "ncm": lambda context, seed: NCMClassifier(),  # noqa: ARG005
}

# Learnt on the first classes and then fixed; each is made from a seed and the number of features.
METRICS: dict[str, Callable[[int, int], NCMClassifier]] = {
    "met_low_rank": lambda seed, n_features: metric_means(
        seed, max(2, n_features // FEATURES_PER_DIMENSION)
    ),
    "met": lambda seed, n_features: metric_means(seed),  # noqa: ARG005
}
