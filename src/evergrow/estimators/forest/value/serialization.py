"""Parameters, trees and samples of a forest as a model file holds them, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.forest.value.sample_matrix import SampleMatrix
from evergrow.estimators.forest.value.standardization import Standardization
from evergrow.foundation.errors import InvalidInputError, ModelFileError
from evergrow.foundation.rows import float_blocks
from evergrow.storage.models.codec import MOST_COUNTED, Array, Content, Fields
from evergrow.storage.models.header import arrays_inside, plain_parameters

Tensors: TypeAlias = dict[str, npt.NDArray[Any]]

# Trees hold a copy of a sample for every unit of its weight.
LARGEST_WEIGHT = float(1 << 28)

_NODE_ROWS = ("row_begin", "row_size")
# Formats of stored vectors: as they are in a file, and as the core has them.
_VECTORS = {"halves": np.float16, "bytes": np.int8}
_CORE_VECTORS = {"halves": np.uint16, "bytes": np.int8}


def parameters_to_json(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a forest as JSON holds them."""
    plain = plain_parameters(parameters)
    if isinstance(plain["class_weight"], Mapping):
        # Pairs, because keys of JSON are strings.
        pairs = plain["class_weight"].items()
        plain["class_weight"] = [[_plain(name), float(weight)] for name, weight in pairs]
    return plain


def parameters_from_json(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a forest, from their entries in a model file."""
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


@dataclass(frozen=True, eq=False)
class SampleArrays:
    """The samples of a forest: features, class columns, ids, and weights or None if all are 1."""

    rows: npt.NDArray[Any]
    classes: npt.NDArray[np.int32]
    ids: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float32] | None

    _stored: ClassVar[Fields] = {
        "rows": Array((np.float32, np.float16), ("samples", "features")),
        "classes": Array(np.int32, ("samples",), 0, "classes"),
        "ids": Array(np.int64, ("samples",), 0, MOST_COUNTED),
        "weights": Array(np.float32, ("samples",), 0.0, LARGEST_WEIGHT, optional=True),
    }

    def check_stored(self) -> None:
        """Raise a ``ValueError`` for an id that two samples have."""
        if len(np.unique(self.ids)) < len(self.ids):
            raise InvalidInputError("two of samples.ids are the same")

    def to_core(self) -> _core.Samples:
        """The samples as the core has them."""
        n_features = self.rows.shape[1]
        samples = _core.Samples(n_features, half=self.rows.dtype == np.float16)
        numbers = samples.add(len(self.rows))
        plain = Standardization.identity(n_features).core
        for part, block in float_blocks(self.rows):
            samples.write(numbers[part], block, self.classes[part], self.ids[part], plain)
        if self.weights is not None:
            samples.set_weights(numbers, self.weights)
        return samples


class Trees:
    """A field with the arrays of each tree, which the core checks when it takes them."""

    def write(self, name: str, value: list[Tensors], content: Content) -> None:
        """Add the arrays to the content."""
        for t, tree in enumerate(value):
            content.arrays.update({f"{name}.{t}.{key}": array for key, array in tree.items()})

    def read(self, name: str, _entry: Any, content: Content) -> list[Tensors]:
        """Return the arrays of each tree."""
        trees: dict[str, Tensors] = {}
        for path, array in arrays_inside(content.arrays, f"{name}.").items():
            tree, _, key = path.partition(".")
            trees.setdefault(tree, {})[key] = array
        for t, arrays in trees.items():
            kind = _vectors_name(arrays)
            Array(_VECTORS[kind], (None, "features")).read(f"{name}.{t}.{kind}", None, content)
        return [trees[str(t)] for t in range(len(trees))]


def core_to_fields(forest: _core.Forest, *, inference_only: bool) -> dict[str, Any]:
    """Trees and samples as the fields of a forest, without removed samples.

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
    # Read while the file is written: they may be more than fit into memory.
    matrix = cast(npt.NDArray[Any], SampleMatrix(samples, rows))
    weights = None if samples.weights is None else samples.weights[rows]
    return {
        "n_comparisons": np.array(forest.n_comparisons, dtype=np.int64),
        "samples": SampleArrays(matrix, classes[rows], samples.ids[rows], weights),
        "tree": [_without_padding(tree, samples.width, samples.n_features) for tree in trees],
    }


def core_from_fields(fields: dict[str, Any]) -> _core.Forest:
    """Trees and samples from :func:`core_to_fields`, which are taken out of the fields."""
    n_comparisons, trees = fields.pop("n_comparisons").tolist(), fields.pop("tree")
    if len(trees) != len(n_comparisons):
        raise InvalidInputError(f"it has {len(trees)} trees, n_comparisons {len(n_comparisons)}")
    samples = fields.pop("samples").to_core()
    return _core.Forest.from_arrays(
        samples=samples,
        trees=[_padded(tree, samples.width) for tree in trees],
        n_comparisons=n_comparisons,
        proposer=fields["proposer"],
        n_classes=len(fields["labels"]),
    )


def _without_padding(arrays: Tensors, width: int, n_features: int) -> Tensors:
    """The arrays of a tree with one row of features per stored vector, as files hold them."""
    name = _vectors_name(arrays)
    vectors = arrays[name].reshape(-1, width)[:, :n_features]
    return {**arrays, name: vectors.view(_VECTORS[name])}


def _vectors_name(arrays: Tensors) -> str:
    """The array with the vectors of a tree, whose name says how they are stored."""
    found = [name for name in _VECTORS if name in arrays]
    if len(found) != 1:
        raise InvalidInputError(f"a tree must have one of the arrays {[*_VECTORS]}, got {found}")
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


def _padded(arrays: Tensors, width: int) -> Tensors:
    name = _vectors_name(arrays)
    vectors = arrays[name]
    padded = np.zeros((vectors.shape[0], width), dtype=vectors.dtype)
    padded[:, : vectors.shape[1]] = vectors
    arrays[name] = padded.view(_CORE_VECTORS[name]).reshape(-1)
    if "rows" not in arrays:
        arrays["rows"] = np.zeros(0, dtype=np.int32)
        arrays.update({name: np.zeros(len(arrays["left"]), np.int32) for name in _NODE_ROWS})
    return arrays
