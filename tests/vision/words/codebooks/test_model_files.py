"""Model files of codebooks: exact, and invalid files are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.estimators import model_files
from tests.vision.words.cases import CODEBOOKS, descriptors

D = descriptors()
every_codebook = pytest.mark.parametrize("make", CODEBOOKS.values(), ids=CODEBOOKS)


@every_codebook
def test_a_loaded_codebook_gives_the_same_words(make: Any, tmp_path: Path) -> None:
    codebook = make().fit(pd.DataFrame(D, columns=list("abcdef")))
    loaded = model_files.reload(codebook, tmp_path)
    frame = pd.DataFrame(D, columns=list("abcdef"))
    np.testing.assert_array_equal(loaded.transform(frame), codebook.transform(frame))
    assert loaded.get_params() == codebook.get_params()
    assert vars(loaded).keys() == vars(codebook).keys()
    assert loaded.feature_names_in_.tolist() == list("abcdef")


@every_codebook
def test_a_file_with_a_wrong_parameter_is_refused(make: Any, tmp_path: Path) -> None:
    make().fit(D).save(tmp_path / "words.evergrow")
    model_files.check_refused(
        tmp_path / "words.evergrow",
        model_files.edit_part("parameters", n_words=-1),
        "n_words must be",
    )


def shorter(name: str) -> model_files.Change:
    return model_files.put(name, lambda array: array[:-1])


def node_below_itself(_: dict[str, Any], arrays: dict[str, Any]) -> None:
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


DAMAGE: dict[str, list[model_files.Change]] = {
    "k-means": [
        model_files.drop("centres"),
        model_files.put_first("centres", np.nan),
        model_files.put_first("centres", 1e30),
        model_files.put("centres", lambda centres: centres[:0]),
        model_files.put("centres", lambda centres: centres.astype(np.float64)),
    ],
    "hierarchical": [
        model_files.drop("child"),
        shorter("child"),
        model_files.put_first("centre", np.inf),
        model_files.put_first("child", 2),
        model_files.put_first("child", -1),
        model_files.put_at("child", 1, 1),
        model_files.put_first("child", 2**31 - 1),
        model_files.put_first("n_children", 2),
        model_files.put_first("n_children", 2**31 - 1),
        model_files.put_first("n_children", -3),
        model_files.put_at("n_children", -1, 2),
        model_files.put_at("child", slice(None), 0),
        node_below_itself,
    ],
    "kd-trees": [
        model_files.drop("word"),
        shorter("threshold"),
        shorter("n_nodes"),
        model_files.put_first("threshold", np.nan),
        model_files.put_first("feature", 6),
        model_files.put_first("feature", -1),
        model_files.put_first("n_features", 0),
        model_files.put_first("child", 0),
        model_files.put_first("child", -1),
        model_files.put_first("child", 2),
        model_files.put_first("child", 2**31 - 1),
        node_below_itself,
        model_files.put_at("word", -1, 0),
        model_files.put_at("word", -1, 99),
        model_files.put_first("word", 0),
        model_files.put_first("n_nodes", 2**62),
        model_files.put_first("n_nodes", -1),
        model_files.put_at("n_nodes", slice(None), 0),
    ],
}
CASES = [(name, change) for name, changes in DAMAGE.items() for change in changes]


@pytest.mark.parametrize(("name", "change"), CASES)
def test_damaged_arrays_are_refused(name: str, change: Any, tmp_path: Path) -> None:
    CODEBOOKS[name]().fit(D).save(tmp_path / "words.evergrow")
    model_files.check_refused(tmp_path / "words.evergrow", change, "model file")


@every_codebook
def test_a_codebook_of_a_foreign_class_is_not_saved(make: Any, tmp_path: Path) -> None:
    codebook = make().fit(D)
    foreign = type("Mine", (type(codebook),), {"__module__": "mine"})
    codebook.__class__ = foreign
    with pytest.raises(TypeError, match="only Evergrow's own"):
        codebook.save(tmp_path / "words.evergrow")
