"""Workspaces of small pictures that the tests of commands share."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from evergrow.cli import main
from tests.vision.classifier.pictures import folder_of
from tests.vision.embedding.models import onnx_model


@pytest.fixture(scope="session")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network that mixes the colours of images, as a file."""
    path = tmp_path_factory.mktemp("network") / "colours.onnx"
    path.write_bytes(onnx_model().SerializeToString())
    return path


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory, network: Path) -> Path:
    """A workspace that knows red and green; tests must not change it."""
    folder = tmp_path_factory.mktemp("made")
    photos = folder_of(folder / "photos", "red", "green", n=12)
    # Few false alarms: tests that ask about known things expect names.
    options = ["--features", str(network), "--false-alarms", "0.01", "-q"]
    for arguments in (
        ["init", str(folder / "things"), *options],
        ["learn", str(folder / "things"), str(photos), "-q"],
    ):
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0, result.output
    return folder / "things"


@pytest.fixture
def things(made: Path, tmp_path: Path) -> Path:
    """A copy of that workspace."""
    return Path(shutil.copytree(made, tmp_path / "things"))
