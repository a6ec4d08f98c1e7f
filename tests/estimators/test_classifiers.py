"""What all classifiers have in common: labels, input of any form, copies and files."""

from __future__ import annotations

import copy
import inspect
import io
import pickle
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

import evergrow
from evergrow import ModelFileError, NCMForestClassifier, NCMMetric, estimators
from tests.conftest import Arrays
from tests.estimators.classifiers import (
    FRAME,
    KINDS,
    MODELS,
    PLAIN,
    SAVED,
    X,
    Y,
    can,
    every_model,
    fitted,
)
from tests.estimators.means.cases import EXACT
from tests.estimators.model_files import reload


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("names", [[3, 1, 2], ["owl", "ant", "fox"], [True, False]])
def test_labels_of_any_kind_come_back_sorted_and_of_their_type(name: str, names: list[Any]) -> None:
    codes = np.arange(90) % len(names)
    rows = 8 * np.eye(4)[codes] + np.random.default_rng(0).normal(size=(90, 4))
    y = np.array(names)[codes]
    model = MODELS[name]().fit(rows, y)
    assert model.classes_.tolist() == sorted(names)
    assert model.predict(rows).dtype == y.dtype
    assert (model.predict(rows) == y).all()


FORMS: dict[str, Callable[[Any], Any]] = {
    "float16": lambda X: X.astype(np.float16),
    "float32": lambda X: X.astype(np.float32),
    "int16": lambda X: X.astype(np.int16),
    "int64": lambda X: X.astype(np.int64),
    "uint8": lambda X: X.astype(np.uint8),
    "fortran": np.asfortranarray,
    "strided": lambda X: X[:, ::-1][:, ::-1],
    "lists": lambda X: X.tolist(),
    "frame": pd.DataFrame,
}


@pytest.mark.parametrize("name", [*KINDS, *EXACT, "rls fixed"])
@pytest.mark.parametrize("form", FORMS)
def test_the_same_numbers_in_any_form_give_the_same_model(
    name: str, form: str, digits: Arrays
) -> None:
    X, X_test, y, _ = digits
    as_form = FORMS[form]
    expected, found = MODELS[name]().fit(X, y), MODELS[name]().fit(as_form(X), y)
    if name in KINDS:
        np.testing.assert_array_equal(
            found.predict_proba(as_form(X_test)), expected.predict_proba(X_test)
        )
        return
    assert found.class_counts_.tolist() == expected.class_counts_.tolist()
    np.testing.assert_allclose(
        found.decision_function(as_form(X_test)),
        expected.decision_function(X_test),
        rtol=1e-9,
        atol=1e-9,
    )
    if name in EXACT:
        np.testing.assert_allclose(
            found.predict_proba(as_form(X_test)), found.predict_proba(X_test), rtol=1e-12
        )


@every_model
def test_feature_names_are_kept_and_checked(name: str) -> None:
    model = MODELS[name]().fit(FRAME, Y)
    if can(name, "partial_fit"):
        model.partial_fit(FRAME, Y)
    assert model.feature_names_in_.tolist() == list("abcde")
    with pytest.raises(ValueError, match="feature names"):
        model.predict(FRAME[list("edcba")])
    assert not hasattr(model.fit(X, Y), "feature_names_in_")


def by_joblib(model: Any) -> Any:
    buffer = io.BytesIO()
    joblib.dump(model, buffer)
    buffer.seek(0)
    return joblib.load(buffer)


@every_model
@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model)), by_joblib]
)
def test_copies_predict_the_same_and_learn_independently(name: str, duplicate: Any) -> None:
    model = fitted(name)
    before, copied = model.predict_proba(X), duplicate(model)
    np.testing.assert_array_equal(copied.predict_proba(X), before)
    assert repr(copied.get_params()) == repr(model.get_params())
    assert not copied.classes_.flags.writeable
    if can(name, "partial_fit"):
        learnt = [each.partial_fit(X + 9, Y + 9) for each in (copied, duplicate(model))]
        np.testing.assert_array_equal(*(each.predict_proba(X) for each in learnt))
        np.testing.assert_array_equal(model.predict_proba(X), before)
    with pytest.raises(NotFittedError):
        clone(model).predict(X)


@pytest.mark.parametrize("name", PLAIN)
def test_top_k_lists_the_best_first(name: str) -> None:
    model = fitted(name)
    top = model.predict_top_k(X, k=3)
    np.testing.assert_array_equal(top[:, 0], model.predict(X))
    best = np.argsort(-model.predict_log_proba(X), axis=1, kind="stable")
    np.testing.assert_array_equal(top, model.classes_[best])
    for k in (0, 4, 1.5, None):
        with pytest.raises(ValueError, match=f"k must be an integer from 1 to 3, got {k}"):
            model.predict_top_k(X, k=k)


