"""The way of rows through all trees, in kernels of Triton.

Each step has two kernels. The first compares the rows that have reached the same group of nodes
with all vectors of the group, a tile of rows at a time, and finds the group that each row reaches
next; a counter per group gives each row its place there. The second brings the rows into the order
of these places. Nothing is copied to the processor meanwhile, so that it runs ahead of the device:
the number of tiles is not known there, and superfluous ones return at once.

Products are as exact as in single precision, on tensor cores: both factors are sums of numbers with
the short fractions that these take. Vectors of one byte per feature are such numbers already.
"""

from __future__ import annotations

from contextlib import nullcontext

import triton
import triton.language as tl

from evergrow.estimators.forest.device.descent import GroupArrays
from evergrow.estimators.forest.device.flat_forest import NO_VECTOR
from evergrow.foundation.device import Tensor, import_torch

# Rows of a tile, by the least number of rows that a group of the step has on average.
TILES = ((96, 128), (40, 64), (20, 32), (0, 16))
_WARPS = {16: 2, 32: 2, 64: 4, 128: 4}
_SCATTER = 1024


@triton.jit
def _add_product(products, x, c, has_rows, SPLIT: tl.constexpr):
    """Add x @ c to single precision, with x of the shape (rows, features)."""
    if SPLIT:
        high = x.to(tl.bfloat16)
        rest = x - high.to(tl.float32)
        middle = rest.to(tl.bfloat16)
        low = (rest - middle.to(tl.float32)).to(tl.bfloat16)
        c_high = c.to(tl.bfloat16)
        products = tl.dot(low, c_high, products)
        products = tl.dot(middle, c_high, products)
        if has_rows:
            c_rest = c - c_high.to(tl.float32)
            c_middle = c_rest.to(tl.bfloat16)
            c_low = (c_rest - c_middle.to(tl.float32)).to(tl.bfloat16)
            products = tl.dot(high, c_low, products)
            products = tl.dot(middle, c_middle, products)
            products = tl.dot(high, c_middle, products)
        products = tl.dot(high, c_high, products)
    else:
        products = tl.dot(x, c, products, input_precision="tf32x3")
    return products


