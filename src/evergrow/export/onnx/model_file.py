"""A fitted estimator as one ONNX file: from pixels, or vectors, to an answer."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.utils.validation import check_is_fitted

from evergrow.estimators.forest.predictor import ForestPredictor
from evergrow.estimators.linear.rls import RLSClassifier
from evergrow.estimators.means.ncm import NCMClassifier
from evergrow.estimators.novelty.calibration import rejection_limit
from evergrow.estimators.novelty.learner import predicted_labels
from evergrow.estimators.novelty.rejecting import RejectingClassifier
from evergrow.export.networks import network_files
from evergrow.export.onnx.graph import Graph, import_onnx
from evergrow.export.onnx.heads.forest import add_forest_head
from evergrow.export.onnx.heads.head import Head
from evergrow.export.onnx.heads.linear import add_linear_head, add_means_head
from evergrow.export.onnx.heads.novelty import add_is_unknown, add_novelty
from evergrow.export.onnx.images import Networks
from evergrow.export.onnx.weights import (
    HEAD_TYPES,
    WEIGHTS,
    HeadTypes,
    Weights,
    store_graph_weights,
)
from evergrow.foundation.errors import InvalidInputError, InvalidTypeError
from evergrow.foundation.extras import __version__
from evergrow.foundation.files import atomic_write
from evergrow.foundation.params import Choice, check_parameters
from evergrow.vision.classifier import ImageClassifier
from evergrow.vision.embedding.embedder import Embedder

# Names of the inputs and outputs of every file.
IMAGES, ROWS = "images", "features"
OUTPUTS = ("label_index", "probabilities", "unknown_score", "is_unknown")
# All metadata have names that begin with this.
PREFIX = "evergrow."

_HEADS: dict[type, Callable[[Graph, str, Any, HeadTypes], Head]] = {
    RLSClassifier: add_linear_head,
    NCMClassifier: add_means_head,
    ForestPredictor: add_forest_head,
}
# Steps that do nothing, as scikit-learn writes them.
_NOTHING = ("passthrough", None)


def save_onnx(model: Any, path: str | os.PathLike[str], *, weights: Weights = "float32") -> None:
    """Write a fitted model to an ONNX file, which runs without Evergrow.

    A classifier of images takes the input ``images``: uint8 RGB images of shape
    (n, height, width, 3), of any size. The file includes resizing, cropping and the network. Other
    models take ``features``, float32 of shape (n, n_features). The outputs are:

    - ``label_index``, int64 of shape (n,): index of the most probable class;
    - ``probabilities``, float32 of shape (n, n_classes);
    - ``unknown_score``, float32 of shape (n,): the novelty of :class:`RejectingClassifier`, or 0
      for other models;
    - ``is_unknown``, bool of shape (n,): whether the model answers "unknown".

    The metadata of the file contain the names of the classes and more. See :doc:`/export`.

    Parameters
    ----------
    model : estimator
        A fitted :class:`ImageClassifier` with features of a network, :class:`RLSClassifier`,
        :class:`NCMClassifier`, forest, or :class:`RejectingClassifier` of one of these. It may also
        be a scikit-learn pipeline that ends in one of these.
    path : path
        File to write. An existing file is replaced.
    weights : {"float32", "float16", "int8"}, default="float32"
        How the weights of networks are stored. Files with ``"float16"`` are half as large, files
        with ``"int8"`` about a quarter as large, but less accurate. Measure the loss with
        :func:`~evergrow.export.compare_onnx`. Forests are not affected.

    Raises
    ------
    evergrow.InvalidInputError
        If the model cannot be exported, or exceeds the 2 GB that an ONNX file can hold.

    Examples
    --------
    >>> import tempfile, numpy as np, onnxruntime
    >>> from evergrow import NCMClassifier
    >>> from evergrow.export import save_onnx
    >>> model = NCMClassifier().fit([[0, 0], [4, 4]], ["near", "far"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_onnx(model, f"{folder}/model.onnx")
    ...     session = onnxruntime.InferenceSession(f"{folder}/model.onnx")
    >>> rows = np.array([[1, 1], [3, 3]], np.float32)
    >>> session.run(["label_index"], {"features": rows})[0].tolist()
    [1, 0]
    >>> session.get_modelmeta().custom_metadata_map["evergrow.classes"]
    '["far", "near"]'
    """
    content = to_onnx(model, weights=weights)
    with atomic_write(path) as file:
        file.write(content)


def to_onnx(model: Any, *, weights: Weights = "float32") -> bytes:
    """Return a fitted model as the content of an ONNX file.

    Parameters
    ----------
    model : estimator
        The model, as in :func:`save_onnx`.
    weights : {"float32", "float16", "int8"}, default="float32"
        How the weights of networks are stored, as in :func:`save_onnx`.

    Returns
    -------
    content : bytes
        What :func:`save_onnx` writes to a file.

    Examples
    --------
    >>> from evergrow import NCMClassifier
    >>> from evergrow.export import to_onnx
    >>> content = to_onnx(NCMClassifier().fit([[0, 0], [4, 4]], ["near", "far"]))
    >>> type(content)
    <class 'bytes'>
    """
    check_parameters({"weights": weights}, {"weights": [Choice(WEIGHTS)]})
    onnx, parts = import_onnx(), _Parts.of(model)
    networks = Networks([] if parts.embedder is None else network_files(parts.embedder))
    graph = Graph(networks.opset)
    rows = networks.embed(graph, IMAGES) if networks.files else ROWS
    rows = _add_steps(graph, rows, parts.steps)
    meta = _add_answers(graph, rows, parts.classifier, HEAD_TYPES[weights])
    given = _describe_input(onnx, networks, parts)
    outputs = _describe_outputs(onnx, len(parts.classifier.classes_))
    made = onnx.helper.make_graph(graph.nodes, "evergrow", [given], outputs)
    made.initializer.extend(networks.initializers)
    made.sparse_initializer.extend(networks.sparse_initializers)
    # The numbers of the head follow, which have types of their own.
    store_graph_weights(made, weights)
    made.initializer.extend(graph.initializers())
    whole = onnx.helper.make_model(
        made,
        opset_imports=[onnx.helper.make_opsetid(*one) for one in networks.opsets.items()],
        functions=networks.functions,
        ir_version=networks.ir_version,
        producer_name="evergrow",
        producer_version=__version__,
        doc_string=_describe(takes_images=bool(networks.files)),
    )
    digest = hashlib.sha256(_serialize(made)).hexdigest()
    meta |= {"estimator": parts.name, "weights": weights, "graph_sha256": digest}
    meta["networks"] = [file.describe() for file in networks.files]
    entries = {PREFIX + name: json.dumps(value) for name, value in meta.items()}
    onnx.helper.set_model_props(whole, entries)
    return _serialize(whole)


def _describe_input(onnx: Any, networks: Networks, parts: _Parts) -> Any:
    helper, kinds = onnx.helper, onnx.TensorProto
    if not networks.files:
        return helper.make_tensor_value_info(ROWS, kinds.FLOAT, ["n", parts.n_features])
    n = 1 if networks.fixed_batch else "n"
    return helper.make_tensor_value_info(IMAGES, kinds.UINT8, [n, "height", "width", 3])


def _describe_outputs(onnx: Any, n_classes: int) -> list[Any]:
    kinds = onnx.TensorProto
    types = (kinds.INT64, kinds.FLOAT, kinds.FLOAT, kinds.BOOL)
    shapes = (["n"], ["n", n_classes], ["n"], ["n"])
    found = zip(OUTPUTS, types, shapes, strict=True)
    return [onnx.helper.make_tensor_value_info(*one) for one in found]


@dataclass(frozen=True)
class _Parts:
    """What a model consists of, in the order in which an input passes it."""

    embedder: Embedder | None
    steps: tuple[Any, ...]
    # A classifier of Evergrow, perhaps one that rejects.
    classifier: Any
    name: str

    @property
    def n_features(self) -> int:
        """The length of the vectors that the first step takes."""
        return int((self.steps or (self.classifier,))[0].n_features_in_)

    @classmethod
    def of(cls, model: Any) -> _Parts:
        """Take a fitted model apart; a ``TypeError`` for one that cannot be exported."""
        if isinstance(model, type) or not hasattr(model, "fit"):
            raise InvalidTypeError(_refusal(model))
        check_is_fitted(model)
        steps, name = _flatten(model), type(model).__name__
        *before, classifier = steps
        inner = classifier.estimator_ if isinstance(classifier, RejectingClassifier) else classifier
        if _head_adder(inner) is None:
            raise InvalidTypeError(_refusal(inner))
        embedder = None
        if before and isinstance(before[0], Embedder):
            embedder, *before = before
        names = dict.fromkeys([name, type(classifier).__name__, type(inner).__name__])
        # A copy that stays as it is while another thread teaches the model.
        return cls(embedder, tuple(before), classifier._frozen_copy(), " of ".join(names))


def _flatten(model: Any) -> list[Any]:
    """The steps of a pipeline, and the features and the learner of an image classifier."""
    if isinstance(model, Pipeline):
        inside = [step for _, step in model.steps if step not in _NOTHING]
        return [one for step in inside for one in _flatten(step)]
    if isinstance(model, ImageClassifier):
        fitted = model._frozen_copy()._fitted
        features = _flatten(fitted.features)
        if not isinstance(features[0], Embedder):
            raise InvalidTypeError(
                f"a model of images with the features {type(features[0]).__name__} cannot be "
                "exported, only one with those of a network: fit it with features='auto' or 'embed'"
            )
        return [*features, *_flatten(fitted.learner)]
    return [model]


def _head_adder(model: Any) -> Callable[[Graph, str, Any, HeadTypes], Head] | None:
    return next((add for kind, add in _HEADS.items() if isinstance(model, kind)), None)


def _refusal(model: Any) -> str:
    what = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
    return (
        f"{what} cannot be exported: only RLSClassifier, NCMClassifier, "
        "NCMForestClassifier, AxisForestClassifier, LinearForestClassifier, SVMForestClassifier, "
        "RejectingClassifier of one of these, ImageClassifier with one of these and features of a "
        "network, and pipelines that end in one of these can"
    )


def _add_steps(graph: Graph, rows: str, steps: tuple[Any, ...]) -> str:
    for step in steps:
        found = add_step(graph, rows, step)
        if found is None:
            raise InvalidTypeError(
                f"the step {type(step).__name__} cannot be exported, only "
                f"{', '.join(step_names())} can"
            )
        rows = found
    return rows


def _add_answers(graph: Graph, rows: str, classifier: Any, types: HeadTypes) -> dict[str, Any]:
    """Add everything from rows to the outputs; return what the metadata say of the answers."""
    meta: dict[str, Any] = {"version": __version__, **_classes_to_json(classifier.classes_)}
    rejects = isinstance(classifier, RejectingClassifier)
    inner = classifier.estimator_._frozen_copy() if rejects else classifier
    add_head = cast("Callable[[Graph, str, Any, HeadTypes], Head]", _head_adder(inner))
    head = add_head(graph, rows, inner, types)
    best = graph.add("ArgMax", head.scores, axis=1, keepdims=0)
    probabilities = graph.cast(head.probabilities, np.float32)
    if rejects:
        level = classifier.level_
        novelty = add_novelty(graph, rows, classifier, head, types)
        is_unknown = add_is_unknown(graph, novelty, rejection_limit(level))
        unknown, _ = predicted_labels(classifier._fitted.labels, classifier.unknown_label)
        meta |= {"unknown_level": level if np.isfinite(level) else None, "unknown_label": unknown}
    else:
        novelty = graph.add("Mul", graph.cast(best, np.float64), graph.constant(0.0))
        is_unknown = graph.add("Greater", novelty, graph.constant(0.0))
        meta |= {"unknown_level": None, "unknown_label": None}
    answers = (best, probabilities, graph.cast(novelty, np.float32), is_unknown)
    for answer, name in zip(answers, OUTPUTS, strict=True):
        graph.rename(answer, name)
    return meta


def _classes_to_json(found: npt.NDArray[Any]) -> dict[str, Any]:
    """The classes as JSON values, and their type, which JSON does not tell."""
    classes = found.tolist()
    kinds = {bool: "boolean", int: "integer", float: "float", str: "string"}
    kind = next((name for one, name in kinds.items() if isinstance(classes[0], one)), None)
    # Exact times become integers in a list.
    if kind is None or found.dtype.kind in "mM":
        raise InvalidTypeError(
            f"classes of type {found.dtype} cannot be exported, only strings, numbers and "
            "booleans: fit the model with strings"
        )
    return {"classes": classes, "class_type": kind}


def _describe(*, takes_images: bool) -> str:
    """What a viewer of ONNX files shows."""
    images = "images: uint8 RGB of shape (n, height, width, 3), of any size"
    given = images if takes_images else "features: float32 of shape (n, n_features)"
    return (
        f"Input {given}. Outputs label_index: place of the most probable class in the metadata "
        "evergrow.classes; probabilities: of all classes; unknown_score: how unlike all classes "
        "the input is; is_unknown: whether that is above the metadata evergrow.unknown_level."
    )


def _serialize(message: Any) -> bytes:
    try:
        return cast("bytes", message.SerializeToString(deterministic=True))
    # Of more than two gigabytes, which the library of protocol buffers refuses.
    except Exception as error:
        raise InvalidInputError(f"the model is too large for an ONNX file: {error}") from error


def add_step(graph: Graph, rows: str, step: Any) -> str | None:
    """Add a fitted transformer of rows; None if it is of a kind that cannot be exported."""
    adders = [add for kind, add in _STEPS.items() if type(step) is kind]
    return adders[0](graph, graph.cast(rows, np.float64), step) if adders else None


def step_names() -> list[str]:
    """The transformers that can be exported."""
    return [kind.__name__ for kind in _STEPS]


def _add_scaler(graph: Graph, rows: str, step: StandardScaler) -> str:
    if step.with_mean:
        rows = graph.add("Sub", rows, graph.constant(step.mean_))
    return graph.add("Div", rows, graph.constant(step.scale_)) if step.with_std else rows


def _add_projection(graph: Graph, rows: str, step: PCA) -> str:
    centred = graph.add("Sub", rows, graph.constant(step.mean_))
    components = np.asarray(step.components_, dtype=np.float64)
    if step.whiten:
        least = np.finfo(np.asarray(step.explained_variance_).dtype).eps
        deviations = np.sqrt(np.asarray(step.explained_variance_, dtype=np.float64))
        components = components / np.maximum(deviations, least)[:, None]
    return graph.add("MatMul", centred, graph.constant(components.T))


def _add_normalizer(graph: Graph, rows: str, step: Normalizer) -> str:
    kind = {"l1": "ReduceL1", "l2": "ReduceL2", "max": "ReduceMax"}[step.norm]
    lengths = graph.reduce(kind, graph.add("Abs", rows), [1], keep=True)
    is_zero = graph.add("Equal", lengths, graph.constant(0.0))
    return graph.add("Div", rows, graph.add("Where", is_zero, graph.constant(1.0), lengths))


_STEPS: dict[type, Callable[[Graph, str, Any], str]] = {
    StandardScaler: _add_scaler,
    PCA: _add_projection,
    Normalizer: _add_normalizer,
}
