"""Workspaces that the tests of several modules share."""

from __future__ import annotations

import pytest

from tests.workspace.builders import new_workspace


@pytest.fixture
def workspace(tmp_path):
    """An empty workspace for embeddings, open."""
    with new_workspace(tmp_path) as workspace:
        yield workspace
