"""A long life: hundreds of updates of every sort, every tree sound after each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evergrow import RTST, NCMForestClassifier
from evergrow.estimators import Bootstrap, Storage
from tests.conftest import FORESTS
from tests.estimators.forest.blobs import (
    blobs,
    leaf_counts,
    stored_ids,
    stored_per_class,
    strategies_of,
    strategy,
)

pytestmark = pytest.mark.slow

X_QUERY, _ = blobs(40, range(12), seed=77)


class TrackedForest:
    """A forest and a plain list of what it should know."""

    def __init__(self, forest: Any, seed: int) -> None:
        self.forest = forest
        self.random = np.random.default_rng(seed)
        self.labels: dict[int, int] = {}

    def learn(self) -> None:
        classes = self.random.choice(12, self.random.integers(1, 5), replace=False)
        X, y = blobs(int(self.random.integers(5, 40)), classes, int(self.random.integers(2**31)))
        self.forest.partial_fit(X, y)
        ids = self.forest.sample_ids_.tolist()
        self.labels.update(zip(ids, y.tolist(), strict=True))

    def forget_samples(self) -> None:
        stored = stored_ids(self.forest)
        gone = self.random.choice(stored, len(stored) // 5, replace=False)
        self.forest.forget(samples=gone)
        for i in gone.tolist():
            del self.labels[i]

    def forget_class(self) -> None:
        kept = set(self.labels.values())
        label = self.random.choice(self.forest.classes_)
        if len(kept - {label}) < 2:
            return
        self.forest.forget(classes=[label])
        self.labels = {i: other for i, other in self.labels.items() if other != label}

    def join_classes(self) -> None:
        if len(self.forest.classes_) < 6:
            return
        one, other = self.random.choice(self.forest.classes_, 2, replace=False).tolist()
        self.forest.rename_classes({one: other})
        self.labels = {i: other if c == one else c for i, c in self.labels.items()}

    def step(self) -> None:
        changes = (self.learn, self.forget_samples, self.forget_class, self.join_classes)
        changes[self.random.choice(4, p=[0.55, 0.25, 0.15, 0.05])]()

    def expected_counts(self) -> list[int]:
        known = list(self.labels.values())
        return [known.count(label) for label in self.forest.classes_.tolist()]


@pytest.mark.parametrize("kind", FORESTS)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_tree_is_sound_after_every_change(kind: Any, seed: int) -> None:
    strategies = [*strategies_of(kind), RTST(share=0.3, nodes="quality")]
    tracked = TrackedForest(kind(3, min_samples_leaf=2, random_state=seed), seed)
    tracked.learn()
    for n in range(100):
        tracked.forest.set_params(update=strategy(strategies[n % len(strategies)], 0.1))
        tracked.step()
        tracked.forest._fitted.forest.check()
        for tree in range(3):
            assert leaf_counts(tracked.forest, tree).tolist() == tracked.expected_counts()
        assert stored_ids(tracked.forest).tolist() == sorted(tracked.labels)
        assert stored_per_class(tracked.forest) == tracked.expected_counts()
        assert tracked.forest.predict_proba(X_QUERY).sum(axis=1) == pytest.approx(1.0)


@pytest.mark.parametrize("kind", FORESTS)
@pytest.mark.parametrize(
    "options",
    [
        {"max_samples": Bootstrap()},
        {"max_samples": 0.7, "storage": Storage(dtype="float16")},
        {"storage": Storage(per_class=8), "min_samples_leaf": 3},
    ],
    ids=str,
)
def test_every_tree_is_sound_when_trees_see_a_part(kind: Any, options: dict[str, Any]) -> None:
    tracked = TrackedForest(kind(3, **{"min_samples_leaf": 2, "random_state": 0, **options}), 3)
    for n in range(60):
        tracked.forest.set_params(update=("igt", "rtst")[n % 2])
        if n < 5:
            tracked.learn()
        else:
            tracked.step()
        tracked.forest._fitted.forest.check()
        assert tracked.forest.predict_proba(X_QUERY).sum(axis=1) == pytest.approx(1.0)
        if "storage" in options and options["storage"].per_class:
            # Evicted samples are not forgotten: the leaves still count them.
            assert leaf_counts(tracked.forest, 0).tolist() == tracked.expected_counts()
    tracked.learn()
    assert max(stored_per_class(tracked.forest)) <= (
        options.get("storage", Storage()).per_class or 10_000
    )


@pytest.mark.parametrize("kind", FORESTS)
def test_a_forest_that_learns_and_forgets_the_same_does_not_creep(kind: Any) -> None:
    update = "rtst" if kind is not NCMForestClassifier else "rust"
    forest = kind(3, min_samples_leaf=2, update=update, random_state=0).fit(*blobs(100, range(4)))
    sizes, rows = [], []
    for seed in range(120):
        forest.partial_fit(*blobs(40, range(4, 8), seed))
        forest.forget(classes=[4, 5, 6, 7])
        forest.compact()
        sizes.append(forest.nbytes)
        rows.append(forest._fitted.forest.samples.nbytes)
    assert max(sizes[60:]) <= 1.1 * max(sizes[:60])
    assert max(rows) == rows[0]


def test_memory_is_used_again_without_tidying() -> None:
    forest = NCMForestClassifier(3, min_samples_leaf=2, random_state=0).fit(*blobs(100, range(4)))
    sizes = []
    for seed in range(200):
        forest.partial_fit(*blobs(40, [0, 1, 2, 3], seed)).forget(samples=forest.sample_ids_)
        sizes.append(forest.nbytes)
    assert len(forest._fitted.forest.samples) <= 140
    assert max(sizes[100:]) <= 1.3 * max(sizes[:100])


def test_bounded_memory_stays_bounded() -> None:
    forest = NCMForestClassifier(
        3, min_samples_leaf=3, storage=Storage(per_class=20), random_state=0
    )
    sizes = []
    for seed in range(150):
        forest.partial_fit(*blobs(60, range(6), seed))
        sizes.append(forest.nbytes)
    assert sum(stored_per_class(forest)) == 120
    assert leaf_counts(forest, 0).sum() == 150 * 60
    assert max(sizes[75:]) <= 1.3 * max(sizes[:75])
