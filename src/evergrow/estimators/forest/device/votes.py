"""The votes of all leaves of a forest on a device, and class probabilities from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from evergrow import _core
from evergrow.foundation.device import Device, Tensor, import_torch

# A table with a column for every class is used up to this many bytes, and up to this share of the
# free memory of the device; beyond, only classes that a leaf votes for are stored.
_DENSE_BYTES = 2 << 30
_DENSE_SHARE = 0.25


class LeafVotes:
    """Votes of the leaves of all trees, by place: tree by tree from left to right.

    Sums are in double precision and in the order of the trees, as in the core: rows that reach the
    same leaves have the same probabilities.
    """

    def __init__(
        self,
        device: Device,
        forest: _core.Forest,
        reading: _core.LeafReading | None,
        votes: _core.VoteWeights | None,
    ) -> None:
        trees = [forest.leaf_votes(t, reading, votes) for t in range(len(forest))]
        self.n_classes = forest.n_classes
        sums = np.full(forest.n_classes, float(len(forest))) if votes is None else votes.sums
        self._sums = device.tensor(sums)
        self._has_weights = votes is not None
        n_leaves = sum(len(nodes) for nodes, *_ in trees)
        n_bytes = 8 * n_leaves * forest.n_classes
        self._table: _DenseTable | _SparseTable
        if n_bytes <= min(_DENSE_BYTES, _DENSE_SHARE * device.free_bytes()):
            self._table = _DenseTable(device, trees, forest.n_classes)
        else:
            self._table = _SparseTable(device, trees, forest.n_classes)

    def probabilities(self, leaves: Tensor) -> Tensor:
        """Class probabilities of rows that have reached these leaves [Ristin2014 Eq. 4]."""
        found = self._table.sums(leaves).div_(self._sums)
        if self._has_weights:
            found = rescaled(found)
        return found


def weighted(probabilities: Tensor, weights: Tensor | None) -> Tensor:
    """Probabilities with the votes of small classes multiplied, of the same sum."""
    if weights is None:
        return probabilities
    # Classes that were added to a forest without samples have no weight.
    probabilities[:, : len(weights)] *= weights
    return rescaled(probabilities)


def rescaled(probabilities: Tensor) -> Tensor:
    """Probabilities divided by their sum; rows of zeros stay."""
    total = probabilities.sum(dim=1, keepdim=True)
    return probabilities / total.where(total > 0, 1.0)


class _DenseTable:
    """A row with all classes for each leaf."""

    def __init__(self, device: Device, trees: list[Any], n_classes: int) -> None:
        torch = import_torch()
        n_leaves = sum(len(nodes) for nodes, *_ in trees)
        self._rows = torch.zeros((n_leaves, n_classes), dtype=torch.float64, device=device.name)
        first = 0
        for nodes, begin, classes, shares in trees:
            leaf = first + np.repeat(np.arange(len(nodes)), np.diff(begin))
            place = device.tensor(leaf), device.tensor(classes, torch.int64)
            self._rows.index_put_(place, device.tensor(shares), accumulate=True)
            first += len(nodes)

    def sums(self, leaves: Tensor) -> Tensor:
        """Sums over the leaves of each row."""
        return import_torch().nn.functional.embedding_bag(leaves, self._rows, mode="sum")


class _SparseTable:
    """Classes and shares of each leaf, for forests of many classes."""

    def __init__(self, device: Device, trees: list[Any], n_classes: int) -> None:
        torch = import_torch()
        begins, n_votes = [], 0
        for _, begin, *_ in trees:
            begins.append(begin[:-1] + n_votes)
            n_votes += int(begin[-1])
        self._n_classes = n_classes
        self._begin = device.tensor(np.concatenate([*begins, [n_votes]]), torch.int64)
        self._classes = device.tensor(np.concatenate([tree[2] for tree in trees]), torch.int64)
        self._shares = device.tensor(np.concatenate([tree[3] for tree in trees]))

    def sums(self, leaves: Tensor) -> Tensor:
        """Sums over the leaves of each row."""
        torch = import_torch()
        found = torch.zeros(
            (len(leaves), self._n_classes), dtype=torch.float64, device=leaves.device
        )
        flat = found.view(-1)
        row = torch.arange(len(leaves), device=leaves.device)
        # One tree at a time: no class comes twice in a leaf, so the order of additions is fixed.
        for leaf in leaves.T.long():
            begin = self._begin[leaf]
            n = self._begin[leaf + 1] - begin
            own = torch.repeat_interleave(row, n)
            number = torch.arange(len(own), device=leaves.device)
            vote = number + (begin - (torch.cumsum(n, 0) - n))[own]
            flat.index_add_(0, own * self._n_classes + self._classes[vote], self._shares[vote])
        return found
