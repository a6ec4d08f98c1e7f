"""The transform of the features on a device, as ``Standardizer`` of the core does it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.device import Device, Tensor, import_torch

# As in cpp/samples/standardizer.cpp.
_LIMIT = 1e15
_LENGTH_POWER = 0.1


class DeviceStandardizer:
    """Centre, scale and whiten rows, and bring them to nearly equal length."""

    def __init__(
        self,
        device: Device,
        mean: npt.NDArray[np.float64],
        scale: npt.NDArray[np.float64],
        whitening: npt.NDArray[np.float32] | None,
        length_features: npt.NDArray[np.uint8] | None,
    ) -> None:
        double = import_torch().float64
        self._mean, self._scale = device.tensor(mean), device.tensor(scale)
        self._whitening = None
        if whitening is not None:
            # In double precision, which no setting of torch for matrix products affects.
            self._whitening = device.tensor(np.tril(whitening).T, double)
        self._counts = None if length_features is None else device.tensor(length_features, double)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self._mean)

    def apply(self, rows: Tensor, width: int) -> Tensor:
        """Transform rows of any type to single precision, padded with zeros to a width."""
        torch = import_torch()
        out = torch.zeros((len(rows), width), dtype=torch.float32, device=rows.device)
        found = _clip((rows.double() - self._mean).mul_(self._scale))
        if self._whitening is not None:
            found = _clip(found.float().double() @ self._whitening)
        if self._counts is not None:
            found = _clip(self._equalise(found.float().double()))
        out[:, : self.n_features] = found
        return out

    def _equalise(self, rows: Tensor) -> Tensor:
        square = (rows * rows) @ self._counts
        # A row without length, the centre, stays.
        ratio = (self.n_features / square).where(square > 0, 1.0)
        return rows * (ratio ** ((1 - _LENGTH_POWER) / 2))[:, None]


def _clip(values: Any) -> Any:
    return values.clamp_(-_LIMIT, _LIMIT)
