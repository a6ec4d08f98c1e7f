"""Networks that compute vectors of images: ONNX models and callables with one interface."""

from __future__ import annotations

import hashlib
import json
import math
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError
from evergrow.vision.embedding.onnx_file import (
    check_bounded,
    check_onnx,
    default_preprocessing,
    stage_name,
)
from evergrow.vision.embedding.preprocessing import Preprocessing
from evergrow.vision.images.sources import import_extra

Features = npt.NDArray[np.float32]

# The name of the block of features that every network has.
HEAD = "head"

# Part of the cache key: increased whenever the same file is decoded to other pixels.
_READER_VERSION = 1
_CPU, _CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
# What EVERGROW_DEVICE may be: providers of the runtime, the first that is there.
_DEVICES = {"auto": (_CUDA, _CPU), "cpu": (_CPU,), "cuda": (_CUDA, _CPU)}
# Rounded products would give other vectors than those that a processor has stored.
_CUDA_OPTIONS = {"use_tf32": "0"}
# The warnings of the runtime do not help users of a finished model.
_ONLY_ERRORS = 3
# Time for a batch of a network that came with a model file; it then ends with an error.
_MAX_SECONDS, _MAX_SECONDS_PER_IMAGE = 10.0, 10.0
# The image that shows how many features a callable returns.
_PROBE_SHAPE = (224, 224, 3)


@dataclass(frozen=True, repr=False)
class OnnxModel:
    """The content of an ONNX file, for the parameter `model` of an :class:`Embedder`.

    Parameters
    ----------
    content : bytes
        The file, including all weights.
    bounded : bool, default=False
        Whether it runs with limits on memory and time. Networks from model files do.
    """

    content: bytes
    bounded: bool = field(default=False, compare=False)

    @property
    def sha256(self) -> str:
        """SHA-256 hash of the content."""
        return hashlib.sha256(self.content).hexdigest()

    def __repr__(self) -> str:
        """Show the hash, because the content is long."""
        return f"OnnxModel(sha256='{self.sha256[:12]}...', {len(self.content)} bytes)"


class Network(Protocol):
    """The interface of a network."""

    n_features: int
    # The widths of the consecutive groups of features, by name; the first is the head.
    blocks: dict[str, int]
    # Identifies network and preprocessing; None if they cannot be identified.
    key: str | None
    # Images may be decoded with sides no shorter than this; None for full size only.
    min_side: int | None
    # Whether all prepared images have the same size; else each has its own.
    fixed_size: bool

    def prepare(self, image: npt.NDArray[np.uint8]) -> Any:
        """Prepare one image for :meth:`run`; called by several threads. It has ``nbytes``."""

    def run(self, prepared: Sequence[Any]) -> Features:
        """Compute the vectors of a batch."""


