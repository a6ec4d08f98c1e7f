"""Shards of generated features, made once for each run of a benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import evergrow

_ROWS_AT_ONCE = 4096


def generated_shards(
    folder: Path, n_rows: int, n_features: int, n_classes: int, *, rows_per_shard: int | None = None
) -> str:
    """A folder of overlapping Gaussian classes in no order, the same for every run."""
    path = folder / f"{n_rows}x{n_features}"
    batches = _batches(n_rows, n_features, n_classes)
    evergrow.write_shards(path, batches, rows_per_shard=rows_per_shard)
    return str(path)


def _batches(
    n_rows: int, n_features: int, n_classes: int
) -> Iterator[tuple[npt.NDArray[np.float32], npt.NDArray[Any]]]:
    rng = np.random.default_rng(0)
    centres = 0.35 * rng.standard_normal((n_classes, n_features), dtype=np.float32)
    for first in range(0, n_rows, _ROWS_AT_ONCE):
        y = rng.integers(0, n_classes, min(_ROWS_AT_ONCE, n_rows - first))
        yield rng.standard_normal((len(y), n_features), dtype=np.float32) + centres[y], y
