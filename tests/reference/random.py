"""Random numbers as a function of seed, tree, update, node and draw.

Twin of ``cpp/run/random_stream.hpp``.
"""

from __future__ import annotations

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
ROWS, ROOT, COPIES = 0, 1, 2  # what a tree draws for
CHOICE, RESERVOIR = 2, 3  # what a node draws for, besides its split and its children 0 and 1


def mix(x: int) -> int:
    """Scramble 64 bits (the finaliser of SplitMix64)."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & MASK
    return x ^ (x >> 31)


def derive(key: int, name: int) -> int:
    """Key of something that belongs to ``key``: a tree of a forest, a child of a node."""
    return mix((mix(key ^ 0xD1B54A32D192ED03) + GOLDEN * (name + 1)) & MASK)


def tree_key(seed: int, tree: int, update: int) -> int:
    """Key of one tree in one update."""
    return derive(derive(mix(seed), tree), update)


class Stream:
    """The draws that belong to one key."""

    def __init__(self, key: int) -> None:
        self.state = key

    def next(self) -> int:
        """Return 64 random bits."""
        self.state = (self.state + GOLDEN) & MASK
        return mix(self.state)

    def below(self, bound: int) -> int:
        """Return an integer in [0, bound)."""
        return (self.next() >> 32) * bound >> 32

    def uniform(self) -> float:
        """Return a number in [0, 1), of 53 bits."""
        return (self.next() >> 11) * 2.0**-53

    def normal(self) -> float:
        """Return a nearly standard normal number: twelve 16-bit ones, added up and centred."""
        draws = [self.next() for _ in range(3)]
        total = sum(bits >> shift & 0xFFFF for bits in draws for shift in (0, 16, 32, 48))
        return (total - 6 * 0xFFFF) * 2.0**-16
