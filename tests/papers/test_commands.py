"""The commands that evergrow-papers adds, and what says that it is missing."""

import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from evergrow.cli import main
from evergrow.cli.group import Commands

pytest.importorskip("evergrow_papers", reason="evergrow-papers is not installed")

from evergrow_papers import frame
from evergrow_papers.data import mixture

pytestmark = pytest.mark.slow


@pytest.fixture
def features(tmp_path):
    """A small file of features as a user has one."""
    data = mixture(10, 6, 20, 5)
    path = tmp_path / "features.npz"
    np.savez(path, X=data.X_train, y=data.y_train)
    return path


def evergrow(*arguments, code=0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.output


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.glob("[a-z]*")}


def test_the_list_names_every_table_and_figure():
    output = evergrow("experiment", "--list")
    for paper in map(frame.load_paper, frame.PAPERS):
        for name in paper.experiments:
            assert f"  {name} " in output
        for why in paper.illustrations.values():
            assert why in output


def test_an_experiment_is_measured_and_rendered(features, tmp_path, monkeypatch):
    folder = tmp_path / "found"
    output = evergrow("experiment", "guide-nightly", "--quick", "--data", features, "--out", folder)
    assert "retraining the forest gains little" in output
    assert "guide-nightly.md" in (folder / "index.md").read_text()
    before = contents(folder)
    (folder / "guide-nightly.md").unlink()
    monkeypatch.setattr(frame, "_measure_all", None)
    evergrow("experiment", "all", "--render", "--out", folder)
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["experiment"], 2, "--list"),
        (["experiment", "cvpr2014-fig11"], 1, "did you mean cvpr2014-fig1"),
        (["experiment", "nothing"], 1, "see evergrow experiment --list"),
        (["experiment", "cvpr2014-fig1"], 1, "it has nothing to measure"),
        (["experiment", "guide-nightly", "--render"], 1, "does not exist: measure the experiment"),
        (["experiment", "all", "--render"], 2, "no results of these experiments in 'results'"),
        (["experiment", "all", "--render", "--quick"], 2, "--render measures nothing"),
        (["experiment", "guide-many-classes", "--data", "x.npz"], 2, "generates its own data"),
        (["experiment", "guide-nightly", "--quick", "--out", "file/results"], 1, "cannot write"),
        (["download", "imagenet", "here"], 2, "'imagenet' is not one of"),
    ],
)
def test_wrong_commands_say_what_to_do(arguments, code, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("in the way")
    assert message in evergrow(*arguments, code=code)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.full((40, 2), np.nan), "y": np.repeat(np.arange(10), 4)}, "finite"),
        ({"X": np.ones((40, 2))}, "lacks y"),
        ({"X": np.ones((4, 2)), "y": np.array([1, "a", None, 2], dtype=object)}, "Python objects"),
        ({"X": np.ones((40, 2)), "y": np.repeat([0, 1], 20)}, "classes"),
    ],
)
def test_data_that_cannot_be_used_are_refused(arrays, message, tmp_path):
    np.savez(tmp_path / "broken.npz", **arrays)
    options = ["--quick", "--data", tmp_path / "broken.npz", "--out", tmp_path / "found"]
    assert message in evergrow("experiment", "cvpr2014-fig5", *options, code=1)


def test_a_killed_experiment_is_continued(features, tmp_path):
    def command(folder):
        options = ["--quick", "--data", features, "--out", tmp_path / folder, "--jobs", "1"]
        return [sys.executable, "-m", "evergrow", "experiment", "guide-nightly", *options]

    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(command("whole"), check=True, **quiet)
    runs = tmp_path / "killed" / ".runs" / "guide-nightly.jsonl"
    process = subprocess.Popen(command("killed"), **quiet)
    while process.poll() is None:
        if runs.exists() and len(runs.read_bytes().splitlines()) >= 3:
            process.kill()
            process.wait()
    assert not (tmp_path / "killed" / "guide-nightly.csv").exists()
    subprocess.run(command("killed"), check=True, **quiet)
    tables = [(tmp_path / f / "guide-nightly.csv").read_bytes() for f in ("whole", "killed")]
    assert tables[0] == tables[1]


@pytest.mark.parametrize("name", ["experiment", "download"])
def test_without_the_package_it_says_how_to_install_it(name):
    bare = Commands("evergrow", commands={"fit": main.commands["fit"]})
    result = CliRunner().invoke(bare, [name, "--list"])
    assert result.exit_code == 2
    assert "run 'pip install ./papers'" in result.output
