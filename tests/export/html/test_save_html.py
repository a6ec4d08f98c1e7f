"""save_html: which models a page holds, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from evergrow import NCMClassifier, RejectingClassifier, RLSClassifier
from evergrow.estimators import ReLU
from evergrow.export import save_html
from evergrow.export.html.head import read_head
from evergrow.vision import Embedder, ImageClassifier
from tests.export.html.cases import N_FEATURES, NAMES, examples, fitted


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (NCMClassifier, "not a NCMClassifier: use 'evergrow fit --learner rls'"),
        (lambda: RLSClassifier(standardize=True), "standardize is True"),
        (lambda: RLSClassifier(fit_intercept=False), "fit_intercept is False"),
        (lambda: RLSClassifier(features=ReLU(8)), "random features"),
        (
            lambda: RejectingClassifier(RLSClassifier(), measure="estimator"),
            "measure of novelty is 'estimator'",
        ),
    ],
)
def test_what_a_page_cannot_hold_is_refused(make, reason):
    model = make().fit(*examples(NAMES[:3], 30, 0))
    with pytest.raises(ValueError, match=reason):
        read_head(model)


def test_a_model_of_vectors_is_refused(tmp_path):
    with pytest.raises(TypeError, match="needs an ImageClassifier"):
        save_html(fitted(), tmp_path / "model.html")
    assert list(tmp_path.iterdir()) == []


def test_features_of_a_function_are_refused(tmp_path):
    images = [np.full((4, 4, 3), 60 * i, np.uint8) for i in range(4)]
    model = ImageClassifier(Embedder(lambda some: [one.mean(axis=(0, 1)) for one in some]), "rls")
    model.fit(images, ["dark", "dark", "light", "light"])
    with pytest.raises(TypeError, match="convert it to an ONNX file"):
        save_html(model, tmp_path / "model.html")


def test_few_examples_are_stored_as_rows_and_many_as_products():
    few, many = read_head(fitted(n=12)), read_head(fitted(n=900))
    assert "products" not in few.tensors
    assert few.tensors["rows"].dtype == np.float32
    assert few.tensors["rows"].shape == (12, N_FEATURES)
    assert many.tensors["products"].shape == ((N_FEATURES + 1) * (N_FEATURES + 2) // 2,)
    assert len(many.tensors["rows"]) <= 500
    represented = np.bincount(many.tensors["codes"], many.tensors["represented"])
    assert represented == pytest.approx([300, 300, 300])


def test_unused_blocks_are_left_out():
    from tests.export.html.cases import unused_blocks

    head = read_head(unused_blocks())
    assert head.places.tolist() == list(range(N_FEATURES - 8))
    assert head.tensors["weights"].shape == (3, N_FEATURES - 8 + 1)
