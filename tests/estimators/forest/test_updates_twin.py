"""Updates make the forest that the paper's Sec. 4, written in NumPy, makes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from evergrow import _core
from evergrow.estimators.forest.strategy import STRATEGIES
from tests.budget import budget
from tests.estimators.forest.twins import (
    TWINS,
    Weights,
    assert_same_tree,
    core_forest,
    core_rules,
    plain,
)
from tests.reference import ncm_forest as twin
from tests.reference.refine import predict_proba, refine_tree
from tests.reference.updates import (
    TreePass,
    Update,
    forget_in_tree,
    relabel_tree,
    tree_key,
    update_tree,
)

N_TREES = 2
D = 3
PLAIN = plain(D)


class GrowingForestMachine(RuleBasedStateMachine):
    """A forest and its twin through the same updates."""

    @initialize(
        seed=st.integers(0, 2**32),
        n=st.integers(5, 60),
        n_classes=st.integers(2, 5),
        min_samples_leaf=st.integers(1, 4),
        n_centroids=st.integers(2, 4),
        sampling=st.sampled_from([(1.0, False), (0.6, False), (1.0, True)]),
        kind=st.sampled_from(["ncm", "ncm", "axis"]),
    )
    def begin(
        self,
        seed: int,
        n: int,
        n_classes: int,
        min_samples_leaf: int,
        n_centroids: int,
        sampling: tuple[float, bool],
        kind: str,
    ) -> None:
        self.seed, self.n_updates = seed, 0
        self.kind = self.chosen(kind)
        self.propose = TWINS[self.kind]
        self.random = np.random.default_rng(seed)
        self.row_rate, self.bootstrap = sampling
        X, y = self.draw(n, n_classes)
        y[:2] = [0, n_classes - 1]
        self.rules = self.completed(
            twin.Rules(
                n_classes,
                n_centroids,
                # Thresholds are all tried one by one in NumPy; a few per node are enough.
                n_assignments=1024 if self.kind == "ncm" else 6,
                min_samples_leaf=min_samples_leaf,
                rows_per_tree=max(1, round(self.row_rate * n)),
                bootstrap=self.bootstrap,
            )
        )
        self.forest = core_forest(X, y, N_TREES, seed, self.rules, proposer=self.kind)
        self.X, self.y = X, y
        self.expected = twin.grow_forest(X, y, N_TREES, seed, self.rules, self.propose)

    # What a machine for another kind of forest changes.
    pass_kind = TreePass

    def chosen(self, kind: str) -> str:
        return kind

    def completed(self, rules: twin.Rules) -> twin.Rules:
        return rules

    def with_more_classes(self, n_new: int) -> twin.Rules:
        return replace(self.rules, n_classes=self.rules.n_classes + n_new)

    def with_other_columns(self, columns: list[int]) -> twin.Rules:
        return replace(self.rules, n_classes=max(columns) + 1)

    def may_go(self, c: int) -> bool:
        return self.rules.n_classes > 2

    def may_be_one(self, a: int, b: int) -> bool:
        return self.rules.n_classes > 3

    def parents(self, data: st.DataObject) -> list[int]:
        n_top = data.draw(st.integers(1, self.rules.n_classes))
        most = data.draw(st.sampled_from([n_top, self.rules.n_classes]))
        return [
            c if c < n_top else data.draw(st.integers(0, min(c, most) - 1))
            for c in range(self.rules.n_classes)
        ]

    def draw(self, n: int, n_classes: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        y = self.random.integers(0, n_classes, n)
        X = self.random.integers(0, 5, (n, D)) + (y[:, None] * np.arange(1, D + 1)) % 5
        return X.astype(np.float32), y.astype(np.int64)

    def live(self) -> np.ndarray[Any, Any]:
        return np.flatnonzero(self.forest.samples.classes >= 0)

    def plan(
        self,
        update: Update,
        refreshed: tuple[int, int] = (0, 0),
        weights: Weights | None = None,
        **others: Any,
    ) -> _core.UpdatePlan:
        return _core.UpdatePlan(
            n_classes=self.rules.n_classes,
            seed=self.seed,
            update=self.n_updates,
            strategy=update.strategy,
            share=update.share,
            node_sampling=update.nodes,
            row_rate=update.row_rate,
            bootstrap=update.bootstrap,
            first_refreshed=refreshed[0],
            n_refreshed=refreshed[1],
            rules=core_rules(self.rules, self.kind, **others),
            keep_rows=True,
            class_weights=() if weights is None else weights.of_classes.tolist(),
        )

    @rule(
        n=st.integers(1, 25),
        n_new=st.integers(0, 3),
        strategy=st.sampled_from([*STRATEGIES, "rust", "rust"]),
        share=st.sampled_from([0.0, 0.5, 0.8, 1.0]),
        nodes=st.sampled_from(["size", "uniform", "quality"]),
        refreshed=st.sampled_from([(0, 0), (0, 0), (0, 0), (1, 1), (1, 2)]),
        n_evicted=st.sampled_from([0, 0, 0, 5]),
        weighting=st.sampled_from(["none", "none", "whole", "any"]),
    )
    def add_samples(
        self,
        n: int,
        n_new: int,
        strategy: str,
        share: float,
        nodes: str,
        refreshed: tuple[int, int],
        n_evicted: int,
        weighting: str,
    ) -> None:
        if STRATEGIES[strategy]._needs_class_means and self.kind == "axis":
            strategy = "rtst"
        self.n_updates += 1
        self.rules = self.with_more_classes(n_new)
        X, y = self.draw(n, self.rules.n_classes)
        samples = self.forest.samples.copy()
        numbers = samples.add(n)
        samples.write(numbers, X, y.astype(np.int32), np.arange(n) + 1000 * self.n_updates, PLAIN)
        weights = Weights.draw(self.seed + self.n_updates, n, self.rules.n_classes, weighting)
        products = np.ones(len(samples))
        if weights is not None:
            samples.set_weights(numbers, weights.of_rows)
            products[numbers] = weights.products(y)
        size = len(samples)
        self.X = np.concatenate([self.X, np.zeros((size - len(self.X), D), np.float32)])
        self.y = np.concatenate([self.y, np.zeros(size - len(self.y), np.int64)])
        self.X[numbers], self.y[numbers] = X, y
        live = np.flatnonzero(samples.classes >= 0)
        n_evicted = min(n_evicted, len(live) - 4)
        evicted = self.random.choice(live, max(0, n_evicted), replace=False).astype(np.int32)
        update = Update(strategy, share, nodes, self.row_rate, self.bootstrap)
        self.forest, report = self.forest.update(
            samples=samples,
            rows=numbers,
            evicted=evicted,
            plan=self.plan(update, refreshed, weights=weights),
            n_threads=1,
            progress=None,
        )
        assert report.as_dict()["n_comparisons"] >= 0
        for t, tree in enumerate(self.expected):
            update_tree(
                tree,
                self.X,
                self.y,
                numbers.astype(np.int64),
                self.rules,
                update,
                tree_key(self.seed, t, self.n_updates),
                refreshed=(t - refreshed[0]) % N_TREES < refreshed[1],
                evicted=frozenset(evicted.tolist()),
                propose=self.propose,
                kind=self.pass_kind,
                weights=products,
                ids=samples.ids,
            )
        if len(evicted):
            left = samples.copy()
            left.remove(evicted)
            self.forest = self.forest.with_samples(left)

    @rule(n=st.integers(1, 10), with_class=st.booleans())
    def forget(self, n: int, with_class: bool) -> None:
        live = self.live()
        classes = self.forest.samples.classes
        gone = self.random.choice(live, min(n, len(live)), replace=False)
        forgotten = [int(classes[gone[0]])] if with_class else []
        forgotten = [c for c in forgotten if self.may_go(c)]
        gone = live[np.isin(live, gone) | np.isin(classes[live], forgotten)].astype(np.int32)
        # Every tree must keep something: it may hold a part of the samples only.
        for tree in self.expected:
            held = np.concatenate([leaf.rows for leaf in twin_leaves(tree)])
            if not (~np.isin(held, gone)).any():
                return
        self.n_updates += 1
        update = Update("igt", 0.0, "size", self.row_rate, self.bootstrap)
        self.forest, _ = self.forest.forget(
            rows=gone, classes=forgotten, plan=self.plan(update), n_threads=1, progress=None
        )
        for t, tree in enumerate(self.expected):
            key = tree_key(self.seed, t, self.n_updates)
            rows = set(gone.tolist())
            forget_in_tree(
                tree,
                self.X,
                self.y,
                self.rules,
                key,
                rows=rows,
                classes=set(forgotten),
                propose=self.propose,
            )
        left = self.forest.samples.copy()
        left.remove(gone)
        self.forest = self.forest.with_samples(left)
        if forgotten:
            kept = [c for c in range(self.rules.n_classes) if c not in forgotten]
            self.rename([kept.index(c) if c in kept else -1 for c in range(self.rules.n_classes)])

    @rule(
        n=st.integers(1, 20),
        n_new=st.integers(0, 2),
        share=st.sampled_from([0.0, 0.3, 0.7, 2.0]),
        data=st.data(),
    )
    def refine(self, n: int, n_new: int, share: float, data: st.DataObject) -> None:
        self.n_updates += 1
        self.rules = self.with_more_classes(n_new)
        n_classes = self.rules.n_classes
        parents = self.parents(data)
        rows = self.random.choice(self.live(), min(n, len(self.live())), replace=False)
        before = self.y.copy()
        self.y[rows] = self.random.integers(0, n_classes, len(rows))
        samples = self.forest.samples.copy()
        samples.set_classes(rows.astype(np.int32), self.y[rows].astype(np.int32))
        plan = self.plan(Update("igt"), parents=parents)
        self.forest, _ = self.forest.refine(
            samples=samples,
            rows=rows.astype(np.int32),
            share=share,
            plan=plan,
            n_threads=1,
            progress=None,
        )
        for t, tree in enumerate(self.expected):
            refine_tree(
                tree,
                self.X,
                self.y,
                before,
                self.rules,
                tree_key(self.seed, t, self.n_updates),
                rows=set(rows.tolist()),
                share=share,
                parents=parents,
                propose=self.propose,
            )

    @rule(
        data=st.data(),
        reading=st.sampled_from(["joint", "hierarchical"]),
        smoothing=st.sampled_from([0.0, 0.5, 3.0]),
    )
    def read_leaves(self, data: st.DataObject, reading: str, smoothing: float) -> None:
        parents = self.parents(data)
        queries = self.draw(4, self.rules.n_classes)[0]
        found = self.forest.predict_proba(
            queries, PLAIN, 1, _core.LeafReading(parents, reading, smoothing)
        )
        expected = predict_proba(self.expected, queries, parents, reading, smoothing)
        # Nodes far above a leaf, whose part cannot be seen, are left out.
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
        np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=0, atol=1e-12)

    def rename(self, columns: list[int]) -> None:
        samples = self.forest.samples.copy()
        samples.rename_classes(columns)
        self.rules = self.with_other_columns(columns)
        self.forest = self.forest.relabel(
            samples=samples, columns=columns, n_classes=self.rules.n_classes
        )
        self.y = np.array(columns)[self.y]
        for tree in self.expected:
            relabel_tree(tree, self.y, columns)

    @rule(data=st.data())
    def merge_classes(self, data: st.DataObject) -> None:
        n = self.rules.n_classes
        a, b = sorted(data.draw(st.sets(st.integers(0, n - 1), min_size=2, max_size=2)))
        if not self.may_be_one(a, b):
            return
        names = [a if c == b else c for c in range(n)]
        unique = list(dict.fromkeys(names))
        self.rename([unique.index(c) for c in names])

    @rule()
    def through_arrays(self) -> None:
        """As a model file holds it; rows keep their numbers."""
        samples = self.forest.samples
        self.forest = _core.Forest.from_arrays(
            samples=samples,
            trees=[self.forest.tree_arrays(t) for t in range(N_TREES)],
            n_comparisons=self.forest.n_comparisons,
            proposer=self.kind,
            n_classes=self.rules.n_classes,
        )

    @rule()
    def compact(self) -> None:
        numbers = np.full(len(self.forest.samples), -1)
        live = self.live()
        numbers[live] = np.arange(len(live))
        self.forest = self.forest.compact()
        self.X, self.y = self.X[live], self.y[live]
        for tree in self.expected:
            for node in twin_nodes(tree):
                node.rows = numbers[node.rows] if node.left is None else node.rows
                node.centroid_rows = [int(numbers[r]) if r >= 0 else -1 for r in node.centroid_rows]

    @invariant()
    def the_forest_is_the_twins(self) -> None:
        if not hasattr(self, "expected"):
            return
        self.forest.check()
        for t, tree in enumerate(self.expected):
            assert_same_tree(self.forest, t, tree, updated=True)


def twin_nodes(node: twin.Node) -> list[twin.Node]:
    below = [] if node.left is None else [*twin_nodes(node.left), *twin_nodes(node.right)]
    return [node, *below]


def twin_leaves(node: twin.Node) -> list[twin.Node]:
    return [n for n in twin_nodes(node) if n.left is None]


TestGrowingForest = GrowingForestMachine.TestCase
TestGrowingForest.settings = settings(
    max_examples=budget(200),
    stateful_step_count=12,
    # Shrinking takes minutes; the steps printed for the first failure are short enough.
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
