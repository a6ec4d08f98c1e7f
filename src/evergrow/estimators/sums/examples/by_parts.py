"""Sums over examples part by part: each part's are computed anywhere, and added up in pairs.

What a part gives does not grow with its rows: the products of features with each other, the sums of
the classes that it has examples of, and the few rows that were picked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.sums.batches import Batch, packed, unpacked
from evergrow.estimators.sums.examples.passing import (
    Floats,
    Mapping,
    Picked,
    Places,
    mapped_batches,
)
from evergrow.estimators.sums.moments import Moments
from evergrow.foundation.engine import Arrays, Engine, Job
from evergrow.foundation.version import __version__
from evergrow.storage.shards.parts import RowPart, content_name, rows_to_share

__all__ = ["add_by_parts", "joined_sums", "sums_of_part"]

# Arrays with a row per class that occurs, which ``columns`` lists.
_PER_CLASS = ("class_sums", "class_weights", "class_examples", "class_squares", "class_grams")


@dataclass(frozen=True)
class _Wanted:
    """What is to be summed."""

    mapping: Mapping
    n_features: int
    gram: bool
    per_class: bool


def add_by_parts(
    engine: Engine,
    parts: list[RowPart],
    moments: Moments,
    new: Batch,
    mapping: Mapping,
    places: Places,
    verbose: int,
) -> tuple[Moments, npt.NDArray[Any]]:
    """Sums with these examples, and the inputs at some ascending places."""
    wanted = _Wanted(
        mapping, moments.n_features, moments.settled is not None, moments.class_settled is not None
    )
    # Most examples weigh one, which need not be said of each.
    weights = None if (new.weights == 1.0).all() else new.weights
    shared = [rows_to_share(new.rows), new.codes, weights, wanted]
    edges = np.searchsorted(places, [part.last for part in parts])
    own_places = np.split(places, edges[:-1])
    job = Job(
        sums_of_part,
        list(zip(parts, own_places, strict=True)),
        shared,
        "adding examples",
        verbose,
        name=_name(engine, new, wanted, places),
    )
    found = engine.reduce(job, joined_sums)
    theirs = _moments(found, wanted)
    return moments.merged(theirs, found["columns"].tolist(), moments.n_classes), found["picked"]


def _name(engine: Engine, new: Batch, wanted: _Wanted, places: Places) -> str | None:
    # To hash all rows takes about as long as to add them up: only for those who keep results.
    if not engine.has_checkpoints:
        return None
    arrays = (new.rows, new.codes, new.weights, places)
    return content_name("sums", __version__, wanted, *arrays)


def sums_of_part(
    part: tuple[RowPart, Places],
    matrix: npt.NDArray[Any] | None,
    codes: npt.NDArray[np.int32],
    weights: Floats | None,
    wanted: _Wanted,
) -> Arrays:
    """The sums over the examples of one part, and the inputs at some of its places."""
    where, places = part
    rows = where.read(matrix)
    columns, own_codes = np.unique(codes[where.rows], return_inverse=True)
    own_weights = np.ones(len(rows)) if weights is None else weights[where.rows]
    none = Moments.none(
        wanted.n_features, len(columns), gram=wanted.gram, per_class=wanted.per_class
    )
    picked = Picked(places - where.first, rows)
    batch = Batch(rows, own_codes.reshape(-1).astype(np.int32), own_weights)
    moments = none.add_all(mapped_batches(batch, wanted.mapping, picked))
    arrays: Arrays = {
        "columns": columns.astype(np.int64),
        "class_sums": moments.sums,
        "class_weights": moments.class_weights,
        "class_examples": moments.class_examples,
        "class_squares": moments.class_squares,
        "picked": picked.rows,
    }
    if moments.settled is not None:
        arrays["gram"] = packed(moments.settled)
    if moments.class_settled is not None:
        arrays["class_grams"] = np.array([packed(gram) for gram in moments.class_settled])
    return arrays


def joined_sums(first: Arrays, second: Arrays) -> Arrays:
    """The sums over the examples of two parts."""
    columns = np.union1d(first["columns"], second["columns"])
    joined: Arrays = {
        "columns": columns,
        "picked": np.concatenate([first["picked"], second["picked"]]),
    }
    for name in _PER_CLASS:
        if name in first:
            total = np.zeros((len(columns), *first[name].shape[1:]), dtype=first[name].dtype)
            for part in (first, second):
                # Each class occurs once in a part.
                total[np.searchsorted(columns, part["columns"])] += part[name]
            joined[name] = total
    if "gram" in first:
        joined["gram"] = first["gram"] + second["gram"]
    return joined


def _moments(found: Arrays, wanted: _Wanted) -> Moments:
    grams = found.get("class_grams")
    squares = found["class_squares"]
    return Moments(
        tuple(found["class_sums"]),
        found["class_weights"],
        found["class_examples"],
        squares,
        unpacked(found["gram"], wanted.n_features) if wanted.gram else None,
        None if grams is None else tuple(unpacked(gram, wanted.n_features) for gram in grams),
        float(squares.sum()),
    )
