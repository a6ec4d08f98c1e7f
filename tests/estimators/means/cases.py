"""Small data and lists of classifiers that the tests of class means share."""

from __future__ import annotations

from typing import Any

import numpy as np

from evergrow import NCMClassifier, NCMMetric

Array = np.ndarray[Any, Any]


def quick_metric(n_components: int | None = None) -> NCMMetric:
    return NCMMetric(n_components, max_iter=3, batch_size=32, random_state=0)


# Every metric, created for every test.
METRICS: dict[str, Any] = {
    "euclidean": NCMClassifier,
    "mahalanobis": lambda: NCMClassifier(metric="mahalanobis"),
    "mahalanobis per class": lambda: NCMClassifier(
        metric="mahalanobis", keep_class_statistics=True
    ),
    "learnt": lambda: NCMClassifier(metric=quick_metric()),
}
# Those whose sums alone decide: a learnt metric also depends on what the first call brought.
EXACT = [name for name in METRICS if name != "learnt"]


def blobs(n: int = 120, n_classes: int = 4, d: int = 5, seed: int = 0) -> tuple[Array, Array]:
    """Examples of correlated features around one place per class, at least one of each."""
    centres = np.random.default_rng(7).normal(size=(16, d)) * 3
    random = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), random.integers(0, n_classes, n - n_classes)])
    mixing = np.eye(d) + 0.5 * np.random.default_rng(8).normal(size=(d, d))
    return centres[y] + random.normal(size=(n, d)) @ mixing, y


def assert_same(found: Any, expected: Any, X: Array) -> None:
    """Two models know the same classes, in any order, and give them the same scores."""
    assert sorted(found.classes_.tolist()) == sorted(expected.classes_.tolist())
    mine, theirs = np.argsort(found.classes_), np.argsort(expected.classes_)
    np.testing.assert_array_equal(found.class_counts_[mine], expected.class_counts_[theirs])
    means = [model._fitted.moments.about(None).means for model in (found, expected)]
    np.testing.assert_allclose(means[0][mine], means[1][theirs], rtol=1e-9, atol=1e-12)
    # Least squares updates a factor of its matrix, which loses a digit.
    tolerance = 1e-9 if isinstance(expected, NCMClassifier) else 1e-8
    np.testing.assert_allclose(
        found.predict_log_proba(X)[:, mine],
        expected.predict_log_proba(X)[:, theirs],
        rtol=tolerance,
        atol=tolerance,
    )
