"""What the benchmark of subcategories computes is what its tables say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.subcategory.backing_off import answers_at
from benchmarks.subcategory.bench import Bench, Results, made
from benchmarks.subcategory.data import TwoLevels, generated
from benchmarks.subcategory.measures import MEASURES
from benchmarks.subcategory.refining import refined_and_refitted
from evergrow.experiments.cvpr2015.levels import draw

# Measures share runs; kept in memory only.
SHARED = Results()


@pytest.fixture(scope="module")
def data() -> TwoLevels:
    return generated(40, 24, 3, 2, 10)


def test_a_kept_result_is_not_measured_again(tmp_path: Path) -> None:
    Results(tmp_path).of({"data": "a", "seed": 0}, lambda: {"accuracy": 0.5})
    again = Results(tmp_path)
    assert again.of({"seed": 0, "data": "a"}, lambda: pytest.fail("measured")) == {"accuracy": 0.5}
    assert again.of({"data": "a", "seed": 1}, lambda: {"accuracy": 0.7}) == {"accuracy": 0.7}


def test_answers_are_fine_ones_from_the_threshold_on() -> None:
    sure, fine, coarse = np.array([0.9, 0.4, 0.2]), np.array([1, 0, 0]), np.array([1, 1, 0])
    assert answers_at(0.0, sure, fine, coarse) == pytest.approx((1 / 3, 1.0))
    assert answers_at(0.5, sure, fine, coarse) == pytest.approx((2 / 3, 1 / 3))


def test_the_curve_of_backing_off_is_that_of_the_model(data: TwoLevels) -> None:
    shown = draw(data, 0, 0.5, 0.5)
    model = made("ridge-h", 5, 0).fit(shown.X, shown.labels)
    probabilities = model.predict_proba(data.X_test)
    sure = probabilities.max(axis=1)
    fine = model.classes_[probabilities.argmax(axis=1)] == data.fine_test
    coarse = model.predict_coarse(data.X_test) == data.coarse_test
    answers = model.predict(data.X_test, back_off=0.6)
    right = (answers == data.fine_test) | (answers == data.coarse_test)
    expected = right.mean(), np.isin(answers, data.fine).mean()
    assert answers_at(0.6, sure, fine, coarse) == pytest.approx(expected)


def test_a_divided_class_is_known_after_refining(data: TwoLevels) -> None:
    values = refined_and_refitted(data, int(data.parents[0]), seed=0, n_trees=3)
    assert min(values["refined"], values["refitted"]) > 0.4
    assert min(values["refined, coarse"], values["refitted, coarse"]) > 0.5


@pytest.mark.parametrize("name", MEASURES)
def test_every_measure_prints_a_table(
    name: str, data: TwoLevels, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = Bench(SHARED, seeds=(0, 1), n_trees=2, quick=True)
    MEASURES[name].run(bench, data)
    assert data.name in capsys.readouterr().out
