"""Model files of least squares: exact, and damaged or hostile files are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evergrow
from evergrow import ModelFileError, RLSClassifier
from evergrow.estimators import RFF, RebalancedRLSClassifier
from evergrow.storage.files import read_model, write_model
from tests.conftest import Arrays


@pytest.mark.parametrize(
    "model",
    [
        RLSClassifier(random_state=0),
        RLSClassifier(regularization=2.0, recoding=0.5),
        RLSClassifier(fit_intercept=False, standardize=True),
        RLSClassifier(n_random_features=40, feature_map=RFF(gamma=0.001), random_state=1),
        RLSClassifier(n_random_features=40, random_state=1),
        RLSClassifier(keep_class_statistics=True, random_state=0),
        RebalancedRLSClassifier(random_state=0),
    ],
    ids=str,
)
@pytest.mark.parametrize("inference_only", [False, True])
def test_a_loaded_model_answers_the_same(
    model: Any, digits: Arrays, tmp_path: Path, inference_only: bool
) -> None:
    X, X_test, y, _ = digits
    model.fit(X, y)
    model.save(tmp_path / "model.evergrow", inference_only=inference_only)
    loaded = evergrow.load(tmp_path / "model.evergrow")
    np.testing.assert_allclose(
        loaded.predict_proba(X_test), model.predict_proba(X_test), rtol=1e-8, atol=1e-12
    )
    assert loaded.classes_.tolist() == list(range(10))
    assert loaded.regularization_ == model.regularization_
    if not inference_only:
        assert loaded.get_params() == model.get_params()


def test_a_loaded_model_continues_to_learn_the_same(digits: Arrays, tmp_path: Path) -> None:
    X, X_test, y, _ = digits
    model = RLSClassifier(max_held_out=60, keep_class_statistics=True, random_state=0)
    for i in range(300):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    model.save(tmp_path / "model.evergrow")
    loaded = evergrow.load(tmp_path / "model.evergrow")
    for one in (model, loaded):
        one.partial_fit(X[300:900], y[300:900])
        one.forget(X[:5], y[:5])
        one.forget(classes=[4])
    assert loaded.regularization_ == pytest.approx(model.regularization_)
    assert loaded.recoding_ == model.recoding_
    np.testing.assert_allclose(
        loaded.decision_function(X_test), model.decision_function(X_test), rtol=1e-9, atol=1e-9
    )


def test_an_inference_only_file_is_small_and_learns_no_more(digits: Arrays, tmp_path: Path) -> None:
    X, _, y, _ = digits
    model = RLSClassifier(n_random_features=300, random_state=0).fit(X, y)
    model.save(tmp_path / "whole")
    model.save(tmp_path / "small", inference_only=True)
    assert (tmp_path / "small").stat().st_size < (tmp_path / "whole").stat().st_size / 5
    small = evergrow.load(tmp_path / "small")
    for call in (
        lambda: small.partial_fit(X, y),
        lambda: small.forget(X[:1], y[:1]),
        lambda: small.merge(model),
        lambda: model.merge(small),
        lambda: small.rename_classes({0: 10}),
    ):
        with pytest.raises(ValueError, match="inference_only=True"):
            call()
    small.save(tmp_path / "again")
    np.testing.assert_array_equal(evergrow.load(tmp_path / "again").coef_, small.coef_)
    small.fit(X, y).partial_fit(X, y)


def test_no_example_is_in_the_file_of_a_model_with_numbers_for_parameters(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4))
    model = RLSClassifier(regularization=1.0, recoding=0.0)
    for row in X:
        model.partial_fit([row], [rng.integers(3)])
    model.save(tmp_path / "model.evergrow")
    content = (tmp_path / "model.evergrow").read_bytes()
    assert not any(row.tobytes() in content for row in X)


def test_feature_names_and_string_classes_are_saved_and_loaded(tmp_path: Path) -> None:
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 2)), columns=["left", "right"])
    model = RLSClassifier().fit(X, ["ü", "b"] * 10)
    model.save(tmp_path / "model.evergrow")
    loaded = evergrow.load(tmp_path / "model.evergrow")
    assert loaded.feature_names_in_.tolist() == ["left", "right"]
    assert loaded.classes_.tolist() == ["b", "ü"]


def drop(name: str) -> Any:
    return lambda _, tensors: tensors.pop(name)


def change(name: str, make: Any) -> Any:
    def edit(_: Any, tensors: dict[str, Any]) -> None:
        tensors[name] = make(tensors[name])

    return edit


def header(**entries: Any) -> Any:
    return lambda head, _: head.update(entries)


def part(name: str, **entries: Any) -> Any:
    return lambda head, _: head[name].update(entries)


@pytest.mark.parametrize(
    "edit",
    [
        drop("gram"),
        drop("class_sums"),
        drop("class_weights"),
        drop("class_examples"),
        drop("class_squares"),
        drop("peak"),
        change("peak", lambda a: a - 1e300),
        drop("held_out.counts"),
        drop("held_out.codes"),
        drop("held_out.weights"),
        drop("selection.class_examples"),
        change("gram", lambda a: a[:-1]),
        change("gram", lambda a: np.where(np.arange(len(a)) == 0, -1.0, a)),
        change("gram", lambda a: a * np.nan),
        change("gram", lambda a: a.astype(np.float32)),
        change("class_sums", lambda a: a[:, :-1]),
        change("class_sums", lambda a: a[:-1]),
        change("class_sums", lambda a: a + np.inf),
        change("class_weights", lambda a: -a - 1),
        change("class_weights", lambda a: a[None]),
        change("class_examples", lambda a: -a - 1),
        change("class_examples", lambda a: a.astype(np.float64)),
        change("held_out.rows", lambda a: a[:, :-1]),
        change("held_out.rows", lambda a: a[:-1]),
        change("held_out.codes", lambda a: a + 10),
        change("held_out.codes", lambda a: a - 10),
        change("held_out.weights", lambda a: -a),
        change("held_out.counts", lambda a: a - 10**6),
        change("held_out.counts", lambda a: a * 0),
        change("selection.class_examples", lambda a: np.append(a, a)),
        header(intercept="yes"),
        header(intercept=False),
        header(features=None),
        header(held_out=None),
        part("held_out", seed=-1),
        part("held_out", share="all"),
        header(selection=5),
        header(classes={"dtype": "<i8", "values": [1, 2]}),
        header(parameters={"regularization": -1.0}),
        header(parameters={"feature_map": {"map": "exec"}}),
        header(parameters={"feature_map": {"map": "rff", "gamma": -1.0}}),
        header(parameters={"feature_map": {"map": "rff", "gamma": 1.0, "code": "x"}}),
        part("features", kind="sin"),
        part("features", kind="relu"),
        part("features", n_inputs=63),
        part("features", n_inputs=-1),
        part("features", n_random=2**70),
        part("features", gamma=0.0),
        part("selection", penalty=-1.0),
        part("selection", penalty="large"),
        part("selection", recoding=2.0),
        part("selection", temperature=0.0),
        part("selection", n_examples=-1),
        part("selection", wish=None),
        part("selection", wish={"penalty": None, "recoding": "often", "standardize": True}),
        part("selection", wish={"penalty": None, "recoding": None, "standardize": 1}),
        part("selection", weight=-1.0),
        change("class_weights", lambda a: a * 0),
        change("class_examples", lambda a: a * 0),
        change("class_examples", lambda a: a + 2**60),
        change("class_sums", lambda a: a + 1e200),
        change("gram", lambda a: a + 1e300 * (np.arange(len(a)) == 3)),
        header(parameters={"fit_intercept": False}),
        header(parameters={"n_random_features": 8}),
        header(parameters={"keep_class_statistics": True}),
        header(estimator="NCMForestClassifier"),
    ],
)
def test_a_hostile_file_is_refused(digits: Arrays, tmp_path: Path, edit: Any) -> None:
    X, _, y, _ = digits
    path = tmp_path / "model.evergrow"
    RLSClassifier(random_state=0).fit(X, y).save(path)
    head, tensors = read_model(path)
    edit(head, tensors)
    write_model(path, head, tensors)
    with pytest.raises(ModelFileError):
        evergrow.load(path)


def test_forged_sums_that_no_examples_have_are_solved_with_a_warning(
    digits: Arrays, tmp_path: Path
) -> None:
    X, X_test, y, _ = digits
    path = tmp_path / "model.evergrow"
    RLSClassifier(regularization=1.0, recoding=0.0).fit(X, y).save(path)
    head, tensors = read_model(path)
    gram = np.zeros((65, 65))
    gram[np.triu_indices(65)] = tensors["gram"]
    # Three features of which each pair may be like this, but not all three.
    for i, j in ((2, 3), (3, 4), (2, 4)):
        gram[i, j] = -0.9 * np.sqrt(gram[i, i] * gram[j, j])
    write_model(path, head, {**tensors, "gram": gram[np.triu_indices(65)]})
    with pytest.warns(RuntimeWarning, match="not positive definite"):
        assert len(evergrow.load(path).predict(X_test)) == len(X_test)


@pytest.mark.parametrize("change", [{"fit_intercept": False}, {"n_random_features": 3}], ids=str)
def test_what_could_not_be_loaded_is_not_saved(
    digits: Arrays, tmp_path: Path, change: dict[str, Any]
) -> None:
    X, _, y, _ = digits
    path = tmp_path / "model.evergrow"
    model = RLSClassifier(random_state=0).fit(X, y)
    model.save(path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="fit again to change it"):
        model.set_params(**change).save(path)
    assert path.read_bytes() == before


def test_an_inference_only_model_has_weights_for_one_penalty(
    digits: Arrays, tmp_path: Path
) -> None:
    X, X_test, y, _ = digits
    RLSClassifier(random_state=0).fit(X, y).save(tmp_path / "model", inference_only=True)
    loaded = evergrow.load(tmp_path / "model")
    loaded.set_params(recoding=0.2).predict(X_test)
    with pytest.raises(ValueError, match="has only the weights for regularization="):
        loaded.set_params(regularization=1e5).predict(X_test)


def test_an_inference_only_model_has_the_temperature_of_numbers_set_later(
    digits: Arrays, tmp_path: Path
) -> None:
    X, X_test, y, _ = digits
    model = RLSClassifier(random_state=0).fit(X, y).set_params(regularization=9e3, recoding=0.7)
    model.save(tmp_path / "model", inference_only=True)
    loaded = evergrow.load(tmp_path / "model")
    assert loaded.temperature_ == model.temperature_
    np.testing.assert_allclose(
        loaded.predict_proba(X_test), model.predict_proba(X_test), atol=1e-12
    )


def test_an_inference_only_file_holds_no_example(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(40, 5))
    model = RLSClassifier(random_state=0).fit(X, [0] * 20 + [1] * 19 + [2])
    model.save(tmp_path / "model", inference_only=True)
    content = (tmp_path / "model").read_bytes()
    assert not any(row.tobytes() in content for row in X)
