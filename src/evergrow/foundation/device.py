"""Where large matrices are computed: the processor, or a GPU through torch.

Arrays are computed on the processor, by the core; tensors, and other arrays on a GPU that speak
DLPack, on that GPU. In a block of :func:`device` everything is computed where it says.

torch is imported when a device is used, and never required.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import DeviceMemoryError, InvalidInputError
from evergrow.foundation.extras import install_command
from evergrow.foundation.formatting import format_bytes, format_count
from evergrow.foundation.params import Choice, Nothing, Rule, Satisfies, check_parameters

# A torch.Tensor; torch may not be installed, so its types have no names here.
Tensor: TypeAlias = Any
Precision = Literal["double", "tf32"]

TORCH_CPU = "torch-cpu"
_NAME = re.compile(r"cpu|cuda(:[0-9]{1,3})?|torch-cpu")
# Device types of DLPack that are GPUs which torch reads: CUDA and ROCm.
_DLPACK_GPUS = (2, 10)

_RULES: dict[str, list[Rule]] = {
    "device": [
        Satisfies(
            "'cpu', 'cuda', the number of a GPU such as 'cuda:1', 'torch-cpu'",
            lambda value: isinstance(value, str) and _NAME.fullmatch(value) is not None,
        ),
        Nothing(),
    ],
    "precision": [Choice(("double", "tf32"))],
}


@dataclass(frozen=True)
class Device:
    """A device of torch; two are equal if they are the same one."""

    # "cuda:0", say, or "cpu" for torch on the processor.
    name: str
    # How features are multiplied there.
    precision: Precision = field(default="double", compare=False)

    @property
    def is_gpu(self) -> bool:
        """Whether it is a GPU."""
        return self.name != "cpu"

    def tensor(self, values: npt.ArrayLike | Tensor, dtype: Any = None) -> Tensor:
        """Return values as a tensor here; without a copy if they are one already."""
        torch = import_torch()
        if isinstance(values, torch.Tensor):
            # Of copies to the processor torch does not say when they have arrived.
            return values.to(device=self.name, dtype=dtype, non_blocking=self.is_gpu)
        array: npt.NDArray[Any] = np.asarray(values)
        if array.dtype.byteorder == ">" or array.dtype.kind not in "bif":
            array = array.astype(np.float64)
        elif not array.flags.writeable:
            # torch warns of arrays that it could change by mistake.
            array = array.copy()
        return torch.as_tensor(array, device=self.name, dtype=dtype)

    def free_bytes(self) -> int:
        """Return how much memory is free, what torch holds without using it included."""
        torch = import_torch()
        if not self.is_gpu:
            return 1 << 62
        free, _ = torch.cuda.mem_get_info(self.name)
        unused = torch.cuda.memory_reserved(self.name) - torch.cuda.memory_allocated(self.name)
        return int(free + unused)

    @contextmanager
    def report_full(self, advice: str = "") -> Iterator[None]:
        """Raise a ``DeviceMemoryError`` if the memory of the device is exhausted in the block."""
        torch = import_torch()
        try:
            yield
        except torch.OutOfMemoryError as error:
            free = format_bytes(self.free_bytes())
            raise DeviceMemoryError(
                f"the memory of {self.name} is exhausted ({free} free){advice and ': ' + advice}"
            ) from error


@contextmanager
def translate_full() -> Iterator[None]:
    """Raise a ``DeviceMemoryError`` if any GPU is exhausted in the block; also a decorator."""
    try:
        yield
    except Exception as error:
        full = getattr(sys.modules.get("torch"), "OutOfMemoryError", None)
        if full is None or not isinstance(error, full):
            raise
        raise DeviceMemoryError(
            "the memory of the GPU is exhausted: use fewer features, free memory, or use "
            "evergrow.device('cpu')"
        ) from error


@dataclass(frozen=True)
class _Choice:
    """What a block of :func:`device` computes on; without a name where the samples lie."""

    name: str | None = None
    device: Device | None = None
    precision: Precision = "double"


_WHERE_SAMPLES_ARE = _Choice()
_current: ContextVar[_Choice] = ContextVar("device", default=_WHERE_SAMPLES_ARE)


@contextmanager
def device(name: str | None = None, *, precision: Precision = "double") -> Iterator[None]:
    """Compute on a device in this block, wherever the samples are.

    Without it, samples in memory are computed on the processor and samples on a GPU on that GPU.
    Results are returned where the samples are. The innermost block counts. It applies to the thread
    that opened it: other threads and processes have blocks of their own. See :doc:`/gpu`.

    Parameters
    ----------
    name : str, default=None
        ``"cpu"``, ``"cuda"``, or a GPU by number such as ``"cuda:1"``. ``"torch-cpu"`` runs the
        code for GPUs on the processor, for tests. None computes where the samples are.
    precision : {"double", "tf32"}, default="double"
        How least squares and class means multiply features on a GPU. ``"tf32"`` is three times as
        fast and keeps three digits of each feature.

    Examples
    --------
    >>> import evergrow
    >>> with evergrow.device("cpu"):
    ...     evergrow.NCMClassifier().fit([[0], [9]], ["a", "b"]).predict([[7]])
    array(['b'], dtype='<U1')
    """
    check_parameters({"device": name, "precision": precision}, _RULES)
    if name == "cpu" and precision != "double":
        raise InvalidInputError(f"precision={precision!r} is for GPUs, but device is 'cpu'")
    found = None if name is None else named_device(name)
    token = _current.set(_Choice(name, found, precision))
    try:
        yield
    finally:
        _current.reset(token)


def find_device(samples: object) -> Device | None:
    """Return the device to compute on; None for the processor, by the core.

    >>> find_device(np.zeros((2, 2))) is None
    True
    """
    chosen = _current.get()
    found = device_of(samples) if chosen.name is None else chosen.device
    return None if found is None else replace(found, precision=chosen.precision)


def chosen_device() -> Device | None:
    """Return the device of the block that is open, perhaps torch on the processor; None without."""
    chosen = _current.get()
    return None if chosen.name is None else chosen.device or Device("cpu")


def named_device(name: str) -> Device | None:
    """Return the device of a name; None for the processor, by the core."""
    if name == "cpu":
        return None
    torch = import_torch()
    if name == TORCH_CPU:
        return Device("cpu")
    if not torch.cuda.is_available():
        raise InvalidInputError(
            f"device is {name!r} but torch {torch.__version__} finds no GPU: use device 'cpu'"
        )
    number = int(name.partition(":")[2] or torch.cuda.current_device())
    n_gpus = torch.cuda.device_count()
    if number >= n_gpus:
        raise InvalidInputError(
            f"device is {name!r} but torch finds only {format_count(n_gpus, 'GPU')}; the first is "
            "'cuda:0'"
        )
    return Device(f"cuda:{number}")


def device_of(samples: object) -> Device | None:
    """Return the device on which samples lie; None for arrays on the processor.

    Tensors of torch on the processor count as arrays.
    """
    tensor: Any = getattr(samples, "tensor", samples)
    if is_tensor(tensor):
        return Device(str(tensor.device)) if tensor.device.type == "cuda" else None
    return Device(str(as_tensor(samples).device)) if is_on_gpu(samples) else None


def is_tensor(value: object) -> bool:
    """Whether a value is a tensor of torch; without importing torch."""
    kind = getattr(sys.modules.get("torch"), "Tensor", None)
    return kind is not None and isinstance(value, kind)


def is_on_gpu(value: object) -> bool:
    """Whether a value is an array in the memory of a GPU, of any library that speaks DLPack."""
    if isinstance(value, np.ndarray) or not hasattr(value, "__dlpack_device__"):
        return False
    return int(value.__dlpack_device__()[0]) in _DLPACK_GPUS


def as_tensor(value: Any) -> Tensor:
    """Return an array that speaks DLPack as a tensor, without a copy."""
    return value if is_tensor(value) else import_torch().from_dlpack(value)


def as_array(tensor: Tensor) -> npt.NDArray[Any]:
    """Return a tensor on the processor as an array; NumPy has no bfloat16, nor gradients."""
    is_brain = "bfloat16" in str(tensor.dtype)
    return to_host(tensor.float() if is_brain else tensor)


def to_host(value: Any) -> npt.NDArray[Any]:
    """Return an array or a tensor as an array on the processor."""
    return value.detach().cpu().numpy() if is_tensor(value) else np.asarray(value)


def place_like(values: npt.NDArray[Any], other: Any) -> Any:
    """Return an array where another array or tensor lies."""
    if not is_tensor(other):
        return values
    return Device(str(other.device)).tensor(values)


def array_module(values: Any) -> Any:
    """Return the module with the functions for an array: torch for tensors, else NumPy.

    >>> array_module(np.zeros(2)) is np
    True
    """
    return import_torch() if is_tensor(values) else np


def as_double(values: Any) -> Any:
    """Return an array or a tensor in double precision; one that has it is not copied."""
    return values.double() if is_tensor(values) else np.asarray(values, dtype=np.float64)


@contextmanager
def guard_memory(device: Device | None, advice: str) -> Iterator[None]:
    """Raise a ``DeviceMemoryError`` if the device is exhausted in the block; None has no limit."""
    with nullcontext() if device is None else device.report_full(advice):
        yield


def import_torch() -> Any:
    """Import torch; an ``ImportError`` that says how to install it."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            f"GPUs are used through torch, which is not installed: {install_command('gpu')}"
        ) from error
    return torch
