"""Benchmarks: their parts, their helpers, and the result files that the documentation includes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.__main__ import BENCHMARKS, find_part, main
from benchmarks.growing import class_batches
from benchmarks.linear import _update_with_numpy, seconds_per_example
from benchmarks.measure import call_in_child, to_markdown

ROOT = Path(__file__).resolve().parents[1]
RESULTS = sorted((ROOT / "benchmarks/results").glob("*.json"))
PAGES = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]


def test_a_call_in_a_child_gives_its_result():
    assert call_in_child("os:getpid") != os.getpid()
    assert call_in_child("operator:add", 2, 3) == 5


def test_a_call_that_fails_in_a_child_fails_here(capfd):
    with pytest.raises(RuntimeError, match="operator:truediv ended with exit code 1"):
        call_in_child("operator:truediv", 1, 0)
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_the_peers_update_of_the_factor_is_right():
    rng = np.random.default_rng(0)
    X, x = rng.normal(size=(30, 6)), rng.normal(size=6)
    factor = np.linalg.cholesky(X.T @ X).T.copy()
    _update_with_numpy(factor, x)
    np.testing.assert_allclose(factor.T @ factor, X.T @ X + np.outer(x, x), atol=1e-9)


def test_seconds_are_measured_for_every_number_of_examples():
    found = seconds_per_example(8, 4, (20, 400))
    assert list(found) == [20, 400]
    assert all(seconds > 0 for seconds in found.values())


@pytest.mark.parametrize(("initial", "chunk", "sizes"), [(3, 1, [3, 1, 1, 1]), (2, 3, [2, 3, 1])])
def test_a_stream_has_every_row_of_its_classes_once(initial, chunk, sizes):
    y = np.arange(50) % 10
    order, batches = class_batches(y, initial, chunk, 6, seed=0)
    assert [len(np.unique(y[rows])) for rows in batches] == sizes
    rows = np.concatenate(batches)
    assert sorted(rows) == np.flatnonzero(np.isin(y, order)).tolist()
    assert len(order) == 6


@pytest.mark.parametrize("names", [["growing"], ["fit", "growing"], ["all"]])
def test_parts_of_other_benchmarks_are_refused(names):
    found = CliRunner().invoke(main, [*names, "--only", "killing"])
    assert found.exit_code == 2
    assert "--only takes parts of one benchmark" in found.output


def test_every_part_of_a_benchmark_is_found():
    parts = [(name, part) for name, parts in BENCHMARKS.items() for part in parts]
    assert all(callable(find_part(*part)) for part in parts)


@pytest.mark.slow
def test_a_benchmark_is_imported_when_it_runs():
    # Without a package of the service, which other benchmarks do not need.
    code = "import sys; sys.modules['fastapi'] = None; from benchmarks.__main__ import main; main()"
    command = [sys.executable, "-c", code, "service", "--only", "cups"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 2, done.stderr
    assert "service has teaching, predictions," in done.stderr


def test_tables_of_a_part_are_written_as_json_and_markdown(tmp_path):
    options = ["linear", "--quick", "--only", "choosing", "--out", str(tmp_path / "results")]
    done = CliRunner().invoke(main, options, env={"EVERGROW_DATA": ""})
    assert done.exit_code == 0, done.output
    assert "weights for 9 penalties" in done.output
    markdown, result = sorted((tmp_path / "results").iterdir(), reverse=True)
    record = json.loads(result.read_text())
    assert record["quick"] is True
    assert record["machine"]["cores"] >= 1
    (table,) = record["tables"]
    assert all(len(row) == len(table["columns"]) for row in table["rows"])
    assert markdown.read_text() == to_markdown(record)


def test_stored_results_are_of_full_runs_of_known_parts():
    assert len(RESULTS) > 25
    for path in RESULTS:
        record = json.loads(path.read_text("utf-8"))
        assert not record["quick"], path.name
        assert record["part"] in BENCHMARKS[record["benchmark"]], path.name
        assert path.with_suffix(".md").read_text("utf-8") == to_markdown(record), path.name


def test_the_docs_name_benchmarks_that_exist():
    text = " ".join(path.read_text("utf-8") for path in PAGES)
    commands = re.findall(r"python -m benchmarks\s+([a-z-]+)(?:\s+--only\s+([a-z-]+))?", text)
    assert len(commands) > 5
    for name, part in commands:
        if name != "--help":
            assert not part or part in BENCHMARKS[name], (name, part)
            assert name in BENCHMARKS
