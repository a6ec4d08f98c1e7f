"""Counting words and choosing thresholds by mutual information as the definitions read."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def word_counts(images: Sequence[Ints], words_per_tree: Ints) -> Ints:
    """Counts of words per image; each image is a matrix of words, a column per tree."""
    counts = np.zeros((len(images), int(sum(words_per_tree))), dtype=np.int64)
    for i, words in enumerate(images):
        for descriptor in words:
            first = 0
            for tree, word in enumerate(descriptor):
                counts[i, first + word] += 1
                first += int(words_per_tree[tree])
    return counts


def mutual_information(present: npt.NDArray[np.bool_], y: Ints) -> float:
    """``sum p(a, c) ln(p(a, c) / (p(a) p(c)))`` over presence ``a`` and class ``c``."""
    total = 0.0
    for a in (False, True):
        for c in set(y.tolist()):
            both = float(np.mean((present == a) & (y == c)))
            if both > 0:
                total += both * math.log(both / (np.mean(present == a) * np.mean(y == c)))
    return total


def thresholds(counts: Ints, y: Ints) -> list[int]:
    """Per word the smallest threshold of those that say most about the class."""
    chosen = []
    for column in counts.T:
        information = [mutual_information(column >= t, y) for t in range(1, int(column.max()) + 1)]
        best = max(information, default=0.0)
        good = [t for t, value in enumerate(information, start=1) if value >= best - 1e-9]
        chosen.append(min(good, default=1))
    return chosen
