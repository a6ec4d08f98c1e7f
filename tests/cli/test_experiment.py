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
    result = run.ok("experiment --list")
    for name in experiment_names():
        assert f"  {name} " in result.output
    for paper in PAPERS:
        for illustration in paper.illustrations:
            assert illustration.why in result.output


def test_an_experiment_says_what_agrees_and_where_its_picture_is(run, features, tmp_path):
    result = run.ok(f"experiment guide-nightly --quick --data {features} --out found")
    assert "retraining the forest gains little" in result.output
    assert (tmp_path / "found" / "guide-nightly.svg").exists()
    assert "guide-nightly.md" in (tmp_path / "found" / "index.md").read_text()


def test_stored_results_are_rendered_without_measuring(run, features, tmp_path, monkeypatch):
    run.ok(f"experiment guide-nightly --quick --data {features} --out found")
    before = {path.name: path.read_bytes() for path in (tmp_path / "found").glob("[a-z]*")}
    (tmp_path / "found" / "guide-nightly.md").unlink()
    monkeypatch.setattr("evergrow.research.experiments.runner.measure_runs", None)
    result = run.ok("experiment all --render --out found")
    assert "retraining the forest gains little" in result.output
    assert {path.name: path.read_bytes() for path in (tmp_path / "found").glob("[a-z]*")} == before


@pytest.mark.slow
def test_a_figure_that_is_kept_is_reported(run, tmp_path):
    run.ok("experiment icra2017-fig1 --quick --out found")
    result = run.ok("experiment icra2017-fig1 --render --out found")
    assert "icra2017-fig1.svg is kept; no file has what it shows (outline)" in result.output


def test_results_that_are_not_there_cannot_be_rendered(run, tmp_path):
    run.fails("experiment guide-nightly --render", says="does not exist: measure the experiment")
    run.fails(
        "experiment all --render", code=2, says="no results of these experiments in 'results'"
    )
    run.fails("experiment all --render --quick", code=2, says="--render measures nothing")


def test_data_are_refused_by_experiments_that_generate_them(run, features):
    run.fails(
        f"experiment guide-many-classes --data {features}", code=2, says="generates its own data"
    )


def test_without_a_name_it_says_what_to_do(run):
    run.fails("experiment", code=2, says="--list")


def test_a_wrong_name_is_reported(run):
    run.fails("experiment cvpr2014-fig11", says="did you mean cvpr2014-fig1")


def test_an_output_folder_that_cannot_be_written_is_reported(run, tmp_path):
    (tmp_path / "file").write_text("in the way")
    run.fails(
        "experiment guide-nightly --quick --out file/results", says="cannot write to the folder"
    )


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
def test_data_that_cannot_be_used_are_reported(run, tmp_path, arrays, message):
    path = _broken(tmp_path, **arrays)
    result = run.fails("experiment guide-nightly --quick --data", path)
    assert any(part in result.output for part in message.split("|")), result.output


def test_data_with_too_few_classes_are_reported(run, tmp_path):
    data = mixture(2, 4, 20, 5)
    path = _broken(tmp_path, X=data.X_train, y=data.y_train)
    run.fails("experiment cvpr2014-fig5 --quick --data", path, says="classes")


def _command(folder, features):
    options = ["--quick", "--data", str(features), "--out", str(folder), "--jobs", "1"]
    return [sys.executable, "-m", "evergrow", "experiment", "guide-nightly", *options]


@pytest.mark.slow
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
