"""Plans: what costs more, what helps, what limits, and what is refused."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest

import evergrow
from evergrow.distributed.planning.families import FAMILIES
from tests.distributed.planning.conftest import Counter, calibrate_with_error

pytestmark = pytest.mark.usefixtures("measured")

SIZE: dict[str, Any] = {"rows": 100_000, "features": 256, "classes": 100}
NODE: dict[str, Any] = {"cores_per_node": 16, "memory_per_node": "64GiB"}


def make(**options: Any) -> evergrow.Plan:
    return evergrow.plan(**{**SIZE, **NODE, **options})


@pytest.mark.parametrize("estimator", sorted(FAMILIES))
@pytest.mark.parametrize("more", [{"rows": 200_000}, {"features": 512}])
def test_more_data_cost_more_of_everything(estimator: str, more: dict[str, int]) -> None:
    less, greater = make(estimator=estimator, nodes=2), make(estimator=estimator, nodes=2, **more)
    for time in ("one_core", "this_machine", "on_cluster"):
        assert getattr(greater, time).expected > getattr(less, time).expected
    assert greater.shard_bytes > less.shard_bytes
    assert greater.network_bytes >= less.network_bytes
    assert greater.driver_bytes >= less.driver_bytes


def test_twice_the_trees_take_twice_the_time_of_one_core() -> None:
    few, many = make(trees=20), make(trees=40)
    once = 2 * few.one_core.expected - many.one_core.expected
    # What is done once for all trees is counted once.
    assert 0 < once < 0.1 * few.one_core.expected


def test_workers_beyond_the_trees_do_not_help() -> None:
    eight, sixteen = make(trees=8, workers=8), make(trees=8, workers=16)
    assert sixteen.on_cluster.expected >= eight.on_cluster.expected
    assert sixteen.useful_workers == 8
    assert any("8 workers would be as quick as 16" in limit for limit in sixteen.limits)


def test_a_last_round_of_few_trees_is_told() -> None:
    assert make(trees=50, nodes=3, workers=48).useful_workers == 25


def test_more_workers_up_to_the_trees_are_quicker() -> None:
    times = [make(trees=48, workers=n).on_cluster.expected for n in (1, 2, 4, 8, 16)]
    assert times == sorted(times, reverse=True)


def growing(**options: Any) -> float:
    return next(part.seconds for part in make(**options).parts if part.name == "growing trees")


@pytest.mark.parametrize(("cache", "slower"), [(1 << 30, 1.2), (1 << 20, 1.5)])
def test_workers_slow_each_other_down_more_on_rows_beyond_the_cache(
    monkeypatch: pytest.MonkeyPatch, cache: int, slower: float
) -> None:
    monkeypatch.setattr("evergrow.distributed.planning.schedule.cache_bytes", lambda: cache)
    alone, crowded = growing(trees=64, workers=1), growing(trees=64, workers=16)
    assert 16 * crowded == pytest.approx(slower * alone)


def test_a_worker_holds_the_trees_that_it_is_growing_and_the_driver_all() -> None:
    few, many = make(trees=16, workers=2), make(trees=64, workers=2)
    assert many.worker_bytes == few.worker_bytes
    assert many.worker_bytes < few.driver_bytes < many.driver_bytes


def test_the_interval_holds_what_is_expected() -> None:
    found = make().one_core
    assert found.low < found.expected < found.high


def test_the_interval_widens_beyond_what_was_calibrated() -> None:
    near, far = make(rows=1000).one_core, make(rows=100_000_000).one_core
    assert far.high / far.low > near.high / near.low


def test_the_parts_add_up_to_the_whole() -> None:
    found = make(nodes=4)
    assert sum(part.seconds for part in found.parts) == pytest.approx(found.on_cluster.expected)


def test_a_faster_core_is_that_much_faster_where_cores_limit() -> None:
    assert growing(core_speed=1.0) == pytest.approx(2 * growing(core_speed=2.0))


def test_memory_that_does_not_suffice_is_the_first_limit() -> None:
    found = make(rows=50_000_000, memory_per_node="4GiB", shards=False)
    assert not found.fits
    assert found.limits[0].startswith("memory: ")
    assert "shards" in found.limits[0]


def test_a_memory_limit_bounds_what_a_worker_has_beside_its_trees() -> None:
    options: dict[str, Any] = {"rows": 5_000_000, "min_samples_leaf": 1000}
    one, two = (make(**options, memory_limit=limit) for limit in ("1GiB", "2GiB"))
    assert two.worker_bytes - one.worker_bytes == 1 << 30
    assert one.scratch_bytes == 5_000_000 * 256 * 4


def test_a_memory_limit_that_does_not_work_is_told_the_least_that_does() -> None:
    found = make(rows=50_000_000, memory_limit="100MiB")
    assert not found.fits
    assert found.limits[0].startswith("memory_limit: 100.0 MiB is too little; it takes ")


def test_more_rows_than_a_tree_can_count_are_a_limit() -> None:
    assert make(rows=2**28 + 1).limits[0].startswith("rows: a tree holds at most 268435456")


def test_small_trees_go_out_in_groups() -> None:
    found = make(rows=1000, trees=64, workers=16)
    assert found.useful_workers == 8


def test_shards_within_a_memory_limit_need_scratch_and_others_memory() -> None:
    limited = make(rows=50_000_000, shards=True, memory_limit="20GiB")
    free = make(rows=50_000_000, shards=True)
    assert limited.scratch_bytes > 0
    assert free.scratch_bytes == 0
    assert free.driver_bytes > limited.driver_bytes + 50_000_000 * 256 * 4 * 0.99


def test_a_limit_on_memory_that_is_too_small_for_the_file_streams_it() -> None:
    names = [part.name for part in make(rows=100_000_000, memory_limit="1GiB").parts]
    assert "streaming large nodes" in names


def test_half_precision_halves_the_shards() -> None:
    single, half = make(), make(dtype="float16")
    labels = 4 * SIZE["rows"]
    assert 2 * (half.shard_bytes - labels) == single.shard_bytes - labels


def test_shards_are_counted_in_bytes() -> None:
    assert make().shard_bytes == 100_000 * (256 * 4 + 4)


def test_sums_of_shards_travel_and_rows_of_least_squares_do_not_go_to_every_node() -> None:
    options: dict[str, Any] = {"estimator": "least_squares", "shards": True, "rows": 10_000_000}
    two, eight = make(nodes=2, **options), make(nodes=8, **options)
    assert eight.network_bytes == pytest.approx(two.network_bytes, rel=0.01)


def test_no_more_workers_add_up_rows_than_there_are_shards() -> None:
    found = make(estimator="means", nodes=50, shards=True)
    assert found.useful_workers == 2
    assert any(limit.startswith("shards: 2 workers") for limit in found.limits)


def test_a_driver_whose_model_does_not_fit_is_a_limit() -> None:
    found = make(rows=5_000_000, trees=500, memory_per_node="64GiB", shards=True, nodes=50)
    assert not found.fits
    assert any(limit.startswith("driver: ") for limit in found.limits)


def test_workers_are_spread_over_the_nodes() -> None:
    packed, spread = make(trees=8, rows=10**6), make(trees=8, rows=10**6, nodes=4)
    workers = spread.node_bytes - spread.shared_bytes
    # Two workers, and what they have finished and nobody has fetched yet.
    assert 2 * spread.worker_bytes < workers < 3 * spread.worker_bytes
    assert packed.node_bytes - packed.shared_bytes - packed.driver_bytes == 4 * workers


def test_every_worker_of_the_first_round_is_counted() -> None:
    found = make(trees=50, rows=10**6, nodes=3)
    assert found.useful_workers == 25
    spread = make(trees=8, rows=10**6, nodes=4)
    of_two = spread.node_bytes - spread.shared_bytes
    assert found.node_bytes - found.shared_bytes == 8 * of_two


def test_workers_that_are_alone_on_their_node_do_not_slow_each_other_down() -> None:
    crowded, alone = make(trees=16), make(trees=16, nodes=16)
    times = [
        next(part.seconds for part in found.parts if part.name == "growing trees")
        for found in (crowded, alone)
    ]
    assert times[0] > 1.1 * times[1]


@pytest.mark.parametrize("shards", [True, False])
def test_nodes_without_work_receive_no_rows(shards: bool) -> None:
    ten, fifty = (make(trees=10, rows=10**6, nodes=n, shards=shards) for n in (10, 50))
    assert ten.network_bytes == fifty.network_bytes


def test_the_driver_shares_its_node_with_workers() -> None:
    one, two = make(trees=16), make(trees=16, nodes=2)
    assert one.node_bytes == one.driver_node_bytes
    assert two.driver_node_bytes == two.node_bytes + two.driver_bytes
    needed = one.driver_node_bytes
    for room, fits in ((needed, True), (needed - 1, False)):
        found = make(trees=16, memory_per_node=room, shards=False)
        assert found.fits == fits
        assert found.limits[0].startswith("driver: ") != fits


def test_words_take_no_memory_of_workers() -> None:
    found = make(estimator="erc", shards=True)
    assert found.node_bytes == found.driver_bytes


def on_machine_of(memory: int, monkeypatch: pytest.MonkeyPatch, **options: Any) -> evergrow.Plan:
    monkeypatch.setattr("evergrow.distributed.planning.planner.this_machine", lambda: (2, memory))
    return make(**options)


def said_here(found: evergrow.Plan) -> str:
    return dict(found.fields())["time on this machine"]


def test_work_that_fits_here_is_planned_from_an_array(monkeypatch: pytest.MonkeyPatch) -> None:
    found = on_machine_of(64 << 30, monkeypatch)
    assert found.fits_here
    assert said_here(found) == str(found.this_machine)


@pytest.mark.parametrize("estimator", ["ncm_forest", "means"])
def test_an_array_that_does_not_fit_here_is_planned_from_shards(
    monkeypatch: pytest.MonkeyPatch, estimator: str
) -> None:
    options: dict[str, Any] = {"rows": 2_000_000, "trees": 2, "estimator": estimator}
    large = on_machine_of(64 << 30, monkeypatch, **options)
    small = on_machine_of(large.here_bytes - 1, monkeypatch, **options)
    assert small.fits_here
    assert small.here_bytes < large.here_bytes
    assert small.this_machine.expected > large.this_machine.expected
    limit = r" with memory_limit='\d+MiB'" if estimator == "ncm_forest" else ""
    assert re.search(f", from shards{limit}$", said_here(small))


def test_a_model_that_does_not_fit_here_is_said_not_to(monkeypatch: pytest.MonkeyPatch) -> None:
    found = on_machine_of(1 << 30, monkeypatch, rows=2_000_000, trees=500)
    assert not found.fits_here
    assert said_here(found).startswith("does not fit: ")
    assert "fewer trees" in said_here(found)


def test_workers_beyond_the_cores_are_said_to_do_nothing() -> None:
    assert any(limit.startswith("workers: 17 were asked for") for limit in make(workers=17).limits)
    assert not any(limit.startswith("workers: ") for limit in make(workers=16).limits)


def test_one_worker_is_no_plural() -> None:
    assert any("1 worker would be as quick" in limit for limit in make(trees=1).limits)


def test_a_rate_may_name_the_second() -> None:
    assert make(network="2GB/s", storage="3GB/s") == make(network="2GB", storage=3 * 10**9)


def test_a_measured_spread_widens_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    before = make()
    calibrate_with_error(0.4, monkeypatch)
    after = make(calibrate=True)
    assert after.calibration_spread == 0.8
    assert after.one_core.high > before.one_core.high


def test_a_number_that_is_far_too_large_is_said_in_few_digits() -> None:
    with pytest.raises(ValueError, match=r"rows must be .* to 1099511627776, got 1e\+300"):
        make(rows=1e300)


def test_nothing_travels_on_one_machine() -> None:
    assert make(nodes=1).network_bytes == 0


def test_images_are_embedded_first() -> None:
    found = make(images=True)
    assert found.parts[0].name == "embedding images"
    assert found.one_core.expected - make().one_core.expected == pytest.approx(0.012 * 100_000)


def test_no_more_workers_embed_images_than_there_are_shards() -> None:
    found = make(images=True, nodes=50)
    assert found.parts[0].seconds == pytest.approx(0.012 * 100_000 / 49, rel=0.3)
    assert any(limit.startswith("images: 800 workers share 49 shards") for limit in found.limits)


def test_images_that_cannot_be_measured_are_said_to_be_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("evergrow.distributed.planning.kept.measure_images", lambda: None)
    assert any("evergrow[vision]" in limit for limit in make(images=True).limits)


def test_ray_that_cannot_be_measured_is_said_to_be_assumed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("evergrow.distributed.planning.machine.measure_ray", lambda: None)
    for is_there, said in ((False, "evergrow[cluster]"), (True, "did not answer within 60 s")):
        monkeypatch.setattr(
            "evergrow.distributed.planning.planner.has_ray", lambda found=is_there: found
        )
        assert [said in limit for limit in make(nodes=2).limits if "Ray: " in limit] == [True]


def test_words_are_learnt_on_one_node() -> None:
    one, four = (make(estimator="erc", trees=32, nodes=n, workers=16 * n) for n in (1, 4))
    assert four.on_cluster.expected == pytest.approx(one.on_cluster.expected)


def test_a_whole_number_may_be_a_float() -> None:
    assert make(rows=1e5) == make(rows=100_000)


def test_larger_leaves_make_smaller_models() -> None:
    assert make(min_samples_leaf=40).model_bytes < make(min_samples_leaf=10).model_bytes


def test_a_plan_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        make().fits = False  # type: ignore[misc]


def test_a_printed_plan_names_every_resource() -> None:
    text = str(make(nodes=2))
    for word in (
        "time on one core",
        "memory of each worker",
        "disk for shards",
        "network",
        "limit",
    ):
        assert word in text


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
    {"calibrate": "no"},
    {"memory_limit": "1GiB", "estimator": "least_squares"},
    {"estimator": "oracle"},
]


@pytest.mark.parametrize("wrong", BAD, ids=str)
def test_wrong_input_is_refused_by_name_before_anything_is_measured(
    measured: Counter, wrong: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        make(**wrong)
    assert measured.calibrated == []
