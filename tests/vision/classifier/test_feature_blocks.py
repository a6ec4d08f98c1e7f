"""Blocks of features: what an image classifier tells its learner about them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evergrow import Embedder, ImageClassifier, NCMClassifier, RejectingClassifier
from evergrow.vision import OnnxModel
from evergrow.vision.classifier import components
from tests.estimators import model_files
from tests.vision.classifier.pictures import pictures
from tests.vision.embedding.models import onnx_model, staged_model

IMAGES, LABELS = pictures("red", "green", "blue", n=3)
STAGED = OnnxModel(staged_model().SerializeToString())
SINGLE = OnnxModel(onnx_model().SerializeToString())


@dataclass(eq=False, repr=False)
class Choosing(NCMClassifier):
    """A classifier that is told the widths of blocks and takes the first and the last."""

    _: KW_ONLY
    blocks: Any = None

    def fit(self, X: Any, y: Any, **options: Any) -> Any:
        if self.blocks is not None:
            assert sum(self.blocks) == np.shape(X)[1]
        return super().fit(X, y, **options)


def fitted(features: Any, learner: Any) -> Any:
    return ImageClassifier(features, learner, random_state=0).fit(IMAGES, LABELS)


def test_a_learner_is_told_the_widths_of_the_blocks() -> None:
    model = fitted(Embedder(STAGED, stages=(2,), cache=False), Choosing())
    assert model.learner_.blocks == (5, 3)
    # The parameter of the user stays what it was.
    assert model.learner.blocks is None
    assert model.partial_fit(*pictures("grey", n=2)).learner_.blocks == (5, 3)


def test_networks_next_to_each_other_are_blocks_too() -> None:
    model = fitted(Embedder([SINGLE, STAGED], cache=False), Choosing())
    assert model.learner_.blocks == (5, 5)


def test_a_learner_inside_another_is_told_too() -> None:
    features = Embedder(STAGED, stages=(2,), cache=False)
    model = fitted(features, RejectingClassifier(Choosing()))
    assert model.learner_.estimator.blocks == (5, 3)


def test_blocks_that_the_user_has_set_are_kept() -> None:
    model = fitted(Embedder(STAGED, stages=(2,), cache=False), Choosing(blocks=(4, 4)))
    assert model.learner_.blocks == (4, 4)


@pytest.mark.parametrize(
    "features",
    [
        Embedder(STAGED, cache=False),
        make_pipeline(Embedder(STAGED, stages=(2,), cache=False), StandardScaler()),
        lambda images: [image.mean(axis=(0, 1)) for image in images],
    ],
    ids=["head only", "pipeline", "function"],
)
def test_without_several_blocks_nothing_is_told(features: Any) -> None:
    assert fitted(features, Choosing()).learner_.blocks is None


def test_a_learner_without_the_parameter_takes_all_columns(tmp_path: Path) -> None:
    model = fitted(Embedder(STAGED, stages=(2,), cache=False), NCMClassifier())
    assert model.learner_.n_features_in_ == 8
    loaded = model_files.reload(model, tmp_path)
    assert loaded.features_.blocks_ == {"head": 5, "stage2": 3}
    np.testing.assert_array_equal(loaded.predict_proba(IMAGES), model.predict_proba(IMAGES))


@pytest.mark.slow
def test_auto_is_the_default_network_with_its_last_stages(tmp_path: Path) -> None:
    model = ImageClassifier(random_state=0).fit(IMAGES, LABELS)
    blocks = {"head": 1280, "stage5": 112, "stage6": 192, "stage7": 320}
    assert model.features_.blocks_ == blocks
    assert model.score(IMAGES, LABELS) == 1.0
    loaded = model_files.reload(model, tmp_path)
    assert loaded.features == "auto"
    np.testing.assert_array_equal(loaded.predict_proba(IMAGES), model.predict_proba(IMAGES))
    assert model.learner_.blocks == tuple(blocks.values())
    assert model.learner_.used_blocks_[0] == 0


@pytest.mark.parametrize(
    ("features", "learner", "stages"),
    [("auto", "rls", (5, 6, 7)), ("embed", "rls", ()), ("auto", "forest", ())],
)
def test_stages_are_for_learners_that_choose(features: str, learner: str, stages: Any) -> None:
    options = components.ComponentOptions(None, 0, 0)
    assert components.make_features(features, options, learner).stages == stages
