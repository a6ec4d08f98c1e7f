"""The scikit-learn classifiers we are compared with, in the same run and with as many threads."""

from __future__ import annotations

from typing import Any

from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid

from evergrow import NCMForestClassifier

N_TREES = 50


def ncm_forest(n_jobs: int, random_state: int = 0, **parameters: Any) -> NCMForestClassifier:
    """Our forest with default parameters."""
    return NCMForestClassifier(N_TREES, n_jobs=n_jobs, random_state=random_state, **parameters)


def random_forest(n_jobs: int) -> RandomForestClassifier:
    """scikit-learn's random forest with as many trees."""
    return RandomForestClassifier(N_TREES, n_jobs=n_jobs, random_state=0)


def peers(n_jobs: int) -> dict[str, Any]:
    """Name and unfitted estimator of each peer, on the features as they are.

    Scaling them first would cost the neighbours and means accuracy on image features.
    """
    return {
        "RandomForest(50)": random_forest(n_jobs),
        "ExtraTrees(50)": ExtraTreesClassifier(N_TREES, n_jobs=n_jobs, random_state=0),
        "KNeighbors (brute)": KNeighborsClassifier(algorithm="brute", n_jobs=n_jobs),
        "NearestCentroid": NearestCentroid(),
        "RidgeClassifier": RidgeClassifier(),
    }
