"""Estimators inside scikit-learn: names of features, metadata routing, links to the docs."""

from __future__ import annotations

from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evergrow import NCMForestClassifier, NCMMetric, RejectingClassifier, RLSClassifier
from evergrow.estimators.classifier import documentation
from tests.conftest import Arrays
from tests.estimators.classifiers import MODELS, every_model

METRIC = NCMMetric(3, max_iter=2, random_state=0)


@pytest.fixture(scope="module")
def frame(digits: Arrays) -> tuple[pd.DataFrame, Any, Any]:
    X, _, y, _ = digits
    names = [f"pixel {k}" for k in range(X.shape[1])]
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 120)
    return pd.DataFrame(X[:120], columns=names), y[:120], weights


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@every_model
def test_names_of_features_come_through_a_pipeline(name: str, frame: Any) -> None:
    X, y, _ = frame
    model = make_pipeline(StandardScaler(), MODELS[name]()).set_output(transform="pandas")
    model.fit(X, y)
    assert model[-1].feature_names_in_.tolist() == X.columns.tolist()
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(X[X.columns[::-1]])


def test_a_metric_names_its_output_in_a_pipeline(frame: Any) -> None:
    X, y, _ = frame
    model = make_pipeline(StandardScaler(), clone(METRIC), RLSClassifier(random_state=0))
    model.set_output(transform="pandas").fit(X, y)
    names = [f"ncmmetric{k}" for k in range(3)]
    assert model[:-1].get_feature_names_out().tolist() == names
    assert model[-1].feature_names_in_.tolist() == names
    plain = clone(model).set_output(transform="default").fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X))


def test_output_stays_as_it_was_set_when_the_metric_learns(frame: Any) -> None:
    X, y, _ = frame
    metric = clone(METRIC).set_output(transform="pandas")
    assert isinstance(metric.fit(X, y).fit(X, y).transform(X), pd.DataFrame)
    assert isinstance(clone(metric).fit_transform(X, y), pd.DataFrame)


@every_model
def test_weights_are_routed_through_a_pipeline(name: str, frame: Any, routing: None) -> None:
    X, y, weights = frame
    scaled = StandardScaler().fit_transform(X)
    expected = MODELS[name]().set_params(**_seed(name)).fit(scaled, y, sample_weight=weights)
    routed = MODELS[name]().set_params(**_seed(name)).set_fit_request(sample_weight=True)
    model = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), routed)
    model.fit(X.to_numpy(), y, sample_weight=weights)
    np.testing.assert_array_equal(model.predict_proba(X.to_numpy()), expected.predict_proba(scaled))


@every_model
def test_weights_that_nobody_asked_for_are_refused(name: str, frame: Any, routing: None) -> None:
    X, y, weights = frame
    model = make_pipeline(StandardScaler(), MODELS[name]())
    with pytest.raises(ValueError, match="not explicitly set as requested or not requested"):
        model.fit(X, y, sample_weight=weights)


def test_weights_are_routed_to_the_folds_of_a_search(frame: Any, routing: None) -> None:
    X, y, weights = frame
    model = NCMForestClassifier(5, random_state=0)
    model.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    search = GridSearchCV(model, {"min_samples_leaf": [1, 2]}, cv=2)
    search.fit(X, y, sample_weight=weights)
    expected = clone(search.best_estimator_).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(search.predict_proba(X), expected.predict_proba(X))
    weighted = cross_validate(model, X, y, cv=2, params={"sample_weight": weights})
    none = cross_validate(NCMForestClassifier(5, random_state=0), X, y, cv=2)
    assert (weighted["test_score"] != none["test_score"]).any()


def test_a_request_stays_when_the_model_learns(frame: Any, routing: None) -> None:
    X, y, _ = frame
    model = RejectingClassifier(RLSClassifier()).set_partial_fit_request(sample_weight=True)
    model.fit(X, y)
    assert model.get_metadata_routing().partial_fit.requests["sample_weight"] is True


def _seed(name: str) -> dict[str, int]:
    return {"random_state": 0} if "random_state" in MODELS[name]().get_params() else {}


def test_the_diagram_links_to_the_documentation(monkeypatch: pytest.MonkeyPatch) -> None:
    package = Message()
    package["Project-URL"] = "Source, https://example.org/code"
    package["Project-URL"] = "Documentation, https://example.org/docs/"
    monkeypatch.setattr(documentation, "metadata", lambda _: package)
    documentation.documentation_address.cache_clear()
    try:
        assert NCMMetric()._get_doc_link() == (
            "https://example.org/docs/api/evergrow.NCMMetric.html"
        )
        page = RLSClassifier()._repr_html_()
        assert "https://example.org/docs/api/evergrow.RLSClassifier.html" in page
    finally:
        documentation.documentation_address.cache_clear()


def test_there_is_no_link_where_the_package_names_no_documentation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(documentation, "metadata", lambda _: Message())
    documentation.documentation_address.cache_clear()
    try:
        assert RLSClassifier()._get_doc_link() == ""
    finally:
        documentation.documentation_address.cache_clear()


def test_every_link_leads_to_a_page_of_the_api() -> None:
    folder = Path(__file__).parents[2] / "docs" / "api"
    listed = "".join(page.read_text(encoding="utf-8") for page in folder.glob("*.md"))
    for model in [*(make() for make in MODELS.values()), METRIC]:
        name = model._doc_link_url_param_generator()["name"]
        assert f"   ~{name}\n" in listed
