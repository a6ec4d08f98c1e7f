"""ONNX files next to the models they were exported from: answers, accuracy, size and time."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.codebook.pictures import RGB, pictures
from benchmarks.data import Array, Split, image_features, mixture
from benchmarks.measure import Figure, report, show_table
from evergrow import (
    AxisForestClassifier,
    ImageClassifier,
    LinearForestClassifier,
    NCMClassifier,
    NCMForestClassifier,
    NCMMetric,
    RejectingClassifier,
    RLSClassifier,
    SVMForestClassifier,
)
from evergrow.export import save_onnx
from evergrow.export.onnx.weights import WEIGHTS, Weights

# What an exported file must keep: the share of equal classes, and probabilities.
SAME, CLOSE = 0.9999, 1e-4
# Points of accuracy that 8-bit weights may cost.
LOST = 1.0
N_IMAGES = 10_000
ROWS_AT_ONCE = 100
# Rows that are also timed one by one.
ROWS_ALONE = 100


def models() -> dict[str, Any]:
    """One of each kind; all other parameters are their defaults."""
    forests = (
        NCMForestClassifier,
        AxisForestClassifier,
        LinearForestClassifier,
        SVMForestClassifier,
    )
    return {
        "RLSClassifier": RLSClassifier(random_state=0),
        "RLSClassifier, regression": RLSClassifier(scoring="regression", random_state=0),
        "RLSClassifier, 2000 relu": RLSClassifier(n_random_features=2000, random_state=0),
        "RLSClassifier, 2000 rff": RLSClassifier(
            n_random_features=2000, feature_map="rff", random_state=0
        ),
        "RLSClassifier, random auto": RLSClassifier(n_random_features="auto", random_state=0),
        "NCMClassifier": NCMClassifier(),
        "NCMClassifier, mahalanobis": NCMClassifier(metric="mahalanobis"),
        "NCMClassifier, NCMMetric": NCMClassifier(metric=NCMMetric(random_state=0)),
        "RejectingClassifier of RLS": RejectingClassifier(
            RLSClassifier(random_state=0), random_state=0
        ),
        "RejectingClassifier of NCM": RejectingClassifier(
            NCMClassifier(), measure="estimator", random_state=0
        ),
        **{one.__name__: one(random_state=0, n_jobs=-1) for one in forests},
    }


class Answers:
    """The answers of a file that was written for a model, and what they took."""

    def __init__(self, model: Any, weights: Weights = "float32") -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            save_onnx(model, path, weights=weights)
            self.megabytes = path.stat().st_size / 1e6
            self._session = onnxruntime.InferenceSession(
                path, options, providers=["CPUExecutionProvider"]
            )
        self._input = self._session.get_inputs()[0].name
        self.milliseconds = 0.0

    def __call__(self, batches: Iterator[Array]) -> tuple[Array, Array, Array]:
        """Classes as columns, probabilities, and which inputs are unknown."""
        found, n_inputs, begin = [], 0, time.perf_counter()
        for batch in batches:
            found.append(self._session.run(None, {self._input: batch}))
            n_inputs += len(batch)
        self.milliseconds = 1e3 * (time.perf_counter() - begin) / n_inputs
        columns, shares, _, unknown = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return columns, shares, unknown


def own_answers(model: Any, rows: Array) -> tuple[Array, Array, Array]:
    """The same of a model of rows."""
    rejects = isinstance(model, RejectingClassifier)
    labels = model.predict_known(rows) if rejects else model.predict(rows)
    column = {label: k for k, label in enumerate(model.classes_.tolist())}
    unknown = ~model.is_known(rows) if rejects else np.zeros(len(rows), dtype=bool)
    return np.array([column[one] for one in labels.tolist()]), model.predict_proba(rows), unknown


def compare(mine: tuple[Array, Array, Array], other: tuple[Array, Array, Array]) -> list[float]:
    """Shares of equal classes, of close probabilities and of equal "unknown"; the largest error."""
    difference = np.abs(mine[1] - other[1]).max(axis=1)
    return [
        float(np.mean(mine[0] == other[0])),
        float(np.mean(difference <= CLOSE)),
        float(np.mean(mine[2] == other[2])),
        float(difference.max()),
    ]


COLUMNS = ["same class", "within 1e-4", "same unknown", "largest error"]


def rows(quick: bool) -> None:
    """Models of vectors, one of each kind."""
    data = mixture(1500, 32, 10, n_test=300) if quick else _fifth(image_features())
    table, figures = [], []
    for name, model in models().items():
        model.fit(data.X, data.y)
        answers = Answers(model)
        parts = range(0, len(data.X_test), ROWS_AT_ONCE)
        answers(iter(data.X_test[:ROWS_ALONE, None]))
        alone = answers.milliseconds
        found = answers(iter([data.X_test[i : i + ROWS_AT_ONCE] for i in parts]))
        begin = time.perf_counter()
        own = own_answers(model, data.X_test)
        milliseconds = 1e3 * (time.perf_counter() - begin) / len(data.X_test)
        figures_of = compare(own, found)
        times = (answers.milliseconds, alone, milliseconds)
        table.append((name, *figures_of, answers.megabytes, *times))
        figures += [
            Figure(f"{name}: same class", figures_of[0], SAME),
            Figure(f"{name}: within 1e-4", figures_of[1], SAME),
        ]
    show_table(
        f"{len(data.X_test)} rows, {ROWS_AT_ONCE} at a time; times per row",
        ["model", *COLUMNS, "MB", "ms", "ms, one row", "library, ms"],
        table,
    )
    report("export", data.name, figures, bars=not quick)


def _fifth(data: Split) -> Split:
    """A fifth of the training data, of all classes, and all test data."""
    return replace(data, X=data.X[::5], y=data.y[::5])


def images(quick: bool) -> None:
    """A model of images on crops of photographs, of all sizes and shapes."""
    data = pictures(quick)
    n_images = 40 if quick else N_IMAGES
    model = _image_model().fit([data.images[i] for i in np.flatnonzero(data.trains)], _labels(data))
    answers, own, found = Answers(model), [], []
    for group in _groups(_crops(data.images, n_images), 100):
        rows = model.features_.transform(group)
        own.append(own_answers(model.learner_, rows))
        found.append(answers(image[None] for image in group))
    pairs = [
        tuple(np.concatenate(parts) for parts in zip(*side, strict=True)) for side in (own, found)
    ]
    figures_of = compare(pairs[0], pairs[1])  # type: ignore[arg-type]
    show_table(
        f"{n_images} images",
        ["model", *COLUMNS, "unknown", "MB", "ms"],
        [
            (
                "ImageClassifier",
                *figures_of,
                float(pairs[0][2].mean()),
                answers.megabytes,
                answers.milliseconds,
            )
        ],
    )
    figures = [
        Figure("images: same class", figures_of[0], SAME),
        Figure("images: largest error of a probability", figures_of[3], CLOSE, "at most"),
    ]
    report("export", data.name, figures, bars=not quick)


def weights(quick: bool) -> None:
    """Accuracy that weights in fewer bytes cost, on photographs that were not learnt.

    The answer "unknown" is wrong for all of them.
    """
    data = pictures(quick)
    train, test = np.flatnonzero(data.trains), np.flatnonzero(~data.trains)
    truth, table, figures = data.classes[test], [], []
    for name, learner in _learners().items():
        model = ImageClassifier(features="auto", learner=learner, random_state=0)
        model.fit([data.images[i] for i in train], data.classes[train])
        own = float(np.mean(model.predict([data.images[i] for i in test]) == truth))
        for kind in WEIGHTS:
            answers = Answers(model, kind)
            columns, _, unknown = answers(data.images[i][None] for i in test)
            right = float(np.mean((model.classes_[columns] == truth) & ~unknown))
            lost = 100 * (own - right)
            table.append((name, kind, 100 * own, 100 * right, lost, answers.megabytes))
            if kind == "int8":
                figures.append(Figure(f"{name}: points lost by int8", lost, LOST, "at most"))
    show_table(
        f"{len(test)} photographs, learnt from {len(train)} others",
        ["learner", "weights", "model, %", "file, %", "points lost", "MB"],
        table,
    )
    report("export", data.name, figures, bars=not quick)


def _learners() -> dict[str, Any]:
    return {
        "rls": RLSClassifier(random_state=0),
        "rls, or unknown": RejectingClassifier(RLSClassifier(random_state=0), random_state=0),
        "means": NCMClassifier(),
        "lda": NCMClassifier(metric="mahalanobis"),
        "forest": NCMForestClassifier(min_samples_leaf=2, random_state=0),
    }


def _image_model() -> ImageClassifier:
    learner = RejectingClassifier(RLSClassifier(random_state=0), random_state=0)
    return ImageClassifier(learner=learner, random_state=0)


def _labels(data: Any) -> Array:
    labels: Array = data.classes[data.trains]
    return labels


def _crops(images: list[RGB], n: int) -> Iterator[RGB]:
    """Parts of images, with sides from 40 pixels to the whole, some of them magnified."""
    draw = np.random.default_rng(0)
    for number in range(n):
        image = images[number % len(images)]
        sides = [int(draw.integers(min(40, side), side + 1)) for side in image.shape[:2]]
        top, left = (
            int(draw.integers(0, whole - side + 1))
            for whole, side in zip(image.shape[:2], sides, strict=True)
        )
        crop = image[top : top + sides[0], left : left + sides[1]]
        times = int(draw.integers(1, 4)) if number % 5 == 0 else 1
        yield np.ascontiguousarray(crop.repeat(times, axis=0).repeat(times, axis=1))


def _groups(images: Iterator[RGB], size: int) -> Iterator[list[RGB]]:
    group: list[RGB] = []
    for image in images:
        group.append(image)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group
