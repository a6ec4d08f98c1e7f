"""What the benchmarks compute is what their tables say."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks import gpu
from benchmarks.__main__ import BENCHMARKS, find_part, main
from benchmarks.data import mixture
from benchmarks.export import compare
from benchmarks.linear.examples import _update_with_numpy, seconds_per_example
from benchmarks.linear.rejection import calibration_error, novelties
from benchmarks.measure import call_in_child
from benchmarks.subcategory import answers, refined_and_refitted
from evergrow.research import mixture as dataset
from evergrow.research.papers.cvpr2015.learners import LEARNERS
from evergrow.research.papers.cvpr2015.levels import TwoLevels, draw

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def levels():
    return TwoLevels.of(dataset(6, 24, 40, 10, distance=0.75, n_groups=3))


def test_a_call_in_a_child_gives_its_result_and_is_not_in_this_process():
    assert call_in_child("os:getpid") != os.getpid()
    assert call_in_child("operator:add", 2, 3) == 5


def test_a_call_that_fails_in_a_child_fails_here(capfd):
    with pytest.raises(RuntimeError, match="operator:truediv ended with exit code 1"):
        call_in_child("operator:truediv", 1, 0)
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_confidence_that_is_right_as_often_as_it_says_has_no_calibration_error():
    probabilities = np.tile([0.75, 0.25], (400, 1))
    right = np.arange(400) % 4 > 0
    assert calibration_error(probabilities, right) == pytest.approx(0.0)
    assert calibration_error(probabilities, np.zeros(400, dtype=bool)) == pytest.approx(0.75)


def test_the_peers_update_of_the_factor_is_right():
    rng = np.random.default_rng(0)
    X, x = rng.normal(size=(30, 6)), rng.normal(size=6)
    factor = np.linalg.cholesky(X.T @ X).T.copy()
    _update_with_numpy(factor, x)
    np.testing.assert_allclose(factor.T @ factor, X.T @ X + np.outer(x, x), atol=1e-9)


def test_seconds_are_measured_after_the_given_number_of_examples():
    found = seconds_per_example(8, 4, (20, 400))
    assert list(found) == [20, 400]
    assert all(seconds > 0 for seconds in found.values())


def test_unknown_classes_are_not_among_those_learnt():
    split = mixture(900, 16, 12, n_test=300)
    model, novelty, known = novelties(split, 6, seed=0)
    assert set(split.y_test[known]) <= set(model.classes_)
    assert not set(split.y_test[~known]) & set(model.classes_)
    assert novelty[~known].mean() > novelty[known].mean()


def test_answers_that_back_off_are_right_more_often_and_fine_less_often(levels):
    shown = draw(levels, 0, 0.5, 0.5)
    model = LEARNERS["ridge-h"].make(5, 0, 1).fit(shown.X, shown.labels)
    right, fine = answers(model, levels, 0.0)
    assert (right, fine) == (np.mean(model.predict(levels.X_test) == levels.fine_test), 1.0)
    more_right, less_fine = answers(model, levels, 0.6)
    assert more_right > right
    assert less_fine < 1.0


def test_a_divided_class_is_known_after_refining(levels):
    found = refined_and_refitted(levels, int(levels.parents[0]), seed=0, n_trees=3)
    assert found[:, 0].min() > 40
    assert found[:, 1].min() > 50


def test_exported_answers_that_differ_are_counted():
    shares = np.full((4, 2), 0.5)
    own = (np.zeros(4, dtype=int), shares, np.zeros(4, dtype=bool))
    other = (np.array([0, 0, 0, 1]), shares + np.array([[0, 1e-5, 1e-3, 0.2]]).T, own[2] | True)
    same, close, unknown, largest = compare(own, other)
    assert (same, close, unknown, largest) == (0.75, 0.5, 0.0, pytest.approx(0.2))


@pytest.mark.slow
def test_a_part_of_a_benchmark_prints_its_table():
    found = CliRunner().invoke(main, ["linear", "--quick", "--only", "choosing"])
    assert found.exit_code == 0, found.output
    assert "weights for 9 penalties" in found.output


@pytest.mark.parametrize("names", [["growing"], ["fit", "growing"]])
def test_parts_of_other_benchmarks_are_refused(names):
    found = CliRunner().invoke(main, [*names, "--only", "killing"])
    assert found.exit_code == 2
    assert "--only takes parts of one benchmark" in found.output


def test_every_part_of_a_benchmark_is_found():
    parts = [(name, part) for name, parts in BENCHMARKS.items() for part in parts]
    assert all(callable(find_part(*part)) for part in parts)
    assert [*BENCHMARKS["gpu"]] == [*gpu.PARTS]


def test_a_benchmark_is_imported_when_it_runs():
    # Without a package of the service, which other benchmarks do not need.
    code = "import sys; sys.modules['fastapi'] = None; from benchmarks.__main__ import main; main()"
    command = [sys.executable, "-c", code, "service", "--only", "cups"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 2, done.stderr
    assert "service has crashes, two-services," in done.stderr


def test_tables_and_figures_of_a_part_are_written_to_a_result_file(tmp_path):
    options = ["linear", "--quick", "--only", "auto", "--out", str(tmp_path / "results")]
    done = CliRunner().invoke(main, options, env={"EVERGROW_DATA": ""})
    assert done.exit_code == 0, done.output
    (path,) = (tmp_path / "results").iterdir()
    assert path.name == "linear-auto.json"
    result = json.loads(path.read_text())
    assert result["quick"] is True
    assert result["machine"]["cores"] >= 1
    (table,) = result["tables"]
    assert all(len(row) == len(table["columns"]) for row in table["rows"])
