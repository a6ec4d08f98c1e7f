"""Weighted examples added to sums, in one pass over blocks of rows.

With an engine in use, large inputs are cut into parts. The sums of each part are computed as a task
and added up in pairs. They consist of the Gram matrix, the sums of the classes that occur, and the
few rows that were picked, so their size does not depend on the number of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from evergrow.estimators.classifier.learner import validate_weights
from evergrow.estimators.sums.core_accumulator import (
    LARGEST,
    Accumulator,
    CoreAccumulator,
    FeatureRule,
    too_large,
)
from evergrow.estimators.sums.device_accumulator import DeviceAccumulator
from evergrow.estimators.sums.moments import FEW, Batch, Moments, choose_shift
from evergrow.foundation.device import Device, find_device
from evergrow.foundation.engine import Arrays, Engine, Job, current_engine
from evergrow.foundation.extras import __version__
from evergrow.foundation.rows import float_blocks, read_ahead
from evergrow.storage.models.codec import encode
from evergrow.storage.shards.parts import RowPart, content_name, row_parts, rows_to_share

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]
Places = npt.NDArray[np.int64]

# Rows that decide on the shift of sums.
_SHIFTING = 256
_NO_PLACES: Places = np.zeros(0, dtype=np.int64)
# Arrays with one row per class that occurs; ``columns`` lists these classes.
_PER_CLASS = ("class_sums", "class_weights", "class_examples", "class_squares", "class_grams")


def check_weights(
    X: npt.NDArray[Any], y: npt.NDArray[Any], sample_weight: npt.ArrayLike | None
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], Floats]:
    """Return rows, labels and weights, without the rows of weight zero."""
    X, y, weights = validate_weights(X, y, sample_weight)
    return X, y, np.ones(X.shape[0]) if weights is None else weights


def check_magnitude(X: npt.NDArray[Any]) -> None:
    """Raise a ``ValueError`` for numbers whose sums of squares would overflow."""
    for _, block in float_blocks(X):
        _check_block(block)


def _check_block(block: npt.NDArray[Any]) -> None:
    if block.dtype == np.float64 and len(block) and np.abs(block).max() > LARGEST:
        raise too_large()


class RowMap(Protocol):
    """A map from inputs to the features that are added up; picklable, because tasks need it."""

    @property
    def max_rows(self) -> int | None:
        """Largest number of rows to map at once; None for any number."""

    def __call__(self, block: npt.NDArray[Any]) -> Floats:
        """Return new rows in double precision that share no memory with the block."""

    def rule(self, n_inputs: int) -> FeatureRule:
        """Return the same map for the core and for GPUs."""


@dataclass(frozen=True)
class _Identity:
    """Inputs are added up as they are."""

    max_rows: int | None = None

    def __call__(self, block: npt.NDArray[Any]) -> Floats:
        # A copy: few examples wait in the sums, and the caller may change the matrix meanwhile.
        return np.array(block, dtype=np.float64, order="C")

    def rule(self, n_inputs: int) -> FeatureRule:
        return FeatureRule(n_inputs, n_inputs)


IDENTITY: RowMap = _Identity()


def first_shift(
    X: npt.NDArray[Any], features: Callable[[npt.NDArray[Any]], Floats] = IDENTITY
) -> Floats | None:
    """Return the shift of sums that suits the first rows; None for nothing."""
    _, block = next(float_blocks(X, _SHIFTING))
    rows = features(block[:_SHIFTING])
    # Rows too large to square are refused when they are added.
    with np.errstate(over="ignore", invalid="ignore"):
        return choose_shift(rows.mean(axis=0), rows.std(axis=0))


class RowPicker:
    """Collects the rows at some ascending places while blocks pass by.

    >>> picker = RowPicker(np.array([1, 4]), np.zeros((6, 1)))
    >>> picker.take(slice(0, 3), np.array([[5.0], [6.0], [7.0]]))
    >>> picker.take(slice(3, 6), np.array([[8.0], [9.0], [9.5]]))
    >>> picker.rows.ravel().tolist()
    [6.0, 9.0]
    """

    def __init__(self, places: Places, X: npt.NDArray[Any]) -> None:
        self.places = places
        # The type that blocks have: single precision is kept, and is smaller to send.
        is_single = X.dtype in (np.float16, np.float32)
        dtype = np.float32 if is_single else np.float64
        self.rows: npt.NDArray[Any] = np.empty((len(places), X.shape[1]), dtype=dtype)

    def take(self, rows: slice, block: npt.NDArray[Any]) -> None:
        """Copy the picked rows that lie in this block."""
        first, last = np.searchsorted(self.places, (rows.start, rows.stop))
        self.rows[first:last] = block[self.places[first:last] - rows.start]


def iter_batches(
    new: Batch,
    row_map: RowMap = IDENTITY,
    picker: RowPicker | None = None,
) -> Iterator[Batch]:
    """Yield examples as mapped features, a block of rows at a time.

    Raises a ``ValueError`` at numbers that are too large, so that no separate check is needed.
    """
    for rows, block in float_blocks(new.rows, row_map.max_rows):
        _check_block(block)
        if picker is not None:
            picker.take(rows, block)
        yield Batch(row_map(block), new.codes[rows], new.weights[rows])


def _accumulate(
    moments: Moments,
    new: Batch,
    row_map: RowMap,
    picker: RowPicker,
    device: Device | None = None,
) -> Moments:
    """Add examples in one pass, and pick some rows on the way."""
    rule = row_map.rule(new.rows.shape[1])
    if device is None:
        core = CoreAccumulator(moments, rule)
        # The core goes through an array by itself.
        is_array = isinstance(new.rows, np.ndarray)
        return _add_blocks(core, new, picker, len(new.codes) if is_array else None)
    with device.report_full(_advice(device, rule)):
        sums = DeviceAccumulator(moments, rule, device)
        tensor = getattr(new.rows, "tensor", None)
        if tensor is None:
            return _add_blocks(sums, new, picker, None)
        # Rows on a GPU are added where they are.
        picker.rows[:] = new.rows[picker.places]
        sums.add(tensor, new.codes, new.weights)
        return sums.finish()


def _add_blocks(sums: Accumulator, new: Batch, picker: RowPicker, max_rows: int | None) -> Moments:
    blocks = float_blocks(new.rows, max_rows or sums.max_rows)
    for rows, block in blocks if max_rows else read_ahead(blocks):
        picker.take(rows, block)
        sums.add(block, new.codes[rows], new.weights[rows])
    return sums.finish()


def _advice(device: Device, rule: FeatureRule) -> str:
    """Say how many features would fit: the Gram matrix, and twice as much to work with."""
    n_features = math.isqrt(device.free_bytes() // (3 * 8))
    return f"{rule.n_features} features are too many, about {n_features} would fit"


def add_examples(
    moments: Moments,
    new: Batch,
    row_map: RowMap = IDENTITY,
    *,
    places: Places = _NO_PLACES,
) -> tuple[Moments, npt.NDArray[Any]]:
    """Add examples to sums and return the inputs at some ascending places, in one pass.

    The sums know all classes of the examples, whose rows may be of any type. A ``ValueError`` for
    numbers that are too large to add up.
    """
    device = find_device(new.rows)
    n_rows, picker = new.rows.shape[0], RowPicker(places, new.rows)
    if n_rows < FEW:
        moments = moments.placed(device)
        for few in iter_batches(new, row_map, picker):
            moments = moments.add(few)
        return moments, picker.rows
    engine = current_engine()
    squared = moments.settled is not None or moments.class_settled is not None
    parts = [] if engine is None else row_parts(new.rows, squared=squared)
    if engine is not None and len(parts) > 1 and device is None:
        return _add_parts(engine, parts, moments, new, row_map, places)
    return _accumulate(moments, new, row_map, picker, device), picker.rows


@dataclass(frozen=True)
class _SumsRequest:
    """Which sums a task computes."""

    row_map: RowMap
    n_features: int
    gram: bool
    per_class: bool
    shift: Floats | None


def _add_parts(
    engine: Engine,
    parts: list[RowPart],
    moments: Moments,
    new: Batch,
    row_map: RowMap,
    places: Places,
) -> tuple[Moments, npt.NDArray[Any]]:
    request = _SumsRequest(
        row_map,
        moments.n_features,
        moments.settled is not None,
        moments.class_settled is not None,
        moments.shift,
    )
    # Most examples have weight one, which need not be sent.
    weights = None if (new.weights == 1.0).all() else new.weights
    shared = [rows_to_share(new.rows), new.codes, weights, request]
    edges = np.searchsorted(places, [part.last for part in parts])
    places_of_parts = np.split(places, edges[:-1])
    # Hashing all rows takes about as long as adding them up: only where results are kept.
    inputs = (request, request.shift, new.rows, new.codes, new.weights, places)
    name = content_name("sums", __version__, *inputs) if engine.has_checkpoints else None
    pairs = list(zip(parts, places_of_parts, strict=True))
    job = Job(sum_part, pairs, shared, "adding examples", name=name)
    found = engine.reduce(job, join_parts)
    added = _moments_from_parts(found, request)
    return moments.merged(added, found["columns"].tolist(), moments.n_classes), found["picked"]


def sum_part(
    part: tuple[RowPart, Places],
    matrix: npt.NDArray[Any] | None,
    codes: Codes,
    weights: Floats | None,
    request: _SumsRequest,
) -> Arrays:
    """Compute the sums over the examples of one part, and pick the inputs at some of its places."""
    where, places = part
    rows = where.read(matrix)
    columns, own_codes = np.unique(codes[where.rows], return_inverse=True)
    own_weights = np.ones(len(rows)) if weights is None else weights[where.rows]
    none = Moments.none(
        request.n_features,
        len(columns),
        gram=request.gram,
        per_class=request.per_class,
        shift=request.shift,
    )
    picker = RowPicker(places - where.first, rows)
    batch = Batch(rows, own_codes.reshape(-1).astype(np.int32), own_weights)
    moments = _accumulate(none, batch, request.row_map, picker)
    arrays: Arrays = encode(replace(moments, shift=None))[1]
    return {**arrays, "columns": columns.astype(np.int64), "picked": picker.rows}


def join_parts(first: Arrays, second: Arrays) -> Arrays:
    """Add the sums over the examples of two parts."""
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


def _moments_from_parts(found: Arrays, request: _SumsRequest) -> Moments:
    fields: dict[str, Any] = {name: found.get(name) for name in (*_PER_CLASS, "gram")}
    peak = float(found["class_squares"].sum())
    return Moments.from_stored({**fields, "peak": peak, "shift": request.shift})
