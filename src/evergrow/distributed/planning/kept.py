"""Calibrations on disk: in the user's folder for caches, for this machine and these versions."""

from __future__ import annotations

import json
import math
import os
import platform
from dataclasses import asdict, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from evergrow import _core
from evergrow.distributed.planning.calibration import Calibration, calibrate
from evergrow.distributed.planning.families import Family
from evergrow.distributed.planning.machine import Machine, measure_images, measure_machine
from evergrow.distributed.planning.shape import Law, ShapeLaws
from evergrow.distributed.planning.workload import this_machine
from evergrow.foundation.version import __version__
from evergrow.storage.cache_folder import cache_folder, warn_once, write_whole

__all__ = ["Kept", "identity", "processor_name"]

_FORMAT = 3
_NAME = "plan.json"
# Of a machine, what need not have been measured yet.
_OPTIONAL = ("put_rate", "task_seconds", "image_seconds")
# More is no calibration of ours.
_MOST_BYTES = 1 << 20


def processor_name(table: Path = Path("/proc/cpuinfo")) -> str:
    """The processor as the system names it."""
    try:
        lines = table.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def identity() -> dict[str, Any]:
    """All that a calibration depends on; one of another machine or version is made again."""
    return {
        "format": _FORMAT,
        "evergrow": __version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "ray": _version_of("ray"),
        "kernel": _core.chosen_kernel(),
        "processor": processor_name(),
        "cores": this_machine()[0],
    }


def _version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


class Kept:
    """The calibrations of this machine; measured where they are missing, kept where they can be.

    ``fresh`` measures again what is there already.
    """

    def __init__(self, *, fresh: bool = False, verbose: int = 0) -> None:
        self._path = cache_folder() / _NAME
        self._fresh, self._verbose = fresh, verbose
        self._content = self._read()

    def calibration(self, family: Family) -> Calibration:
        """How long the parts of a learner's work take."""
        entry = None if self._fresh else self._content["estimators"].get(family.name)
        found = None if entry is None else _as_calibration(family, entry)
        if found is None:
            found = calibrate(family, verbose=self._verbose)
            self._content["estimators"][family.name] = _from_calibration(family, found)
            self._write()
        return found

    def machine(self, *, images: bool, ray: bool) -> Machine:
        """What the machine does beside; with images and Ray if they are to be among it."""
        entry = None if self._fresh else self._content["machine"]
        found = None if entry is None else _as_machine(entry)
        if found is None:
            found = measure_machine(self._verbose)
            self._keep(found)
        if images and found.image_seconds is None:
            found = replace(found, image_seconds=measure_images())
            self._keep(found)
        if ray and not found.ray_is_measured:
            found = found.with_ray()
            # What is assumed when Ray does not answer is not kept: the next plan asks it again.
            if found.ray_is_measured:
                self._keep(found)
        return found

    def _keep(self, machine: Machine) -> None:
        self._content["machine"] = asdict(machine)
        self._write()

    def _read(self) -> dict[str, Any]:
        empty: dict[str, Any] = {"identity": identity(), "machine": None, "estimators": {}}
        try:
            with open(self._path, "rb") as file:
                # Cut off, what is too large to be ours is no JSON either.
                content = json.loads(file.read(_MOST_BYTES))
        except FileNotFoundError:
            return empty
        except (OSError, ValueError, RecursionError) as error:
            warn_once(self._path, f"cannot be used and is measured again ({error})")
            return empty
        is_ours = isinstance(content, dict) and isinstance(content.get("estimators"), dict)
        if not is_ours:
            warn_once(self._path, "cannot be used and is measured again (it is not a calibration)")
        elif content.get("identity") == empty["identity"]:
            return {**empty, **{name: content.get(name) for name in ("machine", "estimators")}}
        return empty

    def _write(self) -> None:
        try:
            write_whole(self._path, json.dumps(self._content, indent=1).encode())
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            warn_once(self._path, f"cannot be written, so that it is measured each time ({reason})")


def _from_calibration(family: Family, found: Calibration) -> dict[str, Any]:
    return {
        "rates": {term.name: rate for term, rate in zip(family.terms, found.rates, strict=True)},
        "laws": None if found.laws is None else asdict(found.laws),
        "error": found.error,
        "largest": found.largest,
    }


def _as_calibration(family: Family, entry: Any) -> Calibration | None:
    """None unless all that belongs to it is there and is a number."""
    try:
        rates = tuple(_number(entry["rates"][term.name], low=0.0) for term in family.terms)
        laws = None
        if family.has_shape:
            laws = ShapeLaws(
                **{
                    name: Law(**{part: _number(law[part]) for part in Law.__dataclass_fields__})
                    for name, law in (
                        (name, entry["laws"][name]) for name in ShapeLaws.__dataclass_fields__
                    )
                }
            )
        error = _number(entry["error"], low=0.0)
        largest = _number(entry["largest"], low=1e-9)
    except (TypeError, KeyError, ValueError, AttributeError):
        return None
    return Calibration(family.name, rates, laws, error, largest) if any(rates) else None


def _as_machine(entry: Any) -> Machine | None:
    try:
        numbers: dict[str, Any] = {
            name: None if name in _OPTIONAL and entry[name] is None else _number(entry[name], 1e-12)
            for name in Machine.__dataclass_fields__
            if name != "ray_is_measured"
        }
        return Machine(**numbers, ray_is_measured=entry["ray_is_measured"] is True)
    except (TypeError, KeyError, ValueError):
        return None


def _number(value: Any, low: float = -math.inf) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError("not a number")
    if not (math.isfinite(value) and value >= low):
        raise ValueError("out of range")
    return float(value)
