"""Model files of least squares: exact, and damaged or hostile files are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evergrow
from evergrow import RLSClassifier
from evergrow.estimators import RFF, Auto, HoldOut, LeaveOneOut, ReLU
from evergrow.storage.models.format import read_model, write_model
from tests.conftest import Arrays
from tests.estimators.model_files import at, check_refused, forge, reload


@pytest.fixture(scope="module")
def saved(digits: Arrays, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model file; tests must not change it."""
    X, _, y, _ = digits
    path = tmp_path_factory.mktemp("saved") / "model.evergrow"
    RLSClassifier(random_state=0).fit(X, y).save(path)
    return path


@pytest.mark.parametrize(
    "model",
    [
        RLSClassifier(random_state=0),
        RLSClassifier(regularization=2.0, recoding=0.5),
        RLSClassifier(fit_intercept=False, standardize=True),
        RLSClassifier(features=RFF(40, gamma=0.001), random_state=1),
        RLSClassifier(features=ReLU(40), random_state=1),
        RLSClassifier(keep_class_statistics=True, random_state=0),
        RLSClassifier(features=Auto("1MiB"), selection=LeaveOneOut(60), random_state=0),
        RLSClassifier(selection=HoldOut(every=4), random_state=0),
    ],
    ids=str,
)
@pytest.mark.parametrize("inference_only", [False, True])
def test_a_loaded_model_answers_the_same(
    model: Any, digits: Arrays, tmp_path: Path, inference_only: bool
) -> None:
    X, X_test, y, _ = digits
    model.fit(X, y)
    loaded = reload(model, tmp_path, inference_only=inference_only)
    np.testing.assert_allclose(
        loaded.predict_proba(X_test), model.predict_proba(X_test), rtol=1e-8, atol=1e-12
    )
    assert loaded.classes_.tolist() == list(range(10))
    assert loaded.regularization_ == model.regularization_
    if not inference_only:
        assert loaded.get_params() == model.get_params()


def test_a_loaded_model_continues_to_learn_the_same(digits: Arrays, tmp_path: Path) -> None:
    X, X_test, y, _ = digits
    model = RLSClassifier(selection=LeaveOneOut(60), keep_class_statistics=True, random_state=0)
    for i in range(300):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    loaded = reload(model, tmp_path)
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
    model = RLSClassifier(features=ReLU(300), random_state=0).fit(X, y)
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


