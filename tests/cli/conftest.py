"""Models and pictures that the tests of the command line share."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from evergrow.cli import main
from tests.vision.classifier.pictures import folder_of

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command line in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: Any) -> Result:
        return CliRunner().invoke(main, [str(one) for one in arguments])

    return run


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of red and green; tests must not change it."""
    folder = tmp_path_factory.mktemp("trained")
    photos = folder_of(folder / "photos", "red", "green")
    model = folder / "model.evergrow"
    arguments = ["fit", str(photos), "-o", str(model), "--features", "hsl"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return model


@pytest.fixture
def model(trained: Path, tmp_path: Path) -> Path:
    """A copy of that model."""
    return Path(shutil.copy(trained, tmp_path / "model.evergrow"))


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Other pictures of red and green."""
    return folder_of(tmp_path_factory.mktemp("photos"), "red", "green", n=3, seed=100)