@pytest.mark.parametrize("verbose", [1, True])
@pytest.mark.parametrize(
    ("make", "shown"),
    [
        *((make, "Growing trees.* 3/3") for make in KINDS.values()),
        (partial(NCMMetric, max_iter=2), "Learning a metric"),
    ],
)
def test_progress_is_shown_when_asked_for(
    make: Any, shown: str, verbose: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    make().fit(X, Y)
    assert capsys.readouterr() == ("", "")
    make(verbose=verbose).fit(X, Y)
    found = capsys.readouterr()
    assert re.search(shown, found.err)
    assert found.out == ""


@every_model
def test_it_shows_itself_in_a_notebook(name: str) -> None:
    assert type(MODELS[name]()).__name__ in MODELS[name]()._repr_html_()


def test_its_repr_shows_the_parameters_that_are_not_defaults() -> None:
    assert repr(NCMForestClassifier(8, splits="auto", random_state=0)) == (
        "NCMForestClassifier(n_estimators=8, random_state=0)"
    )
    assert repr(MODELS["mahalanobis"]()) == "NCMClassifier(metric='mahalanobis')"


LABELS = {
    "int": np.array([3, -2, 2]),
    "uint8": np.array([3, 1, 2], dtype=np.uint8),
    "float32": np.array([1.0, 2.0], dtype=np.float32),
    "bool": np.array([True, False]),
    "str": np.array(["ü", "b", "c"], dtype="<U40"),
    "object": np.array(["x", "y"], dtype=object),
    "one class": np.array(["x"], dtype=object),
}


@pytest.mark.parametrize("name", SAVED)
@pytest.mark.parametrize("kind", LABELS)
def test_labels_are_saved_and_loaded(name: str, kind: str, tmp_path: Path) -> None:
    labels = LABELS[kind]
    model = MODELS[name]().fit(X, labels[np.arange(60) % len(labels)])
    loaded = reload(model, tmp_path)
    assert loaded.classes_.tolist() == model.classes_.tolist()
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.predict(X).tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("name", SAVED)
def test_feature_names_are_saved_and_loaded(name: str, tmp_path: Path) -> None:
    loaded = reload(MODELS[name]().fit(FRAME, Y), tmp_path)
    assert loaded.feature_names_in_.tolist() == list("abcde")
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(FRAME[list("edcba")])


@pytest.mark.parametrize("name", SAVED)
def test_only_a_class_that_load_knows_is_saved(name: str, tmp_path: Path) -> None:
    model = MODELS[name]()
    foreign = type("Own", (type(model),), {})(**model.get_params(deep=False)).fit(X, Y)
    with pytest.raises(TypeError, match="Own cannot be saved: only Evergrow's own estimators"):
        foreign.save(tmp_path / "model.evergrow")


@pytest.mark.parametrize("name", SAVED)
@pytest.mark.parametrize("share", [0.0, 0.00001, 0.01, 0.5, 0.9, 0.9999])
def test_a_truncated_file_is_refused(name: str, share: float, tmp_path: Path) -> None:
    path = tmp_path / "model.evergrow"
    fitted(name).save(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ModelFileError, match="incomplete or not a model file"):
        evergrow.load(path)


@every_model
def test_an_unknown_parameter_is_refused_in_the_name_of_its_class(name: str) -> None:
    kind = type(MODELS[name]())
    message = rf"^{kind.__name__}.__init__\(\) got an unexpected keyword argument 'size'"
    with pytest.raises(TypeError, match=message):
        kind(size=3)


ESTIMATORS = [
    kind
    for kind in (getattr(estimators, name) for name in estimators.__all__)
    if isinstance(kind, type) and issubclass(kind, BaseEstimator)
]


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_the_signature_has_the_documented_order(kind: Any) -> None:
    _, section = inspect.cleandoc(kind.__doc__).split("\nParameters\n----------\n")
    section, *_ = re.split(r"\n\n\w+\n-+\n", section)
    documented = re.findall(r"^(\w+) : ", section, flags=re.MULTILINE)
    parameters = inspect.signature(kind).parameters
    assert list(parameters) == documented
    if kind.__name__.endswith("ForestClassifier"):
        n_positional = [each.kind for each in parameters.values()].count(
            inspect.Parameter.POSITIONAL_OR_KEYWORD
        )
        assert (documented[0], n_positional) == ("n_estimators", 1)


@pytest.mark.parametrize("text", [None, "A forest with {example} in braces."])
def test_the_docstring_of_a_subclass_stays_as_it_is(text: str | None) -> None:
    kind = type("Own", (NCMForestClassifier,), {"__doc__": text, "update": "igt"})
    assert kind.__doc__ == text
