"""Models and pictures that the tests of the command line share."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from evergrow.cli import main
from tests.vision.classifier.pictures import folder_of


class Run:
    """Runs command lines in the current folder: words in one text, then further arguments."""

    def __call__(self, line, *arguments):
        return CliRunner().invoke(main, [*line.split(), *(str(one) for one in arguments)])

    def ok(self, line, *arguments):
        """Run a command line that must succeed."""
        result = self(line, *arguments)
        assert result.exit_code == 0, result.output
        return result

    def fails(self, line, *arguments, code=1, says=""):
        """Run a command line that must fail with this exit code and message."""
        result = self(line, *arguments)
        assert result.exit_code == code, result.output
        assert isinstance(result.exception, SystemExit)
        assert says in result.stderr
        return result


def terminal(monkeypatch, columns):
    """Let standard output be a terminal of this width."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("evergrow.cli.output.is_terminal", lambda: True)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Run()


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A model of red and green; tests must not change it."""
    folder = tmp_path_factory.mktemp("trained")
    photos = folder_of(folder / "photos", "red", "green")
    model = folder / "model.evergrow"
    arguments = ["fit", str(photos), "-o", str(model), "--features", "hsl"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return model


@pytest.fixture
def model(trained, tmp_path):
    """A copy of that model."""
    return Path(shutil.copy(trained, tmp_path / "model.evergrow"))


@pytest.fixture(scope="session")
def photos(tmp_path_factory):
    """Other pictures of red and green."""
    return folder_of(tmp_path_factory.mktemp("photos"), "red", "green", n=3, seed=100)
