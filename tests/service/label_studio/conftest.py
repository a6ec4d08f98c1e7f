"""A service that is connected to a fake Label Studio."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evergrow.service.http.settings import Settings
from tests.service.conftest import Served
from tests.service.label_studio.fake import TOKEN, FakeLabelStudio, fake_label_studio


@pytest.fixture
def studio() -> Iterator[FakeLabelStudio]:
    with fake_label_studio() as fake:
        yield fake


@pytest.fixture
def settings(studio: FakeLabelStudio) -> Settings:
    """Settings of the service: it looks for changes only when it is told to."""
    return Settings(label_studio=studio.url, label_studio_token=TOKEN, label_studio_seconds=3600.0)


@pytest.fixture
def connected(served_images: Served, folder: Path) -> Served:
    """A service that takes images, connected to the fake."""
    assert folder.is_dir()
    return served_images
