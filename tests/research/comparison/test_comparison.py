"""The whole comparison: files, cached results, and learners that fail."""

import csv
import json
import math
import platform
from dataclasses import replace

import numpy as np
import pytest

from evergrow.research import ComparedLearner, Estimator, choose, compare, mixture
from evergrow.research.comparison import comparison

NAMES = ["lda", "class-means", "ridge"]


@pytest.fixture(scope="module")
def data():
    return mixture(6, 8, n_train=15, n_test=10, distance=1.0)


def refuse(*_, **__):
    raise AssertionError("measured again")


def test_page_table_and_record_are_written(data, tmp_path):
    compare(data, tmp_path / "new", learners=choose(only=NAMES))
    names = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert names == [".runs", "comparison.csv", "comparison.html", "comparison.json"]


def test_the_table_has_what_was_measured(data, tmp_path):
    found = compare(data, tmp_path, learners=choose(only=NAMES))
    with (tmp_path / "comparison.csv").open(encoding="utf-8") as file:
        rows = {row["learner"]: row for row in csv.DictReader(file)}
    assert set(rows) == set(NAMES)
    for each in found.standings:
        row = rows[each.learner.name]
        assert float(row["accuracy"]) == pytest.approx(each.accuracy, rel=1e-5)
        assert float(row["bytes"]) == each.n_bytes


def test_the_record_names_versions_and_data_but_not_the_machine(data, tmp_path):
    compare(data, tmp_path, learners=choose(only=NAMES))
    text = (tmp_path / "comparison.json").read_text(encoding="utf-8")
    record = json.loads(text)
    assert record["data"]["sha256"] == data.sha256
    assert record["n_cores"] >= 1
    assert "evergrow" in record["versions"]
    assert str(tmp_path) not in text
    assert platform.node() not in text


def test_the_most_accurate_stands_first(data, tmp_path):
    found = compare(data, tmp_path, learners=choose(only=NAMES))
    accuracies = [each.class_mean for each in found.standings]
    assert accuracies == sorted(accuracies, reverse=True)


def test_a_second_call_measures_nothing_again(data, tmp_path, monkeypatch):
    first = compare(data, tmp_path, learners=choose(only=NAMES))
    monkeypatch.setattr(comparison, "measure", refuse)
    again = compare(data, tmp_path, learners=choose(only=NAMES))
    assert [each.results for each in again.standings] == [each.results for each in first.standings]


def test_after_an_interruption_only_the_missing_learners_are_measured(data, tmp_path, monkeypatch):
    measured = []
    real = comparison.measure

    def until_ridge(learner, *arguments, **options):
        if learner.name == "ridge" and "ridge" not in measured:
            measured.append("ridge")
            raise KeyboardInterrupt
        measured.append(learner.name)
        return real(learner, *arguments, **options)

    monkeypatch.setattr(comparison, "measure", until_ridge)
    with pytest.raises(KeyboardInterrupt):
        compare(data, tmp_path, learners=choose(only=NAMES))
    compare(data, tmp_path, learners=choose(only=NAMES))
    assert sorted(measured) == ["class-means", "lda", "ridge", "ridge"]


@pytest.mark.parametrize(("seed", "fresh"), [(0, True), (1, False)], ids=["fresh", "other data"])
def test_fresh_or_with_other_data_it_measures_again(data, tmp_path, monkeypatch, seed, fresh):
    compare(data, tmp_path, learners=choose(only=["lda"]))
    calls = []
    real = comparison.measure
    monkeypatch.setattr(comparison, "measure", lambda *a, **o: calls.append(1) or real(*a, **o))
    data = mixture(6, 8, n_train=15, n_test=10, distance=1.0, random_state=seed)
    compare(data, tmp_path, learners=choose(only=["lda"]), fresh=fresh)
    assert calls == [1]


def test_a_learner_that_was_stopped_is_measured_again_with_more_time(data, tmp_path):
    lda = choose(only=["lda"])
    hasty = compare(data, tmp_path, learners=lda, time_limit=1e-9)
    assert not hasty.standings[0].finished
    assert compare(data, tmp_path, learners=lda, time_limit=60).standings[0].finished


def test_a_learner_that_fails_leaves_the_others_alone(data, tmp_path):
    factory = Estimator("sklearn.neighbors", "KNeighborsClassifier", {"n_neighbors": 10_000})
    failing = ComparedLearner("failing", "failing", "scikit-learn", factory, way="retrained")
    found = compare(data, tmp_path, learners=[failing, *choose(only=["lda"])])
    assert [each.finished for each in found.standings] == [True, False]
    assert found.standings[1].problem.startswith("failed: Expected n_neighbors")


def broken(error=KeyError):
    class Factory:
        code, package = f"Broken({error.__name__})", "evergrow"

        def build(self, setting):
            raise error("weights")

    return ComparedLearner("broken", "broken", "forests", Factory())


