"""Rows through a linear projection, here or wherever the engine in use runs its tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.blocks import float_blocks
from evergrow.foundation.engine import Arrays, current_engine
from evergrow.storage.shards.parts import RowPart, row_parts, run_and_stack

__all__ = ["project_part", "projected"]

Floats = npt.NDArray[np.float64]


def projected(X: npt.NDArray[Any], components: Floats) -> Floats:
    """``X @ components.T``, a block of rows at a time."""
    engine = current_engine()
    parts = [] if engine is None else row_parts(X)
    if engine is not None and len(parts) > 1:
        return run_and_stack(engine, parts, project_part, X, (components,), what="projecting")
    return _projected_here(X, components)


def project_part(part: RowPart, matrix: npt.NDArray[Any] | None, components: Floats) -> Arrays:
    """The projection of some rows."""
    return {"rows": _projected_here(part.read(matrix), components)}


def _projected_here(X: npt.NDArray[Any], components: Floats) -> Floats:
    found = np.empty((X.shape[0], len(components)))
    for rows, block in float_blocks(X):
        found[rows] = block @ components.T
    return found
