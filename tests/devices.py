"""Devices that tests of GPUs run on: torch on the processor, and a GPU where there is one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evergrow.foundation.device import TORCH_CPU, named_device
from evergrow.storage.device_rows import DeviceRows

DEVICES = [TORCH_CPU, pytest.param("cuda", marks=pytest.mark.gpu)]
every_device = pytest.mark.parametrize("device", DEVICES)


def import_torch() -> Any:
    """Import torch, or skip the tests of the module that calls this."""
    return pytest.importorskip("torch", reason="GPUs are used through torch, the extra 'gpu'")


def on(device: str, X: np.ndarray[Any, Any]) -> DeviceRows:
    """Rows that lie on a device."""
    found = named_device(device)
    assert found is not None
    return DeviceRows.of(found.tensor(X))
