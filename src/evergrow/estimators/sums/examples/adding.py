"""Examples added to sums in one pass, here or wherever the engine in use runs its tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.sums.batches import Batch
from evergrow.estimators.sums.examples.by_parts import add_by_parts
from evergrow.estimators.sums.examples.passing import (
    AS_THEY_ARE,
    NONE,
    Mapping,
    Picked,
    Places,
    mapped_batches,
)
from evergrow.estimators.sums.moments import FEW, Moments
from evergrow.foundation.engine import current_engine
from evergrow.foundation.progress import progress_bar
from evergrow.storage.shards.parts import row_parts

__all__ = ["add_examples", "add_picking"]


def add_examples(
    moments: Moments,
    X: npt.NDArray[Any],
    codes: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float64],
) -> Moments:
    """Sums with these examples in them."""
    return add_picking(moments, Batch(X, codes, weights))[0]


def add_picking(
    moments: Moments,
    new: Batch,
    mapping: Mapping = AS_THEY_ARE,
    *,
    places: Places = NONE,
    verbose: int = 0,
) -> tuple[Moments, npt.NDArray[Any]]:
    """Sums with these examples in them, and the inputs at some places, from one pass.

    Parameters
    ----------
    moments : Moments
        What they are added to; their classes must be known.
    new : Batch
        The examples, rows of any type.
    mapping : Mapping
        What is added up instead of the inputs.
    places : ndarray of int
        Ascending.
    verbose : int
        Show a progress bar when positive.

    Raises
    ------
    ValueError
        For numbers that are too large to add up.
    """
    engine, n_rows = current_engine(), new.rows.shape[0]
    squared = moments.settled is not None or moments.class_settled is not None
    parts = [] if engine is None or n_rows < FEW else row_parts(new.rows, squared=squared)
    if engine is not None and len(parts) > 1:
        return add_by_parts(engine, parts, moments, new, mapping, places, verbose)
    picked = Picked(places, new.rows)
    if n_rows < FEW:
        for few in mapped_batches(new, mapping, picked):
            moments = moments.add(few)
        return moments, picked.rows
    with progress_bar("adding examples", n_rows, verbose) as progress:
        added = moments.add_all(mapped_batches(new, mapping, picked, progress))
    return added, picked.rows
