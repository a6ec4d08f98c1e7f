"""Networks that compute vectors of images: ONNX models and callables with one interface."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError
from evergrow.vision.embedding.onnx_file import check_onnx, default_preprocessing
from evergrow.vision.embedding.preprocessing import Preprocessing
from evergrow.vision.images.extras import import_extra

Features = npt.NDArray[np.float32]

# Part of the cache key: increased whenever the same file is decoded to other pixels.
_READER_VERSION = 1
_PROVIDERS = ("CUDAExecutionProvider", "CPUExecutionProvider")
# The warnings of the runtime do not help users of a finished model.
_ONLY_ERRORS = 3
# The image that shows how many features a callable returns.
_PROBE_SHAPE = (224, 224, 3)


@dataclass(frozen=True, repr=False)
class OnnxModel:
    """The content of an ONNX file, as the parameter ``model`` of an :class:`Embedder`.

    Parameters
    ----------
    content : bytes
        The file, including all weights.
    """

    content: bytes

    @property
    def sha256(self) -> str:
        """SHA-256 hash of the content."""
        return hashlib.sha256(self.content).hexdigest()

    def __repr__(self) -> str:
        """Show the hash, because the content is long."""
        return f"OnnxModel(sha256='{self.sha256[:12]}...', {len(self.content)} bytes)"


class Network(Protocol):
    """The interface of a network."""

    @property
    def n_features(self) -> int:
        """Length of a vector."""

    @property
    def key(self) -> str | None:
        """Identifies network and preprocessing; None if they cannot be identified."""

    @property
    def min_side(self) -> int | None:
        """Images may be decoded with sides no shorter than this; None for full size only."""

    @property
    def fixed_size(self) -> bool:
        """Whether all prepared images have the same size; else each has its own."""

    def prepare(self, image: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        """Prepare one image for :meth:`run`; called by several threads."""

    def run(self, prepared: Sequence[npt.NDArray[Any]]) -> Features:
        """Compute the vectors of a batch."""


class OnnxNetwork:
    """An ONNX model, run by ONNX Runtime.

    Parameters
    ----------
    content : bytes
        The model; it is checked.
    name : str
        Its name in messages.
    preprocessing : Preprocessing or None
        None to derive it from the shape of the input.
    n_threads : int
        Threads that compute.
    weights : str, default=None
        Identifies the model in ``key``; None for the hash of its content.
    """

    fixed_size = True

    def __init__(
        self,
        content: bytes,
        *,
        name: str,
        preprocessing: Preprocessing | None,
        n_threads: int,
        weights: str | None = None,
    ) -> None:
        image_input = check_onnx(content, name)
        self.preprocessing = preprocessing or default_preprocessing(image_input)
        image_input.check(self.preprocessing)
        self._name = name
        self._input = image_input
        self._session = _session(content, name, n_threads)
        weights = weights or hashlib.sha256(content).hexdigest()
        facts = [_READER_VERSION, weights, self.preprocessing.to_json()]
        self.key = hashlib.sha256(json.dumps(facts).encode()).hexdigest()
        self.min_side = self.preprocessing.min_side
        self.n_features = self.run([np.zeros(self.preprocessing.shape, np.float32)]).shape[1]

    def prepare(self, image: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        """Prepare one image for the input of the model."""
        return self.preprocessing(image)

    def run(self, prepared: Sequence[npt.NDArray[Any]]) -> Features:
        """Compute the vectors of a batch, in chunks if the model has a fixed batch size."""
        step = self._input.shape[0] or len(prepared)
        chunks = [prepared[first : first + step] for first in range(0, len(prepared), step)]
        return np.concatenate([self._run_chunk(chunk, step) for chunk in chunks])

    def _run_chunk(self, chunk: Sequence[npt.NDArray[Any]], size: int) -> Features:
        batch = np.stack([*chunk, *([chunk[-1]] * (size - len(chunk)))])
        try:
            (found,) = self._session.run(None, {self._input.name: batch})
        # The errors of the runtime have no other common class.
        except Exception as error:
            raise InvalidInputError(f"{self._name} cannot be run: {error}") from error
        vectors = check_vectors(_flatten(found, self._name), size, self._name)
        return vectors[: len(chunk)]


class CallableNetwork:
    """A function from a list of images to a matrix.

    Parameters
    ----------
    function : callable
        Takes a list of arrays of shape (height, width, 3), uint8, and returns one row each.
    """

    key = None
    min_side = None
    fixed_size = False

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.n_features = self.run([np.full(_PROBE_SHAPE, 127, np.uint8)]).shape[1]

    def prepare(self, image: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Return the image unchanged."""
        return image

    def run(self, prepared: Sequence[npt.NDArray[Any]]) -> Features:
        """Compute the vectors of a batch."""
        found = np.asarray(self._function(list(prepared)))
        return check_vectors(found, len(prepared), "the callable model")


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


def _flatten(found: Any, name: str) -> npt.NDArray[Any]:
    array = np.asarray(found)
    # One number per channel: the other two axes, before or after it, have length one.
    pooled = array.ndim == 4 and 1 in (array[0, 0].size, array[0, ..., 0].size)
    if array.ndim != 2 and not pooled:
        raise InvalidInputError(
            f"{name} must return one vector per image, shape (n, n_features); got {array.shape}: "
            "use the output after pooling"
        )
    return array.reshape(len(array), -1)


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
    present = runtime.get_available_providers()
    providers = [provider for provider in _PROVIDERS if provider in present]
    try:
        return runtime.InferenceSession(content, options, providers=providers)
    except Exception as error:
        raise InvalidInputError(f"{name} cannot be run: {error}") from error
