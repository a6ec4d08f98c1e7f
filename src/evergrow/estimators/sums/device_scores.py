"""Scores that are linear in features, computed on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.sums.core_accumulator import FeatureRule
from evergrow.estimators.sums.device_accumulator import DeviceFeatures, products_in
from evergrow.foundation.device import Device, Tensor, import_torch
from evergrow.storage.device_rows import upload_blocks

Floats = npt.NDArray[np.float64]

# Bytes of features and scores computed at once.
_BLOCK_BYTES = 512 << 20
# Larger inputs are clipped to this, so that their products stay finite.
_FARTHEST = {"double": 1e140, "tf32": 1e15}


@dataclass(frozen=True, eq=False)
class DeviceLinearScores:
    """The scores ``(features(x) - shift) @ weights' + offsets`` of every class."""

    device: Device
    features: DeviceFeatures
    weights: Tensor
    offsets: Tensor

    @classmethod
    def of(
        cls,
        device: Device,
        weights: Floats,
        offsets: Floats,
        *,
        shift: Floats | None = None,
        rule: FeatureRule | None = None,
    ) -> DeviceLinearScores:
        """Copy weights of shape (n_classes, n_features) to a device."""
        n_inputs = weights.shape[1]
        rule = FeatureRule(n_inputs, n_inputs) if rule is None else rule
        with products_in(device.precision) as dtype, device.report_full():
            return cls(
                device,
                DeviceFeatures(rule, device, dtype, shift),
                device.tensor(np.ascontiguousarray(weights), dtype),
                device.tensor(offsets, dtype),
            )

    def blocks(self, X: npt.NDArray[Any]) -> Iterator[tuple[slice, Tensor]]:
        """Yield (rows, scores of shape (n_rows, n_classes)), a block of rows at a time."""
        width = max(self.features.n_features, len(self.offsets), X.shape[1])
        max_rows = max(64, _BLOCK_BYTES // (8 * width))
        for rows, block in upload_blocks(X, self.device, max_rows):
            yield rows, self._scores(block)

    def _scores(self, block: Tensor) -> Tensor:
        torch = import_torch()
        farthest = _FARTHEST[self.device.precision]
        with products_in(self.device.precision) as dtype:
            # Doubles are clipped before they are rounded, or they would become infinite.
            inputs = block if block.dtype == torch.float64 else block.to(dtype)
            inputs = inputs.clamp(-farthest, farthest)
            scores = torch.addmm(self.offsets, self.features(inputs), self.weights.T)
        return scores.double()
