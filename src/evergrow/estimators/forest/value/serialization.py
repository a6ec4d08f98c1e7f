"""Fitted forests as the header and arrays of a model file, and back.

Everything read from a file is checked here: a ``ValueError`` names the array that is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.forest.strategy import STRATEGIES
from evergrow.estimators.forest.value.ages import NEVER, Ages
from evergrow.estimators.forest.value.fitted import (
    NO_EARLY_SAMPLES,
    EarlySamples,
    FittedForest,
    History,
)
from evergrow.estimators.forest.value.sample_matrix import SampleMatrix
from evergrow.estimators.forest.value.standardization import Standardization
from evergrow.estimators.forest.value.virtual_votes import Ballot
from evergrow.foundation.errors import InvalidInputError, ModelFileError
from evergrow.foundation.labels import ClassList
from evergrow.foundation.rows import float_blocks
from evergrow.storage.models.header import parameters_of, plain_parameters, with_values

Tensors: TypeAlias = dict[str, npt.NDArray[Any]]

# A sum over two trees, plus later updates, must still fit into 64 bits.
_MOST_COMPARISONS = 1 << 53

# Trees hold a copy of a sample for every unit of its weight.
_LARGEST_WEIGHT = float(1 << 28)

_NODE_ROWS = ("row_begin", "row_size")
# Formats of stored vectors: as they are in a file, and as the core has them.
_VECTORS = {"halves": np.float16, "bytes": np.int8}
_CORE_VECTORS = {"halves": np.uint16, "bytes": np.int8}
_COUNTERS = ("seed", "n_updates", "n_seen", "n_measured", "n_measured_classes")


def parameters_to_json(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a forest as JSON holds them."""
    plain = plain_parameters(parameters)
    if isinstance(plain["class_weight"], Mapping):
        # Pairs, because keys of JSON are strings.
        pairs = plain["class_weight"].items()
        plain["class_weight"] = [[_plain(name), float(weight)] for name, weight in pairs]
    # The loaded model must not write to the memory file of this one.
    plain["memory"] = None
    return plain


