"""Every estimator learns from shards what it learns from the array, a block at a time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from evergrow import NCMClassifier, RejectingClassifier, RLSClassifier, Shards, write_shards
from evergrow.estimators import RFF, NCMMetric, SubcategoryForestClassifier
from evergrow.estimators.forest.value import standardization
from evergrow.estimators.subcategory.methods import METHODS
from evergrow.storage.models.loader import loadable_estimators
from evergrow.storage.shards import StoredRows, choose_rows
from evergrow.vision import ERCForest
from tests.conftest import FORESTS
from tests.vision.words.cases import CODEBOOKS

N, N_FEATURES = 400, 6
_random = np.random.default_rng(3)
CODES = _random.integers(0, 5, N)
X = (_random.normal(size=(5, N_FEATURES))[CODES] * 3 + _random.normal(size=(N, N_FEATURES))).astype(
    np.float32
)
Y = np.array(["elm", "oak", "ash", "fir", "yew"])[CODES]

CLASSIFIERS: dict[str, Callable[[], Any]] = {
    **{
        kind.__name__: lambda kind=kind: kind(3, min_samples_leaf=3, random_state=0)
        for kind in FORESTS
    },
    "NCMClassifier": NCMClassifier,
    "NCMClassifier, Mahalanobis": lambda: NCMClassifier(metric="mahalanobis"),
    "NCMClassifier, learnt": lambda: NCMClassifier(metric=NCMMetric(2, max_iter=3, random_state=0)),
    "RLSClassifier": lambda: RLSClassifier(random_state=0),
    "RLSClassifier, random features": lambda: RLSClassifier(features=RFF(40), random_state=0),
    "RejectingClassifier": lambda: RejectingClassifier(
        RLSClassifier(random_state=0), random_state=0, max_held_out=100
    ),
    "RejectingClassifier, estimator": lambda: RejectingClassifier(
        NCMClassifier(), measure="estimator", random_state=0
    ),
    "ERCForest": lambda: ERCForest(2, n_words=20, random_state=0),
}
TRANSFORMERS: dict[str, Callable[[], Any]] = {
    "NCMMetric": lambda: NCMMetric(2, max_iter=3, random_state=0),
    **{type(make()).__name__: make for make in CODEBOOKS.values()},
}
OTHERWISE = {"SubcategoryForestClassifier"}
# What takes images, or several rows for each.
OF_IMAGES = {"BagOfWords", "Embedder", "FisherVectors", "ImageClassifier", "LocalFeatures"}


@pytest.fixture
def shards(tmp_path: Path) -> Shards:
    batches = [(X[a : a + 70], Y[a : a + 70]) for a in range(0, N, 70)]
    return write_shards(tmp_path, batches, rows_per_shard=90)


@pytest.fixture
def no_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading all rows into one array is a failure; reading blocks by their ends is not."""

    def read(*_: Any, **__: Any) -> None:
        raise AssertionError("all rows are read into memory")

    plain = StoredRows.__getitem__

    def some(self: StoredRows, index: Any) -> Any:
        found = plain(self, index)
        is_block = isinstance(index, slice) and index.stop is not None
        assert is_block or found.ndim == 1 or len(found) < N, "all rows are read into memory"
        return found

    # Quantiles are estimated from a sample that is larger than these data.
    monkeypatch.setattr(standardization, "_QUANTILE_BYTES", 0)
    monkeypatch.setattr(StoredRows, "__array__", read)
    monkeypatch.setattr(StoredRows, "__getitem__", some)


def test_there_is_a_case_of_every_estimator() -> None:
    covered = {name.split(",")[0] for name in (*CLASSIFIERS, *TRANSFORMERS)}
    assert covered | OTHERWISE | OF_IMAGES == set(loadable_estimators())


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_learn_what_they_learn_from_the_array(name: str, shards: Shards) -> None:
    from_array, from_shards = CLASSIFIERS[name]().fit(X, Y), CLASSIFIERS[name]()
    from_shards.fit(shards, shards.labels)
    np.testing.assert_array_equal(from_shards.classes_, from_array.classes_)
    np.testing.assert_array_equal(from_shards.predict(shards), from_array.predict(X))
    if hasattr(from_array, "predict_proba"):
        np.testing.assert_array_equal(
            from_shards.predict_proba(shards), from_array.predict_proba(X)
        )
    if hasattr(from_array, "decision_function"):
        np.testing.assert_array_equal(
            from_shards.decision_function(shards), from_array.decision_function(X)
        )


