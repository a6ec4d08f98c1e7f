"""From categories to subcategories [Ristin2015 Sec. 4] in plain NumPy.

Samples have a coarse class and, some of them, a fine one, or labels on more levels. The ways of
learning from them, and of going on with more samples and finer labels, are put together from the
twins of their parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tests.reference import ncm_forest, refine
from tests.reference.guessing import (
    Guess,
    guess_by_nearest,
    guess_by_ridge,
    guess_down,
    path_to_class,
)
from tests.reference.ncm_forest import Floats, Ints, Node, grow_forest
from tests.reference.random import tree_key
from tests.reference.regularised_forest import (
    RegularisedPass,
    RegularisedRules,
    propose_regularised,
)
from tests.reference.updates import Update, update_tree

MISSING = -1
PENALTIES = 10.0 ** np.arange(-5.0, 3.5, 0.5)


def subsets_tried(wanted: int, largest: int, n_classes: int) -> int:
    """As many as wanted, but no more than a hundredth of all subsets, and at least one."""
    possible = sum(math.comb(n_classes, size) for size in range(2, largest + 1))
    return max(1, min(wanted, possible // 100))


def by_ridge(X: npt.NDArray[np.float64], fine: Ints, asked: npt.NDArray[np.float64]) -> Ints:
    """Ridge regression within the coarse class; a single fine class needs none."""
    if len(set(fine.tolist())) == 1:
        return np.full(len(asked), fine[0])
    return guess_by_ridge(X, fine, PENALTIES, asked)


@dataclass(frozen=True)
class Method:
    """One row of table 2, part ii."""

    objective: str
    reading: str
    keeps_coarse_only: bool
    guess: Guess | None = None
    coarse_weight: float = 0.0
    coarse_means: bool = False


METHODS = {
    "fine-only": Method("gain", "joint", False),
    "joint": Method("joint", "joint", True, None, 0.1, True),
    "nn": Method("gain", "joint", False, guess_by_nearest),
    "hierarchical": Method("hierarchical", "hierarchical", True, None, 1.0, True),
    "nn-h": Method("hierarchical", "hierarchical", True, guess_by_nearest, 1.0, True),
    "ridge-h": Method("hierarchical", "hierarchical", True, by_ridge, 1.0, True),
}


@dataclass(frozen=True)
class Settings:
    """Parameters that all methods share."""

    n_trees: int
    seed: int
    n_subsets: int
    n_assignments: int
    min_samples_leaf: int
    cost_weight: float = 0.001
    smoothing: float = 3.0
    refine_share: float = 0.33
    strategy: str = "rust"


@dataclass
class Model:
    """Classes in the order they appeared, as level and name, samples, and trees.

    ``known`` are the finest given classes, ``finest`` those that the trees are grown from.
    """

    method: Method
    settings: Settings
    classes: list[tuple[int, int]] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    trees: list[Node] = field(default_factory=list)
    X: Floats = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    known: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    finest: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    n_updates: int = 0

    def name(self, *columns: list[int]) -> Ints:
        """Numbers of the finest classes; new ones are appended level by level, each sorted."""
        rows = list(zip(*columns, strict=True))
        for level in range(len(columns)):
            owner = {row[level]: row[level - 1] for row in rows if row[level] != MISSING}
            for _, c in sorted({(level, c) for c in owner} - set(self.classes)):
                number = len(self.classes)
                above = self.classes.index((level - 1, owner[c])) if level else number
                self.classes.append((level, c))
                self.parents.append(above)
        finest = [[(k, c) for k, c in enumerate(row) if c != MISSING][-1] for row in rows]
        return np.array([self.classes.index(c) for c in finest])

    def above(self, classes: Iterable[int]) -> set[int]:
        """All classes above any of these."""
        return {a for c in classes for a in path_to_class(self.parents, int(c))[:-1]}

    @property
    def coarse(self) -> Ints:
        """The class of each sample on the top level."""
        return np.array([path_to_class(self.parents, c)[0] for c in self.known.tolist()])

    def is_divided(self, c: int) -> bool:
        """Whether a class has finer ones."""
        return bool(refine.finer(self.parents, c))

    def rules(self) -> RegularisedRules:
        """Parameters of nodes; subsets have up to the square root of the number of means."""
        n = len(self.parents)
        divided = sum(self.is_divided(c) for c in range(n))
        n_means = n if self.method.coarse_means else n - divided
        largest = max(2, math.ceil(math.sqrt(n_means)))
        return RegularisedRules(
            n_classes=n,
            n_centroids=largest,
            n_assignments=self.settings.n_assignments,
            min_samples_leaf=self.settings.min_samples_leaf,
            n_subsets=subsets_tried(self.settings.n_subsets, largest, n_means),
            cost_weight=self.settings.cost_weight,
            objective=self.method.objective,
            coarse_weight=self.method.coarse_weight,
            coarse_means=self.method.coarse_means,
            parents=tuple(self.parents),
        )

    def guessed(self, X: Floats, known: Ints) -> Ints:
        """Finest classes, guessed among those of the coarse class [Ristin2015 Sec. 4.3].

        Guesses go down level by level, each among the classes below the one so far.
        """
        if self.method.guess is None:
            return known.copy()
        return guess_down(X.astype(np.float64), known, self.parents, self.method.guess)

    def store(self, X: Floats, known: Ints, finest: Ints) -> Ints:
        """Keep the samples that are trained on; their row numbers."""
        used = np.array(
            [self.method.keeps_coarse_only or not self.is_divided(c) for c in finest.tolist()]
        )
        first = len(self.known)
        self.X = np.concatenate([self.X.reshape(-1, X.shape[1]), X[used]])
        self.known = np.append(self.known, known[used])
        self.finest = np.append(self.finest, finest[used])
        return np.arange(first, len(self.known))

    def fit(self, X: Floats, *columns: list[int]) -> None:
        """Learn from scratch; a column of classes for each level."""
        known = self.name(*columns)
        self.store(X, known, self.guessed(X, known))
        s = self.settings
        self.trees = grow_forest(
            self.X, self.finest, s.n_trees, s.seed, self.rules(), propose_regularised
        )

    def partial_fit(self, X: Floats, *columns: list[int]) -> None:
        """Guess missing labels again where finer ones came, then add the samples."""
        n_before = len(self.parents)
        known = self.name(*columns)
        labelled = self.above(known)
        finest = self.guessed(np.concatenate([self.X, X]), np.append(self.known, known))
        divided = self.above(range(n_before, len(self.parents)))
        for classes, share in (
            (labelled & divided, self.settings.refine_share),
            (labelled - divided, 2),
        ):
            self.relabel(finest, np.isin(self.known, list(classes)), share)
        rows = self.store(X, known, finest[len(self.finest) :])
        self.n_updates += 1
        for t, tree in enumerate(self.trees):
            update_tree(
                tree,
                self.X,
                self.finest,
                rows,
                self.rules(),
                Update(self.settings.strategy),
                tree_key(self.settings.seed, t, self.n_updates),
                propose=propose_regularised,
                kind=RegularisedPass,
            )

    def refine(self, rows: list[int], *columns: list[int]) -> None:
        """Give stored samples finer labels, and guess again for others of the classes above."""
        self.known[rows] = self.name(*columns)
        finest = self.guessed(self.X, self.known)
        chosen = np.isin(self.known, list(self.above(self.known[rows])))
        chosen[rows] = True
        self.relabel(finest, chosen, self.settings.refine_share)

    def relabel(self, finest: Ints, chosen: npt.NDArray[np.bool_], share: float) -> None:
        """Give chosen stored samples other finest classes."""
        before = self.finest.copy()
        rows = {k for k in np.flatnonzero(chosen).tolist() if finest[k] != self.finest[k]}
        if not rows:
            return
        self.finest[list(rows)] = finest[list(rows)]
        self.n_updates += 1
        for t, tree in enumerate(self.trees):
            refine.refine_tree(
                tree,
                self.X,
                self.finest,
                before,
                self.rules(),
                tree_key(self.settings.seed, t, self.n_updates),
                rows=rows,
                share=share,
                parents=self.parents,
                propose=propose_regularised,
            )

    def predict_proba(self, X: Floats) -> npt.NDArray[np.float64]:
        """Probabilities of all classes by their numbers; only finest ones have any."""
        return refine.predict_proba(
            self.trees, X, self.parents, self.method.reading, self.settings.smoothing
        )


# Centre and factor of every feature, measured on rows.
Doubles = npt.NDArray[np.float64]
Measure = Callable[[Doubles], tuple[Doubles, Doubles]]


@dataclass
class StackedModel:
    """A forest of coarse classes whose probabilities are features of another [Ristin2015 Sec. 4.1].

    The first is trained on samples without a fine label, or on all while there are none. The second
    is a model of fine labels alone; ``stored`` are the features of its samples, in the units of the
    first forest and as they came. ``measure`` gives the transform of rows that the second forest is
    grown on. It is grown again when a coarse class is new, and when the first has learnt from 1.5
    times as many samples.
    """

    settings: Settings
    scale: float
    measure: Measure
    second: Model = field(init=False)
    trees: list[Node] = field(default_factory=list)
    coarse_names: list[int] = field(default_factory=list)
    X: Floats = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    codes: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    stored: list[tuple[Floats, Doubles]] = field(default_factory=list)
    mean: Doubles = field(init=False)
    factor: Doubles = field(init=False)
    learns_all: bool = True
    n_updates: int = 0
    n_grown: int = 0

    def rules(self) -> RegularisedRules:
        """Parameters of nodes of the first forest."""
        n, s = len(self.coarse_names), self.settings
        largest = max(2, math.ceil(math.sqrt(n)))
        return RegularisedRules(
            n_classes=n,
            n_centroids=largest,
            n_assignments=s.n_assignments,
            min_samples_leaf=s.min_samples_leaf,
            n_subsets=subsets_tried(s.n_subsets, largest, n),
            cost_weight=s.cost_weight,
        )

    def learn_coarse(self, X: Floats, coarse: list[int], fine: list[int]) -> Ints:
        """Store what the first forest learns from; the numbers of its new rows."""
        self.coarse_names += sorted(set(coarse) - set(self.coarse_names))
        codes = np.array([self.coarse_names.index(c) for c in coarse])
        bare = np.array(fine) == MISSING
        self.learns_all &= not bare.any()
        chosen = np.ones(len(X), bool) if self.learns_all else bare
        first = len(self.codes)
        self.X = np.concatenate([self.X.reshape(-1, X.shape[1]), X[chosen]])
        self.codes = np.append(self.codes, codes[chosen])
        return np.arange(first, len(self.codes))

    def features(self, X: Floats, plain: Doubles) -> Doubles:
        """Features as they came, then the probabilities of the first forest."""
        probabilities = ncm_forest.predict_proba(self.trees, X, len(self.coarse_names))
        return np.hstack([plain, self.scale * probabilities])

    def in_units(self, rows: Doubles) -> Floats:
        """Rows in the units of the second forest."""
        return ((rows - self.mean) * self.factor).astype(np.float32)

    def fit(self, X: Floats, plain: Doubles, coarse: list[int], fine: list[int]) -> None:
        """Learn from scratch; ``plain`` are the features as they came, ``X`` in units."""
        s = self.settings
        self.second = Model(METHODS["fine-only"], s)
        self.learn_coarse(X, coarse, fine)
        self.trees = grow_forest(
            self.X, self.codes, s.n_trees, s.seed, self.rules(), propose_regularised
        )
        self.store(X, plain, coarse, fine)
        self.grow_second()

    def store(self, X: Floats, plain: Doubles, coarse: list[int], fine: list[int]) -> None:
        """Keep the samples that the second forest is trained on."""
        finest = self.second.name(coarse, fine)
        used = np.array([not self.second.is_divided(c) for c in finest.tolist()])
        self.second.store(np.zeros((len(X), 1), np.float32), finest, finest)
        self.stored.append((X[used], plain[used]))

    def grow_second(self) -> None:
        """Grow the second forest from its samples and what the first now says of them."""
        s = self.settings
        rows = self.features(*(np.concatenate(part) for part in zip(*self.stored, strict=True)))
        self.mean, self.factor = self.measure(rows)
        self.second.X = self.in_units(rows)
        self.second.trees = grow_forest(
            self.second.X,
            self.second.finest,
            s.n_trees,
            s.seed,
            self.second.rules(),
            propose_regularised,
        )
        self.n_grown = len(self.codes)

    def partial_fit(self, X: Floats, plain: Doubles, coarse: list[int], fine: list[int]) -> bool:
        """Update the first forest, then update the second or grow it again, which is returned."""
        n_before, s = len(self.coarse_names), self.settings
        rows = self.learn_coarse(X, coarse, fine)
        self.n_updates += bool(len(rows))
        for t, tree in enumerate(self.trees if len(rows) else []):
            update_tree(
                tree,
                self.X,
                self.codes,
                rows,
                self.rules(),
                Update(s.strategy),
                tree_key(s.seed, t, self.n_updates),
                propose=propose_regularised,
                kind=RegularisedPass,
            )
        if len(self.coarse_names) > n_before or len(self.codes) >= 1.5 * self.n_grown:
            self.second.X = np.zeros((len(self.second.X), 1), np.float32)
            self.store(X, plain, coarse, fine)
            self.second.n_updates += 1
            self.grow_second()
            return True
        before = len(self.second.finest)
        self.second.partial_fit(self.in_units(self.features(X, plain)), coarse, fine)
        finest = self.second.name(coarse, fine)
        used = np.array([not self.second.is_divided(c) for c in finest.tolist()])
        self.stored.append((X[used], plain[used]))
        assert len(self.second.finest) == before + used.sum()
        return False

    def predict_proba(self, X: Floats, plain: Doubles) -> Doubles:
        """Probabilities of the second forest."""
        return self.second.predict_proba(self.in_units(self.features(X, plain)))
