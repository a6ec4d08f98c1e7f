"""A machine whose speed is known, so that plans can be tested without measuring."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from evergrow.distributed.planning import kept
from evergrow.distributed.planning.calibration import Calibration
from evergrow.distributed.planning.families import Family
from evergrow.distributed.planning.machine import Machine
from evergrow.distributed.planning.shape import Law, ShapeLaws

LAWS = ShapeLaws(
    visits=Law(0.95, 0.0, 0.0, 0.0, 0.0),
    splits=Law(0.6, 0.0, 0.0, 0.0, 0.0),
    classes_per_node=Law(1.0, 0.0, -0.75, 0.0, 0.95),
    vectors=Law(0.1, 0.0, 0.0, 0.0, 0.5),
    other_bytes=Law(1.0, 0.0, 0.0, 0.0, 0.0),
)
MACHINE = Machine(
    copy_rate=1e10,
    hash_rate=1.5e9,
    write_rate=1e9,
    read_rate=2e9,
    crowding=1.2,
    far_crowding=1.5,
)


def known_calibration(family: Family, *, verbose: int = 0) -> Calibration:
    """A nanosecond for every unit of every part of the work."""
    laws = LAWS if family.has_shape else None
    return Calibration(family.name, (1e-9,) * len(family.terms), laws, 0.05, 1.0)


def calibrate_with_error(error: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on runs are foretold from each other with this error."""

    def calibrate(family: Family, *, verbose: int = 0) -> Calibration:
        return replace(known_calibration(family), error=error)

    monkeypatch.setattr(kept, "calibrate", calibrate)


class Counter:
    """How often each thing was measured."""

    def __init__(self) -> None:
        self.calibrated: list[str] = []
        self.n_machines = self.n_rays = self.n_images = 0


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Counter:
    """Nothing is measured but counted; what is kept goes to a folder of this test."""
    counter = Counter()
    monkeypatch.setenv("EVERGROW_CACHE", str(tmp_path / "cache"))

    def calibrate(family: Family, *, verbose: int = 0) -> Calibration:
        counter.calibrated.append(family.name)
        return known_calibration(family)

    def measure_machine(verbose: int = 0) -> Machine:
        counter.n_machines += 1
        return MACHINE

    def measure_ray() -> tuple[float, float]:
        counter.n_rays += 1
        return 2e9, 1e-3

    def measure_images() -> float:
        counter.n_images += 1
        return 0.012

    monkeypatch.setattr(kept, "calibrate", calibrate)
    monkeypatch.setattr(kept, "measure_machine", measure_machine)
    monkeypatch.setattr(kept, "measure_images", measure_images)
    monkeypatch.setattr("evergrow.distributed.planning.machine.measure_ray", measure_ray)
    return counter
