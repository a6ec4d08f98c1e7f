"""Trial runs: what they train, how they are split, and how they scale."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evergrow.distributed.planning import trial as module
from evergrow.distributed.planning.schedule import Cost
from evergrow.distributed.planning.trial import (
    Preparation,
    Trial,
    generate,
    measure_images,
    run_trial,
)
from evergrow.distributed.planning.workload import ESTIMATORS, Workload

RAN = Workload(1000, 112, 25, trees=1, min_samples_leaf=10)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fast rather than exact."""
    monkeypatch.setattr(module, "_MOST_REPEATS", 1)
    monkeypatch.setattr(module, "_FIRST_ROWS", 500)
    monkeypatch.setattr(module, "_FEWEST_SUMMED", 500)
    monkeypatch.setattr(module, "_SECONDS", 0.01)


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_every_estimator_can_be_tried(name: str) -> None:
    trial = run_trial(ESTIMATORS[name], Workload(1_000_000, 16, 10, trees=2))
    assert 50 <= trial.work.rows < 1_000_000
    assert trial.cost.shared > 0
    assert trial.cost.once >= 0
    assert (trial.tree_bytes > 0) == (ESTIMATORS[name].kind == "forest")


@pytest.mark.parametrize("rows", [1, 2, 60])
@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_data_of_a_few_rows_can_be_tried(name: str, rows: int) -> None:
    assert run_trial(ESTIMATORS[name], Workload(rows, 1, 1)).cost.shared > 0


@pytest.mark.parametrize(
    ("name", "more", "factor"),
    [
        # As many classes of as many rows: small ones are compared with more means.
        ("ncm_forest", {"classes": 25 * 16, "rows": 100_000}, 400),
        ("ncm_forest", {"features": 224}, 2),
        ("axis", {"features": 448}, 2),
        ("linear", {"features": 448}, 8),
        ("svm", {"features": 224}, 2),
        ("svm", {"trees": 3}, 3),
        ("means", {"rows": 3000}, 3),
        ("means", {"features": 224}, 2),
        ("least_squares", {"features": 224}, 4),
        ("erc", {"features": 448}, 2),
        # A hundred leaves have log2(100) levels, ten thousand twice as many.
        ("ncm_forest", {"rows": 100_000}, 200),
    ],
    ids=str,
)
def test_shared_work_grows_by_known_powers(name: str, more: dict[str, int], factor: float) -> None:
    trial = Trial(ESTIMATORS[name], RAN, Cost(shared=1.0, once=0.0))
    grown = trial.scaled_cost(replace(RAN, **more)).shared
    assert grown == pytest.approx(factor * trial.scaled_cost(RAN).shared)


PREPARATION = Preparation(reading=1.0, choosing=2.0, transforming=3.0, is_whitened=True)


def test_a_transform_is_chosen_on_a_limited_number_of_rows() -> None:
    spec = ESTIMATORS["ncm_forest"]
    trial = Trial(spec, RAN, Cost(shared=1.0, once=0.0), preparation=PREPARATION)
    many, more = (trial.scaled_cost(replace(RAN, rows=n)) for n in (10**5, 10**6))
    # 20000 rows are measured, and the choice itself counts as 3000.
    assert more.once - 1000 == pytest.approx(2.0 * 23_000 / 4000)
    assert more.once - many.once == pytest.approx(900)
    assert more.threaded == pytest.approx(3.0 * 1000)


def test_trees_of_eight_times_the_rows_are_as_large_as_planned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_SECONDS", 60.0)
    spec, work = ESTIMATORS["ncm_forest"], Workload(32_000, 32, 40, trees=1)
    trial = run_trial(spec, replace(work, rows=4000))
    forest = spec.make(work).fit(*generate(work.rows, work.features, work.classes))._fitted.forest
    assert trial.scaled_tree_bytes(work) == pytest.approx(forest.nbytes, rel=0.3)


def test_images_are_not_measured_without_their_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    assert measure_images() is None


@pytest.mark.slow
def test_images_are_measured(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    monkeypatch.setenv("EVERGROW_CACHE", str(tmp_path))
    seconds = measure_images()
    assert seconds is not None
    assert 0 < seconds < 10
