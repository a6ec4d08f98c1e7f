"""Model files of image classifiers: features and learner in one file; invalid files are refused."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import evergrow
from evergrow import Embedder, ImageClassifier, RejectingClassifier, RLSClassifier
from evergrow.vision import Answers, BagOfWords, LocalFeatures, RandomKDTrees, RandomPatches
from tests.estimators import model_files
from tests.vision.classifier.pictures import MeanColours, encode_png, pictures
from tests.vision.embedding.models import onnx_model

IMAGES, LABELS = pictures("red", "green", "blue", n=4)
NEW_IMAGES, NEW_LABELS = pictures("grey", "red", n=3, seed=50)
TEST_IMAGES, _ = pictures("red", "green", "blue", "grey", n=2, seed=100)


def words() -> BagOfWords:
    return BagOfWords(
        RandomKDTrees(2, n_words=10, random_state=0),
        features=LocalFeatures("hsl", patches=RandomPatches(20)),
        sparse_output=False,
        random_state=0,
    )


MODELS: dict[str, Any] = {
    "named": lambda: ImageClassifier("hsl", random_state=1),
    "named forest": lambda: ImageClassifier("hsl", "forest", random_state=1, on_error="skip"),
    "words": lambda: ImageClassifier(words(), random_state=1),
    "pipeline": lambda: ImageClassifier(make_pipeline(words(), StandardScaler()), "forest"),
    "rejecting": lambda: ImageClassifier(words(), RejectingClassifier(RLSClassifier())),
    "without features": lambda: ImageClassifier(words(), keep_features=False),
}


def answers_of(model: ImageClassifier) -> Answers:
    return model.answer(TEST_IMAGES, k=3)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_answers_and_goes_on_as_without_saving(name: str, tmp_path: Path) -> None:
    model = MODELS[name]().fit(IMAGES, LABELS)
    loaded = model_files.reload(model, tmp_path)
    assert repr(loaded) == repr(model)
    assert loaded.report_ is None
    for _ in range(2):
        np.testing.assert_array_equal(
            loaded.predict_proba(TEST_IMAGES), model.predict_proba(TEST_IMAGES)
        )
        assert loaded.predict(TEST_IMAGES).tolist() == model.predict(TEST_IMAGES).tolist()
        assert loaded.class_counts_.tolist() == model.class_counts_.tolist()
        for one in (model, loaded):
            one.partial_fit(NEW_IMAGES, NEW_LABELS)


def test_a_loaded_model_can_forget(tmp_path: Path) -> None:
    model = MODELS["words"]().fit(IMAGES, LABELS).partial_fit(NEW_IMAGES, NEW_LABELS)
    model.save(tmp_path / "model.evergrow")
    loaded = evergrow.load(tmp_path / "model.evergrow").forget(classes=["red"])
    model.forget(classes=["red"])
    np.testing.assert_array_equal(
        loaded.predict_proba(TEST_IMAGES), model.predict_proba(TEST_IMAGES)
    )


@pytest.mark.slow
def test_a_model_of_embeddings_survives(tmp_path: Path) -> None:
    model = ImageClassifier(random_state=0).fit(IMAGES, LABELS)
    loaded = model_files.reload(model, tmp_path)
    np.testing.assert_array_equal(
        loaded.predict_proba(TEST_IMAGES), model.predict_proba(TEST_IMAGES)
    )


def test_a_model_whose_features_are_a_function_cannot_be_saved(tmp_path: Path) -> None:
    model = ImageClassifier(lambda images: [image.mean(axis=(0, 1)) for image in images])
    model.fit(IMAGES, LABELS)
    with pytest.raises((TypeError, ValueError), match="cannot be saved"):
        model.save(tmp_path / "model.evergrow")


def test_features_that_are_not_ours_cannot_be_saved(tmp_path: Path) -> None:
    model = ImageClassifier(MeanColours()).fit(IMAGES, LABELS)
    with pytest.raises(TypeError, match="MeanColours cannot be saved"):
        model.save(tmp_path / "model.evergrow")
    assert not list(tmp_path.iterdir())


def test_threads_and_bars_are_not_taken_from_a_file(tmp_path: Path) -> None:
    def change(header: dict[str, Any], _: dict[str, Any]) -> None:
        inside = header["fitted"]["features"]["steps"][0][1]
        for model in (header, inside, header["fitted"]["learner"]):
            model["parameters"] |= {"n_jobs": 300, "verbose": 9}

    path = tmp_path / "model.evergrow"
    MODELS["pipeline"]().fit(IMAGES, LABELS).save(path)
    loaded = evergrow.load(model_files.rewritten(path, change))
    for one in (loaded, loaded.features_[0], loaded.learner_):
        assert (one.n_jobs, one.verbose) == (None, 0)


def test_a_file_holds_the_network_that_was_trained_with(tmp_path: Path) -> None:
    onnx.save(onnx_model(), tmp_path / "small.onnx")
    features = Embedder(tmp_path / "small.onnx", cache=False)
    model = ImageClassifier(features, random_state=0).fit(IMAGES, LABELS)
    expected = model.predict_proba(TEST_IMAGES)
    onnx.save(onnx_model(scale=-1.0), tmp_path / "small.onnx")
    model.save(tmp_path / "model.evergrow")
    for other in (evergrow.load(tmp_path / "model.evergrow"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict_proba(TEST_IMAGES), expected)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "model.evergrow"
    encoded = [encode_png(image) for image in IMAGES]
    MODELS["words"]().fit(encoded, LABELS).save(path)
    return path


def swapped(header: dict[str, Any], tensors: dict[str, Any]) -> None:
    fitted = header["fitted"]
    fitted["features"], fitted["learner"] = fitted["learner"], fitted["features"]


@pytest.mark.parametrize(
    "change",
    [
        model_files.forge("fitted/features", None),
        model_files.forge("fitted/learner", None),
        swapped,
        model_files.forge("fitted/features", []),
        model_files.forge("fitted/learner/estimator", "NCMMetric"),
        model_files.forge("fitted/learner/fitted/labels/values", ["a", "b", "c"]),
        model_files.forge("fitted/labels/values", ["blue", "red", "green"]),
        model_files.forge("fitted/labels/values", ["blue", "red"]),
        model_files.forge("parameters/features", "pixels"),
        model_files.forge("parameters/features", 7),
        model_files.forge("parameters/learner", "svm"),
        model_files.forge("parameters/on_error", "hide"),
        model_files.forge("parameters/nobody", 1),
        model_files.forge("parameters", None),
        model_files.forge("counts", model_files.at(0, -1)),
        model_files.forge("counts", model_files.at(0, 5)),
        model_files.forge("counts", lambda counts: counts[1:].copy()),
        model_files.forge("rows.codes", model_files.at(0, 3)),
        model_files.forge("rows.values", lambda values: values[:, 1:].copy()),
        model_files.forge("fingerprints.digests", lambda digests: digests[::-1].copy()),
        model_files.forge("fingerprints.digests", lambda digests: digests[:, 1:].copy()),
        model_files.forge("fingerprints.digests", lambda digests: 0 * digests),
        model_files.forge("fingerprints.codes", lambda codes: 0 * codes),
        model_files.forge("fingerprints.codes", model_files.at(0, 3)),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(whole: Path, change: model_files.Change) -> None:
    model_files.check_refused(whole, change)


def test_an_image_takes_20_bytes_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.evergrow"
    model = MODELS["words"]().fit(IMAGES, LABELS)
    for images in (IMAGES, [encode_png(image) for image in IMAGES]):
        n_bytes = path.stat().st_size if path.exists() else 0
        model.fit(images, LABELS).save(path)
    assert path.stat().st_size - n_bytes <= 20 * len(IMAGES) + 16
