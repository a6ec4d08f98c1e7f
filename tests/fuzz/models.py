"""Small models of every kind that model files can hold, and what is done with each."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from PIL import Image
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.svm import LinearSVC

from evergrow import (
    AxisForestClassifier,
    Embedder,
    ERCForest,
    ImageClassifier,
    LinearForestClassifier,
    NCMClassifier,
    NCMForestClassifier,
    NCMMetric,
    RejectingClassifier,
    RLSClassifier,
    SubcategoryForestClassifier,
    SVMForestClassifier,
)
from evergrow.estimators import RFF, Auto, HoldOut, LeaveOneOut, Regularised, ReLU, Storage
from evergrow.storage.models.pipelines import to_file
from evergrow.vision import (
    BagOfWords,
    FisherVectors,
    HierarchicalKMeans,
    KMeansCodebook,
    LocalFeatures,
    RandomKDTrees,
    RandomPatches,
)
from evergrow.vision.embedding.networks import OnnxModel
from tests.fuzz.files import encode
from tests.vision.embedding.models import onnx_model

N_FEATURES = 4
_RNG = np.random.default_rng(0)
Y = np.repeat(np.array(["a", "b", "c"]), 12)
X = _RNG.normal(size=(36, N_FEATURES)) + 2.0 * np.repeat(np.arange(3), 12)[:, None]
TWO_LEVELS = np.array([["low" if y < "c" else "high", y if k % 2 else None]
                       for k, y in enumerate(Y)], dtype=object)  # fmt: skip
NEW_Y = np.array(["d", "a"] * 3)
NEW_X = _RNG.normal(size=(6, N_FEATURES)) - 3.0
IMAGES = [_RNG.integers(0, 255, (24, 24, 3), dtype=np.uint8) // (1 + k % 3) for k in range(9)]
IMAGE_Y = np.array(["a", "b", "c"] * 3)


def _encoded(image: Any) -> bytes:
    content = io.BytesIO()
    Image.fromarray(image).save(content, "PNG")
    return content.getvalue()


def _words() -> BagOfWords:
    return BagOfWords(
        RandomKDTrees(2, n_words=4, random_state=0),
        features=LocalFeatures("hsl", patches=RandomPatches(5)),
        sparse_output=False,
        random_state=0,
    )


def _fitted(model: Any, inference_only: bool = False) -> tuple[Any, Any]:
    return _content(model.fit(X, Y), inference_only)


def _content(model: Any, inference_only: bool = False) -> tuple[Any, Any]:
    return model._to_file(inference_only=True) if inference_only else to_file(model)


def _several(model: Any) -> tuple[Any, Any]:
    """A model that was updated, so that its file has what first fits do not."""
    return _content(model.fit(X[:24], Y[:24]).partial_fit(X[24:], Y[24:]))


def _least_squares(**options: Any) -> RLSClassifier:
    return RLSClassifier(**{"selection": LeaveOneOut(8), "random_state": 0, **options})


def _forest(kind: Any, **options: Any) -> Any:
    return kind(2, min_samples_leaf=3, random_state=0, **options)


Make = Callable[[], tuple[Any, Any]]

# Every kind of model: what it is called in the table, and files of it.
KINDS: dict[str, list[Make]] = {
    "forest": [
        lambda: _fitted(_forest(NCMForestClassifier)),
        lambda: _several(
            _forest(NCMForestClassifier, update="rust", storage=Storage(dtype="float16"))
        ),
        lambda: _fitted(_forest(NCMForestClassifier, class_weight={"a": 2.0}), True),
        lambda: _fitted(_forest(NCMForestClassifier, splits=Regularised(5), standardize="whiten")),
        lambda: _fitted(_forest(AxisForestClassifier)),
        lambda: _fitted(_forest(LinearForestClassifier)),
        lambda: _fitted(_forest(SVMForestClassifier)),
    ],
    "least squares": [
        lambda: _fitted(_least_squares()),
        lambda: _several(_least_squares(keep_class_statistics=True)),
        lambda: _fitted(_least_squares(features=ReLU(8))),
        lambda: _fitted(_least_squares(features=RFF(8, gamma=0.1))),
        lambda: _fitted(_least_squares(features=Auto("1MiB"))),
        lambda: _fitted(_least_squares(selection=HoldOut(every=2))),
        lambda: _fitted(_least_squares(blocks=[2, 2])),
        lambda: _fitted(_least_squares(), True),
    ],
    "class means": [
        lambda: _several(NCMClassifier()),
        lambda: _fitted(NCMClassifier(metric="mahalanobis")),
        lambda: _fitted(NCMClassifier(metric="mahalanobis", keep_class_statistics=True)),
        lambda: _fitted(NCMClassifier(metric=NCMMetric(2, random_state=0))),
    ],
    "metric": [
        lambda: _fitted(NCMMetric(2, random_state=0)),
        lambda: _content(NCMMetric(2, level="fine", random_state=0).fit(X, TWO_LEVELS)),
    ],
    "rejecting": [
        lambda: _fitted(RejectingClassifier(NCMClassifier(), max_held_out=20, random_state=0)),
        lambda: _several(RejectingClassifier(_least_squares(), max_held_out=20, random_state=0)),
        lambda: _fitted(
            RejectingClassifier(
                _forest(NCMForestClassifier), measure="estimator", max_held_out=20, random_state=0
            )
        ),
    ],
    "subcategories": [
        lambda: _content(_forest(SubcategoryForestClassifier).fit(X, TWO_LEVELS)),
        lambda: _content(_forest(SubcategoryForestClassifier, method="stacked").fit(X, TWO_LEVELS)),
        lambda: _content(_forest(SubcategoryForestClassifier).fit(X, TWO_LEVELS), True),
    ],
    "clustering forest": [
        lambda: _fitted(ERCForest(2, n_words=6, random_state=0)),
        lambda: _fitted(ERCForest(2, n_words=6, random_state=0), True),
        lambda: _content(ERCForest(2, n_words=6, supervised=False, random_state=0).fit(X)),
    ],
    "codebook": [
        lambda: _fitted(KMeansCodebook(5, random_state=0)),
        lambda: _fitted(HierarchicalKMeans(5, branching=2, random_state=0)),
        lambda: _fitted(RandomKDTrees(2, n_words=5, random_state=0)),
    ],
    "bag of words": [
        lambda: _content(
            BagOfWords(KMeansCodebook(4, random_state=0), random_state=0).fit(list(X[:, None]))
        ),
        lambda: _content(
            BagOfWords(ERCForest(2, n_words=5), pooling="mutual_information", random_state=0).fit(
                [X[k : k + 3] for k in range(0, 36, 3)], Y[::3]
            )
        ),
        lambda: _content(_words().fit(IMAGES, IMAGE_Y)),
    ],
    "descriptors": [
        lambda: _content(FisherVectors(2, n_pca=2, random_state=0).fit(list(X.reshape(9, 4, 4)))),
        lambda: _content(LocalFeatures("hsl", patches=RandomPatches(5)).fit()),
    ],
    "pipeline": [
        lambda: _fitted(make_pipeline(StandardScaler(), PCA(3, random_state=0), NCMClassifier())),
        lambda: _fitted(make_pipeline(Normalizer(), "passthrough", LinearSVC(random_state=0))),
    ],
    "image classifier": [
        lambda: _content(ImageClassifier(_words(), random_state=0).fit(IMAGES, IMAGE_Y)),
        lambda: _content(
            # Encoded images are remembered by their hashes.
            ImageClassifier(_words(), _forest(NCMForestClassifier)).fit(
                [_encoded(image) for image in IMAGES], IMAGE_Y
            )
        ),
        lambda: _content(
            ImageClassifier(
                make_pipeline(_words(), StandardScaler()), RejectingClassifier(NCMClassifier())
            ).fit(IMAGES, IMAGE_Y)
        ),
    ],
    "embedder": [lambda: _content(Embedder(OnnxModel(onnx_model().SerializeToString())))],
}


@cache
def files_of(kind: str) -> tuple[bytes, ...]:
    """Model files of one kind, as ``save`` writes them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = [make() for make in KINDS[kind]]
    return tuple(encode(header, tensors) for header, tensors in made)
