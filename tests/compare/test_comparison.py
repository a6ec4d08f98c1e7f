"""The whole comparison: files, checkpoints, and learners that fail."""

import csv
import json
import math
import platform

import numpy as np
import pytest

from evergrow.compare import compare, comparison, load_dataset
from evergrow.compare.learners import ComparedLearner, choose
from tests.compare.made import mixture

pytestmark = pytest.mark.slow

NAMES = ["lda", "class-means", "ridge"]


@pytest.fixture(scope="module")
def data():
    return mixture(6, 8, n_train=15, n_test=10, distance=1.0)


@pytest.fixture
def calls(monkeypatch):
    """The names of learners that were measured."""
    seen, real = [], comparison.measure

    def note(learner, *arguments, **options):
        seen.append(learner.name)
        return real(learner, *arguments, **options)

    monkeypatch.setattr(comparison, "measure", note)
    return seen


def test_digits_give_the_same_accuracies_every_time(tmp_path):
    names = ["class-means", "lda", "least-squares", "ncm-forest", "ridge"]
    found = compare(load_dataset("digits"), tmp_path, learners=choose(only=names), n_jobs=1)
    accuracies = {s.learner.name: round(s["class_mean"], 4) for s in found.standings}
    assert accuracies == {
        "ncm-forest": 0.9866,
        "lda": 0.9599,
        "least-squares": 0.9572,
        "ridge": 0.9393,
        "class-means": 0.9062,
    }
    chosen = {advice.need: advice.choice.learner.name for advice in found.advice}
    assert (chosen["Highest accuracy"], chosen["Little memory"]) == ("ncm-forest", "class-means")


def test_the_files_have_what_was_measured(data, tmp_path, calls):
    found = compare(data, tmp_path / "new", learners=choose(only=NAMES))
    names = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert names == [".runs", "comparison.csv", "comparison.html", "comparison.json"]
    with (tmp_path / "new" / "comparison.csv").open(encoding="utf-8") as file:
        rows = [*csv.DictReader(file)]
    assert [row["learner"] for row in rows] == [each.learner.name for each in found.standings]
    accuracies = [each["class_mean"] for each in found.standings]
    assert accuracies == sorted(accuracies, reverse=True)
    assert [float(row["class_mean"]) for row in rows] == pytest.approx(accuracies, rel=1e-5)
    assert [float(row["bytes"]) for row in rows] == [each["bytes"] for each in found.standings]
    text = (tmp_path / "new" / "comparison.json").read_text(encoding="utf-8")
    record = json.loads(text)
    assert (record["format"], record["data"]["sha256"]) == (1, data.sha256)
    assert [each["class_mean"] for each in record["learners"]] == accuracies
    assert not any(private in text for private in (str(tmp_path), platform.node()))
    again = compare(data, tmp_path / "new", learners=choose(only=NAMES))
    assert [each.results for each in again.standings] == [each.results for each in found.standings]
    other = mixture(6, 8, n_train=15, n_test=10, distance=1.0, random_state=1)
    compare(other, tmp_path / "new", learners=choose(only=["lda"]))
    assert len(calls) == 4


def test_learners_that_are_not_measured_say_why(data, tmp_path, monkeypatch):
    slow = choose(only=["least-squares-random", "lda"])
    found = compare(data, tmp_path, learners=slow, quick=True)
    assert found.standings[1].problem == "left out of a quick run"
    monkeypatch.setattr(ComparedLearner, "is_installed", False)
    monkeypatch.setattr(comparison, "install_command", lambda *names: f"pip install {names[1]}")
    found = compare(data, tmp_path, learners=choose(only=["softmax"]))
    assert "river is not installed: pip install river" in found.on_sample[0].problem
    assert "Only learners on a subsample" in found.advice[0].reason


def test_an_interrupted_comparison_goes_on_with_the_next(data, tmp_path, monkeypatch):
    measured, real = [], comparison.measure

    def until_ridge(learner, *arguments, **options):
        measured.append(learner.name)
        if learner.name == "ridge" and measured.count("ridge") == 1:
            raise KeyboardInterrupt
        return real(learner, *arguments, **options)

    monkeypatch.setattr(comparison, "measure", until_ridge)
    with pytest.raises(KeyboardInterrupt):
        compare(data, tmp_path, learners=choose(only=NAMES))
    compare(data, tmp_path, learners=choose(only=NAMES))
    assert sorted(measured) == ["class-means", "lda", "ridge", "ridge"]


