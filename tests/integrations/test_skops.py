"""Estimators in skops: stored as the content of their model file."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evergrow import ModelFileError, NCMClassifier, NCMMetric, RLSClassifier
from evergrow.integrations.skops import trusted_types
from tests.estimators.classifiers import FRAME, X, Y, can, every_model, fitted

sio = pytest.importorskip("skops.io")


@every_model
def test_a_model_comes_back_as_it_was(name: str) -> None:
    model = fitted(name)
    content = sio.dumps(model)
    kind = type(model)
    assert sio.get_untrusted_types(data=content) == [f"{kind.__module__}.{kind.__name__}"]
    loaded = sio.loads(content, trusted=trusted_types())
    assert repr(loaded) == repr(model)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    (loaded.partial_fit if can(name, "partial_fit") else loaded.fit)(X, Y)


def test_a_pipeline_keeps_names_and_output() -> None:
    model = make_pipeline(StandardScaler(), NCMMetric(2, max_iter=2), RLSClassifier())
    model.set_output(transform="pandas").fit(FRAME, Y)
    loaded = sio.loads(sio.dumps(model), trusted=trusted_types())
    assert isinstance(loaded[:-1].transform(FRAME), pd.DataFrame)
    assert loaded[-1].feature_names_in_.tolist() == ["ncmmetric0", "ncmmetric1"]
    np.testing.assert_array_equal(loaded.predict_proba(FRAME), model.predict_proba(FRAME))


def test_nothing_is_trusted_without_being_asked() -> None:
    with pytest.raises(sio.exceptions.UntrustedTypesFoundException):
        sio.loads(sio.dumps(NCMClassifier().fit(X, Y)))


def test_damaged_content_is_refused() -> None:
    state = NCMClassifier().fit(X, Y).__getstate__()
    content = bytearray(state["model_file"])
    content[-1] ^= 1
    with pytest.raises(ModelFileError):
        NCMClassifier.__new__(NCMClassifier).__setstate__({"model_file": bytes(content)})
    with pytest.raises(ModelFileError, match="expected is RLSClassifier"):
        RLSClassifier.__new__(RLSClassifier).__setstate__(state)
