"""Fisher vectors: compared with their formulas, and as an estimator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import skimage.feature
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from evergrow.foundation.errors import BadImageWarning
from evergrow.vision import FisherVectors, LocalFeatures, RandomPatches
from evergrow.vision.descriptors.mixture import Mixture
from tests.estimators import model_files
from tests.reference import fisher as twin

RANDOM = np.random.default_rng(0)
# Two kinds of images: their descriptors come from the same blobs in other shares.
CENTRES = 5 * RANDOM.normal(size=(3, 6))
LABELS = np.arange(24) % 2


def image(label: int, n: int) -> np.ndarray:
    blobs = RANDOM.choice(3, n, p=[0.6, 0.2, 0.2] if label else [0.2, 0.2, 0.6])
    return CENTRES[blobs] + RANDOM.normal(size=(n, 6))


DESCRIPTORS = [image(label, 30 + 2 * i) for i, label in enumerate(LABELS)]


def quick(**options: Any) -> FisherVectors:
    return FisherVectors(**{"n_components": 3, "n_pca": 4, "random_state": 0, **options})


@pytest.mark.parametrize("n_pca", [None, 4])
@pytest.mark.parametrize("n_components", [1, 3])
def test_vectors_are_those_of_the_formulas(n_pca: int | None, n_components: int) -> None:
    model = quick(n_pca=n_pca, n_components=n_components).fit(DESCRIPTORS)
    n_weights, n_means = n_components, model.means_.size
    for descriptors, found in zip(DESCRIPTORS, model.transform(DESCRIPTORS), strict=True):
        X = descriptors
        if n_pca is not None:
            X = (X - model.pca_mean_) @ model.pca_components_.T
        raw = twin.fisher_vector(X, model.weights_, model.means_, np.sqrt(model.covariances_))
        # scikit-image derives by something that falls as deviations grow.
        raw[n_weights + n_means :] *= -1
        np.testing.assert_allclose(found, twin.improved(raw), atol=2e-5)


def test_a_linear_classifier_separates_images_by_them() -> None:
    model = make_pipeline(quick(), LogisticRegression(C=100)).fit(DESCRIPTORS[:16], LABELS[:16])
    assert model.score(DESCRIPTORS[16:], LABELS[16:]) == 1.0


def test_an_image_without_descriptors_has_zeros() -> None:
    vectors = quick().fit(DESCRIPTORS).transform([np.zeros((0, 6)), DESCRIPTORS[0]])
    assert (vectors[0] == 0).all()
    assert np.isfinite(vectors).all()


def test_output_columns_have_names() -> None:
    names = quick().fit(DESCRIPTORS).get_feature_names_out()
    assert (len(names), names[0]) == (27, "fishervectors0")


IMAGES = [np.random.default_rng(i).integers(0, 256, (30, 40, 3)).astype(np.uint8) for i in range(6)]


def of_images(**options: Any) -> FisherVectors:
    local = LocalFeatures("sift", patches=RandomPatches(20), n_jobs=2)
    return quick(features=local, **options)


def test_images_are_described_and_encoded() -> None:
    model = of_images().fit(IMAGES)
    assert model.n_features_in_ == 128
    descriptors = model.features.transform(IMAGES)
    separate = quick().fit(descriptors)
    np.testing.assert_allclose(model.transform(IMAGES), separate.transform(descriptors), atol=1e-6)


def test_learning_describes_no_more_patches_than_it_takes(monkeypatch: Any) -> None:
    asked = []
    iterate = LocalFeatures.iterate

    def watched(self: Any, images: Any, *, n_patches: Any = None, **options: Any) -> Any:
        asked.append(n_patches)
        return iterate(self, images, n_patches=n_patches, **options)

    monkeypatch.setattr(LocalFeatures, "iterate", watched)
    of_images(n_training_descriptors=48).fit(IMAGES)
    of_images().fit(IMAGES)
    assert asked == [8, 20]


def test_bad_images_are_skipped_if_requested() -> None:
    model = of_images().fit(IMAGES)
    with pytest.warns(BadImageWarning, match="1 image was left out"):
        extraction = model.extract([IMAGES[0], b"text", IMAGES[1]], on_error="skip")
    assert extraction.kept.tolist() == [0, 2]
    np.testing.assert_array_equal(extraction.features, model.transform(IMAGES[:2]))
    with pytest.raises(ValueError, match="on_error must be"):
        model.extract(IMAGES, on_error="ignore")


@pytest.mark.parametrize(
    ("options", "data", "message"),
    [
        ({"n_components": 0}, DESCRIPTORS, "n_components must be an integer"),
        ({"n_pca": 0}, DESCRIPTORS, "n_pca must be None or an integer"),
        ({"n_pca": 7}, DESCRIPTORS, "n_pca must be at most the length of a descriptor, 6, got 7"),
        ({"features": "sift"}, DESCRIPTORS, "features must be None or LocalFeatures"),
        ({"n_training_descriptors": 0}, DESCRIPTORS, "n_training_descriptors must be"),
        ({"random_state": -1}, DESCRIPTORS, "random_state must be"),
        ({}, [DESCRIPTORS[0][:3]], "too few descriptors to learn from: 3 Gaussians of 4"),
        ({"n_components": 50}, [DESCRIPTORS[0]], "too few descriptors to learn from: .* got 30"),
        ({}, [np.full((9, 6), np.nan)], "descriptors must be finite numbers"),
        ({}, [np.full((9, 6), 1e30)], "finite numbers of at most 1e\\+15"),
        ({}, [np.full((9, 6), "a")], "descriptors must be finite numbers"),
        ({}, [], "at least one image"),
        ({}, [np.zeros((3, 2)), np.zeros((3, 3))], "number 1 has the shape"),
    ],
)
def test_wrong_input_is_named(options: dict[str, Any], data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        quick(**options).fit(data)


def test_a_mixture_that_cannot_be_learnt_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*rows: Any, **options: Any) -> None:
        raise ValueError("ill-defined empirical covariance")

    monkeypatch.setattr(skimage.feature, "learn_gmm", fail)
    with pytest.raises(ValueError, match=r"no mixture of 3 Gaussians fits .*ill-defined"):
        quick().fit(DESCRIPTORS)


def test_descriptors_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="must have 6 values as in fit, got 5"):
        quick().fit(DESCRIPTORS).transform([np.zeros((3, 5))])


def test_a_failed_fit_leaves_the_model_as_it_was() -> None:
    model = quick().fit(DESCRIPTORS)
    before = model.transform(DESCRIPTORS)
    with pytest.raises(ValueError, match="too few"):
        model.fit([DESCRIPTORS[0][:2]])
    np.testing.assert_array_equal(model.transform(DESCRIPTORS), before)


@pytest.mark.parametrize("n_pca", [None, 4])
def test_a_saved_model_gives_bit_for_bit_the_same(n_pca: int | None, tmp_path: Path) -> None:
    model = of_images(n_pca=n_pca).fit(IMAGES)
    loaded = model_files.reload(model, tmp_path)
    assert repr(loaded.get_params()) == repr(model.get_params())
    assert loaded.n_features_in_ == 128
    np.testing.assert_array_equal(loaded.transform(IMAGES), model.transform(IMAGES))


def test_what_is_set_after_fitting_waits_for_the_next_fit(tmp_path: Path) -> None:
    model = of_images().fit(IMAGES)
    before = model.transform(IMAGES)
    model.set_params(n_components=2, n_pca=None, features=LocalFeatures("haar"))
    np.testing.assert_array_equal(model.transform(IMAGES), before)
    loaded = model_files.reload(model, tmp_path)
    np.testing.assert_array_equal(loaded.transform(IMAGES), before)
    assert loaded.features.descriptor == "sift"


def test_a_fit_while_images_are_coded_changes_none_of_their_vectors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = quick().fit(DESCRIPTORS)
    before = model.transform(DESCRIPTORS)
    vector = Mixture.fisher_vector

    def fitted_meanwhile(self: Any, rows: Any) -> Any:
        monkeypatch.setattr(Mixture, "fisher_vector", vector)
        model.set_params(n_components=2).fit(DESCRIPTORS)
        return vector(self, rows)

    monkeypatch.setattr(Mixture, "fisher_vector", fitted_meanwhile)
    np.testing.assert_array_equal(model.transform(DESCRIPTORS), before)
    assert len(model.means_) == 2


def test_nothing_is_known_before_fitting() -> None:
    for name in ("means_", "pca_mean_", "features_", "n_features_in_"):
        with pytest.raises(NotFittedError):
            getattr(quick(), name)
    with pytest.raises(NotFittedError):
        quick().transform(DESCRIPTORS)


HOSTILE = {
    "no Gaussians": model_files.forge("mixture.means", np.zeros((0, 4))),
    "too few weights": model_files.forge("mixture.weights", np.full(2, 0.5)),
    "a weight of nothing": model_files.forge("mixture.weights", np.array([0.0, 0.5, 0.5])),
    "weights that are no shares": model_files.forge("mixture.weights", np.ones(3)),
    "a variance below nothing": model_files.forge("mixture.covariances", model_files.at(0, -1.0)),
    "a variance of almost nothing": model_files.forge(
        "mixture.covariances", model_files.at(0, 1e-320)
    ),
    "a variance beyond all": model_files.forge("mixture.covariances", model_files.at(0, 1e300)),
    "means far out": model_files.forge("mixture.means", model_files.at(0, 1e300)),
    "a mean of descriptors far out": model_files.forge(
        "mixture.pca_mean", model_files.at(0, -1e300)
    ),
    "a projection that enlarges": model_files.forge(
        "mixture.pca_components", model_files.at(0, 1e300)
    ),
    "variances of another size": model_files.forge("mixture.covariances", np.ones((3, 5))),
    "no projection": model_files.forge("mixture.pca_components", None),
    "no mean": model_files.forge("mixture.pca_mean", None),
    "a mean of another size": model_files.forge("mixture.pca_mean", np.zeros(5)),
    "a projection of another size": model_files.forge("mixture.pca_components", np.zeros((5, 128))),
    "an empty projection": model_files.forge("mixture.pca_components", np.zeros((4, 0))),
    "another number of Gaussians": model_files.forge("parameters/n_components", 4),
    "another number of components": model_files.forge("parameters/n_pca", 5),
    "a projection not asked for": model_files.forge("parameters/n_pca", None),
    "an unknown parameter": model_files.forge("parameters/speed", 1),
    "features of no kind": model_files.forge("parameters/features", "os.system"),
    "features without parameters": model_files.forge("parameters/features", {}),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model file; tests must not change it."""
    path = tmp_path_factory.mktemp("fisher") / "model.evergrow"
    of_images().fit(IMAGES).save(path)
    return path


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_file_with_a_valid_checksum_is_refused(case: str, saved: Path) -> None:
    model_files.check_refused(saved, HOSTILE[case])


def test_features_of_another_length_than_the_mixture_are_refused(saved: Path) -> None:
    other = model_files.forge("fitted/features/parameters/descriptor", "hsl")
    model_files.check_refused(saved, other, "features have another size")
