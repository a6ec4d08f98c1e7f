"""Rows in the memory of a GPU with the interface of rows on disk.

So every estimator takes them: one that computes on GPUs uses the tensor where it lies, any other
reads it a block at a time, as it reads shards.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from evergrow.foundation.device import Device, Tensor, as_array, as_tensor, import_torch
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.rows import float_blocks
from evergrow.storage.shards.rows import Numbers, StoredRows

# Rows that are copied to a device, or converted there, at a time.
_BLOCK_BYTES = 64 << 20
# Types that have the same name in torch.
_PINNED = (np.float16, np.float32, np.float64, np.int64)


class DeviceRows(StoredRows):
    """A matrix of finite numbers in a tensor of torch."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.shape = (int(tensor.shape[0]), int(tensor.shape[1]))
        # NumPy has no bfloat16; on the processor it becomes single precision.
        name = str(tensor.dtype).removeprefix("torch.").replace("bfloat16", "float32")
        self.dtype = np.dtype(name)

    @classmethod
    def of(cls, values: Any) -> Self:
        """Check an array in the memory of a GPU, or a tensor, and take it as it is."""
        torch, tensor = import_torch(), as_tensor(values).detach()
        if tensor.ndim != 2:
            raise InvalidInputError(
                f"Expected 2D array, got {tensor.ndim}D array on {tensor.device} instead"
            )
        if tensor.is_complex() or tensor.dtype == torch.bool:
            raise InvalidInputError(f"features must be real numbers, got {tensor.dtype}")
        # One pass that needs no memory: a finite sum has finite terms. Others are looked at again.
        if tensor.is_floating_point() and not bool(tensor.sum(dtype=torch.float64).isfinite()):
            for kind, found in (("NaN", tensor.isnan()), ("infinity", tensor.isinf())):
                if bool(found.any()):
                    raise InvalidInputError(f"Input X contains {kind}.")
        return cls(tensor)

    def choose(self, rows: npt.ArrayLike) -> DeviceRows:
        """Some rows, copied on the device; by numbers in any order, or a mask over all rows."""
        numbers = import_torch().as_tensor(self._numbers(rows), device=self.tensor.device)
        return DeviceRows(self.tensor[numbers])

    def check_magnitude(self, largest: float) -> None:
        """Raise a ``ValueError`` for numbers whose sums of squares would overflow."""
        values = self.tensor
        if values.numel() and float(max(values.max(), -values.min())) > largest:
            raise InvalidInputError(
                f"Input X contains values too large to add up their squares, above {largest:g}."
            )

    def _span(self, first: int, last: int, step: int) -> npt.NDArray[Any]:
        return as_array(self.tensor[first:last:step])

    def _at(self, numbers: Numbers) -> npt.NDArray[Any]:
        torch = import_torch()
        return as_array(self.tensor[torch.as_tensor(numbers, device=self.tensor.device)])


class Uploader:
    """Copies arrays to a device, from pinned memory, while the device computes.

    Two buffers take turns: one is filled while the other is copied.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._buffers: list[tuple[Tensor, Any]] = []

    def upload(self, block: npt.NDArray[Any]) -> Tensor:
        """Return an array as a tensor on the device; the copy may still be under way."""
        torch, device = import_torch(), self._device
        if not device.is_gpu or block.dtype not in _PINNED:
            return device.tensor(block)
        buffer, copied = self._next_buffer(block)
        np.copyto(buffer.numpy()[: block.size].reshape(block.shape), block)
        tensor = buffer[: block.size].view(block.shape).to(device.name, non_blocking=True)
        copied.record(torch.cuda.current_stream(device.name))
        self._buffers.append((buffer, copied))
        return tensor

    def _next_buffer(self, block: npt.NDArray[Any]) -> tuple[Tensor, Any]:
        """Return a buffer that nothing is copied from any more, and the event that says so."""
        torch = import_torch()
        if len(self._buffers) < 2:
            buffer, copied = None, torch.cuda.Event()
        else:
            buffer, copied = self._buffers.pop(0)
            copied.synchronize()
        dtype = getattr(torch, str(block.dtype))
        if buffer is None or buffer.numel() < block.size or buffer.dtype != dtype:
            buffer = torch.empty(block.size, dtype=dtype, pin_memory=True)
        return buffer, copied


def upload_blocks(X: Any, device: Device, max_rows: int) -> Iterator[tuple[slice, Tensor]]:
    """Yield (rows, block) with blocks of a matrix on a device, in the precision it has."""
    if isinstance(X, DeviceRows):
        for first in range(0, len(X.tensor), max_rows):
            rows = slice(first, min(first + max_rows, len(X.tensor)))
            yield rows, device.tensor(X.tensor[rows])
        return
    uploader = Uploader(device)
    for rows, block in float_blocks(X, max_rows):
        yield rows, uploader.upload(block)


def device_blocks(
    X: Any, device: Device, dtype: Any, width: int = 0
) -> Iterator[tuple[slice, Tensor]]:
    """Yield (rows, block) with blocks of a matrix on a device, in the given precision.

    Each row of a block may lead to ``width`` further numbers without blocks getting too large.
    """
    step = max(1, _BLOCK_BYTES // (8 * max(1, X.shape[1], width)))
    for rows, block in upload_blocks(X, device, step):
        yield rows, block.to(dtype)


def load_tensor(X: Any, device: Device, dtype: Any = None) -> Tensor:
    """Copy a matrix to a device; one that is there in the right precision is not copied.

    Without ``dtype``, single precision stays and everything else becomes double precision.
    """
    torch = import_torch()
    if dtype is None:
        single = X.dtype in (np.float16, np.float32)
        dtype = torch.float32 if single else torch.float64
    if isinstance(X, DeviceRows):
        return device.tensor(X.tensor, dtype)
    found = torch.empty(X.shape, dtype=dtype, device=device.name)
    for rows, block in device_blocks(X, device, dtype):
        found[rows] = block
    return found
