"""Fixtures that tests of forests share."""

from __future__ import annotations

import pytest

from evergrow.estimators.forest.storage import budget, scratch_file


@pytest.fixture
def small_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count rows and nothing else, so that a few hundred small ones do not fit."""
    # Temporary folders may be memory on the machine that runs the tests.
    monkeypatch.setattr(scratch_file, "is_in_memory", lambda folder: False)
    monkeypatch.setattr(budget, "_SLACK", 0)
    monkeypatch.setattr(budget, "_SLACK_PER_THREAD", 0)
    monkeypatch.setattr(budget, "_LEAST_ROWS", 640)
    for name in ("_SHARED_PER_PLACE", "_THREAD_PER_ROW"):
        monkeypatch.setattr(budget, name, {"fit": 0, "update": 0})
    for name in ("_SHARED_PER_ROW", "_EVICTED_PER_ROW"):
        monkeypatch.setattr(budget, name, 0)
    monkeypatch.setattr(budget, "_scratch_bytes", lambda demand: 0)
