"""Which classes of a large confusion matrix to show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import TypeVar

Name = TypeVar("Name", bound=Hashable)


def most_confused(cells: Iterable[tuple[Name, Name, int]], most: int) -> set[Name]:
    """Return both classes of the most frequent confusions, at most ``most`` classes.

    A cell has the true class, the predicted class and the number of examples. Confusions of two
    classes count in both directions. A pair is taken as a whole: half of it would hide the mistake.

    >>> cells = [("cat", "cat", 9), ("cat", "dog", 2), ("dog", "cat", 2), ("cow", "yak", 3)]
    >>> sorted(most_confused(cells, 2)), sorted(most_confused(cells, 3))
    (['cat', 'dog'], ['cat', 'dog'])
    """
    mistakes: Counter[frozenset[Name]] = Counter()
    for true, predicted, n in cells:
        if true != predicted:
            mistakes[frozenset((true, predicted))] += n
    chosen: set[Name] = set()
    for pair, _ in mistakes.most_common():
        if len(chosen | pair) <= most:
            chosen |= pair
    return chosen