class OnnxNetwork:
    """An ONNX model, run by ONNX Runtime.

    The content is checked; ``name`` names it in messages. A missing preprocessing is derived from
    the shape of the input. ``weights`` identifies the model in ``key``, by default the hash of its
    content. A ``bounded`` model is run with limits of memory and time. With ``stages``, their
    averages over the image follow the head, and every block is scaled to length one.
    """

    fixed_size = True

    def __init__(
        self,
        content: bytes,
        *,
        name: str,
        preprocessing: Preprocessing | None,
        n_threads: int,
        stages: Sequence[int] = (),
        weights: str | None = None,
        bounded: bool = False,
    ) -> None:
        model = check_onnx(content, name)
        image_input = model.images
        self._outputs = model.outputs(stages, name)
        self.preprocessing = preprocessing or default_preprocessing(image_input)
        image_input.check(self.preprocessing)
        self._bounded = bounded
        if bounded:
            check_bounded(content, name, (image_input.shape[0] or 1, *self.preprocessing.shape))
        self._name = name
        self._input = image_input
        self._session = _session(content, name, n_threads)
        weights = weights or hashlib.sha256(content).hexdigest()
        facts = [_READER_VERSION, weights, self.preprocessing.to_json()]
        facts += [list(stages)] if stages else []
        self.key: str | None = hashlib.sha256(json.dumps(facts).encode()).hexdigest()
        self.min_side: int | None = self.preprocessing.min_side
        size = image_input.shape[0] or 1
        probe = self._run_blocks([np.zeros(self.preprocessing.shape, np.float32)], size)
        names = [HEAD, *map(stage_name, stages)]
        self.blocks = {one: found.shape[1] for one, found in zip(names, probe, strict=True)}
        self.n_features = sum(self.blocks.values())

    @property
    def on_gpu(self) -> bool:
        """Whether a graphics card runs the model, which should then get large batches."""
        return _CUDA in self._session.get_providers()

    def prepare(self, image: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        """Prepare one image for the input of the model."""
        return self.preprocessing(image)

    def run(self, prepared: Sequence[npt.NDArray[Any]]) -> Features:
        """Compute the vectors of a batch, in chunks if the model has a fixed batch size."""
        step = self._input.shape[0] or len(prepared)
        chunks = [prepared[first : first + step] for first in range(0, len(prepared), step)]
        return np.concatenate([np.hstack(self._run_blocks(chunk, step)) for chunk in chunks])

    def _run_blocks(self, chunk: Sequence[npt.NDArray[Any]], size: int) -> list[Features]:
        """Run the model once on a batch of its size; return the head and the stages."""
        batch = np.stack([*chunk, *([chunk[-1]] * (size - len(chunk)))])
        try:
            head, *stages = self._run(batch)
        # The errors of the runtime have no other common class.
        except Exception as error:
            raise InvalidInputError(f"{self._name} cannot be run: {error}") from error
        vectors = [check_vectors(flatten(head, self._name), size, self._name)]
        for output, stage in zip(self._outputs[1:], stages, strict=True):
            what = f"the output {output} of {self._name}"
            vectors.append(check_vectors(self._average(stage), size, what))
        if stages:
            # The head is more than ten times as long: no penalty would suit all blocks.
            vectors = [unit_length(one) for one in vectors]
        return [one[: len(chunk)] for one in vectors]

    def _run(self, batch: npt.NDArray[Any]) -> list[Any]:
        inputs = {self._input.name: batch}
        if not self._bounded:
            return list(self._session.run(self._outputs, inputs))
        options = import_extra("onnxruntime").RunOptions()
        seconds = _MAX_SECONDS + _MAX_SECONDS_PER_IMAGE * len(batch)
        timer = threading.Timer(seconds, setattr, (options, "terminate", True))
        timer.daemon = True
        timer.start()
        try:
            return list(self._session.run(self._outputs, inputs, options))
        finally:
            timer.cancel()

    def _average(self, stage: Any) -> npt.NDArray[Any]:
        """Average over the image unless the model has done so."""
        array = np.asarray(stage)
        positions = (2, 3) if self.preprocessing.layout == "nchw" else (1, 2)
        return array.mean(axis=positions) if array.ndim == 4 else array


class CallableNetwork:
    """A function from a list of uint8 arrays of shape (height, width, 3) to a matrix of rows."""

    key: str | None = None
    min_side: int | None = None
    fixed_size = False

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.n_features = self.run([np.full(_PROBE_SHAPE, 127, np.uint8)]).shape[1]
        self.blocks = {HEAD: self.n_features}

    def prepare(self, image: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Return the image unchanged."""
        return image

    def run(self, prepared: Sequence[npt.NDArray[Any]]) -> Features:
        """Compute the vectors of a batch."""
        found = np.asarray(self._function(list(prepared)))
        return check_vectors(found, len(prepared), "the callable model")


def start(network: Network, prepared: Sequence[Any]) -> Callable[[], Features]:
    """Begin to compute the vectors of a batch; the result of the call waits for them.

    A network on a GPU has a method for it; others compute at once.
    """
    begin = getattr(network, "start", None)
    if begin is not None:
        return cast("Callable[[], Features]", begin(prepared))
    found = network.run(prepared)
    return lambda: found


def check_vectors(found: npt.NDArray[Any], n_rows: int, name: str) -> Features:
    """Return the vectors as float32; a ``ValueError`` unless they are one finite row per image."""
    if (
        found.ndim != 2
        or len(found) != n_rows
        or not found.shape[1]
        or found.dtype.kind not in "fiu"
    ):
        raise InvalidInputError(
            f"{name} must return a matrix of numbers with one row per image: expected {n_rows} "
            f"rows, got {found.dtype} of shape {found.shape}"
        )
    vectors = found.astype(np.float32)
    if not np.isfinite(vectors).all():
        raise InvalidInputError(f"{name} returns values that are not finite")
    return vectors


def flatten(found: Any, name: str) -> npt.NDArray[Any]:
    """One row per image; a ``ValueError`` for feature maps that were not averaged."""
    array = np.asarray(found)
    # One number per channel: the other two axes, before or after it, have length one.
    pooled = array.ndim == 4 and 1 in (math.prod(array.shape[2:]), math.prod(array.shape[1:3]))
    if array.ndim != 2 and not pooled:
        raise InvalidInputError(
            f"{name} must return one vector per image, shape (n, n_features); got {array.shape}: "
            "use the output after pooling"
        )
    return array.reshape(len(array), math.prod(array.shape[1:]))


def unit_length(vectors: Features) -> Features:
    """Scale each row to length one; a row of zeros stays."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    scaled: Features = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return scaled


def _session(content: bytes, name: str, n_threads: int) -> Any:
    # The runtime sends telemetry unless this is set before it is imported. Set the variable to 0 to
    # allow it.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    runtime = import_extra("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = n_threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _ONLY_ERRORS
    # Idle threads must not spin: the processor is needed to decode the next images.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    device = os.environ.get("EVERGROW_DEVICE") or "auto"
    providers = choose_providers(device, runtime.get_available_providers())
    try:
        session = runtime.InferenceSession(content, options, providers=providers)
    except Exception as error:
        raise InvalidInputError(f"{name} cannot be run: {error}") from error
    # Where a card or its libraries are missing, the runtime takes the processor instead.
    if device == "cuda" and _CUDA not in session.get_providers():
        raise InvalidInputError(
            "EVERGROW_DEVICE is cuda, but onnxruntime cannot use the graphics card: check its "
            "driver and the CUDA libraries, or set EVERGROW_DEVICE=cpu"
        )
    return session


def choose_providers(device: str, present: Sequence[str]) -> list[Any]:
    """Return the providers of the runtime to use for a device, in order of preference.

    >>> choose_providers("auto", ["AzureExecutionProvider", "CPUExecutionProvider"])
    ['CPUExecutionProvider']
    """
    if device not in _DEVICES:
        raise InvalidInputError(
            f"EVERGROW_DEVICE must be one of {sorted(_DEVICES)}, got {device!r}"
        )
    if device == "cuda" and _CUDA not in present:
        raise InvalidInputError(
            "EVERGROW_DEVICE is cuda, but this onnxruntime cannot use graphics cards: install "
            "onnxruntime-gpu in its place, or set EVERGROW_DEVICE=cpu"
        )
    chosen = [provider for provider in _DEVICES[device] if provider in present]
    return [(one, _CUDA_OPTIONS) if one == _CUDA else one for one in chosen]