@pytest.mark.parametrize("error", [KeyError, AttributeError, RuntimeError, TypeError])
def test_no_error_of_one_learner_stops_the_others(data, tmp_path, error):
    found = compare(data, tmp_path, learners=[broken(error), *choose(only=["lda"])])
    assert [each.finished for each in found.standings] == [True, False]
    assert found.standings[1].problem.startswith(f"failed: {error.__name__}: ")


def test_an_interruption_of_a_learner_is_one(data, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        compare(data, tmp_path, learners=[broken(KeyboardInterrupt)])


def test_whether_anything_was_measured_is_known(data, tmp_path):
    assert not compare(data, tmp_path, learners=[broken()]).measured_anything
    assert compare(data, tmp_path, learners=choose(only=["lda"])).measured_anything


def changed_rows(path, change):
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        line["rows"] = change(line["rows"])
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: [],
        lambda rows: [{}],
        lambda rows: [{**rows[0], "points": 3}],
        lambda rows: [{name: rows[0][name] for name in rows[0] if name != "forgetting"}],
        lambda rows: [{**rows[0], "answers": rows[0]["answers"][1:]}],
        lambda rows: [{**rows[0], "answers": ["1", *rows[0]["answers"][1:]]}],
    ],
    ids=["none", "empty", "no points", "no forgetting", "a class less", "fewer answers"],
)
def test_damaged_rows_count_as_not_done(data, tmp_path, change):
    first = compare(data, tmp_path, learners=choose(only=["lda"]))
    changed_rows(tmp_path / ".runs" / "comparison.jsonl", change)
    again = compare(data, tmp_path, learners=choose(only=["lda"]))
    assert again.standings[0].results[0].answers == first.standings[0].results[0].answers


@pytest.mark.parametrize("limit", [-1, 0, float("nan"), None, "10", True])
def test_an_invalid_time_limit_is_refused(data, tmp_path, limit):
    with pytest.raises(ValueError, match="time_limit must be a number of seconds above 0"):
        compare(data, tmp_path, learners=choose(only=["lda"]), time_limit=limit)


def test_a_learner_may_take_as_long_as_it_likes(data, tmp_path):
    lda = choose(only=["lda"])
    assert compare(data, tmp_path, learners=lda, time_limit=math.inf).standings[0].finished


def test_no_threads_and_no_learners_are_refused(data, tmp_path):
    with pytest.raises(ValueError, match="n_jobs must be"):
        compare(data, tmp_path, n_jobs=0)
    with pytest.raises(ValueError, match="at least one learner"):
        compare(data, tmp_path, learners=())


def test_a_learner_that_predicts_the_large_class_is_not_recommended(tmp_path):
    plain = mixture(11, 8, n_train=400, n_test=40, distance=0.6)
    few = np.cumsum(plain.y_train[:, None] == np.arange(11), axis=0)[
        np.arange(len(plain.y_train)), plain.y_train
    ]
    keep = (plain.y_train == 0) | (few <= 8)
    data = replace(plain, X_train=plain.X_train[keep], y_train=plain.y_train[keep])
    found = compare(data, tmp_path, learners=choose(only=["least-squares", "class-means"]))
    assert any("largest class has 400 training examples" in each for each in found.remarks)
    for advice in found.advice:
        assert advice.choice is None or advice.choice.class_mean > 1.5 / 11


def test_a_remark_says_that_there_were_no_updates(data, tmp_path):
    found = compare(data, tmp_path, learners=choose(only=NAMES), initial=6)
    assert "there were no updates" in found.remarks[0]
    needs = [advice.need for advice in found.advice]
    assert "In general" not in needs
    assert not any("100 ms" in need for need in needs)


def test_river_alone_is_measured_and_nothing_is_recommended(data, tmp_path):
    pytest.importorskip("river")
    found = compare(data, tmp_path, learners=choose(only=["softmax"]))
    assert found.on_sample[0].finished
    assert "Only learners on a subsample" in found.advice[0].reason
    assert "<figure" not in (tmp_path / "comparison.html").read_text(encoding="utf-8")


def test_a_package_that_is_not_there_is_named(data, tmp_path):
    absent = ComparedLearner(
        "absent", "absent", "scikit-learn", Estimator("no_such_package", "Model")
    )
    found = compare(data, tmp_path, learners=[absent, *choose(only=["lda"])])
    assert "no_such_package is not installed" in found.standings[1].problem


def test_several_orders_give_a_deviation(data, tmp_path):
    found = compare(data, tmp_path, learners=choose(only=["class-means"]), repetitions=2)
    results = found.standings[0].results
    assert len(results) == 2
    assert results[0].points[0] != results[1].points[0]


def test_a_folder_that_cannot_be_written_is_refused_before_any_work(data, tmp_path, monkeypatch):
    monkeypatch.setattr(comparison, "measure", refuse)
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="cannot write to the folder"):
        compare(data, tmp_path / "file")


def test_a_quick_run_leaves_out_the_slow(data, tmp_path):
    slow = choose(only=["least-squares-random", "lda"])
    found = compare(data, tmp_path, learners=slow, quick=True)
    assert found.standings[1].problem == "left out of a quick run"
