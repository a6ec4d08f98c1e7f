"""``evergrow plan``: output, options and what is refused."""

import json

import pytest

import evergrow
from evergrow.cli.plan import _DTYPES, _ESTIMATORS
from evergrow.distributed.planning.workload import ESTIMATORS
from tests.cli.conftest import terminal
from tests.distributed.planning.conftest import known_speed

__all__ = ["known_speed"]

pytestmark = pytest.mark.usefixtures("known_speed")

IMAGENET = "plan --rows 1.2e6 --features 1000 --classes 1000"


def test_the_choices_are_those_of_the_library():
    assert tuple(ESTIMATORS) == _ESTIMATORS
    assert _DTYPES == ("float16", "float32", "float64")


def test_a_plan_reports_time_memory_disk_network_and_limits(run):
    result = run.ok(IMAGENET, "--nodes", "4", "--cores-per-node", "16")
    names = [line.split("\t")[0] for line in result.stdout.splitlines()]
    for name in (
        "time on one core",
        "time on this machine",
        "time on 4 nodes of 16 cores, 64 workers",
        "memory of each worker",
        "memory shared on each node",
        "disk for shards",
        "disk for the model",
        "network",
        "limit",
    ):
        assert name in names


def test_on_a_terminal_the_plan_is_in_columns_as_in_python(run, monkeypatch):
    terminal(monkeypatch, 400)
    result = run(IMAGENET)
    assert result.stdout == f"{evergrow.plan(1.2e6, 1000, 1000)}\n"
    assert "\t" not in result.stdout


@pytest.mark.parametrize(("size", "n_bytes"), [("1e9", 10**9), ("1000000", 10**6), ("2kB", 2000)])
def test_bytes_may_be_written_as_numbers(run, size, n_bytes):
    result = run(IMAGENET, "--network", size, "--json")
    assert json.loads(result.stdout)["cluster"]["network"] == n_bytes


def test_json_is_in_seconds_and_bytes(run):
    result = run.ok(IMAGENET, "--json", "--dtype", "float16")
    found = json.loads(result.stdout)
    assert found["shard_bytes"] == 1_200_000 * (1000 * 2 + 4)
    assert found["one_core_seconds"] > 0
    assert found["work"]["rows"] == 1_200_000
    assert {part["limited_by"] for part in found["parts"]} <= {
        "processors",
        "one core",
        "network",
        "storage",
    }


@pytest.mark.parametrize("estimator", _ESTIMATORS)
def test_every_estimator_can_be_planned(run, estimator):
    run.ok(IMAGENET, "--estimator", estimator)


@pytest.mark.parametrize("rows", ["-5", "0", "1e400", "nan", "text", "1.5", "", "1e-3"])
def test_invalid_numbers_of_rows_are_refused(run, rows):
    run.fails(
        "plan --features 10 --classes 2 --rows",
        rows,
        code=2,
        says="is not a whole number of at least 1, such as 1.2e6",
    )


@pytest.mark.parametrize(
    "wrong",
    [
        ["--memory-limit", "much"],
        ["--memory-per-node", "-1"],
        ["--network", "fast"],
        ["--rows", "1e300"],
        ["--memory-limit", "1GiB", "--estimator", "means"],
        ["--classes", "2e6"],
    ],
    ids=str,
)
def test_wrong_amounts_end_with_1_and_a_sentence(run, wrong):
    result = run.fails(IMAGENET, *wrong, says="must be")
    assert len(result.stderr) < 200
    assert "Traceback" not in result.output
