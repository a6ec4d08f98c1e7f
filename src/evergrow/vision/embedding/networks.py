"""Networks that make vectors of images: ONNX models and callables behind one face."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from evergrow.vision.embedding.onnx_check import check_content, default_preprocessing
from evergrow.vision.embedding.preprocessing import Preprocessing
from evergrow.vision.images.extras import vision_module

__all__ = ["CallableNetwork", "Network", "OnnxModel", "OnnxNetwork"]

Features = npt.NDArray[np.float32]

# Goes into the names of caches: bumped whenever the same file is read as other pixels.
_READER_VERSION = 1
_PROVIDERS = ("CUDAExecutionProvider", "CPUExecutionProvider")
# Only errors: what the runtime warns of says nothing to whoever uses a finished model.
_ONLY_ERRORS = 3
# What a callable is shown to learn how many features it gives.
_PROBE_SHAPE = (224, 224, 3)


@dataclass(frozen=True, repr=False)
class OnnxModel:
    """The content of an ONNX file, as a parameter of an :class:`Embedder`.

    Parameters
    ----------
    content : bytes
        The file, with all weights inside.
    """

    content: bytes

    @property
    def sha256(self) -> str:
        """Hash of the content."""
        return hashlib.sha256(self.content).hexdigest()

    def __repr__(self) -> str:
        """Name it by its hash: the content is long."""
        return f"OnnxModel(sha256='{self.sha256[:12]}...', {len(self.content)} bytes)"


class Network(Protocol):
    """What an embedder needs to know of a network."""

    @property
    def n_features(self) -> int:
        """Length of a vector."""

    @property
    def key(self) -> str | None:
        """Names network and preprocessing together; None where nobody could tell."""

    @property
    def needed_side(self) -> int | None:
        """Images may be read smaller, but no side shorter than this; None if they may not."""

    @property
    def one_size(self) -> bool:
        """Whether all that is prepared has one size; else it is as large as images come."""

    def prepare(self, image: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        """Make of one image what :meth:`run` takes; called by several threads."""

    def run(self, prepared: Sequence[npt.NDArray[Any]]) -> Features:
        """Vectors of a batch."""


class OnnxNetwork:
    """An ONNX model in the runtime.

    Parameters
    ----------
    content : bytes
        The model, which is checked.
    name : str
        What to call it in messages.
    preprocessing : Preprocessing or None
        None to conclude it from the shape of the input.
    n_threads : int
        Threads that compute.
    weights : str, default=None
        What stands for the model in ``key``; None for the hash of its content.
    """

    one_size = True

    def __init__(
        self,
        content: bytes,
        *,
        name: str,
        preprocessing: Preprocessing | None,
        n_threads: int,
        weights: str | None = None,
    ) -> None:
        image_input = check_content(content, name)
        self.preprocessing = preprocessing or default_preprocessing(image_input)
        image_input.check(self.preprocessing)
        self._name = name
        self._input = image_input
        self._session = _session(content, name, n_threads)
        weights = weights or hashlib.sha256(content).hexdigest()
        facts = [_READER_VERSION, weights, self.preprocessing.to_plain()]
        self.key = hashlib.sha256(json.dumps(facts).encode()).hexdigest()
        self.needed_side = self.preprocessing.needed_side
        self.n_features = self.run([np.zeros(self.preprocessing.shape, np.float32)]).shape[1]

    def prepare(self, image: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        """Make of one image what the input takes."""
        return self.preprocessing(image)

    def run(self, prepared: Sequence[npt.NDArray[Any]]) -> Features:
        """Vectors of a batch, in parts where the model fixes the size of a batch."""
        step = self._input.shape[0] or len(prepared)
        parts = [prepared[first : first + step] for first in range(0, len(prepared), step)]
        return np.concatenate([self._run_part(part, step) for part in parts])

    def _run_part(self, part: Sequence[npt.NDArray[Any]], size: int) -> Features:
        batch = np.stack([*part, *([part[-1]] * (size - len(part)))])
        try:
            (found,) = self._session.run(None, {self._input.name: batch})
        # The runtime's errors share no class but this one.
        except Exception as error:
            raise ValueError(f"{self._name} cannot be run: {error}") from error
        return checked_vectors(_flat(found, self._name), size, self._name)[: len(part)]


class CallableNetwork:
    """A function from a list of images to a matrix.

    Parameters
    ----------
    function : callable
        Takes a list of arrays of shape (height, width, 3), uint8, and gives one row each.
    """

    key = None
    needed_side = None
    one_size = False

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.n_features = self.run([np.full(_PROBE_SHAPE, 127, np.uint8)]).shape[1]

    def prepare(self, image: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """The image as it is."""
        return image

    def run(self, prepared: Sequence[npt.NDArray[Any]]) -> Features:
        """Vectors of a batch."""
        found = np.asarray(self._function(list(prepared)))
        return checked_vectors(found, len(prepared), "the callable model")


def checked_vectors(found: npt.NDArray[Any], n_rows: int, name: str) -> Features:
    """Raise a ``ValueError`` unless this is a matrix of finite numbers with so many rows."""
    if (
        found.ndim != 2
        or len(found) != n_rows
        or not found.shape[1]
        or found.dtype.kind not in "fiu"
    ):
        raise ValueError(
            f"{name} must give a matrix of numbers with one row per image: expected {n_rows} "
            f"rows, got {found.dtype} of shape {found.shape}"
        )
    vectors = found.astype(np.float32)
    if not np.isfinite(vectors).all():
        raise ValueError(f"{name} gives values that are not finite")
    return vectors


def _flat(found: Any, name: str) -> npt.NDArray[Any]:
    array = np.asarray(found)
    # One number per channel, with the sides of an image of one pixel before or after.
    pooled = array.ndim == 4 and 1 in (array[0, 0].size, array[0, ..., 0].size)
    if array.ndim != 2 and not pooled:
        raise ValueError(
            f"{name} must give one vector per image, shape (n, n_features); got {array.shape}: "
            "take the output after pooling"
        )
    return array.reshape(len(array), -1)


def _session(content: bytes, name: str, n_threads: int) -> Any:
    # It reports to its makers over the network unless told before it is loaded. Nobody asked for
    # that; whoever wants it can set the variable to 0.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    runtime = vision_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = n_threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _ONLY_ERRORS
    # Threads that wait leave the processor to those that decode the next images.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    present = runtime.get_available_providers()
    providers = [provider for provider in _PROVIDERS if provider in present]
    try:
        return runtime.InferenceSession(content, options, providers=providers)
    except Exception as error:
        raise ValueError(f"{name} cannot be run: {error}") from error