FORGED: list[tuple[str, Any]] = [
    *((f"moments.{name}", None) for name in
      ("gram", "class_sums", "class_weights", "class_examples", "class_squares")),
    *((f"holdout.{name}", None) for name in
      ("tallies", "codes", "weights", "priorities", "rows")),
    ("moments.gram", lambda a: a[:-1]),
    ("moments.gram", at(0, -1.0)),
    ("moments.gram", at(3, 1e300)),
    ("moments.class_sums", lambda a: a[:, :-1]),
    ("moments.class_sums", lambda a: a[:-1]),
    ("moments.class_sums", lambda a: a + 1e200),
    ("moments.class_weights", lambda a: -a - 1),
    ("moments.class_weights", lambda a: a * 0),
    ("moments.class_examples", lambda a: -a - 1),
    ("moments.class_examples", lambda a: a * 0),
    ("moments.class_examples", lambda a: a + 2**60),
    ("fitted/moments/peak", -1.0),
    ("fitted/moments", None),
    ("holdout.codes", lambda a: a + 10),
    ("holdout.tallies", lambda a: a * 0),
    ("fitted/holdout", None),
    ("holdout.rows", lambda a: a[:, :-1]),
    ("fitted/intercept", False),
    ("fitted/labels", {"dtype": "<i8", "values": [1, 2]}),
    ("fitted/features/kind", "sin"),
    ("fitted/features/kind", "relu"),
    ("fitted/features/n_inputs", 63),
    ("fitted/features/n_inputs", -1),
    ("fitted/features/n_random", 2**70),
    ("fitted/features/gamma", 0.0),
    ("fitted/selection/penalty", -1.0),
    ("fitted/selection/recoding", 2.0),
    ("fitted/selection/temperature", 0.0),
    ("fitted/selection/n_examples", -1),
    ("fitted/selection/n_examples", 2**53 + 1),
    ("fitted/selection/weight", -1.0),
    ("fitted/selection/by_means", 1),
    ("fitted/selection/blocks", [0]),
    ("selection.class_examples", lambda a: np.append(a, a)),
    ("fitted/selection/request", {"penalty": None, "recoding": None, "standardize": True}),
    ("fitted/selection/request/recoding", "often"),
    ("fitted/selection/request/penalty", -1.0),
    ("fitted/selection/request/standardize", 1),
    ("fitted/selection/request/rule", "paper-like"),
    ("fitted/selection/request/scoring", "points"),
    ("fitted/selection/request/blocks", [1, -1]),
    ("fitted/selection/request/n_random_blocks", 2),
    ("parameters/regularization", -1.0),
    ("parameters/features", {"kind": "exec"}),
    ("parameters/features", {"kind": "RFF", "gamma": -1.0}),
    ("parameters/features", {"kind": "RFF", "gamma": 1.0, "code": "x"}),
    ("parameters/features", {"kind": "HoldOut"}),
    ("parameters/selection", {"kind": "LeaveOneOut", "max_stored": 0}),
    ("parameters/fit_intercept", False),
    ("parameters/features", {"kind": "ReLU", "n": 8}),
    ("parameters/keep_class_statistics", True),
    ("estimator", "NCMForestClassifier"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value"), FORGED)
def test_a_forged_file_is_refused(saved: Path, path: str, value: Any) -> None:
    check_refused(saved, forge(path, value))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("fixed.weights", lambda a: a[:, :-1]),
        ("fixed.weights", None),
        ("fixed.own_scores", at(0, np.inf)),
        ("fixed.class_weights", at(0, 0.0)),
        ("fixed.class_weights", lambda a: a * 0),
        ("fixed.class_examples", at(0, 2**53)),
        ("fixed.class_examples", at(0, 0)),
        ("fitted/fixed", None),
        ("fitted/fixed/temperature", 0.0),
        ("fitted/fixed/ridge/penalty", -1.0),
        ("fitted/fixed/ridge/penalty", 1),
        ("fitted/fixed/ridge/intercept", 1),
        ("fitted/fixed/ridge/standardize", None),
        ("fitted/fixed/ridge/scoring", "points"),
        ("fitted/fixed/ridge/by_means", None),
    ],
)
def test_forged_weights_are_refused(digits: Arrays, tmp_path: Path, path: str, value: Any) -> None:
    X, _, y, _ = digits
    reload(RLSClassifier(random_state=0).fit(X, y), tmp_path, inference_only=True)
    check_refused(tmp_path / "model.evergrow", forge(path, value))


def test_forged_sums_that_no_examples_have_are_solved_with_a_warning(
    digits: Arrays, tmp_path: Path
) -> None:
    X, X_test, y, _ = digits
    path = tmp_path / "model.evergrow"
    RLSClassifier(regularization=1.0, recoding=0.0).fit(X, y).save(path)
    head, tensors = read_model(path)
    gram = np.zeros((65, 65))
    gram[np.triu_indices(65)] = tensors["moments.gram"]
    # Three features of which each pair may be like this, but not all three.
    for i, j in ((2, 3), (3, 4), (2, 4)):
        gram[i, j] = -0.9 * np.sqrt(gram[i, i] * gram[j, j])
    write_model(path, head, {**tensors, "moments.gram": gram[np.triu_indices(65)]})
    with pytest.warns(RuntimeWarning, match="not positive definite"):
        assert len(evergrow.load(path).predict(X_test)) == len(X_test)


@pytest.mark.parametrize("change", [{"fit_intercept": False}, {"features": ReLU(3)}], ids=str)
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
    loaded = reload(RLSClassifier(random_state=0).fit(X, y), tmp_path, inference_only=True)
    loaded.set_params(recoding=0.2).predict(X_test)
    with pytest.raises(ValueError, match="has only the weights for regularization="):
        loaded.set_params(regularization=1e5).predict(X_test)


def test_an_inference_only_model_has_the_temperature_of_numbers_set_later(
    digits: Arrays, tmp_path: Path
) -> None:
    X, X_test, y, _ = digits
    model = RLSClassifier(random_state=0).fit(X, y).set_params(regularization=9e3, recoding=0.7)
    loaded = reload(model, tmp_path, inference_only=True)
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
