"""Model files of codebooks: exact, and invalid files are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evergrow
from evergrow import ModelFileError
from evergrow.storage.files import read_model, write_model
from tests.vision.words.cases import CODEBOOKS, descriptors

D = descriptors()
every_codebook = pytest.mark.parametrize("make", CODEBOOKS.values(), ids=CODEBOOKS)
Arrays = dict[str, np.ndarray[Any, Any]]


@every_codebook
def test_a_loaded_codebook_gives_the_same_words(make: Any, tmp_path: Path) -> None:
    codebook = make().fit(pd.DataFrame(D, columns=list("abcdef")))
    codebook.save(tmp_path / "words.evergrow")
    loaded = evergrow.load(tmp_path / "words.evergrow")
    frame = pd.DataFrame(D, columns=list("abcdef"))
    np.testing.assert_array_equal(loaded.transform(frame), codebook.transform(frame))
    assert loaded.get_params() == codebook.get_params()
    assert vars(loaded).keys() == vars(codebook).keys()
    assert loaded.feature_names_in_.tolist() == list("abcdef")


@every_codebook
def test_a_file_with_a_wrong_parameter_is_refused(make: Any, tmp_path: Path) -> None:
    path = tmp_path / "words.evergrow"
    make().fit(D).save(path)
    header, tensors = read_model(path)
    header["parameters"]["n_words"] = -1
    write_model(path, header, tensors)
    with pytest.raises(ModelFileError, match="n_words must be"):
        evergrow.load(path)


def put(name: str, at: Any, value: Any) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        arrays[name] = arrays[name].copy()
        arrays[name][at] = value

    return change


def without(name: str) -> Callable[[Arrays], None]:
    return lambda arrays: arrays.__delitem__(name)


def shorter(name: str) -> Callable[[Arrays], None]:
    return lambda arrays: arrays.__setitem__(name, arrays[name][:-1])


def node_below_itself(arrays: Arrays) -> None:
    # Every node but the root has one parent, but node 1 is its own.
    child = np.array([3, 1, 0, 0, 0], dtype=np.int32)
    arrays["child"] = child
    if "centre" in arrays:
        arrays["centre"] = arrays["centre"][:5]
        arrays["n_children"] = np.where(child, 2, 0).astype(np.int32)
    else:
        arrays["n_nodes"] = np.array([5])
        arrays["word"] = np.array([-1, -1, 0, 1, 2], dtype=np.int32)
        arrays["feature"], arrays["threshold"] = arrays["feature"][:5], arrays["threshold"][:5]


DAMAGE: dict[str, list[Callable[[Arrays], None]]] = {
    "k-means": [
        without("centres"),
        put("centres", 0, np.nan),
        put("centres", 0, 1e30),
        lambda arrays: arrays.__setitem__("centres", arrays["centres"][:0]),
        lambda arrays: arrays.__setitem__("centres", arrays["centres"].astype(np.float64)),
    ],
    "hierarchical": [
        without("child"),
        shorter("child"),
        put("centre", 0, np.inf),
        put("child", 0, 2),
        put("child", 0, -1),
        put("child", 1, 1),
        put("child", 0, 2**31 - 1),
        put("n_children", 0, 2),
        put("n_children", 0, 2**31 - 1),
        put("n_children", 0, -3),
        put("n_children", -1, 2),
        put("child", slice(None), 0),
        node_below_itself,
    ],
    "kd-trees": [
        without("word"),
        shorter("threshold"),
        shorter("n_nodes"),
        put("threshold", 0, np.nan),
        put("feature", 0, 6),
        put("feature", 0, -1),
        put("n_features", 0, 0),
        put("child", 0, 0),
        put("child", 0, -1),
        put("child", 0, 2),
        put("child", 0, 2**31 - 1),
        node_below_itself,
        put("word", -1, 0),
        put("word", -1, 99),
        put("word", 0, 0),
        put("n_nodes", 0, 2**62),
        put("n_nodes", 0, -1),
        put("n_nodes", slice(None), 0),
    ],
}
CASES = [(name, change) for name, changes in DAMAGE.items() for change in changes]


@pytest.mark.parametrize(("name", "damage"), CASES)
def test_damaged_arrays_are_refused(name: str, damage: Any, tmp_path: Path) -> None:
    path = tmp_path / "words.evergrow"
    CODEBOOKS[name]().fit(D).save(path)
    header, tensors = read_model(path)
    damage(tensors)
    write_model(path, header, tensors)
    with pytest.raises(ModelFileError, match="model file"):
        evergrow.load(path)


@every_codebook
def test_a_codebook_of_a_foreign_class_is_not_saved(make: Any, tmp_path: Path) -> None:
    codebook = make().fit(D)
    foreign = type("Mine", (type(codebook),), {"__module__": "mine"})
    codebook.__class__ = foreign
    with pytest.raises(TypeError, match="only Evergrow's own"):
        codebook.save(tmp_path / "words.evergrow")
