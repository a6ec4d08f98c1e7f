"""Plans: what costs more, what helps, what limits, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import evergrow
from evergrow.distributed.planning import planner, workload
from evergrow.distributed.planning.trial import generate
from evergrow.distributed.planning.workload import ESTIMATORS, Workload
from evergrow.foundation.formatting import format_bytes, format_seconds
from evergrow.foundation.params import bytes_of
from tests.distributed.planning.conftest import IMAGE_SECONDS

pytestmark = pytest.mark.usefixtures("known_speed")

SIZE: dict[str, Any] = {"rows": 100_000, "features": 256, "classes": 100}
NODE: dict[str, Any] = {"cores_per_node": 16, "memory_per_node": "64GiB"}


def make(**options: Any) -> evergrow.Plan:
    return evergrow.plan(**{**SIZE, **NODE, **options})


@pytest.mark.parametrize("estimator", sorted(ESTIMATORS))
@pytest.mark.parametrize("more", [{"rows": 200_000}, {"features": 512}])
def test_more_data_cost_more_of_everything(estimator: str, more: dict[str, int]) -> None:
    less, greater = make(estimator=estimator, nodes=2), make(estimator=estimator, nodes=2, **more)
    for time in ("one_core_seconds", "here_seconds", "cluster_seconds"):
        assert getattr(greater, time) > getattr(less, time)
    for size in ("shard_bytes", "network_bytes", "driver_bytes", "model_bytes"):
        assert getattr(greater, size) >= getattr(less, size)


# Time.


def test_workers_beyond_the_trees_do_not_help() -> None:
    eight, sixteen = make(trees=8, workers=8), make(trees=8, workers=16)
    assert sixteen.cluster_seconds == pytest.approx(eight.cluster_seconds)
    assert sixteen.useful_workers == 8
    assert any("8 workers would be as fast as 16" in limit for limit in sixteen.limits)
    assert any("1 worker would be as fast" in limit for limit in make(trees=1).limits)


def test_the_parts_add_up_to_the_whole() -> None:
    found = make(nodes=4)
    assert sum(part.seconds for part in found.parts) == pytest.approx(found.cluster_seconds)


def test_codebooks_are_trained_on_one_node() -> None:
    one, four = (make(estimator="erc", trees=32, nodes=n, workers=16 * n) for n in (1, 4))
    assert four.cluster_seconds == pytest.approx(one.cluster_seconds)
    assert any(limit.endswith("on the driver's node; 3 are idle") for limit in four.limits)
    assert not any("nodes" in limit or "as fast as" in limit for limit in one.limits)
    assert not any("as fast as" in limit for limit in four.limits)


def test_no_more_workers_embed_images_than_there_are_shards() -> None:
    found = make(images=True, nodes=50)
    assert found.parts[0].seconds == pytest.approx(IMAGE_SECONDS * SIZE["rows"] / 49)
    assert any(limit.startswith("images: 800 workers share 49 shards") for limit in found.limits)


def test_a_limit_says_that_images_could_not_be_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "measure_images", lambda: None)
    assert any("pip install" in limit for limit in make(images=True).limits)


# Memory, disk and network.


def test_a_worker_holds_the_trees_that_it_grows_and_the_driver_all() -> None:
    few, many = make(trees=16, workers=2), make(trees=64, workers=2)
    assert many.worker_bytes == few.worker_bytes
    assert many.worker_bytes < few.driver_bytes < many.driver_bytes


def test_samples_beyond_a_limit_are_in_a_file() -> None:
    free, limited = (make(rows=5_000_000, memory_limit=limit) for limit in (None, "1GiB"))
    assert (free.scratch_bytes, limited.scratch_bytes) == (0, 5_000_000 * 256 * 4)
    assert limited.driver_bytes < free.driver_bytes


def test_a_memory_limit_that_is_not_reached_changes_nothing() -> None:
    for shards in (True, False):
        free, limited = (make(shards=shards, memory_limit=limit) for limit in (None, "8GiB"))
        assert free.to_dict() | {"cluster": None} == limited.to_dict() | {"cluster": None}


def test_no_more_workers_add_up_rows_than_there_are_shards() -> None:
    found = make(estimator="means", nodes=50, shards=True)
    assert found.useful_workers == 2
    assert any(limit.startswith("shards: 2 workers") for limit in found.limits)


def test_the_driver_shares_its_node_with_workers() -> None:
    one, two = make(trees=16), make(trees=16, nodes=2)
    assert one.node_bytes == one.driver_node_bytes
    assert two.driver_node_bytes == two.node_bytes + two.driver_bytes
    needed = one.driver_node_bytes
    for memory, fits in ((needed, True), (needed - 1, False)):
        found = make(trees=16, memory_per_node=memory, shards=False)
        assert found.fits == fits
        assert found.limits[0].startswith("driver: ") != fits


def test_codebooks_need_no_memory_of_workers() -> None:
    found = make(estimator="erc", shards=True)
    assert found.node_bytes == found.driver_bytes


def test_the_file_of_a_codebook_holds_rows_and_words(tmp_path: Path) -> None:
    options: dict[str, Any] = {"rows": 5000, "features": 16, "classes": 10, "trees": 5}
    work = Workload(**options)
    X, y = generate(work.rows, work.features, work.classes)
    ESTIMATORS["erc"].make(work).fit(X, y).save(tmp_path / "words.evergrow")
    size = (tmp_path / "words.evergrow").stat().st_size
    assert make(**options, estimator="erc").model_bytes == pytest.approx(size, rel=0.02)


# What limits.


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({"rows": 50_000_000, "memory_per_node": "4GiB", "shards": False}, r"memory: .*shards"),
        ({"rows": 2**28 + 1}, "rows: a tree holds at most 268435456"),
        ({"rows": 5_000_000, "trees": 1000, "nodes": 50, "workers": 50}, "driver: "),
    ],
    ids=str,
)
def test_what_stops_the_work_is_the_first_limit(options: dict[str, Any], limit: str) -> None:
    found = make(**options)
    assert not found.fits
    assert re.match(limit, found.limits[0])


def test_an_array_beyond_the_memory_limit_is_not_grown_by_workers() -> None:
    options: dict[str, Any] = {"rows": 1_000_000, "memory_limit": "700MiB"}
    found = {shards: make(**options, shards=shards).limits[0] for shards in (False, True)}
    assert found[False].startswith("memory_limit: the array exceeds it")
    assert "memory_limit" not in found[True]
    assert "memory_limit" not in make(rows=10_000, memory_limit="1GiB", shards=False).limits[0]


def test_only_data_that_are_not_in_shards_are_advised_to_be() -> None:
    for shards in (True, False):
        found = make(estimator="means", shards=shards, memory_per_node="1MiB").limits
        driver = next(limit for limit in found if limit.startswith("driver: "))
        assert ("use shards" in driver) != shards


def test_workers_beyond_the_cores_are_a_limit() -> None:
    found = make(workers=17).limits
    assert any(limit.startswith("workers: 17 were requested") for limit in found)
    assert not any(limit.startswith("workers: ") for limit in make(workers=16).limits)


# This machine.


def plan_for_memory(memory: int, monkeypatch: pytest.MonkeyPatch, **options: Any) -> evergrow.Plan:
    monkeypatch.setattr(planner, "this_machine", lambda: (2, memory))
    return make(**options)


@pytest.mark.parametrize("estimator", ["ncm_forest", "means", "erc"])
def test_an_array_that_does_not_fit_here_is_planned_from_shards(
    monkeypatch: pytest.MonkeyPatch, estimator: str
) -> None:
    options: dict[str, Any] = {"rows": 2_000_000, "trees": 2, "estimator": estimator}
    large = plan_for_memory(64 << 30, monkeypatch, **options)
    small = plan_for_memory(large.here_bytes - 1, monkeypatch, **options)
    assert (large.fits_here, small.fits_here) == (True, True)
    assert large.how_here == ""
    assert small.here_bytes < large.here_bytes
    assert small.here_seconds > large.here_seconds
    limit = r" with storage=Storage\('\d+MiB'\)" if estimator == "ncm_forest" else ""
    assert re.search(f", from shards{limit}$", dict(small.fields())["time on this machine"])


def test_a_container_has_the_memory_that_its_limit_allows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    files = {"limit": str(3 << 20), "none": "max\n", "larger": str(2**62)}
    for name, text in files.items():
        (tmp_path / name).write_text(text)

    def memory_with(*names: str) -> int:
        paths = tuple(str(tmp_path / name) for name in names)
        monkeypatch.setattr(workload, "_CONTAINER_LIMITS", paths)
        return workload.this_machine()[1]

    assert memory_with("limit") == memory_with("none", "limit") == 3 << 20
    assert memory_with("none") == memory_with("larger") == memory_with("missing") > 3 << 20


# The answer.


def test_a_printed_plan_names_every_resource() -> None:
    text = str(make(nodes=2))
    for word in ("time on one core", "memory of each worker", "disk for shards", "network"):
        assert word in text


@pytest.mark.parametrize("n_bytes", [1, 1023, 1024, 10**6, 3 << 30, 5 << 40])
def test_formatted_bytes_can_be_read_again(n_bytes: int) -> None:
    assert bytes_of(format_bytes(n_bytes)) == pytest.approx(n_bytes, rel=0.05)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "under 0.01 ms"), (7.3e-5, "0.073 ms"), (0.5, "0.5 s"), (119, "119 s"), (121, "2 min")],
)
def test_seconds_are_formatted_in_a_fitting_unit(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


# The question.


BAD: list[dict[str, Any]] = [
    {"rows": 0},
    {"rows": -5},
    {"rows": 1.5},
    {"rows": float("inf")},
    {"rows": float("nan")},
    {"rows": "many"},
    {"rows": True},
    {"rows": 2**41},
    {"features": 0},
    {"classes": 0},
    {"classes": 100_001},
    {"trees": 0},
    {"min_samples_leaf": -1},
    {"min_samples_leaf": "none"},
    {"verbose": "loud"},
    {"dtype": "int8"},
    {"images": "yes"},
    {"nodes": 0},
    {"cores_per_node": 0},
    {"workers": 0},
    {"core_speed": 0.0},
    {"core_speed": float("inf")},
    {"memory_per_node": "lots"},
    {"memory_limit": "-1GiB"},
    {"network": "fast"},
    {"storage": 0},
    {"network": "1.25GB/h"},
    {"shards": "yes"},
    {"memory_limit": "1GiB", "estimator": "least_squares"},
    {"estimator": "oracle"},
]


@pytest.mark.parametrize("wrong", BAD, ids=str)
def test_wrong_input_is_refused_by_name_before_the_trial(
    monkeypatch: pytest.MonkeyPatch, wrong: dict[str, Any]
) -> None:
    monkeypatch.delattr(planner, "run_trial")
    with pytest.raises(ValueError, match=next(iter(wrong))):
        make(**wrong)
