"""Workspaces of small pictures that the tests of commands share."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from evergrow.cli import main
from evergrow.workspace import Workspace
from tests.vision.classifier.pictures import folder_of
from tests.vision.embedding.models import onnx_model

# Pictures of each of the two classes.
N_PICTURES = 40


@pytest.fixture(scope="session")
def network(tmp_path_factory):
    """A network that mixes the colours of images, as a file."""
    path = tmp_path_factory.mktemp("network") / "colours.onnx"
    path.write_bytes(onnx_model().SerializeToString())
    return path


@pytest.fixture(scope="session")
def trained_workspace(tmp_path_factory, network):
    """A workspace that knows red and green; tests must not change it."""
    folder = tmp_path_factory.mktemp("trained_workspace")
    photos = folder_of(folder / "photos", "red", "green", n=N_PICTURES)
    # Few false alarms: tests that ask about known things expect names. A rate this low needs more
    # pictures to be measured than one of ten percent.
    options = ["--features", str(network), "--false-alarms", "0.01", "-q"]
    for arguments in (
        ["init", str(folder / "things"), *options],
        ["learn", str(folder / "things"), str(photos), "-q"],
    ):
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0, result.output
    return folder / "things"


@pytest.fixture
def things(trained_workspace, tmp_path):
    """A copy of that workspace."""
    return Path(shutil.copytree(trained_workspace, tmp_path / "things"))


def counts(folder):
    """The number of examples of each class."""
    with Workspace.open(folder, read_only=True) as workspace:
        return {entry.name: entry.n_examples for entry in workspace.classes().items}
