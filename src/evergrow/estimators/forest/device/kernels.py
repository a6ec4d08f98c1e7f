# Kernels are compiled by Triton, and their arguments have no types of Python.
# mypy: allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs, allow-untyped-defs
"""The way of rows through all trees, in kernels of Triton.

Each step has two kernels. The first compares the rows that have reached the same group of nodes
with all vectors of the group, a tile of rows at a time, and finds the group that each row reaches
next; a counter per group gives each row its place there. The second brings the rows into the order
of these places. Nothing is copied to the processor meanwhile, so that it runs ahead of the device:
the number of tiles is not known there, and superfluous ones return at once.

Tensor cores multiply numbers of type bfloat16, which have mantissas of eight bits, and add up the
products in single precision. A feature is the sum of two such numbers: the nearest one, and the
nearest to the rest. So is a feature of a training sample or plane. Those of class means are bytes,
which need no second number.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt
import triton
import triton.language as tl

from evergrow.estimators.forest.device.descent import GroupArrays
from evergrow.estimators.forest.device.flat_forest import NO_VECTOR, Nodes, padded_width
from evergrow.foundation.device import Device, Tensor, import_torch

# Rows of a tile, by the least number of rows that a group of the step has on average.
_TILES = ((96, 128), (40, 64), (20, 32), (0, 16))
_SCATTER = 1024


@dataclass(frozen=True)
class Settings:
    """How the first kernel is compiled.

    Attributes
    ----------
    features : int
        Features that are multiplied at once, a power of two up to 64.
    stages : int
        Loads that are under way. With three or more, Triton 3.6 compiled kernels for an H200 that
        took rows to wrong leaves.
    warps : dict
        Warps by the rows of a tile.
    """

    features: int = 64
    stages: int = 2
    warps: Mapping[int, int] = field(default_factory=lambda: {16: 2, 32: 4, 64: 4, 128: 8})


@triton.jit
def _products(
    x,
    row,
    is_row,
    vectors,
    rests,
    source,
    n_exact,
    WIDTH: tl.constexpr,
    TILE: tl.constexpr,
    COLUMNS: tl.constexpr,
    FEATURES: tl.constexpr,
    HAS_RESTS: tl.constexpr,
):
    """Products of rows and vectors, of shape (rows of a tile, columns)."""
    feature = tl.arange(0, FEATURES)
    x_place = x + row.to(tl.int64)[:, None] * (2 * WIDTH) + feature[None, :]
    has_vector = (source >= 0)[None, :]
    has_rest = (source >= n_exact)[None, :]
    vector_place = vectors + source.to(tl.int64)[None, :] * WIDTH + feature[:, None]
    rest_place = rests + (source - n_exact).to(tl.int64)[None, :] * WIDTH + feature[:, None]
    products = tl.zeros((TILE, COLUMNS), tl.float32)
    for k in range(0, WIDTH, FEATURES):
        high = tl.load(x_place + k, mask=is_row[:, None], other=0.0)
        rest = tl.load(x_place + (WIDTH + k), mask=is_row[:, None], other=0.0)
        vector = tl.load(vector_place + k, mask=has_vector, other=0.0)
        products = tl.dot(rest, vector, products)
        if HAS_RESTS:
            vector_rest = tl.load(rest_place + k, mask=has_rest, other=0.0)
            products = tl.dot(high, vector_rest, products)
        products = tl.dot(high, vector, products)
    return products


@triton.jit
def _rows_of_tile(tile, local, order, counts, ends, tile_ends, TILE: tl.constexpr):
    """Places of the rows of a tile, whether each is used, and the rows."""
    count = tl.load(counts + local)
    end = tl.load(ends + local)
    n_tiles = (count + TILE - 1) // TILE
    first = end - count + (tile - (tl.load(tile_ends + local) - n_tiles)) * TILE
    place = first + tl.arange(0, TILE)
    is_row = place < end
    return place, is_row, tl.load(order + place, mask=is_row, other=0)


@triton.jit
def _nearest(scores, is_own):
    """The column with the lowest score of each row among those of its node, and this score."""
    own = tl.where(is_own, scores, float("inf"))
    return tl.argmin(own, axis=1, tie_break_left=True), tl.min(own, axis=1)


@triton.jit
def _pass_group(
    x,
    row,
    is_row,
    begin,
    last,
    column_member,
    column_target,
    column_source,
    column_offset,
    column_scale,
    vectors,
    rests,
    n_exact,
    WIDTH: tl.constexpr,
    TILE: tl.constexpr,
    COLUMNS: tl.constexpr,
    FEATURES: tl.constexpr,
    LEVELS: tl.constexpr,
    HAS_RESTS: tl.constexpr,
):
    """Where the rows of a tile leave their group, as the bitwise not of an exit."""
    best = tl.full((TILE,), float("inf"), tl.float32)
    target = tl.full((TILE,), -1, tl.int32)
    scores = tl.zeros((TILE, COLUMNS), tl.float32)
    member = tl.full((COLUMNS,), -1, tl.int32)
    for start in range(begin, last, COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        is_column = column < last
        source = tl.load(column_source + column, mask=is_column, other=-1)
        offset = tl.load(column_offset + column, mask=is_column, other=0.0)
        scale = tl.load(column_scale + column, mask=is_column, other=0.0)
        member = tl.load(column_member + column, mask=is_column, other=-1)
        products = _products(
            x, row, is_row, vectors, rests, source, n_exact,
            WIDTH, TILE, COLUMNS, FEATURES, HAS_RESTS,
        )  # fmt: skip
        scores = offset[None, :] - scale[None, :] * products
        nearest, score = _nearest(scores, (member == 0)[None, :])
        to = tl.load(column_target + start + nearest, mask=is_row, other=-1)
        target = tl.where(score < best, to, target)
        best = tl.minimum(best, score)

    # Only groups of one chunk of columns have more than one node.
    for _ in tl.static_range(LEVELS - 1):
        is_inside = is_row & (target >= 0)
        nearest, _score = _nearest(scores, member[None, :] == target[:, None])
        to = tl.load(column_target + begin + nearest, mask=is_inside, other=-1)
        target = tl.where(is_inside, to, target)
    return target


# Numbers that differ by step and forest; without this each of their kinds would be compiled.
@triton.jit(
    do_not_specialize=[
        "first_group", "n_exact", "n_step_groups", "n_groups", "next_first", "n_trees"
    ]
)  # fmt: skip
def _route_tiles(
    # Rows, in the order of the groups that they have reached.
    x,
    order,
    counts,
    ends,
    tile_ends,
    tile_group,
    # Groups of nodes, their columns and vectors.
    first_group,
    group_tree,
    group_begin,
    column_member,
    column_target,
    column_source,
    column_offset,
    column_scale,
    vectors,
    rests,
    n_exact,
    # What is written: where rows go next, or the leaf that they have reached.
    next_counts,
    next_groups,
    ranks,
    leaves,
    n_step_groups,
    n_groups,
    next_first,
    n_trees,
    WIDTH: tl.constexpr,
    TILE: tl.constexpr,
    COLUMNS: tl.constexpr,
    FEATURES: tl.constexpr,
    LEVELS: tl.constexpr,
    HAS_RESTS: tl.constexpr,
):
    tile = tl.program_id(0)
    local = tl.load(tile_group + tile)
    if local >= n_step_groups:
        return
    place, is_row, row = _rows_of_tile(tile, local, order, counts, ends, tile_ends, TILE)
    group = first_group + local
    target = _pass_group(
        x, row, is_row, tl.load(group_begin + group), tl.load(group_begin + group + 1),
        column_member, column_target, column_source, column_offset, column_scale,
        vectors, rests, n_exact,
        WIDTH, TILE, COLUMNS, FEATURES, LEVELS, HAS_RESTS,
    )  # fmt: skip
    code = -1 - target
    goes_on = is_row & (code < n_groups)
    tree = tl.load(group_tree + group)
    tl.store(
        leaves + row.to(tl.int64) * n_trees + tree,
        code - n_groups,
        mask=is_row & (code >= n_groups),
    )
    next_local = code - next_first
    rank = tl.atomic_add(next_counts + next_local, 1, mask=goes_on, sem="relaxed")
    tl.store(ranks + place, rank, mask=goes_on)
    tl.store(next_groups + place, tl.where(goes_on, next_local, -1), mask=is_row)


@triton.jit(do_not_specialize=["n_groups"])
def _scatter_rows(
    order,
    next_groups,
    ranks,
    ends,
    n_groups,
    next_ends,
    next_counts,
    next_order,
    BLOCK: tl.constexpr,
):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    is_row = place < tl.load(ends + n_groups - 1)
    group = tl.load(next_groups + place, mask=is_row, other=-1)
    goes_on = group >= 0
    first = tl.load(next_ends + group, mask=goes_on, other=0)
    first -= tl.load(next_counts + group, mask=goes_on, other=0)
    rank = tl.load(ranks + place, mask=goes_on, other=0)
    row = tl.load(order + place, mask=goes_on, other=0)
    tl.store(next_order + first + rank, row, mask=goes_on)


class TritonDescent:
    """Nodes that compare with vectors, a group of nodes at a time."""

    is_compiled = True

    def __init__(
        self, device: Device, nodes: Nodes, arrays: GroupArrays, settings: Settings | None = None
    ) -> None:
        torch = import_torch()
        self._arrays, self._settings = arrays, settings or Settings()
        self.width = padded_width(nodes.vectors.shape[1])
        stored = self._padded(device, nodes.vectors)
        samples = self._padded(device, nodes.rows)
        is_exact = stored.dtype == torch.int8
        self._n_exact = len(stored) if is_exact else 0
        # Triton's interpreter, which tests use, cannot multiply bfloat16.
        self._dtype = torch.bfloat16 if device.is_gpu else torch.float32
        self._vectors = torch.cat([self._rounded(stored), self._rounded(samples)])
        rests = [] if is_exact else [self._rest(stored)]
        self._rests = torch.cat([*rests, self._rest(samples)])
        # Stored vectors first, then training samples; -1 for none.
        source = arrays.source
        self._source = torch.where(
            source >= 0, source + len(stored), torch.where(source == NO_VECTOR, -1, ~source)
        )
        self._has_rests = [not is_exact or has_rows for has_rows in arrays.has_rows]

    def _padded(self, device: Device, matrix: npt.NDArray[Any]) -> Tensor:
        torch = import_torch()
        values = device.tensor(matrix)
        return torch.nn.functional.pad(values, (0, self.width - values.shape[1]))

    def leaves(self, rows: Tensor) -> Tensor:
        """Leaf of each row in each tree."""
        torch, arrays = import_torch(), self._arrays
        n, where = len(rows), rows.device
        parts = torch.stack([self._rounded(rows), self._rest(rows)], dim=1)
        leaves = (arrays.entry - arrays.n_groups).to(torch.int32).repeat(n, 1)
        if arrays.n_steps == 0 or n == 0:
            return leaves
        n_first = arrays.steps[1]
        arrivals = _Arrivals(
            torch.arange(n, dtype=torch.int32, device=where).repeat(n_first),
            torch.full((n_first,), n, dtype=torch.int32, device=where),
        )
        next_groups, ranks, unused = (torch.empty_like(arrivals.order) for _ in range(3))
        with torch.cuda.device(where) if where.type == "cuda" else nullcontext():
            for step in range(arrays.n_steps):
                counts = self._route(step, parts, arrivals, next_groups, ranks, leaves)
                if step + 1 < arrays.n_steps:
                    upcoming = _Arrivals(unused, counts)
                    _scatter(arrivals, next_groups, ranks, upcoming)
                    arrivals, unused = upcoming, arrivals.order
        return leaves

    def _route(
        self,
        step: int,
        rows: Tensor,
        arrivals: _Arrivals,
        next_groups: Tensor,
        ranks: Tensor,
        leaves: Tensor,
    ) -> Tensor:
        """Launch the first kernel of a step; return the number of rows of the groups behind it."""
        torch, arrays = import_torch(), self._arrays
        order, counts = arrivals.order, arrivals.counts
        n_groups = len(counts)
        tile = next(rows for least, rows in _TILES if len(order) >= least * n_groups)
        tile_ends = torch.cumsum((counts + (tile - 1)) // tile, 0, dtype=torch.int32)
        # Every group has at most one tile that is not full.
        n_tiles = len(order) // tile + n_groups
        tiles = torch.arange(n_tiles, dtype=torch.int32, device=rows.device)
        tile_group = torch.searchsorted(tile_ends, tiles, right=True, out_int32=True)
        is_last = step + 1 == arrays.n_steps
        n_next = 1 if is_last else arrays.steps[step + 2] - arrays.steps[step + 1]
        next_counts = torch.zeros(n_next, dtype=torch.int32, device=rows.device)
        _route_tiles[(n_tiles,)](
            rows,
            order,
            counts,
            arrivals.ends,
            tile_ends,
            tile_group,
            arrays.steps[step],
            arrays.tree,
            arrays.begin,
            arrays.member,
            arrays.target,
            self._source,
            arrays.offset,
            arrays.scale,
            self._vectors,
            self._rests,
            self._n_exact,
            next_counts,
            next_groups,
            ranks,
            leaves,
            n_groups,
            arrays.n_groups,
            arrays.steps[step + 1],
            arrays.n_trees,
            WIDTH=self.width,
            TILE=tile,
            COLUMNS=arrays.shape.columns,
            FEATURES=min(self._settings.features, self.width),
            LEVELS=arrays.shape.levels,
            HAS_RESTS=self._has_rests[step],
            num_warps=self._settings.warps[tile],
            num_stages=self._settings.stages,
        )
        return next_counts

    def _rounded(self, values: Tensor) -> Tensor:
        """Values as tensor cores take them."""
        return values.bfloat16().to(self._dtype)

    def _rest(self, values: Tensor) -> Tensor:
        """What rounding leaves, rounded itself."""
        single = values.float()
        return self._rounded(single - single.bfloat16())


@dataclass(frozen=True, eq=False)
class _Arrivals:
    """Rows that have reached the groups of a step, one group after the other.

    Attributes
    ----------
    order : Tensor of shape (n_pairs,)
        Numbers of the rows; what is behind the last end is not used.
    counts, ends : Tensor of shape (n_groups,)
        Number of rows of each group, and where they end in ``order``.
    """

    order: Tensor
    counts: Tensor
    ends: Tensor = field(init=False)

    def __post_init__(self) -> None:
        torch = import_torch()
        object.__setattr__(self, "ends", torch.cumsum(self.counts, 0, dtype=torch.int32))


def _scatter(arrivals: _Arrivals, next_groups: Tensor, ranks: Tensor, upcoming: _Arrivals) -> None:
    """Launch the second kernel of a step, which fills the order of the upcoming rows."""
    _scatter_rows[(triton.cdiv(len(arrivals.order), _SCATTER),)](
        arrivals.order,
        next_groups,
        ranks,
        arrivals.ends,
        len(arrivals.ends),
        upcoming.ends,
        upcoming.counts,
        upcoming.order,
        BLOCK=_SCATTER,
    )
