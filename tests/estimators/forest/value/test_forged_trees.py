"""Model files that were changed with a valid checksum: refused as in the twin, or safe to use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evergrow
from evergrow import (
    AxisForestClassifier,
    LinearForestClassifier,
    ModelFileError,
    NCMForestClassifier,
    SVMForestClassifier,
)
from evergrow.estimators import Regularised
from evergrow.storage.models.format import read_model, write_model
from tests.budget import budget
from tests.estimators.model_files import at, forge, rewritten
from tests.reference.flat_tree import is_tree

RNG = np.random.default_rng(0)
N_CLASSES = 4
Y = np.repeat(np.arange(N_CLASSES), 25)
X = RNG.normal(size=(100, 5)) + 2.0 * Y[:, None]
FORESTS = {
    "ncm": NCMForestClassifier(2, min_samples_leaf=3, random_state=0),
    "regularised": NCMForestClassifier(
        2, splits=Regularised(5), min_samples_leaf=3, random_state=0
    ),
    "axis": AxisForestClassifier(2, min_samples_leaf=3, random_state=0),
    "linear": LinearForestClassifier(2, min_samples_leaf=3, random_state=0),
    "svm": SVMForestClassifier(2, min_samples_leaf=3, random_state=0),
}
KINDS = {"ncm": "ncm", "regularised": "ncm", "axis": "axis", "linear": "linear", "svm": "linear"}
ARRAYS = (
    "left", "centroid_begin", "centroid_size", "count_begin", "count_size", "row_begin",
    "row_size", "centroid_class", "centroid_source", "half_norm", "side", "exponent",
    "count_class", "count", "rows",
)  # fmt: skip


def _forge(tensors: dict[str, Any], rng: np.random.Generator) -> None:
    """Change some entries of the first tree: near values, limits, copies of others, swaps."""
    for _ in range(int(rng.integers(1, 4))):
        name = f"tree.0.{rng.choice(ARRAYS)}"
        array = tensors[name] = tensors[name].copy()
        if not len(array):
            continue
        at, other = rng.integers(len(array), size=2)
        limits = np.iinfo(array.dtype) if array.dtype.kind in "iu" else None
        match rng.integers(6):
            case 0:
                array[at] = array[at] + np.asarray(rng.integers(-2, 3)).astype(array.dtype)
            case 1:
                array[at] = array[other]
            case 2:
                array[[at, other]] = array[[other, at]]
            case 3 if limits is not None:
                array[at] = rng.choice([limits.min, limits.max, 0])
            case 3:
                array[at] = rng.choice([np.nan, np.inf, -np.inf])
            case 4:
                tensors[name] = np.delete(array, at)
            case _:
                tensors[name] = np.append(array, array[at])


def _is_tree(kind: str, header: dict[str, Any], tensors: dict[str, Any]) -> bool:
    tree = {name: tensors[f"tree.0.{name}"] for name in ARRAYS}
    vectors = tensors[next(n for n in ("tree.0.bytes", "tree.0.halves") if n in tensors)]
    width = 16 * -(-X.shape[1] // 16)
    return is_tree(
        tree,
        KINDS[kind],
        n_classes=N_CLASSES,
        n_features=X.shape[1],
        row_classes=tensors["samples.classes"],
        n_slots=len(vectors),
        slot_bytes=width * vectors.dtype.itemsize,
    )


@pytest.mark.parametrize("kind", FORESTS)
def test_forged_trees_are_refused_as_in_the_twin_or_can_be_used(kind: str, tmp_path: Path) -> None:
    saved, forged = tmp_path / "saved.evergrow", tmp_path / "forged.evergrow"
    FORESTS[kind].fit(X, Y).save(saved)
    rng = np.random.default_rng(1)
    n_accepted = 0
    for _ in range(budget(300)):
        header, tensors = read_model(saved)
        _forge(tensors, rng)
        write_model(forged, header, tensors)
        if not _is_tree(kind, header, tensors):
            with pytest.raises(ModelFileError):
                evergrow.load(forged)
            continue
        n_accepted += 1
        model = evergrow.load(forged)
        model.predict_proba(X)
        model.partial_fit(X[:20], np.repeat([0, 9], 10))
        model.forget(samples=[0])
        model.save(forged)
        evergrow.load(forged).predict(X)
    assert n_accepted > 0


def test_a_threshold_with_a_vector_is_refused(tmp_path: Path) -> None:
    saved = tmp_path / "model.evergrow"
    FORESTS["axis"].fit(X, Y).save(saved)
    with pytest.raises(ModelFileError, match="a threshold has a vector"):
        evergrow.load(rewritten(saved, forge("tree.0.centroid_source", at(0, -(2**31)))))


def test_leaves_that_share_their_counts_are_refused(tmp_path: Path) -> None:
    saved = tmp_path / "model.evergrow"
    FORESTS["ncm"].fit(X, Y).save(saved)

    def share(_: dict[str, Any], tensors: dict[str, Any]) -> None:
        leaves = np.flatnonzero(tensors["tree.0.left"] == -1)
        for name in ("tree.0.count_begin", "tree.0.count_size"):
            tensors[name] = tensors[name].copy()
            tensors[name][leaves] = tensors[name][leaves[0]]

    with pytest.raises(ModelFileError, match="class counts of a leaf are out of range"):
        evergrow.load(rewritten(saved, share))


def _chain(n_levels: int, n_classes: int, tensors: dict[str, Any]) -> None:
    """One tree of splits in a row, whose last leaf has all classes."""
    n = 2 * n_levels + 1
    inner = np.arange(0, n - 1, 2)
    left = np.full(n, -1, np.int32)
    left[inner] = inner + 1
    sizes = np.where(left == -1, 1, 0).astype(np.int32)
    sizes[n - 1] = n_classes
    begins = (np.cumsum(sizes) - sizes).astype(np.int32)
    n_counts = int(sizes.sum())
    zeros = np.zeros(n, np.int32)
    k = len(inner)
    centroid_begin = zeros.copy()
    centroid_begin[inner] = 2 * np.arange(k)
    classes = np.zeros(n_counts, np.int32)
    classes[-n_classes:] = np.arange(n_classes)
    tree = {
        "left": left,
        "centroid_begin": centroid_begin,
        "centroid_size": np.where(left == -1, 0, 2).astype(np.int32),
        "count_begin": begins,
        "count_size": sizes,
        "row_begin": zeros,
        "row_size": zeros,
        "centroid_class": np.zeros(2 * k, np.int32),
        "centroid_source": np.full(2 * k, -1, np.int32),
        "half_norm": np.zeros(2 * k, np.float32),
        "side": np.tile(np.array([0, 1], np.uint8), k),
        "exponent": np.zeros(2 * k, np.int8),
        "count_class": classes,
        "count": np.ones(n_counts, np.int32),
        "rows": np.zeros(0, np.int32),
    }
    tensors.update({f"tree.0.{name}": array for name, array in tree.items()})


@pytest.mark.parametrize(
    ("n_levels", "n_classes", "match"),
    [(5000, 4, "too deep"), (4000, 40_000, "far more memory than the file"), (4000, 4, None)],
)
def test_chains_are_limited_in_depth_and_memory(
    n_levels: int, n_classes: int, match: str | None, tmp_path: Path
) -> None:
    saved = tmp_path / "model.evergrow"
    FORESTS["ncm"].fit(X, Y).save(saved, inference_only=True)

    def chain(header: dict[str, Any], tensors: dict[str, Any]) -> None:
        header["fitted"]["labels"] = {"dtype": "<i8", "values": [*range(n_classes)]}
        tensors["history.ages.came"] = np.zeros(n_classes, np.int64)
        tensors.pop("balance_weights", None)
        _chain(n_levels, n_classes, tensors)

    if match is None:
        deep = evergrow.load(rewritten(saved, chain))
        assert deep.predict_proba(X).shape == (len(X), n_classes)
    else:
        with pytest.raises(ModelFileError, match=match):
            evergrow.load(rewritten(saved, chain))
