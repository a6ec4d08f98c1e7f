"""The whole comparison: files, what is kept, and learners that fail."""

import csv
import json
import platform

import pytest

from evergrow.comparison import Contender, Estimator, choose, compare, comparing
from evergrow.streams import mixture

NAMES = ["lda", "class-means", "ridge"]


@pytest.fixture(scope="module")
def data():
    return mixture(6, 8, n_train=15, n_test=10, distance=1.0)


def refuse(*_, **__):
    raise AssertionError("measured again")


def test_page_table_and_record_are_written(data, tmp_path):
    compare(data, tmp_path / "new", contenders=choose(only=NAMES))
    names = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert names == [".runs", "comparison.csv", "comparison.html", "comparison.json"]


def test_the_table_has_what_was_measured(data, tmp_path):
    found = compare(data, tmp_path, contenders=choose(only=NAMES))
    with (tmp_path / "comparison.csv").open(encoding="utf-8") as file:
        rows = {row["learner"]: row for row in csv.DictReader(file)}
    assert set(rows) == set(NAMES)
    for each in found.standings:
        row = rows[each.contender.name]
        assert float(row["accuracy"]) == pytest.approx(each.accuracy, rel=1e-5)
        assert float(row["bytes"]) == each.n_bytes


def test_the_record_tells_versions_and_data_and_no_machine(data, tmp_path):
    compare(data, tmp_path, contenders=choose(only=NAMES))
    text = (tmp_path / "comparison.json").read_text(encoding="utf-8")
    record = json.loads(text)
    assert record["data"]["sha256"] == data.sha256
    assert record["n_cores"] >= 1
    assert "evergrow" in record["versions"]
    assert str(tmp_path) not in text
    assert platform.node() not in text


def test_the_most_accurate_stands_first(data, tmp_path):
    found = compare(data, tmp_path, contenders=choose(only=NAMES))
    accuracies = [each.accuracy for each in found.standings]
    assert accuracies == sorted(accuracies, reverse=True)


def test_a_second_call_measures_nothing_again(data, tmp_path, monkeypatch):
    first = compare(data, tmp_path, contenders=choose(only=NAMES))
    monkeypatch.setattr(comparing, "measure", refuse)
    again = compare(data, tmp_path, contenders=choose(only=NAMES))
    assert [each.results for each in again.standings] == [each.results for each in first.standings]


def test_after_an_interruption_only_the_missing_learners_are_measured(data, tmp_path, monkeypatch):
    measured = []
    real = comparing.measure

    def until_ridge(contender, *arguments, **options):
        if contender.name == "ridge" and "ridge" not in measured:
            measured.append("ridge")
            raise KeyboardInterrupt
        measured.append(contender.name)
        return real(contender, *arguments, **options)

    monkeypatch.setattr(comparing, "measure", until_ridge)
    with pytest.raises(KeyboardInterrupt):
        compare(data, tmp_path, contenders=choose(only=NAMES))
    compare(data, tmp_path, contenders=choose(only=NAMES))
    assert sorted(measured) == ["class-means", "lda", "ridge", "ridge"]


def test_fresh_measures_again(data, tmp_path, monkeypatch):
    compare(data, tmp_path, contenders=choose(only=["lda"]))
    calls = []
    real = comparing.measure
    monkeypatch.setattr(comparing, "measure", lambda *a, **o: calls.append(1) or real(*a, **o))
    compare(data, tmp_path, contenders=choose(only=["lda"]), fresh=True)
    assert calls == [1]


def test_other_data_are_measured_anew(data, tmp_path, monkeypatch):
    compare(data, tmp_path, contenders=choose(only=["lda"]))
    other = mixture(6, 8, n_train=15, n_test=10, distance=1.0, random_state=1)
    calls = []
    real = comparing.measure
    monkeypatch.setattr(comparing, "measure", lambda *a, **o: calls.append(1) or real(*a, **o))
    compare(other, tmp_path, contenders=choose(only=["lda"]))
    assert calls == [1]


def test_a_learner_that_was_stopped_is_measured_again_with_more_time(data, tmp_path):
    lda = choose(only=["lda"])
    hasty = compare(data, tmp_path, contenders=lda, time_limit=1e-9)
    assert not hasty.standings[0].finished
    assert compare(data, tmp_path, contenders=lda, time_limit=60).standings[0].finished


def test_a_learner_that_fails_leaves_the_others_alone(data, tmp_path):
    recipe = Estimator("sklearn.neighbors", "KNeighborsClassifier", {"n_neighbors": 10_000})
    failing = Contender("failing", "failing", "scikit-learn", recipe, way="retrained")
    found = compare(data, tmp_path, contenders=[failing, *choose(only=["lda"])])
    assert [each.finished for each in found.standings] == [True, False]
    assert found.standings[1].problem.startswith("failed: Expected n_neighbors")


def test_a_package_that_is_not_there_is_named(data, tmp_path):
    absent = Contender("absent", "absent", "scikit-learn", Estimator("no_such_package", "Model"))
    found = compare(data, tmp_path, contenders=[absent, *choose(only=["lda"])])
    assert "no_such_package is not installed" in found.standings[1].problem


def test_several_orders_give_a_deviation(data, tmp_path):
    found = compare(data, tmp_path, contenders=choose(only=["class-means"]), repetitions=2)
    results = found.standings[0].results
    assert len(results) == 2
    assert results[0].points[0] != results[1].points[0]


def test_a_folder_that_cannot_be_written_is_refused_before_any_work(data, tmp_path, monkeypatch):
    monkeypatch.setattr(comparing, "measure", refuse)
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="cannot write to the folder"):
        compare(data, tmp_path / "file")


def test_a_quick_run_leaves_out_the_slow(data, tmp_path):
    slow = choose(only=["least-squares-random", "lda"])
    found = compare(data, tmp_path, contenders=slow, quick=True)
    assert found.standings[1].problem == "left out of a quick run"
