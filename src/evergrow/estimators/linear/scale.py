"""How far inputs spread: what the width of random Fourier features is taken from.

Features cannot be computed before it is known, and it depends on all inputs: this is a pass of its
own before the one that adds them up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.blocks import float_blocks
from evergrow.foundation.engine import Arrays, Job, current_engine
from evergrow.foundation.version import __version__
from evergrow.storage.shards.parts import RowPart, content_name, row_parts, rows_to_share

__all__ = ["inverse_spread"]

Floats = npt.NDArray[np.float64]


def inverse_spread(X: npt.NDArray[Any], weights: Floats) -> float:
    """1 / (n_features * variance of all entries); 1 where they do not vary."""
    total, squares = _sums(X, weights)
    mean = total / weights.sum()
    variance = squares / weights.sum() - mean**2
    return float(1.0 / (X.shape[1] * variance)) if variance > 1e-12 * mean**2 else 1.0


def _sums(X: npt.NDArray[Any], weights: Floats) -> Floats:
    engine = current_engine()
    parts = [] if engine is None else row_parts(X)
    if engine is None or len(parts) < 2:
        return _sums_of(X, weights)
    name = content_name("spread", __version__, X, weights) if engine.has_checkpoints else None
    shared = (rows_to_share(X), weights)
    job = Job(spread_of_part, parts, shared, "measuring the spread", name=name)
    return engine.reduce(job, added_spreads)["sums"]


def _sums_of(X: npt.NDArray[Any], weights: Floats) -> Floats:
    sums = np.zeros(2)
    for rows, block in float_blocks(X):
        values = np.asarray(block, dtype=np.float64)
        sums[0] += weights[rows] @ values.mean(axis=1)
        sums[1] += weights[rows] @ (values**2).mean(axis=1)
    return sums


def spread_of_part(part: RowPart, matrix: npt.NDArray[Any] | None, weights: Floats) -> Arrays:
    """Sums of the entries of some rows, and of their squares."""
    return {"sums": _sums_of(part.read(matrix), weights[part.rows])}


def added_spreads(first: Arrays, second: Arrays) -> Arrays:
    """The sums over two parts."""
    return {"sums": first["sums"] + second["sums"]}
