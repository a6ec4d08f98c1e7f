"""A machine of known speed, so that plans can be tested without measuring."""

from __future__ import annotations

import pytest

from evergrow.distributed.planning import planner
from evergrow.distributed.planning.schedule import Cost
from evergrow.distributed.planning.trial import Trial
from evergrow.distributed.planning.workload import EstimatorSpec, Workload

TRIAL_WORK = Workload(10_000, 64, 50, trees=1)
IMAGE_SECONDS = 0.012


def known_trial(spec: EstimatorSpec, work: Workload, verbose: int = 0) -> Trial:
    """A trial that took 0.1 s for one tree or for all rows, and 0.01 s once."""
    return Trial(spec, TRIAL_WORK, Cost(0.1, 0.01), tree_bytes=1e6)


@pytest.fixture
def known_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is timed."""
    monkeypatch.setattr(planner, "run_trial", known_trial)
    monkeypatch.setattr(planner, "measure_images", lambda: IMAGE_SECONDS)