@pytest.mark.parametrize(
    "options",
    [{"fresh": True}, {"seed": 1}, {"protocol": "single"}, {"n_jobs": 1}, {"repetitions": 2}],
    ids=str,
)
def test_what_is_not_in_the_checkpoints_is_measured(data, tmp_path, calls, options):
    lda = choose(only=["lda"])
    compare(data, tmp_path, learners=lda, initial=2, chunk=1)
    if options.get("protocol") is None:
        options = {"initial": 2, "chunk": 1, **options}
    compare(data, tmp_path, learners=lda, **options)
    assert calls == ["lda"] * 2


def test_a_stopped_learner_is_measured_again_with_more_time(data, tmp_path):
    lda = choose(only=["lda"])
    hasty = compare(data, tmp_path, learners=lda, time_limit=1e-9)
    assert not hasty.standings[0].finished
    assert compare(data, tmp_path, learners=lda, time_limit=math.inf).standings[0].finished


@pytest.mark.parametrize(
    "damage",
    [lambda text: text[:-20], lambda text: '{"format": 1}', lambda text: "[]"],
    ids=["cut off", "no result", "no record"],
)
def test_damaged_checkpoints_are_measured_again(data, tmp_path, calls, damage):
    compare(data, tmp_path, learners=choose(only=["lda"]))
    (path,) = (tmp_path / ".runs").iterdir()
    path.write_text(damage(path.read_text()))
    assert compare(data, tmp_path, learners=choose(only=["lda"])).standings[0].finished
    compare(data, tmp_path, learners=choose(only=["lda"]))
    assert calls == ["lda"] * 2


def test_checkpoints_of_another_format_are_refused(data, tmp_path):
    compare(data, tmp_path, learners=choose(only=["lda"]))
    (path,) = (tmp_path / ".runs").iterdir()
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 2}))
    with pytest.raises(ValueError, match=r"a result of format 2, and this version reads format 1"):
        compare(data, tmp_path, learners=choose(only=["lda"]))
    assert compare(data, tmp_path, learners=choose(only=["lda"]), fresh=True).measured_anything


def broken(error):
    def fail(seed):
        raise error("weights")

    return ComparedLearner("forests", "evergrow", "broken", "broken", "Broken()", make=fail)


@pytest.mark.parametrize("error", [KeyError, AttributeError, RuntimeError, TypeError])
def test_no_error_of_one_learner_stops_the_others(data, tmp_path, error):
    found = compare(data, tmp_path, learners=[broken(error), *choose(only=["lda"])])
    assert [each.finished for each in found.standings] == [True, False]
    assert found.standings[1].problem.startswith(f"failed: {error.__name__}: ")
    assert found.measured_anything
    assert not compare(data, tmp_path, learners=[broken(error)]).measured_anything


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(
            ({"time_limit": limit}, "time_limit must be a number of seconds above 0")
            for limit in (-1, 0, float("nan"), None, "10", True)
        ),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"learners": ()}, "at least one learner"),
    ],
)
def test_invalid_options_are_refused(data, tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        compare(data, tmp_path, **options)


def test_a_folder_that_cannot_be_written_is_refused_first(data, tmp_path, calls):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="cannot write to the folder"):
        compare(data, tmp_path / "file")
    assert calls == []


def test_a_remark_says_that_there_were_no_updates(data, tmp_path):
    found = compare(data, tmp_path, learners=choose(only=NAMES), initial=6)
    assert "there were no updates" in found.remarks[0]
    needs = [advice.need for advice in found.advice]
    assert "In general" not in needs
    assert not any("100 ms" in need for need in needs)


def test_several_orders_give_a_deviation(data, tmp_path):
    found = compare(data, tmp_path, learners=choose(only=["class-means"]), repetitions=2)
    (standing,) = found.standings
    first, second = standing.results
    assert first.points[0] != second.points[0]
    accuracies = [each.points[-1].class_mean for each in standing.results]
    assert standing.deviation == pytest.approx(np.std(accuracies, ddof=1))
