"""Rows in the memory of a GPU with the interface of rows on disk.

So every estimator takes them: one that computes on GPUs uses the tensor where it lies, any other
reads it a block at a time, as it reads shards.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from evergrow.foundation.device import Tensor, as_tensor, import_torch, to_host
from evergrow.foundation.errors import InvalidInputError
from evergrow.storage.shards.rows import Numbers, StoredRows


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
        # One pass that needs no memory: a sum is finite only if all its terms are.
        if tensor.is_floating_point() and not bool(tensor.sum(dtype=torch.float64).isfinite()):
            kind = "NaN" if bool(tensor.isnan().any()) else "infinity"
            raise InvalidInputError(f"Input X contains {kind}.")
        return cls(tensor)

    def _span(self, first: int, last: int, step: int) -> npt.NDArray[Any]:
        return self._array(self.tensor[first:last:step])

    def _at(self, numbers: Numbers) -> npt.NDArray[Any]:
        torch = import_torch()
        return self._array(self.tensor[torch.as_tensor(numbers, device=self.tensor.device)])

    def _array(self, tensor: Tensor) -> npt.NDArray[Any]:
        if "bfloat16" in str(tensor.dtype):
            tensor = tensor.float()
        return to_host(tensor)
