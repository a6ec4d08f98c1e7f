"""The way of rows through all trees, in plain torch."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Protocol

import numpy as np

from evergrow.estimators.forest.device.flat_forest import NO_VECTOR, Groups, GroupShape, Nodes
from evergrow.foundation.device import Device, Tensor, import_torch

# Rows of one group that are compared with its vectors in one matrix product, at most.
_LARGEST_TILE = 64
# Bytes of the vectors and rows of all products that are made at once.
_PRODUCT_BYTES = 256 << 20


class Descent(Protocol):
    """Takes rows to leaves."""

    width: int
    # Whether kernels are compiled for the device: these are checked before they are trusted.
    is_compiled: bool

    def leaves(self, rows: Tensor) -> Tensor:
        """Leaf of each row in each tree, of shape (n_rows, n_trees), as places among all leaves."""


class ThresholdDescent:
    """Nodes that compare one feature with a threshold: one number is read per node."""

    is_compiled = False

    def __init__(self, device: Device, nodes: Nodes, n_features: int) -> None:
        torch = import_torch()
        self.width = n_features
        splits = nodes.left >= 0
        column = np.where(splits, nodes.begin, 0)
        place = np.zeros(len(nodes.left), dtype=np.int64)
        place[nodes.leaves] = np.arange(len(nodes.leaves))
        # A forest of nothing but leaves has no columns.
        source = np.where(splits, np.append(nodes.source, 0)[column], 0)
        offset = np.where(splits, np.append(nodes.offset, np.float32(0))[column], np.float32(0))
        self._feature = device.tensor(source, torch.int64)
        self._threshold = device.tensor(offset)
        # The way from a leaf is to itself.
        self._left = device.tensor(np.where(splits, nodes.left, np.arange(len(splits))))
        self._splits = device.tensor(splits)
        self._place = device.tensor(place)
        self._roots = device.tensor(nodes.roots)

    def leaves(self, rows: Tensor) -> Tensor:
        """Leaf of each row in each tree."""
        node = self._roots.expand(len(rows), -1)
        while bool((splits := self._splits[node]).any()):
            right = rows.gather(1, self._feature[node]) > self._threshold[node]
            node = self._left[node] + (right & splits)
        return self._place[node]


class GroupArrays:
    """The groups of a forest on a device."""

    def __init__(self, device: Device, nodes: Nodes, shape: GroupShape | None = None) -> None:
        torch = import_torch()
        groups = Groups.of(nodes, shape or GroupShape())
        self.shape = groups.shape
        self.steps, self.widest, self.n_steps = groups.steps, groups.widest, groups.n_steps
        self.n_groups = groups.steps[-1]
        self.n_trees = len(groups.entry)
        self.tree = device.tensor(groups.tree, torch.int32)
        self.begin = device.tensor(groups.begin, torch.int32)
        self.member = device.tensor(groups.member, torch.int32)
        self.target = device.tensor(groups.target, torch.int32)
        self.source = device.tensor(nodes.source[groups.column], torch.int32)
        self.offset = device.tensor(nodes.offset[groups.column])
        self.scale = device.tensor(nodes.scale[groups.column])
        self.entry = device.tensor(groups.entry, torch.int64)
        is_row = nodes.source[groups.column] >= 0
        bounds = groups.begin[groups.steps].tolist()
        # Whether groups of each step compare with training samples.
        self.has_rows = [bool(is_row[a:b].any()) for a, b in pairwise(bounds)]


class GroupDescent:
    """Nodes that compare with vectors, a group of nodes at a time.

    In each step, rows that have reached the same group are compared with its vectors in one matrix
    product.
    """

    is_compiled = False

    def __init__(self, device: Device, nodes: Nodes, arrays: GroupArrays) -> None:
        self._arrays = arrays
        self.width = nodes.vectors.shape[1]
        self._stored = device.tensor(nodes.vectors)
        self._rows = device.tensor(nodes.rows)

    def leaves(self, rows: Tensor) -> Tensor:
        """Leaf of each row in each tree."""
        torch, arrays = import_torch(), self._arrays
        exits = arrays.entry.repeat(len(rows))
        pairs = torch.nonzero(exits < arrays.n_groups)[:, 0]
        for step in range(arrays.n_steps):
            exits[pairs] = self._pass_groups(rows, pairs, exits[pairs], step)
            pairs = pairs[exits[pairs] < arrays.n_groups]
        return (exits - arrays.n_groups).reshape(len(rows), arrays.n_trees)

    def _pass_groups(self, rows: Tensor, pairs: Tensor, groups: Tensor, step: int) -> Tensor:
        """Exits of pairs of a row and a tree that have reached these groups."""
        torch = import_torch()
        exits = torch.empty_like(pairs)
        if not len(pairs):
            return exits
        order = torch.argsort(groups)
        row = torch.div(pairs[order], self._arrays.n_trees, rounding_mode="floor")
        for tiles, places, is_used in self._tiles(groups[order], step):
            found = self._route(rows[row[places]], tiles, step)
            exits[order[places[is_used]]] = found[is_used]
        return exits

    def _tiles(self, groups: Tensor, step: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Cut sorted groups into tiles: the group of each, places, and whether these are used."""
        torch = import_torch()
        present, sizes = torch.unique_consecutive(groups, return_counts=True)
        # Tiles that are not full make superfluous products; small ones read vectors more often.
        tile_rows = min(_LARGEST_TILE, 1 << (len(groups) // len(present)).bit_length())
        n_tiles = (sizes + (tile_rows - 1)) // tile_rows
        last = torch.cumsum(sizes, 0)
        tile = torch.repeat_interleave(torch.arange(len(present), device=groups.device), n_tiles)
        number = torch.arange(len(tile), device=groups.device)
        number -= (torch.cumsum(n_tiles, 0) - n_tiles)[tile]
        first = (last - sizes)[tile] + number * tile_rows
        places = first[:, None] + torch.arange(tile_rows, device=groups.device)
        is_used = places < last[tile][:, None]
        bytes_each = 12 * self.width * (tile_rows + self._arrays.widest[step])
        at_once = max(1, _PRODUCT_BYTES // bytes_each)
        for begin in range(0, len(tile), at_once):
            part = slice(begin, begin + at_once)
            yield present[tile[part]], places[part].clamp_(max=len(groups) - 1), is_used[part]

    def _route(self, rows: Tensor, groups: Tensor, step: int) -> Tensor:
        """Exits of tiles of rows, of shape (n_tiles, rows of a tile, width)."""
        torch, arrays = import_torch(), self._arrays
        column = arrays.begin[groups][:, None] + torch.arange(
            arrays.widest[step], device=rows.device
        )
        is_used = column < arrays.begin[groups + 1][:, None]
        column = column.where(is_used, 0)
        products = torch.bmm(rows, self._vectors(arrays.source[column]).transpose(1, 2))
        scores = arrays.offset[column][:, None] - arrays.scale[column][:, None] * products
        member = arrays.member[column].where(is_used, -1)[:, None]
        targets = arrays.target[column]
        at = torch.zeros(rows.shape[:2], dtype=torch.int32, device=rows.device)
        for _ in range(arrays.shape.levels):
            own = scores.masked_fill(member != at[:, :, None], torch.inf)
            nearest = own.argmin(dim=2)
            at = at.where(at < 0, targets.gather(1, nearest))
        return ~at.to(torch.int64)

    def _vectors(self, source: Tensor) -> Tensor:
        """Vectors of columns in single precision."""
        torch = import_torch()
        found = torch.zeros((*source.shape, self.width), dtype=torch.float32, device=source.device)
        stored = (source < 0) & (source != NO_VECTOR)
        found[stored] = self._stored[~source[stored]].float()
        found[source >= 0] = self._rows[source[source >= 0]].float()
        return found
