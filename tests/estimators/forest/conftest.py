"""Fixtures that tests of forests share."""

from __future__ import annotations

import pytest

from evergrow.estimators.forest import storage


@pytest.fixture
def on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Temporary folders may be in memory on the machine that runs the tests."""
    monkeypatch.setattr(storage, "_MEMORY_FILE_SYSTEMS", ())
