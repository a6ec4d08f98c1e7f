"""The environment of a result: versions and processor, but not the machine's name or a path."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from evergrow.foundation.version import __version__

_PACKAGES = ("numpy", "scipy", "scikit-learn", "river", "opencv-python-headless", "onnxruntime")


def describe_environment() -> dict[str, Any]:
    """Versions, processor and number of cores.

    Examples
    --------
    >>> from evergrow.research import describe_environment
    >>> describe_environment()["n_cores"] >= 1
    True
    """
    return {
        "versions": {"evergrow": __version__, "python": platform.python_version(), **_packages()},
        "processor": _processor(),
        "n_cores": _n_cores(),
    }


def _packages() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _processor(table: Path = Path("/proc/cpuinfo")) -> str:
    try:
        lines = table.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def _n_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
