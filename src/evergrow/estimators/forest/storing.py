"""Where the samples of a forest go: memory, a file that was named, or one that has no name."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.forest.history import EarlySamples
from evergrow.estimators.forest.moving import spilled
from evergrow.estimators.forest.recipe import Recipe
from evergrow.estimators.forest.room import Room, Work, room_for
from evergrow.estimators.forest.scratch import ScratchRows
from evergrow.estimators.forest.standardize import Standardization
from evergrow.foundation.blocks import float_blocks
from evergrow.foundation.progress import progress_bar
from evergrow.storage.shards import join_rows

__all__ = ["Batch", "Ids", "room_to_change", "room_to_grow", "store_first", "store_more"]

Codes = npt.NDArray[np.int32]
Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Batch:
    """New samples: features, columns of their classes, and ids."""

    X: npt.NDArray[Any]
    codes: Codes
    ids: Ids

    def after(self, early: EarlySamples) -> Batch:
        """Early samples and these as one batch."""
        return Batch(
            join_rows(early.X, self.X),
            np.concatenate([early.codes, self.codes]),
            np.concatenate([early.ids, self.ids]),
        )


def room_to_grow(recipe: Recipe, shape: tuple[int, int], n_classes: int) -> Room:
    """What the memory limit leaves for a forest of a matrix of this shape."""
    if recipe.memory_limit is None:
        return Room()
    work = _work("fit", recipe, shape[0], shape[0], shape[1], n_classes)
    return room_for(work, recipe.memory_limit, mapped=recipe.memory is not None)


def room_to_change(
    recipe: Recipe, samples: _core.Samples, n_classes: int, *, n_new: int = 0
) -> Room:
    """The same for a change of a forest of stored samples."""
    if recipe.memory_limit is None:
        return Room()
    # New rows take the places of removed ones first.
    n_rows = len(samples) - samples.n_removed + n_new
    work = _work("update", recipe, n_rows, n_new, samples.n_features, n_classes)
    work = replace(work, n_removed=max(0, len(samples) - n_rows))
    mapped = samples.path is not None
    return room_for(work, recipe.memory_limit, held=samples.own_nbytes, mapped=mapped)


def _work(
    kind: str, recipe: Recipe, n_rows: int, n_new: int, n_features: int, n_classes: int
) -> Work:
    return Work(
        kind=kind,
        n_rows=n_rows,
        n_new=n_new,
        width=_core.padded_width(n_features),
        half=recipe.half_samples,
        n_classes=n_classes,
        n_threads=max(1, min(recipe.n_threads, recipe.n_estimators)),
        rules=recipe.split_rules(n_classes, n_features),
        evicts=recipe.keep_per_class is not None,
    )


def store_first(
    batch: Batch, standardization: Standardization, recipe: Recipe, room: Room
) -> tuple[_core.Samples, Codes]:
    """The first samples of a forest, and their numbers."""
    n_features = batch.X.shape[1]
    path = None if recipe.memory is None else os.path.abspath(recipe.memory)
    if not room.in_file:
        samples = _core.Samples(n_features, half=recipe.half_samples, path=path)
        return samples, _write(samples, batch, standardization)
    scratch = _scratch(batch, standardization, recipe, room)
    samples = _core.Samples.over(
        scratch.rows, batch.codes, batch.ids, n_features=n_features, places=scratch.places
    )
    return samples, np.arange(len(batch.ids), dtype=np.int32)


def store_more(
    samples: _core.Samples,
    batch: Batch,
    standardization: Standardization,
    recipe: Recipe,
    room: Room,
) -> tuple[_core.Samples, Codes]:
    """Stored samples and new ones; the numbers of these."""
    samples = spilled(samples, room.chunk_bytes) if room.spills else samples.copy()
    if not room.in_file:
        return samples, _write(samples, batch, standardization)
    scratch = _scratch(batch, standardization, recipe, room)
    return samples, samples.add_over(scratch.rows, batch.codes, batch.ids, places=scratch.places)


def _write(samples: _core.Samples, batch: Batch, scale: Standardization) -> Codes:
    numbers = samples.add(len(batch.ids))
    for rows, block in float_blocks(batch.X):
        samples.write(numbers[rows], block, batch.codes[rows], batch.ids[rows], scale.core)
    return numbers


def _scratch(batch: Batch, scale: Standardization, recipe: Recipe, room: Room) -> ScratchRows:
    with progress_bar("sorting samples", len(batch.ids), recipe.verbose) as progress:
        return ScratchRows(
            lambda rows: np.asarray(batch.X[rows]),
            batch.codes,
            scale,
            half=recipe.half_samples,
            chunk_bytes=room.chunk_bytes,
            progress=progress,
        )
