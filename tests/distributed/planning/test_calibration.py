"""From runs to rates."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from evergrow.distributed.planning.calibration import (
    Run,
    calibrate,
    fitted,
    measure_run,
    total_seconds,
)
from evergrow.distributed.planning.families import FAMILIES, family_named
from evergrow.distributed.planning.generated import generate
from evergrow.distributed.planning.workload import Workload
from tests.distributed.planning.conftest import known_calibration


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_a_machine_of_known_speed_is_found_again(name: str) -> None:
    family = FAMILIES[name]
    truth = known_calibration(family)
    runs = []
    for work in family.calibrated_by():
        shape = truth.shape(family, work)
        runs.append(Run(work, shape, total_seconds(family, truth, work)))
    found = fitted(family, runs)
    large = Workload(1_200_000, 1000, 1000)
    assert total_seconds(family, found, large) == pytest.approx(
        total_seconds(family, truth, large), rel=0.1
    )
    assert found.error < 0.05


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_every_family_can_be_calibrated(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("evergrow.distributed.planning.calibration._FITS_SECONDS", 0.0)
    small = tuple((600 + 150 * k, 16 + 8 * k, 5 + k, 1 + k % 2) for k in range(8))
    family = dataclasses.replace(FAMILIES[name], sizes=small)
    found = calibrate(family)
    assert all(rate >= 0 for rate in found.rates)
    assert total_seconds(family, found, Workload(1000, 32, 8, 2)) > 0


@pytest.mark.parametrize("name", sorted(FAMILIES))
@pytest.mark.parametrize("more", [{"rows": 80_000}, {"features": 800}, {"classes": 400}])
def test_no_part_of_the_work_gets_less_with_more_data(name: str, more: dict[str, int]) -> None:
    family = FAMILIES[name]
    work = Workload(10_000, 100, 50, 10)
    less = known_calibration(family).seconds(family, work)
    greater = known_calibration(family).seconds(family, dataclasses.replace(work, **more))
    # Of more classes in as many rows fewer examples are held out of each, down to whole numbers.
    rounded = {"held-out scores", "choosing"}
    assert all(greater[part] >= less[part] for part in less if part not in rounded)
    assert sum(greater.values()) > sum(less.values()) or "classes" in more


class Counted:
    """Learns nothing, but counts how often."""

    def __init__(self) -> None:
        self.n_fits = 0

    def fit(self, X: object, y: object) -> None:
        self.n_fits += 1

    def predict(self, X: object) -> None:
        pass


@pytest.mark.parametrize(("at_least", "n_fits"), [(0.0, 3), (100.0, 10)])
def test_fits_that_take_no_time_are_made_more_often_but_not_forever(
    at_least: float, n_fits: int
) -> None:
    model = Counted()
    family = dataclasses.replace(FAMILIES["means"], make=lambda _: model)
    X, y = generate(100, 4, 3)
    measure_run(family, Workload(100, 4, 3), X, y, repeats=3, at_least=at_least)
    assert model.n_fits == n_fits


def test_ranking_costs_threshold_trees_more_with_larger_leaves_up_to_a_heap() -> None:
    family = FAMILIES["axis"]
    ranked = [
        known_calibration(family).seconds(family, Workload(20_000, 64, 50, 1, leaf))
        for leaf in (2, 40, 100)
    ]
    assert ranked[0]["ranking"] < ranked[1]["ranking"]
    assert [parts["ranking"] > 0 for parts in ranked] == [True, True, False]
    assert [parts["partitioning"] > 0 for parts in ranked] == [False, False, True]


def test_rows_beyond_the_cache_are_far(monkeypatch: pytest.MonkeyPatch) -> None:
    family, work = FAMILIES["ncm_forest"], Workload(20_000, 64, 50, 1)
    seconds = []
    for size in (1 << 30, 1 << 20):
        monkeypatch.setattr(
            "evergrow.distributed.planning.terms.cache_bytes", lambda size=size: size
        )
        seconds.append(known_calibration(family).seconds(family, work)["reading far rows"])
    assert 20 * seconds[0] < seconds[1]


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_the_benchmark_is_eight_times_beyond_every_calibrated_size(name: str) -> None:
    planning = pytest.importorskip("benchmarks.cluster.planning")
    known = FAMILIES[name].calibrated_by()
    rows, features, classes = planning.LARGER[name].values()
    assert rows[0] >= 8 * max(work.rows for work in known)
    assert features[1] >= 8 * max(work.features for work in known)
    assert classes[2] >= 8 * max(work.classes for work in known)


def test_generated_data_are_the_same_every_time() -> None:
    first, second = generate(5000, 10, 7), generate(5000, 10, 7)
    assert np.array_equal(first[0], second[0])
    assert np.array_equal(first[1], second[1])


def test_generated_classes_are_of_one_size() -> None:
    _, y = generate(5003, 4, 10)
    assert np.ptp(np.bincount(y)) <= 1


@pytest.mark.parametrize("name", ["forest", "", None, 3])
def test_an_unknown_estimator_is_told_the_known_ones(name: object) -> None:
    with pytest.raises(ValueError, match=r"estimator must be one of \['axis', 'erc'"):
        family_named(name)
