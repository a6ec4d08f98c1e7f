"""Copies of a fitted forest on devices, made when they are first used."""

from __future__ import annotations

import threading
from typing import Any

from evergrow import _core
from evergrow.estimators.forest.device.device_forest import DeviceForest
from evergrow.estimators.forest.device.features import DeviceFeatures
from evergrow.foundation.device import Device

_ADVICE = "the trees of the forest do not fit: grow fewer trees, free memory, or use device='cpu'"


class DeviceCache:
    """The copies of one fitted forest; they go with it, and are not pickled."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[Device, DeviceForest] = {}

    def of(self, device: Device, forest: _core.Forest, scale: Any) -> DeviceForest:
        """Return the copy of a forest on a device; ``scale`` is its transform of the features."""
        found = self._found.get(device)
        if found is None:
            with self._lock, device.report_full(_ADVICE):
                found = self._found.get(device)
                if found is None:
                    features = DeviceFeatures(
                        device, scale.mean, scale.scale, scale.whitening, scale.length_features
                    )
                    found = self._found[device] = DeviceForest(device, forest, features)
        return found