@triton.jit
def _route_tiles(
    x,
    order,
    counts,
    ends,
    tile_ends,
    tile_group,
    first_group,
    group_tree,
    group_begin,
    column_member,
    column_target,
    column_source,
    column_offset,
    column_scale,
    vectors,
    rows,
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
    NONE: tl.constexpr,
    SPLIT: tl.constexpr,
    HAS_ROWS: tl.constexpr,
    EXACT_VECTORS: tl.constexpr,
):
    tile = tl.program_id(0)
    local = tl.load(tile_group + tile)
    if local >= n_step_groups:
        return
    count = tl.load(counts + local)
    end = tl.load(ends + local)
    n_tiles = (count + TILE - 1) // TILE
    first = end - count + (tile - (tl.load(tile_ends + local) - n_tiles)) * TILE
    place = first + tl.arange(0, TILE)
    is_row = place < end
    row = tl.load(order + place, mask=is_row, other=0)
    group = first_group + local
    begin = tl.load(group_begin + group)
    last = tl.load(group_begin + group + 1)
    feature = tl.arange(0, FEATURES)
    x_place = x + row.to(tl.int64)[:, None] * WIDTH + feature[None, :]

    best = tl.full((TILE,), float("inf"), tl.float32)
    target = tl.full((TILE,), -1, tl.int32)
    scores = tl.zeros((TILE, COLUMNS), tl.float32)
    member = tl.full((COLUMNS,), -1, tl.int32)
    column = begin + tl.arange(0, COLUMNS)
    for start in range(begin, last, COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        is_column = column < last
        source = tl.load(column_source + column, mask=is_column, other=NONE)
        offset = tl.load(column_offset + column, mask=is_column, other=0.0)
        scale = tl.load(column_scale + column, mask=is_column, other=0.0)
        member = tl.load(column_member + column, mask=is_column, other=-1)
        is_sample = source >= 0
        is_vector = (source < 0) & (source != NONE)
        vector_place = vectors + (-1 - source).to(tl.int64)[None, :] * WIDTH + feature[:, None]
        sample_place = rows + source.to(tl.int64)[None, :] * WIDTH + feature[:, None]
        has_samples = tl.max(is_sample.to(tl.int32), axis=0) > 0
        has_rest = has_samples
        if not EXACT_VECTORS:
            has_rest = True
        products = tl.zeros((TILE, COLUMNS), tl.float32)
        for k in range(0, WIDTH, FEATURES):
            own = tl.load(x_place + k, mask=is_row[:, None], other=0.0)
            c = tl.load(vector_place + k, mask=is_vector[None, :], other=0).to(tl.float32)
            if HAS_ROWS:
                c += tl.load(sample_place + k, mask=is_sample[None, :], other=0).to(tl.float32)
            products = _add_product(products, own, c, has_rest, SPLIT)
        scores = offset[None, :] - scale[None, :] * products
        shown = tl.where((member == 0)[None, :], scores, float("inf"))
        nearest = tl.argmin(shown, axis=1, tie_break_left=True)
        found = tl.min(shown, axis=1)
        to = tl.load(column_target + start + nearest, mask=is_row, other=-1)
        target = tl.where(found < best, to, target)
        best = tl.minimum(best, found)

    # Only groups of one chunk of columns have more than one node.
    for _ in tl.static_range(LEVELS - 1):
        inside = is_row & (target >= 0)
        shown = tl.where(member[None, :] == target[:, None], scores, float("inf"))
        nearest = tl.argmin(shown, axis=1, tie_break_left=True)
        to = tl.load(column_target + begin + nearest, mask=inside, other=-1)
        target = tl.where(inside, to, target)

    code = -1 - target
    goes_on = is_row & (code < n_groups)
    tree = tl.load(group_tree + group)
    tl.store(
        leaves + row.to(tl.int64) * n_trees + tree, code - n_groups, mask=is_row & (code >= n_groups)
    )
    next_local = code - next_first
    rank = tl.atomic_add(next_counts + next_local, 1, mask=goes_on, sem="relaxed")
    tl.store(ranks + place, rank, mask=goes_on)
    tl.store(next_groups + place, tl.where(goes_on, next_local, -1), mask=is_row)


@triton.jit
def _scatter_rows(
    order, next_groups, ranks, total, next_ends, next_counts, next_order, BLOCK: tl.constexpr
):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    is_row = place < tl.load(total)
    group = tl.load(next_groups + place, mask=is_row, other=-1)
    goes_on = group >= 0
    first = tl.load(next_ends + group, mask=goes_on, other=0)
    first -= tl.load(next_counts + group, mask=goes_on, other=0)
    rank = tl.load(ranks + place, mask=goes_on, other=0)
    row = tl.load(order + place, mask=goes_on, other=0)
    tl.store(next_order + first + rank, row, mask=goes_on)


class TritonDescent:
    """Nodes that compare with vectors, a group of nodes at a time."""

    def __init__(self, arrays: GroupArrays, *, split: bool = True) -> None:
        self._arrays = arrays
        self._split = split
        self.width = arrays.width
        self._features = min(64, arrays.width)

    def leaves(self, rows: Tensor) -> Tensor:
        """Leaf of each row in each tree."""
        torch, arrays = import_torch(), self._arrays
        n, where = len(rows), rows.device
        first = (arrays.entry - arrays.n_groups).to(torch.int32)
        leaves = first.repeat(n, 1)
        if arrays.n_steps == 0 or n == 0:
            return leaves
        n_first = arrays.steps[1]
        numbers = torch.arange(n, dtype=torch.int32, device=where)
        order = numbers.repeat(n_first)
        counts = torch.full((n_first,), n, dtype=torch.int32, device=where)
        buffers = [torch.empty_like(order) for _ in range(3)]
        with torch.cuda.device(where) if where.type == "cuda" else nullcontext():
            for step in range(arrays.n_steps):
                ends = torch.cumsum(counts, 0, dtype=torch.int32)
                next_counts = self._route(step, rows, order, counts, ends, buffers, leaves)
                if step + 1 < arrays.n_steps:
                    next_ends = torch.cumsum(next_counts, 0, dtype=torch.int32)
                    grid = (triton.cdiv(len(order), _SCATTER),)
                    _scatter_rows[grid](
                        order, buffers[0], buffers[1], ends[-1:], next_ends, next_counts,
                        buffers[2], BLOCK=_SCATTER,
                    )  # fmt: skip
                order, buffers[2] = buffers[2], order
                counts = next_counts
        return leaves

    def _route(
        self,
        step: int,
        rows: Tensor,
        order: Tensor,
        counts: Tensor,
        ends: Tensor,
        buffers: list[Tensor],
        leaves: Tensor,
    ) -> Tensor:
        """Launch the first kernel of a step; return the number of rows of the groups behind it."""
        torch, arrays = import_torch(), self._arrays
        first, n_groups = arrays.steps[step], len(counts)
        tile = next(rows for least, rows in TILES if len(order) >= least * n_groups)
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
            ends,
            tile_ends,
            tile_group,
            first,
            arrays.tree,
            arrays.begin,
            arrays.member,
            arrays.target,
            arrays.source,
            arrays.offset,
            arrays.scale,
            arrays.vectors,
            arrays.rows,
            next_counts,
            buffers[0],
            buffers[1],
            leaves,
            n_groups,
            arrays.n_groups,
            arrays.steps[step + 1],
            arrays.n_trees,
            WIDTH=self.width,
            TILE=tile,
            COLUMNS=arrays.shape.columns,
            FEATURES=self._features,
            LEVELS=arrays.shape.levels,
            NONE=NO_VECTOR,
            SPLIT=self._split,
            HAS_ROWS=len(arrays.rows) > 0,
            EXACT_VECTORS=arrays.vectors.dtype == torch.int8,
            num_warps=_WARPS[tile],
        )
        return next_counts


