"""Files that take images: preparation, networks and blocks of features are inside."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from evergrow import (
    Embedder,
    ImageClassifier,
    InvalidTypeError,
    RejectingClassifier,
    RLSClassifier,
)
from evergrow.export import to_onnx
from evergrow.vision import OnnxModel, Preprocessing
from tests.export.onnx.runs import run
from tests.vision.embedding.models import channels_last_model, onnx_model, staged_model

pytestmark = pytest.mark.slow

SIZES = [(8, 8), (30, 17), (11, 40), (5, 6)]


@pytest.fixture(scope="module")
def images() -> list[np.ndarray[Any, Any]]:
    """Three classes of colours, in images of different sizes."""
    draw = np.random.default_rng(0)
    colours = 40 + 70 * np.eye(3)
    return [
        np.clip(draw.normal(colours[k % 3], 25, (*SIZES[k % 4], 3)), 0, 255).astype(np.uint8)
        for k in range(36)
    ]


# Half of them are wrong, so that probabilities are far from 0 and 1 and every difference shows.
LABELS = np.array(["red", "green", "blue", "green", "blue", "red"] * 6)


def soft() -> RLSClassifier:
    """A learner that is not certain."""
    return RLSClassifier(regularization=1.0, recoding=0.0, scoring="regression")


def network(model: onnx.ModelProto) -> OnnxModel:
    return OnnxModel(model.SerializeToString())


def fixed(n: int) -> onnx.ModelProto:
    return onnx_model((n, 3, 8, 8))


def of_opset(version: int) -> onnx.ModelProto:
    model = onnx_model()
    model.opset_import[0].version = version
    return model


NETWORKS: dict[str, Embedder] = {
    "nchw": Embedder(network(onnx_model()), cache=False),
    "nhwc": Embedder(network(channels_last_model()), cache=False),
    "bgr, stretched": Embedder(
        network(onnx_model()),
        preprocessing=Preprocessing(8, "stretch", channels="bgr", mean=(1, 2, 3), scale=50),
        cache=False,
    ),
    "a bicubic rectangle": Embedder(
        network(onnx_model(("n", 3, 6, 9))),
        preprocessing=Preprocessing((6, 9), interpolation="bicubic"),
        cache=False,
    ),
    "a map that is pooled": Embedder(network(onnx_model(flatten=False)), cache=False),
    "stages": Embedder(network(staged_model()), stages=(2,), cache=False),
    "averaged stages": Embedder(network(staged_model(averaged=True)), stages=(2,), cache=False),
    "two networks": Embedder([network(onnx_model()), network(channels_last_model(5))], cache=False),
    "two of two versions": Embedder([network(of_opset(11)), network(of_opset(17))], cache=False),
    "one image at a time": Embedder(network(fixed(1)), cache=False),
    "four images at a time": Embedder(network(fixed(4)), cache=False),
    "old operators": Embedder(network(of_opset(11)), cache=False),
    "new operators": Embedder(network(of_opset(18)), cache=False),
}
STEPS: dict[str, Any] = {
    "scaled": StandardScaler(),
    "only centred": StandardScaler(with_std=False),
    "only divided": StandardScaler(with_mean=False),
    "projected": PCA(2, random_state=0),
    "whitened": PCA(2, whiten=True, random_state=0),
    **{f"normalised by {norm}": Normalizer(norm) for norm in ("l1", "l2", "max")},
}


def assert_same(model: Any, images: list[Any], **options: Any) -> None:
    content = to_onnx(model, **options)
    onnx.checker.check_model(onnx.load_model_from_string(content), full_check=True)
    expected = model.predict_proba(images)
    assert 0.01 < expected.max(axis=1).mean() < 0.99
    for image, shares in zip(images, expected, strict=True):
        index, found, _, _ = run(content, images=image[None])
        np.testing.assert_allclose(found[0], shares, atol=1e-5)
        assert index[0] == shares.argmax()


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_is_run_as_the_embedder_runs_it(name: str, images: list[Any]) -> None:
    model = ImageClassifier(NETWORKS[name], soft()).fit(images, LABELS)
    assert_same(model, images[:8])


@pytest.mark.parametrize("name", STEPS)
def test_steps_between_network_and_classifier_are_exported(name: str, images: list[Any]) -> None:
    features = make_pipeline(NETWORKS["nchw"], STEPS[name], "passthrough")
    model = ImageClassifier(features, soft()).fit(images, LABELS)
    assert_same(model, images[:8])


@pytest.mark.parametrize("weights", ["float32", "float16", "int8"])
def test_the_known_network_with_stages_is_exported(weights: Any, images: list[Any]) -> None:
    learner = RejectingClassifier(RLSClassifier(random_state=0), random_state=0)
    model = ImageClassifier(Embedder(stages=(6, 7), cache=False), learner).fit(images, LABELS)
    content = to_onnx(model, weights=weights)
    tolerance = {"float32": 1e-5, "float16": 0.02, "int8": 0.2}[weights]
    rows = model.features_.transform(images[:6])
    for k, image in enumerate(images[:6]):
        _, shares, score, is_unknown = run(content, images=image[None])
        np.testing.assert_allclose(shares[0], model.predict_proba([image])[0], atol=tolerance)
        if weights == "float32":
            np.testing.assert_allclose(score[0], model.learner_.novelty(rows)[k], atol=1e-4)
            assert bool(is_unknown[0]) == (not model.learner_.is_known(rows)[k])


@pytest.mark.parametrize(
    ("features", "says"),
    [
        (lambda images: [image.mean(axis=(0, 1)) for image in images], "features by a function"),
        ("hsl", "features BagOfWords"),
    ],
)
def test_features_without_a_network_are_refused(
    features: Any, says: str, images: list[Any]
) -> None:
    # Patches need some space.
    images = [np.kron(image[:5, :5], np.ones((9, 9, 1), np.uint8)) for image in images]
    model = ImageClassifier(features, soft()).fit(images, LABELS)
    with pytest.raises(InvalidTypeError, match=says):
        to_onnx(model)
