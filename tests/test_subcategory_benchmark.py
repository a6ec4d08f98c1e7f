"""What the benchmark of subcategories computes is what its tables say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.subcategory.backing_off import answers_at
from benchmarks.subcategory.data import TwoLevels, generated
from benchmarks.subcategory.measures import MEASURES
from benchmarks.subcategory.protocol import MISSING, draw
from benchmarks.subcategory.published import disagreements
from benchmarks.subcategory.refining import refined_and_refitted
from benchmarks.subcategory.results import Results, Summary
from benchmarks.subcategory.runs import CONTENDERS, Bench, Setting, prepared

# Measures share runs; kept in memory only.
SHARED = Results()


@pytest.fixture(scope="module")
def data() -> TwoLevels:
    return generated("small", 40, 24, 3, 2, 10)


def rows_of(shown: np.ndarray) -> set[bytes]:
    return {row.tobytes() for row in shown}


def test_a_number_names_one_class_only(data: TwoLevels) -> None:
    assert not set(data.parents) & set(data.fine)
    assert data.coarse.tolist() == [data.parents[fine] for fine in data.fine]


def test_fine_labels_are_told_of_the_same_share_of_every_class(data: TwoLevels) -> None:
    shown = draw(data, seed=0, fine_share=0.1, coarse_share=0.5)
    assert np.bincount(shown.fine[shown.known]).tolist() == [4] * 6
    assert np.bincount(shown.fine[~shown.known]).tolist() == [20] * 6
    assert (shown.labels[~shown.known, 1] == MISSING).all()
    assert (shown.labels[:, 0] == data.parents[shown.fine]).all()


def test_every_class_has_a_fine_label_however_small_the_share(data: TwoLevels) -> None:
    shown = draw(data, seed=0, fine_share=0.001, coarse_share=0.5)
    assert np.bincount(shown.fine[shown.known]).tolist() == [1] * 6


def test_all_samples_may_be_told(data: TwoLevels) -> None:
    shown = draw(data, seed=0, fine_share=1.0, coarse_share=0.5)
    assert shown.known.all()
    assert rows_of(shown.X) == rows_of(data.X)


def test_more_labels_are_those_of_fewer_and_others(data: TwoLevels) -> None:
    few, many = (draw(data, 3, share, 0.5) for share in (0.1, 0.5))
    assert rows_of(few.X[few.known]) < rows_of(many.X[many.known])
    assert rows_of(few.X[~few.known]) == rows_of(many.X[~many.known])


def test_no_sample_is_shown_twice(data: TwoLevels) -> None:
    shown = draw(data, 1, 0.5, 0.5)
    assert len(rows_of(shown.X)) == len(shown.X) == len(data.X)


def test_another_seed_is_another_draw(data: TwoLevels) -> None:
    one, other = (draw(data, seed, 0.2, 0.5) for seed in (0, 1))
    assert rows_of(one.X[one.known]) != rows_of(other.X[other.known])


def test_a_kept_result_is_not_measured_again(tmp_path: Path) -> None:
    Results(tmp_path).of({"data": "a", "seed": 0}, lambda: {"accuracy": 0.5})
    again = Results(tmp_path)
    assert again.of({"seed": 0, "data": "a"}, lambda: pytest.fail("measured")) == {"accuracy": 0.5}
    assert again.of({"data": "a", "seed": 1}, lambda: {"accuracy": 0.7}) == {"accuracy": 0.7}


def test_a_result_that_was_cut_short_is_measured_again(tmp_path: Path) -> None:
    Results(tmp_path).of({"seed": 0}, lambda: {"accuracy": 0.5})
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write('{"setting": {"seed": 1}, "val')
    stopped = Results(tmp_path)
    assert stopped.of({"seed": 1}, lambda: {"accuracy": 0.6}) == {"accuracy": 0.6}
    assert len(Results(tmp_path)) == 2


def several(*accuracies: float) -> Summary:
    return Summary(tuple({"accuracy": accuracy} for accuracy in accuracies))


def test_only_orders_that_are_clearly_others_are_disagreements() -> None:
    printed = {"worse": (10.0,), "better": (12.0,)}
    unclear = {"worse": several(0.50, 0.60), "better": several(0.52, 0.55)}
    assert disagreements(unclear, printed) == []
    clear = {"worse": several(0.60, 0.61, 0.60), "better": several(0.50, 0.52, 0.50)}
    assert disagreements(clear, printed) == [
        "worse is 9.67 points above better; in the paper below"
    ]
    few = {"worse": several(0.60, 0.61), "better": several(0.50, 0.52)}
    assert disagreements(few, printed) == []


def test_answers_are_fine_ones_from_the_threshold_on() -> None:
    sure, fine, coarse = np.array([0.9, 0.4, 0.2]), np.array([1, 0, 0]), np.array([1, 1, 0])
    assert answers_at(0.0, sure, fine, coarse) == pytest.approx((1 / 3, 1.0))
    assert answers_at(0.5, sure, fine, coarse) == pytest.approx((2 / 3, 1 / 3))


def test_the_curve_of_backing_off_is_that_of_the_model(data: TwoLevels) -> None:
    shown = draw(data, 0, 0.5, 0.5)
    model = CONTENDERS["ridge-h"].make(5, 0).fit(shown.X, shown.labels)
    probabilities = model.predict_proba(data.X_test)
    sure = probabilities.max(axis=1)
    fine = model.classes_[probabilities.argmax(axis=1)] == data.fine_test
    coarse = model.predict_coarse(data.X_test) == data.coarse_test
    answers = model.predict(data.X_test, back_off=0.6)
    right = (answers == data.fine_test) | (answers == data.coarse_test)
    expected = right.mean(), np.isin(answers, data.fine).mean()
    assert answers_at(0.6, sure, fine, coarse) == pytest.approx(expected)


def test_training_and_test_samples_are_seen_through_the_same_metric(data: TwoLevels) -> None:
    shown, X_test = prepared(data, 0, 0.5, 0.5, "fine")
    plain, _ = prepared(data, 0, 0.5, 0.5, "none")
    assert shown.X.shape[1] == X_test.shape[1]
    assert not np.allclose(shown.X, plain.X)
    assert (shown.labels == plain.labels).all()


@pytest.mark.parametrize("name", CONTENDERS)
def test_every_contender_learns_more_than_chance(data: TwoLevels, name: str) -> None:
    values = Bench(Results(), n_trees=3).run(data, Setting(name), seed=0)
    assert values["coarse accuracy"] > 0.5
    assert values.get("accuracy", 1.0) > 0.3


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


def test_tables_are_kept_in_markdown_with_their_notes(tmp_path: Path) -> None:
    Results(tmp_path).show("table 9: some data", ["", "%"], [("nn", 12.345)], ["a note"])
    kept = (tmp_path / "table_9_some_data.md").read_text().splitlines()
    assert kept[2:5] == ["|  | % |", "|---|---|", "| nn | 12.35 |"]
    assert kept[-1] == "- a note"


def test_a_run_that_names_what_is_usual_is_no_other_run(data: TwoLevels) -> None:
    results = Results()
    bench = Bench(results, n_trees=2)
    for parameters in ({}, {"coarse_weight": 1.0}, {"coarse_weight": 0.5}):
        bench.run(data, Setting("hierarchical", parameters=parameters), seed=0)
    assert len(results) == 2


def test_what_is_taken_for_usual_is_what_estimators_do(data: TwoLevels) -> None:
    shown = draw(data, 0, 0.5, 0.5)
    for contender in ("joint", "nn", "hierarchical", "nn-h", "ridge-h"):
        make, usual = CONTENDERS[contender].make, CONTENDERS[contender].usual
        plain, named = (make(2, 0, **more).fit(shown.X, shown.labels) for more in ({}, usual))
        assert np.array_equal(plain.apply(data.X_test), named.apply(data.X_test))