def parameters_from_json(header: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a forest, from the header of its model file."""
    parameters = parameters_of(header)
    # A file must not decide where the computer that loads it writes.
    if parameters.get("memory") is not None:
        raise ModelFileError("the model file names a file for its samples")
    parameters = with_values(parameters, STRATEGIES.values())
    pairs = parameters.get("class_weight")
    if isinstance(pairs, list):
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
            raise ModelFileError("the class weights of the model are damaged")
        if not all(isinstance(name, (str, int, float)) for name, _ in pairs):
            raise ModelFileError("the class weights of the model are damaged")
        parameters = {**parameters, "class_weight": dict(pairs)}
    return parameters


def _plain(name: Any) -> Any:
    """The name of a class as JSON holds it."""
    return name.item() if isinstance(name, np.generic) else name


def to_tensors(
    fitted: FittedForest, *, inference_only: bool = False, ballot: Ballot | None = None
) -> tuple[dict[str, Any], Tensors]:
    """Header and named arrays of a model file, without the classes.

    Removed samples are left out. With ``inference_only`` all training samples are left out, except
    those that a node compares with; leaves then count the virtual samples of the ballot as if they
    were real.
    """
    scale, early, ages = fitted.standardization, fitted.history.early, fitted.history.ages
    ballot = ballot or Ballot(fitted.forest, fitted.balance_weights)
    if not inference_only:
        fitted.check_memory()
    tensors = {
        "mean": scale.mean,
        "scale": scale.scale,
        "ages.taught": ages.taught,
        "ages.came": ages.came,
        **_forest_to_tensors(ballot.trees, inference_only=inference_only),
    }
    if ballot.weights is not None:
        tensors["balance_weights"] = ballot.weights
    if scale.whitening is not None:
        tensors["whitening"] = scale.whitening
    if scale.length_features is not None:
        tensors["length_features"] = scale.length_features
    if not inference_only and len(early):
        tensors |= {"early.X": early.X, "early.codes": early.codes, "early.ids": early.ids}
        if early.weights is not None:
            tensors["early.weights"] = early.weights
    counters = (*_COUNTERS, "refresh_due", "row_rate", "weight_unit")
    history = {name: getattr(fitted.history, name) for name in counters}
    header: dict[str, Any] = {
        "history": history,
        "proposer": fitted.proposer,
        "standardize": scale.kind,
    }
    return header, tensors


def from_tensors(
    labels: ClassList, header: dict[str, Any], tensors: Tensors, proposer: str
) -> FittedForest:
    """Rebuild from :func:`to_tensors`; a ``ModelFileError`` if the arrays are inconsistent.

    ``proposer`` names the kind of trees that the caller expects.
    """
    if header.get("proposer") != proposer:
        raise ModelFileError("the trees in the model file are those of another kind of forest")
    try:
        return _build(labels, header, tensors, proposer)
    except KeyError as error:
        raise ModelFileError(f"the model file lacks the array {error}") from error
    except (ValueError, TypeError) as error:
        raise ModelFileError(f"the model file is inconsistent: {error}") from error


def _build(
    labels: ClassList, header: dict[str, Any], tensors: Tensors, proposer: str
) -> FittedForest:
    standardization = _read_standardization(header, tensors)
    n_features = len(standardization.mean)
    forest = _forest_from_tensors(tensors, n_features, len(labels), proposer)
    early = _read_early_samples(tensors, n_features, len(labels))
    ages = _read_ages(tensors, len(forest), len(labels))
    history = _read_history(header.get("history"), ages, early)
    ids = forest.samples.ids
    # The id of the next sample must be a new one.
    is_new = bool((ids < history.n_seen).all())
    _require(is_new or not forest.keeps_rows, "samples.ids")
    if len(early):
        _require(np.array_equal(np.sort(early.ids), np.sort(ids)), "early.ids")
    weights = _read_balance_weights(tensors.get("balance_weights"), len(labels))
    return FittedForest(labels, standardization, forest, history, proposer, weights)


def _read_balance_weights(
    weights: npt.NDArray[Any] | None, n_classes: int
) -> npt.NDArray[np.float64] | None:
    """Weights of the classes; only forests without samples have them, classes came later."""
    if weights is not None:
        _require(weights.dtype == np.float64 and weights.ndim == 1, "balance_weights")
        _require(len(weights) <= n_classes, "balance_weights")
        _require(bool((np.isfinite(weights) & (weights > 0)).all()), "balance_weights")
    return weights


def _read_ages(tensors: Tensors, n_trees: int, n_classes: int) -> Ages:
    """Ages of trees and classes."""
    ages = Ages(tensors["ages.taught"], tensors["ages.came"])
    for name, array, size in (("taught", ages.taught, n_trees), ("came", ages.came, n_classes)):
        _require(array.dtype == np.int64 and array.shape == (size,), f"ages.{name}")
        _require(bool((array >= NEVER).all()), f"ages.{name}")
    return ages


def _read_history(entry: Any, ages: Ages, early: EarlySamples) -> History:
    values = entry if isinstance(entry, dict) else {}
    integers = [values.get(name) for name in _COUNTERS]
    rate, due = values.get("row_rate"), values.get("refresh_due")
    if not all(type(value) is int and 0 <= value < 2**63 for value in integers):
        raise InvalidInputError("the counters of the model are damaged")
    if not isinstance(rate, (int, float)) or isinstance(rate, bool) or not 0 < rate < 2**32:
        raise InvalidInputError("the row rate of the model is damaged")
    if not isinstance(due, (int, float)) or isinstance(due, bool) or not 0 <= due < 2**53:
        raise InvalidInputError("the refreshed trees of the model are damaged")
    unit = values.get("weight_unit")
    if not isinstance(unit, (int, float)) or isinstance(unit, bool) or not 0 < unit < math.inf:
        raise InvalidInputError("the unit of the weights of the model is damaged")
    seed, n_updates, n_seen, n_measured, n_measured_classes = (
        int(values[name]) for name in _COUNTERS
    )
    _require(max(ages.taught.max(), ages.came.max()) <= n_updates, "ages")
    return History(
        seed,
        n_updates,
        n_seen,
        float(rate),
        ages,
        float(due),
        n_measured=n_measured,
        n_measured_classes=n_measured_classes,
        weight_unit=float(unit),
        early=early,
    )


def _forest_to_tensors(forest: _core.Forest, *, inference_only: bool) -> Tensors:
    """Trees and samples as named arrays, without removed samples.

    With ``inference_only`` only those samples are left that a node compares with.
    """
    samples = forest.samples
    trees = [forest.tree_arrays(t) for t in range(len(forest))]
    classes = samples.classes
    kept = _samples_used(trees, len(samples)) if inference_only else classes >= 0
    rows = np.flatnonzero(kept).astype(np.int32)
    if len(rows) < len(samples) or inference_only:
        number = (np.cumsum(kept) - 1).astype(np.int32)
        trees = [_renumbered(arrays, number, inference_only) for arrays in trees]
    tensors: Tensors = {
        # Read while the file is written: they may be more than fit into memory.
        "samples.rows": cast(npt.NDArray[Any], SampleMatrix(samples, rows)),
        "samples.classes": classes[rows],
        "samples.ids": samples.ids[rows],
        "n_comparisons": np.array(forest.n_comparisons, dtype=np.int64),
    }
    if samples.weights is not None:
        tensors["samples.weights"] = samples.weights[rows]
    for t, arrays in enumerate(trees):
        for name, array in _without_padding(arrays, samples.width, samples.n_features).items():
            tensors[f"tree.{t}.{name}"] = array
    return tensors


def _without_padding(arrays: Tensors, width: int, n_features: int) -> Tensors:
    """The arrays of a tree with one row of features per stored vector, as files hold them."""
    name = _vectors_name(arrays)
    vectors = arrays[name].reshape(-1, width)[:, :n_features]
    return {**arrays, name: vectors.view(_VECTORS[name])}


def _vectors_name(arrays: Tensors) -> str:
    """The array with the vectors of a tree, whose name says how they are stored."""
    found = [name for name in _VECTORS if name in arrays]
    _require(len(found) == 1, "halves or bytes")
    return found[0]


def _samples_used(trees: list[Tensors], n_samples: int) -> npt.NDArray[np.bool_]:
    used = np.zeros(n_samples, dtype=bool)
    for arrays in trees:
        source = arrays["centroid_source"]
        used[source[source >= 0]] = True
    return used


def _renumbered(arrays: Tensors, number: npt.NDArray[np.int32], without_rows: bool) -> Tensors:
    changed = dict(arrays)
    source = arrays["centroid_source"]
    # Means have a negative source, which stays; a sample used as a centroid gets its new number.
    if len(number):
        changed["centroid_source"] = np.where(source >= 0, number[np.maximum(source, 0)], source)
    if without_rows:
        return {name: a for name, a in changed.items() if name not in ("rows", *_NODE_ROWS)}
    changed["rows"] = number[arrays["rows"]]
    return changed


def _require(condition: bool, name: str) -> None:
    """Raise a ``ValueError`` that names an array unless the condition holds."""
    if not condition:
        raise InvalidInputError(f"the array {name} has the wrong type, shape or values")


def _read_standardization(header: dict[str, Any], tensors: Tensors) -> Standardization:
    """The transform of the features."""
    kind = header.get("standardize")
    if kind not in ("whiten", "scale", "none"):
        raise InvalidInputError("what was done to the features of the model is damaged")
    mean, scale = tensors["mean"], tensors["scale"]
    n_features = len(mean)
    _require(n_features > 0 and mean.dtype == scale.dtype == np.float64, "mean or scale")
    _require(mean.shape == scale.shape == (n_features,), "mean or scale")
    _require(bool(np.isfinite(mean).all() and np.isfinite(scale).all()), "mean or scale")
    _require(bool((scale > 0).all()), "scale")
    whitening = tensors.get("whitening")
    _require((whitening is not None) == (kind == "whiten"), "whitening")
    if whitening is not None:
        _require(whitening.dtype == np.float32, "whitening")
        _require(whitening.shape == (n_features, n_features), "whitening")
        _require(bool(np.isfinite(whitening).all()), "whitening")
        # Triangular, so that it can be undone.
        _require(bool((np.diagonal(whitening) > 0).all()), "whitening")
        _require(not np.triu(whitening, 1).any(), "whitening")
    lengths = tensors.get("length_features")
    if lengths is not None:
        _require(lengths.dtype == np.uint8 and lengths.shape == (n_features,), "length_features")
        _require(bool((lengths <= 1).all()), "length_features")
    return Standardization(mean, scale, whitening, kind, lengths)


def _forest_from_tensors(
    tensors: Tensors, n_features: int, n_classes: int, proposer: str
) -> _core.Forest:
    """Trees and samples from :func:`_forest_to_tensors`."""
    n_comparisons = tensors["n_comparisons"]
    _require(n_comparisons.dtype == np.int64 and n_comparisons.ndim == 1, "n_comparisons")
    _require(bool((n_comparisons >= 0).all()) and len(n_comparisons) > 0, "n_comparisons")
    _require(bool((n_comparisons < _MOST_COMPARISONS).all()), "n_comparisons")
    by_tree = _arrays_by_tree(tensors)
    _require(len(by_tree) == len(n_comparisons), "n_comparisons")
    samples = _read_samples(tensors, n_features, n_classes)
    return _core.Forest.from_arrays(
        samples=samples,
        trees=[_padded_tree(arrays, n_features, samples.width) for arrays in by_tree],
        n_comparisons=n_comparisons.tolist(),
        proposer=proposer,
        n_classes=n_classes,
    )


def _read_samples(tensors: Tensors, n_features: int, n_classes: int) -> _core.Samples:
    rows = tensors["samples.rows"]
    _require(rows.dtype in (np.float32, np.float16), "samples.rows")
    _require(rows.ndim == 2 and rows.shape[1] == n_features, "samples.rows")
    _require(bool(np.isfinite(rows).all()), "samples.rows")
    classes = _read_codes(tensors, "samples.classes", len(rows), n_classes)
    ids = _read_ids(tensors, "samples.ids", len(rows))
    _require(bool((ids >= 0).all()) and len(np.unique(ids)) == len(ids), "samples.ids")
    samples = _core.Samples(n_features, half=rows.dtype == np.float16)
    numbers = samples.add(len(rows))
    plain = Standardization.identity(n_features).core
    for part, block in float_blocks(rows):
        samples.write(numbers[part], block, classes[part], ids[part], plain)
    weights = _read_weights(tensors, "samples.weights", len(rows))
    if weights is not None:
        samples.set_weights(numbers, weights)
    return samples


def _read_early_samples(tensors: Tensors, n_features: int, n_classes: int) -> EarlySamples:
    """The early samples; empty if the file has none."""
    if "early.X" not in tensors:
        return NO_EARLY_SAMPLES
    X = tensors["early.X"]
    _require(X.dtype == np.float64 and X.ndim == 2 and X.shape[1] == n_features, "early.X")
    _require(bool(np.isfinite(X).all()), "early.X")
    codes = _read_codes(tensors, "early.codes", len(X), n_classes)
    ids = _read_ids(tensors, "early.ids", len(X))
    return EarlySamples(X, codes, ids, _read_weights(tensors, "early.weights", len(X)))


def _read_codes(tensors: Tensors, name: str, n_rows: int, n_classes: int) -> npt.NDArray[np.int32]:
    codes = tensors[name]
    _require(codes.dtype == np.int32 and codes.shape == (n_rows,), name)
    _require(bool(((codes >= 0) & (codes < n_classes)).all()), name)
    return codes


def _read_ids(tensors: Tensors, name: str, n_rows: int) -> npt.NDArray[np.int64]:
    ids = tensors[name]
    _require(ids.dtype == np.int64 and ids.shape == (n_rows,), name)
    return ids


def _read_weights(tensors: Tensors, name: str, n_rows: int) -> npt.NDArray[np.float32] | None:
    """Weights of samples; None if the file has none, because all are 1."""
    weights = tensors.get(name)
    if weights is not None:
        _require(weights.dtype == np.float32 and weights.shape == (n_rows,), name)
        _require(bool(((weights >= 0) & (weights <= _LARGEST_WEIGHT)).all()), name)
    return weights


def _arrays_by_tree(tensors: Tensors) -> list[Tensors]:
    trees: dict[str, Tensors] = {}
    for key, array in tensors.items():
        group, _, rest = key.partition(".")
        if group == "tree":
            tree, _, name = rest.partition(".")
            trees.setdefault(tree, {})[name] = array
    return [trees[str(t)] for t in range(len(trees))]


def _padded_tree(arrays: Tensors, n_features: int, width: int) -> Tensors:
    name = _vectors_name(arrays)
    vectors, dtype = arrays[name], _VECTORS[name]
    _require(vectors.dtype == dtype and vectors.ndim == 2, name)
    _require(vectors.shape[1] == n_features and bool(np.isfinite(vectors).all()), name)
    padded = np.zeros((vectors.shape[0], width), dtype=dtype)
    padded[:, :n_features] = vectors
    arrays[name] = padded.view(_CORE_VECTORS[name]).reshape(-1)
    if "rows" not in arrays:
        arrays["rows"] = np.zeros(0, dtype=np.int32)
        arrays.update({name: np.zeros(len(arrays["left"]), np.int32) for name in _NODE_ROWS})
    return arrays
