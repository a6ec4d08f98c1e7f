"""The regularised NCM forest of Ristin et al. (CVPR 2015) in plain NumPy.

Equation numbers are those of the paper. Coarse and fine classes share one list; ``parents`` names
the coarse class of each, and a sample has the finest class that is known of it. The paper has two
levels; here classes are a tree of any depth. The core grows the identical forest from small
integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np

from tests.reference.ncm_forest import (
    Floats,
    Ints,
    Mask,
    Node,
    Rules,
    assignments,
    centroid_of,
    classes_at,
    draw_classes,
    entropy_term,
    nearest_centroid,
    only_row,
)
from tests.reference.random import Stream, derive
from tests.reference.updates import TreePass, counts_below


@cache
def path_to_class(parents: tuple[int, ...], c: int) -> tuple[int, ...]:
    """The classes from the top level down to a class."""
    return (c,) if parents[c] == c else (*path_to_class(parents, parents[c]), c)


@cache
def is_above(parents: tuple[int, ...], c: int) -> bool:
    """Whether a class has finer ones."""
    return any(p == c for f, p in enumerate(parents) if f != p)


@dataclass(frozen=True)
class RegularisedRules(Rules):
    """Parameters besides those of a plain forest; ``n_centroids`` is the largest subset."""

    n_subsets: int = 100
    cost_weight: float = 0.001  # lambda_reg
    max_scoring_samples: int | None = None
    objective: str = "gain"
    coarse_weight: float = 1.0  # lambda
    coarse_means: bool = False
    parents: tuple[int, ...] = ()

    def parent(self, c: int) -> int:
        """The class above a class; itself on the top level."""
        return self.parents[c] if self.parents else c

    def path(self, c: int) -> list[int]:
        """The classes from the top level down to a class."""
        return list(path_to_class(self.parents, c)) if self.parents else [c]

    def n_levels(self) -> int:
        """Length of the longest path, at least two."""
        return max([2, *(len(self.path(c)) for c in range(len(self.parents)))])

    def is_divided(self, c: int) -> bool:
        """Whether a class has finer ones."""
        return is_above(self.parents, c)

    def is_finest(self, c: int) -> bool:
        """Whether no class is finer."""
        return not self.is_divided(c)

    def seen_at(self, c: int, depth: int) -> int | None:
        """The class on a level that a class belongs to, None if that is not known.

        A class above the level that has no finer ones is its own.
        """
        path = self.path(c)
        if depth < len(path):
            return path[depth]
        return c if self.is_finest(c) else None


# One way to see the classes: its weight, and the name that it has for a class, None for a class
# whose samples it leaves out.
Level = tuple[float, Callable[[int], "int | None"]]


def only_gain(rules: RegularisedRules) -> list[Level]:
    """All classes on one level [Ristin2015 Eq. 5]."""
    return [(1.0, lambda c: c)]


def fine_level(rules: RegularisedRules) -> Level:
    """U_fine counts samples of finest classes, which may be guesses [Ristin2015 Eq. 6, 8]."""
    return 1.0, lambda c: c if rules.is_finest(c) else None


def joint(rules: RegularisedRules) -> list[Level]:
    """U_coarse counts the samples that have no fine label [Ristin2015 Eq. 6], by their depth."""

    def bare_at(depth: int) -> Callable[[int], int | None]:
        return lambda c: c if rules.is_divided(c) and len(rules.path(c)) == depth + 1 else None

    above = [(rules.coarse_weight, bare_at(depth)) for depth in range(rules.n_levels() - 1)]
    return [fine_level(rules), *above]


def hierarchical(rules: RegularisedRules) -> list[Level]:
    """U_coarse counts all samples, by their coarse classes [Ristin2015 Eq. 7].

    Each level between the top and the finest counts the samples whose class there is known.
    """

    def at(depth: int) -> Callable[[int], int | None]:
        return lambda c: rules.seen_at(c, depth)

    above = [(rules.coarse_weight, at(depth)) for depth in range(rules.n_levels() - 1)]
    return [fine_level(rules), *above]


OBJECTIVES = {"gain": only_gain, "joint": joint, "hierarchical": hierarchical}


@cache
def levels_of(rules: RegularisedRules) -> list[Level]:
    """The levels of an objective."""
    return OBJECTIVES[rules.objective](rules)


def level_gain(y: Ints, right: Mask, level: Level) -> float:
    """The weighted gain of a split on one level, U_set of [Ristin2015 Eq. 6]."""
    weight, name = level
    names = [name(c) for c in y.tolist()]
    sides: tuple[dict[int, int], dict[int, int]] = ({}, {})
    for seen_as, side in zip(names, right.tolist(), strict=True):
        if seen_as is not None:
            sides[side][seen_as] = sides[side].get(seen_as, 0) + 1
    both = {c: sides[0].get(c, 0) + sides[1].get(c, 0) for c in {**sides[0], **sides[1]}}
    n = sum(both.values())
    if n == 0:
        return 0.0

    def n_times_entropy(counts: dict[int, int]) -> int:
        return entropy_term(sum(counts.values())) - sum(map(entropy_term, counts.values()))

    gain = n_times_entropy(both) - n_times_entropy(sides[0]) - n_times_entropy(sides[1])
    return weight / (2.0**30 * n) * gain


def total_gain(y: Ints, right: Mask, rules: RegularisedRules) -> float:
    """The gains on all levels [Ristin2015 Eq. 6]."""
    total = 0.0
    for level in levels_of(rules):
        total += level_gain(y, right, level)
    return total


def pooled_classes(present: list[int], rules: RegularisedRules) -> dict[int, list[int]]:
    """Classes with means to compare with, and those of their samples [Ristin2015 Sec. 4.2]."""
    if rules.objective == "gain" or (rules.objective == "joint" and rules.coarse_means):
        return {c: [c] for c in present}
    pool = {c: [c] for c in present if rules.is_finest(c)}
    if rules.coarse_means:
        for owner in {above for c in present for above in rules.path(c)}:
            members = [c for c in present if owner in rules.path(c)]
            depth = len(rules.path(owner))
            below = {rules.path(c)[depth] if c != owner else owner for c in members}
            # The mean of a class with samples of one class below it only is there already.
            if rules.is_divided(owner) and (len(below) > 1 or below == {owner}):
                pool[owner] = members
    return dict(sorted(pool.items()))


def draw_scored(rows: Ints, rules: RegularisedRules, stream: Stream) -> Ints:
    """The rows that candidates are scored on: all, or as many as wanted (Knuth's algorithm S)."""
    wanted = rules.max_scoring_samples
    if wanted is None or len(rows) <= wanted:
        return rows
    chosen: list[int] = []
    for i in range(len(rows)):
        if stream.below(len(rows) - i) < wanted - len(chosen):
            chosen.append(i)
    return rows[chosen]


def subsets(n: int, rules: RegularisedRules, key: int) -> list[list[int]]:
    """Sets of means to try [Ristin2015 Sec. 3.2]."""
    largest = min(rules.n_centroids, n)
    if sum(math.comb(n, size) for size in range(2, largest + 1)) <= rules.n_subsets:
        return [list(s) for k in range(2, largest + 1) for s in combinations(range(n), k)]
    drawn = []
    for i in range(rules.n_subsets):
        stream = Stream(derive(key, i))
        smallest = largest if rules.n_subsets == 1 else 2
        size = smallest + stream.below(largest - smallest + 1)
        drawn.append(draw_classes(list(range(n)), size, stream))
    return drawn


def propose_regularised(
    X: Floats, y: Ints, rows: Ints, stream: Stream, rules: Rules
) -> Node | None:
    """The best assignment of the best subset of class means, by [Ristin2015 Eq. 5, 6]."""
    assert isinstance(rules, RegularisedRules)
    key, assignment_key = stream.next(), stream.next()
    present, _ = classes_at(y, rows)
    pool = pooled_classes(present, rules)
    if len(pool) < 2:
        pool = {c: [c] for c in present}
    own_rows = {c: rows[np.isin(y[rows], members)] for c, members in pool.items()}
    classes = list(pool)
    means = np.stack([centroid_of(X, own_rows[c]) for c in classes])
    tried = subsets(len(classes), rules, key)

    # If some rows give no information, all of them are used.
    for scored in (draw_scored(rows, rules, stream), rows):
        least = -(-rules.min_samples_leaf * len(scored) // len(rows))
        best = best_candidate(X, y, scored, means, tried, assignment_key, least, rules)
        if best is None:
            continue
        members, assignment = best
        node = Node(rows, classes=[classes[j] for j in members], centroids=means[members])
        node.goes_right = assignment
        node.centroid_rows = [only_row(own_rows[c]) for c in node.classes]
        right = node.sends_right(X[rows])
        if min(right.sum(), (~right).sum()) >= rules.min_samples_leaf:
            return node
    return None


def best_candidate(
    X: Floats,
    y: Ints,
    scored: Ints,
    means: Floats,
    tried: list[list[int]],
    assignment_key: int,
    least: int,
    rules: RegularisedRules,
) -> tuple[list[int], list[bool]] | None:
    """The subset and assignment worth most that leave enough of the scored rows on both sides."""
    best, best_score = None, 0.0
    for members in tried:
        nearest = nearest_centroid(X[scored], means[members])
        # Sets of one size share their assignments.
        own_stream = Stream(derive(assignment_key, len(members)))
        for assignment in assignments(len(members), rules.n_assignments, own_stream):
            right = np.array(assignment)[nearest]
            if min(right.sum(), (~right).sum()) < least:
                continue
            gain = total_gain(y[scored], right, rules)
            score = gain - rules.cost_weight * len(members)
            if gain > rules.min_gain and (best is None or score > best_score):
                best, best_score = (members, assignment), score
    return best


class RegularisedPass(TreePass):
    """Updates of regularised nodes differ in RUST only."""

    rules: RegularisedRules

    def offered(self, node: Node, arrivals: Ints, batch: set[int]) -> tuple[dict[int, Ints], int]:
        """Classes new to the node; a coarse class comes with its fine ones where pooled so."""
        held = counts_below(node)
        meeting = sorted({*held, *self.y[arrivals].tolist()})
        new, n_held = {}, 0
        for c, members in pooled_classes(meeting, self.rules).items():
            if any(member in held for member in members):
                n_held += 1
            elif any(member in batch for member in members):
                new[c] = arrivals[np.isin(self.y[arrivals], members)]
        return new, n_held

    def most_centroids(self, node: Node) -> int:
        """A node has as many means as it found worth their cost."""
        return len(node.classes)

    def worth(self, rows: Ints, right: Mask) -> float:
        """[Ristin2015 Eq. 6] without the cost, which is the same for both sides of a new mean."""
        return total_gain(self.y[rows], right, self.rules)
