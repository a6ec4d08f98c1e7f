"""Fixtures that tests of forests share."""

from __future__ import annotations

import pytest

from evergrow.estimators.forest import room, scratch


@pytest.fixture
def small_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count rows and nothing else, so that a few hundred small ones do not fit."""
    # Temporary folders may be memory on the machine that runs the tests.
    monkeypatch.setattr(scratch, "is_in_memory", lambda folder: False)
    monkeypatch.setattr(room, "_SLACK", 0)
    monkeypatch.setattr(room, "_SLACK_PER_THREAD", 0)
    monkeypatch.setattr(room, "_UNPACKED", 0)
    monkeypatch.setattr(room, "_LEAST_ROWS", 640)
    for name in ("_SHARED_PER_PLACE", "_THREAD_PER_ROW"):
        monkeypatch.setattr(room, name, {"fit": 0, "update": 0})
    for name in ("_SHARED_PER_ROW", "_EVICTED_PER_ROW"):
        monkeypatch.setattr(room, name, 0)
    proposers = dict.fromkeys(room._PROPOSERS, lambda work: 0)
    monkeypatch.setattr(room, "_PROPOSERS", proposers)
