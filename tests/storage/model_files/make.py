"""Write the files of the current format version that the tests keep, one per kind of estimator.

Run once when a format version is released, never to mend a failing test:
``python -m tests.storage.model_files.make``. Files that are there already stay as they are.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evergrow import (
    ERCForest,
    NCMClassifier,
    NCMForestClassifier,
    NCMMetric,
    RejectingClassifier,
    RLSClassifier,
    SubcategoryForestClassifier,
    save,
)
from evergrow.estimators import RFF, LevelMetric
from evergrow.storage.models.format import FORMAT_VERSION
from evergrow.vision import HierarchicalKMeans, KMeansCodebook, RandomKDTrees

FOLDER = Path(__file__).parent

MODELS: dict[str, Any] = {
    "forest": NCMForestClassifier(4, random_state=0),
    "regularised_forest": NCMForestClassifier(4, n_subsets=20, random_state=0),
    "least_squares": RLSClassifier(
        n_random_features=30, feature_map=RFF(gamma=0.001), max_stored=40, random_state=0
    ),
    "class_means": NCMClassifier(metric=NCMMetric(8, random_state=0)),
    "rejecting": RejectingClassifier(
        NCMClassifier(metric="mahalanobis"), max_held_out=40, random_state=0
    ),
    "metric": NCMMetric(8, random_state=0),
    "pipeline": make_pipeline(StandardScaler(), PCA(9, random_state=0), NCMClassifier()),
    "clustering_forest": ERCForest(3, n_words=20, random_state=0),
    "k_means_words": KMeansCodebook(20, random_state=0),
    "vocabulary_tree": HierarchicalKMeans(20, branching=3, random_state=0),
    "kd_trees": RandomKDTrees(3, n_words=20, random_state=0),
    "subcategories": SubcategoryForestClassifier(
        3, keep_per_class=20, sample_dtype="float16", random_state=0
    ),
    "stacked_subcategories": make_pipeline(
        LevelMetric(NCMMetric(8, random_state=0)),
        SubcategoryForestClassifier(3, method="stacked", keep_per_class=20, random_state=0),
    ),
}


def two_levels(y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Odd and even digits, every third of which is known by its name."""
    coarse = np.where(y % 2, "odd", "even").astype(object)
    return np.column_stack([coarse, np.where(np.arange(len(y)) % 3, None, y)])


# What a model is trained on, where that is not one class per picture.
LABELS = dict.fromkeys(("subcategories", "stacked_subcategories"), two_levels)


def answers(model: Any, X: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What a model says of some pictures, as numbers."""
    if hasattr(model, "novelty"):
        return np.column_stack([model.predict_proba(X), model.novelty(X)])
    found: np.ndarray[Any, Any] = (
        model.predict_proba(X) if hasattr(model, "predict_proba") else model.transform(X)
    )
    return found


if __name__ == "__main__":
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, _ = train_test_split(X, y, random_state=0)
    for name, model in MODELS.items():
        path = FOLDER / f"format{FORMAT_VERSION}_{name}.evergrow"
        if not path.exists():
            labels = LABELS.get(name, np.asarray)(y_train)
            save(model.fit(X_train, labels), path)
            np.save(path.with_suffix(".npy"), answers(model, X_test[:50]))
