"""The papers' experiments from the command line."""

import subprocess
import sys

import numpy as np
import pytest

from evergrow.research import PAPERS, experiment_names, mixture


@pytest.fixture
def features(tmp_path):
    """A small file of features as a user has one."""
    data = mixture(10, 6, 20, 5)
    path = tmp_path / "features.npz"
    np.savez(path, X=data.X_train, y=data.y_train)
    return path


def test_the_list_names_every_table_and_figure(run):
    result = run("experiment", "--list")
    assert result.exit_code == 0, result.output
    for name in experiment_names():
        assert f"  {name} " in result.output
    for paper in PAPERS:
        for illustration in paper.illustrations:
            assert illustration.why in result.output


def test_an_experiment_says_what_agrees_and_where_its_picture_is(run, features, tmp_path):
    result = run("experiment", "guide-nightly", "--quick", "--data", features, "--out", "found")
    assert result.exit_code == 0, result.output
    assert "retraining the forest gains little" in result.output
    assert (tmp_path / "found" / "guide-nightly.svg").exists()
    assert "guide-nightly.md" in (tmp_path / "found" / "index.md").read_text()


def test_data_of_ones_own_have_no_use_where_none_are_taken(run, features):
    result = run("experiment", "guide-many-classes", "--data", features)
    assert result.exit_code == 2
    assert "generates its own data" in result.output


def test_without_a_name_it_says_what_to_do(run):
    result = run("experiment")
    assert result.exit_code == 2
    assert "--list" in result.output


def test_a_wrong_name_is_said(run):
    result = run("experiment", "cvpr2014-fig11")
    assert result.exit_code == 1
    assert "did you mean cvpr2014-fig1" in result.output


def test_an_output_folder_that_cannot_be_written_is_said(run, tmp_path):
    (tmp_path / "file").write_text("in the way")
    result = run("experiment", "guide-nightly", "--quick", "--out", "file/results")
    assert result.exit_code == 1
    assert "cannot write to the folder" in result.output


def _broken(tmp_path, **arrays):
    path = tmp_path / "broken.npz"
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.full((40, 2), np.nan), "y": np.repeat(np.arange(10), 4)}, "NaN|not finite|nan"),
        ({"X": np.ones((40, 2))}, "lacks y"),
        ({"X": np.ones((4, 2)), "y": np.array([1, "a", None, 2], dtype=object)}, "pickle"),
    ],
)
def test_data_that_cannot_be_used_are_said(run, tmp_path, arrays, message):
    path = _broken(tmp_path, **arrays)
    result = run("experiment", "guide-nightly", "--quick", "--data", path)
    assert result.exit_code == 1
    assert any(part in result.output for part in message.split("|")), result.output


def test_data_with_fewer_classes_than_asked_for_are_said(run, tmp_path):
    data = mixture(2, 4, 20, 5)
    path = _broken(tmp_path, X=data.X_train, y=data.y_train)
    result = run("experiment", "cvpr2014-fig5", "--quick", "--data", path)
    assert result.exit_code == 1
    assert "classes" in result.output


def _command(folder, features):
    options = ["--quick", "--data", str(features), "--out", str(folder), "--jobs", "1"]
    return [sys.executable, "-m", "evergrow", "experiment", "guide-nightly", *options]


def test_killed_half_way_and_started_again_it_gives_the_same_table(tmp_path, features):
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    subprocess.run(_command(undisturbed, features), check=True, capture_output=True)
    runs = killed / ".runs" / "guide-nightly.jsonl"
    process = subprocess.Popen(
        _command(killed, features), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while process.poll() is None:
        if runs.exists() and len(runs.read_bytes().splitlines()) >= 3:
            process.kill()
            process.wait()
    assert not (killed / "guide-nightly.csv").exists()
    subprocess.run(_command(killed, features), check=True, capture_output=True)
    name = "guide-nightly.csv"
    assert (killed / name).read_bytes() == (undisturbed / name).read_bytes()
