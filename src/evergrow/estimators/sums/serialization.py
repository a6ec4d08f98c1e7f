"""Sums and held-out examples as the named arrays of a model file, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.sums.gram import pack, unpack
from evergrow.estimators.sums.holdout import ClassHoldout, HeldExample, Holdout
from evergrow.estimators.sums.moments import Moments
from evergrow.foundation.device import to_host
from evergrow.foundation.errors import InvalidInputError, ModelFileError
from evergrow.storage.models.header import check_array

Arrays = dict[str, npt.NDArray[Any]]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

# No model can have learnt more examples, all classes together, or larger means and rows. Sums of
# such counts fit into 64 bits, whichever classes are merged later.
MOST_LEARNT = 2**53
_LARGEST_MEAN = 1e141
_LARGEST_ROW = 1e140
_HOLDOUT = "held_out."


def moments_to_arrays(moments: Moments) -> Arrays:
    """Return sums as named arrays; of symmetric matrices the upper triangle, row by row."""
    _check_total(moments.class_examples)
    arrays: Arrays = {
        "class_sums": moments.sums,
        "class_weights": moments.class_weights,
        "class_examples": moments.class_examples,
        "class_squares": moments.class_squares,
        "peak": np.array([moments.peak]),
    }
    gram, class_grams = moments.settle()
    if gram is not None:
        arrays["gram"] = _triangle(gram)
    if class_grams is not None:
        arrays["class_grams"] = np.array([_triangle(gram) for gram in class_grams])
    return arrays


def moments_from_arrays(arrays: Arrays, n_features: int, n_classes: int) -> Moments:
    """Rebuild sums from :func:`moments_to_arrays`; a ``ModelFileError`` for damaged arrays."""
    d, n = n_features, n_classes
    sums = check_array(arrays.get("class_sums"), "class_sums", np.float64, (n, d))
    weights = check_array(arrays.get("class_weights"), "class_weights", np.float64, (n,))
    examples = check_array(arrays.get("class_examples"), "class_examples", np.int64, (n,))
    squares = check_array(arrays.get("class_squares"), "class_squares", np.float64, (n,))
    peak = check_array(arrays.get("peak"), "peak", np.float64, (1,))
    smallest = min(weights.min(), examples.min(), squares.min(), peak[0])
    if smallest < 0 or _total(examples) > MOST_LEARNT:
        raise ModelFileError("the model file is inconsistent: a count is out of range")
    present = examples > 0
    if not present.any() or ((weights > 0) != present).any():
        raise ModelFileError("the model file is inconsistent: it has classes without weight")
    with np.errstate(over="ignore"):
        means = np.abs(sums[present]) / weights[present, None]
    if sums[~present].any() or not (means <= _LARGEST_MEAN).all():
        raise ModelFileError("the model file is inconsistent: its class sums are out of range")
    gram, grams = None, None
    if "gram" in arrays:
        size = d * (d + 1) // 2
        gram = unpack(check_array(arrays["gram"], "gram", np.float64, (size,)), d)
        _check_products(gram)
        if "class_grams" in arrays:
            packed = check_array(arrays["class_grams"], "class_grams", np.float64, (n, size))
            grams = tuple(unpack(row, d) for row in packed)
            for each in grams:
                _check_products(each)
    return Moments(tuple(sums), weights, examples, squares, gram, grams, float(peak[0]))


def _total(counts: npt.NDArray[Any]) -> float:
    """Return the sum of counts that may be damaged: as a float, which does not overflow."""
    return float(counts.sum(dtype=np.float64))


def _check_total(counts: npt.NDArray[Any]) -> None:
    """Raise a ``ValueError`` for counts that could not be loaded again."""
    if _total(counts) > MOST_LEARNT:
        raise InvalidInputError(
            f"the model cannot be saved: it counts more than {MOST_LEARNT} examples"
        )


def _triangle(gram: Floats) -> Floats:
    # The diagonal holds sums of squares; rounding may leave them negative after forgetting.
    whole = np.array(to_host(gram))
    np.einsum("ii->i", whole)[:] = np.maximum(np.diagonal(whole), 0.0)
    return pack(whole)


def _check_products(gram: Floats) -> None:
    """Raise a ``ModelFileError`` for a matrix that cannot hold sums of products.

    It need not be positive definite: after forgetting, rounding may leave it indefinite.
    """
    if (np.diagonal(gram) < 0).any():
        raise ModelFileError("the model file is inconsistent: gram has a negative diagonal")
    if np.abs(gram).max() > _LARGEST_MEAN**2:
        raise ModelFileError("the model file is inconsistent: gram has values out of range")


def holdout_header(holdout: Holdout) -> dict[str, Any]:
    """Return the header entry of held-out examples."""
    return {"seed": holdout.seed, "share": holdout.share}


def holdout_to_arrays(holdout: Holdout) -> Arrays:
    """Return held-out examples as named arrays, to go with :func:`holdout_header`."""
    counts = [
        (held.n_seen, held.n_forgotten, held.n_drawn, int(held.has_evicted))
        for held in holdout.classes
    ]
    _check_total(np.array([held.n_seen for held in holdout.classes], dtype=np.float64))
    arrays: Arrays = {f"{_HOLDOUT}counts": np.array(counts, dtype=np.int64).reshape(-1, 4)}
    if not len(holdout):
        return arrays
    priorities = [e.priority for held in holdout.classes for e in held.examples]
    return arrays | {
        f"{_HOLDOUT}rows": holdout.batch.rows,
        f"{_HOLDOUT}codes": holdout.batch.codes,
        f"{_HOLDOUT}weights": holdout.batch.weights,
        f"{_HOLDOUT}priorities": np.array(priorities, dtype=np.int64),
    }


def holdout_from_arrays(header: Any, arrays: Arrays, n_features: int, n_classes: int) -> Holdout:
    """Rebuild held-out examples; a ``ModelFileError`` for a damaged header or damaged arrays."""
    seed, share = (header.get("seed"), header.get("share")) if isinstance(header, dict) else (0, 0)
    if type(seed) is not int or type(share) is not int or not (0 <= seed < 2**63 and share >= 1):
        raise ModelFileError("the model file lacks seed and share of the held-out examples")

    def read(name: str, dtype: type, shape: tuple[int | None, ...]) -> npt.NDArray[Any]:
        return check_array(arrays.get(_HOLDOUT + name), _HOLDOUT + name, dtype, shape)

    counts = read("counts", np.int64, (n_classes, 4))
    examples: list[list[HeldExample]] = [[] for _ in range(n_classes)]
    if f"{_HOLDOUT}rows" in arrays:
        rows = read("rows", np.float64, (None, n_features))
        codes = read("codes", np.int32, (len(rows),))
        weights = read("weights", np.float64, (len(rows),))
        priorities = read("priorities", np.int64, (len(rows),)).tolist()
        if len(rows) and not (codes.min() >= 0 and codes.max() < n_classes and weights.min() > 0):
            raise ModelFileError(
                "the model file is inconsistent: a held-out example has no class or no weight"
            )
        if len(rows) and max(np.abs(rows).max(initial=0.0), weights.max()) > _LARGEST_ROW:
            raise ModelFileError(
                "the model file is inconsistent: a held-out example has values out of range"
            )
        for row, code, weight, priority in zip(
            rows, codes.tolist(), weights.tolist(), priorities, strict=True
        ):
            examples[code].append(HeldExample(priority, row, weight))
    _check_counts(counts, np.array([len(some) for some in examples]), share)
    classes = (
        ClassHoldout(tuple(some), seen, forgotten, drawn, bool(has_evicted))
        for some, (seen, forgotten, drawn, has_evicted) in zip(
            examples, counts.tolist(), strict=True
        )
    )
    return Holdout(tuple(classes), share, seed)


def _check_counts(counts: Integers, kept: Integers, share: int) -> None:
    seen, forgotten, drawn, has_evicted = counts.T
    # Differences of non-negative numbers cannot overflow.
    fits = (counts >= 0).all() and _total(seen) <= MOST_LEARNT and (forgotten <= seen).all()
    fits = fits and (drawn <= seen - forgotten).all() and (kept <= drawn).all()
    if not fits or (kept > share).any():
        raise ModelFileError(
            "the model file is inconsistent: it holds out more examples than were learnt"
        )
    if (has_evicted > 1).any() or ((drawn > kept) & (has_evicted == 0)).any():
        raise ModelFileError("the model file is inconsistent: held-out examples are missing")