@pytest.mark.parametrize("name", [name for name in CLASSIFIERS if name != "ERCForest"])
@pytest.mark.usefixtures("no_arrays")
def test_no_classifier_reads_all_rows_at_once(name: str, shards: Shards) -> None:
    model = CLASSIFIERS[name]().fit(shards, shards.labels)
    model.predict(shards)
    if hasattr(model, "partial_fit"):
        model.partial_fit(shards, shards.labels)
    if hasattr(model, "predict_top_k"):
        model.predict_top_k(shards, k=2)


LEVELS = np.column_stack([np.where(np.isin(Y, ["fir", "yew"]), "needles", "leaves"), Y])
LEVELS = LEVELS.astype(object)
LEVELS[::4, 1] = None
SOME = np.random.default_rng(0).permutation(N)[:150]
FEW = np.arange(0, N, 5)

Learn = Callable[[Any, Any, Any], Any]


def weighted(every: int) -> Learn:
    weights = np.where(np.arange(N) % every == 0, 0.0, 1.5)
    return lambda model, X, y: model.fit(X, y, weights)


def forget_some(model: Any, X: Any, y: Any) -> Any:
    return model.fit(X, y).forget(choose_rows(X, FEW), y[FEW])


def learn_some(model: Any, X: Any, y: Any) -> Any:
    return model.fit(choose_rows(X, SOME), y[SOME])


def learn_levels(model: Any, X: Any, _: Any) -> Any:
    return model.fit(X, LEVELS)


def learn_levels_twice(model: Any, X: Any, _: Any) -> Any:
    return model.fit(X, LEVELS).partial_fit(X, LEVELS)


def small_metric() -> NCMMetric:
    return NCMMetric(2, max_iter=3, random_state=0)


CASES: list[tuple[Callable[[], Any], Learn]] = [
    *((make, lambda model, X, y: model.fit(X, y)) for make in TRANSFORMERS.values()),
    (
        lambda: make_pipeline(small_metric(), NCMClassifier()),
        lambda model, X, y: model.fit(X, np.asarray(y)),
    ),
    *(
        (CLASSIFIERS[name], weighted(n))
        for name in ("NCMClassifier", "RLSClassifier")
        for n in (2, 3)
    ),
    *((CLASSIFIERS[f"{name}Classifier"], forget_some) for name in ("NCM", "RLS", "Rejecting")),
    *((CLASSIFIERS[f"{name}Classifier"], learn_some) for name in ("NCM", "NCMForest", "RLS")),
    *(
        (
            lambda method=method: SubcategoryForestClassifier(
                2, method=method, min_samples_leaf=3, random_state=0
            ),
            learn,
        )
        for method in METHODS
        for learn in (learn_levels, learn_levels_twice)
    ),
    (lambda: NCMMetric(2, max_iter=3, level="fine", random_state=0), learn_levels),
]


@pytest.mark.parametrize(("make", "learn"), CASES)
def test_shards_teach_what_the_array_teaches(make: Any, learn: Learn, shards: Shards) -> None:
    from_array, from_shards = learn(make(), X, Y), learn(make(), shards, shards.labels)
    for method in ("transform", "predict", "predict_proba"):
        if hasattr(from_array, method):
            found, expected = getattr(from_shards, method)(shards), getattr(from_array, method)(X)
            np.testing.assert_array_equal(found, expected)


WRONG: dict[str, tuple[Callable[[Shards], Any], str]] = {
    "too few labels": (lambda s: NCMClassifier().fit(s, Y[:-1]), "inconsistent numbers"),
    "another width": (
        lambda s: NCMClassifier().fit(X[:, :3], Y).predict(s),
        "expecting 3 features",
    ),
    "more of another width": (
        lambda s: NCMClassifier().fit(X[:, :3], Y).partial_fit(s, s.labels),
        "expecting 3 features",
    ),
    "measured labels": (lambda s: NCMClassifier().fit(s, X[:, 0]), "Unknown label type"),
    "missing labels": (lambda s: NCMClassifier().fit(s, None), "requires y"),
    "one row for a forest": (
        lambda s: FORESTS[0](2).fit(s.choose([0]), s.labels[[0]]),
        "minimum of 2",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_go_together_is_refused(name: str, shards: Shards) -> None:
    call, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        call(shards)


def test_rows_without_a_label_are_refused_by_fit(tmp_path: Path) -> None:
    shards = write_shards(tmp_path, [(X[:4], ["a", None, "b", "b"]), X[:2]])
    with pytest.raises(ValueError, match="3 of 6 labels are missing, the first at index 1"):
        NCMClassifier().fit(shards, shards.labels)
    labelled = np.flatnonzero(shards.labels.codes >= 0)
    model = NCMClassifier().fit(shards.choose(labelled), shards.labels[labelled])
    assert model.class_counts_.tolist() == [1, 2]
