"""An assessment measures each class, finds doubtful labels, and selects hyperparameters."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest

from evergrow.foundation.errors import WorkspaceError
from evergrow.workspace import NewExample, Workspace
from evergrow.workspace.events import ExampleBlock
from evergrow.workspace.model.assessment import Assessment, NoveltyLimits, sign_of, wilson
from evergrow.workspace.model.evaluation import assess, is_due
from evergrow.workspace.model.least_squares import Hyperparameters, TrainedModel
from tests.workspace.builders import new_workspace

Array = np.ndarray[Any, Any]


def mixture(n: int, *, noise: float = 1.0, seed: int = 0, d: int = 8) -> tuple[Array, Array]:
    """Classes 1 to 4; 3 and 4 lie close to each other."""
    rng = np.random.default_rng(seed)
    class_ids = 1 + np.arange(n) % 4
    centres = 4 * np.eye(d)[[0, 1, 2, 2]] + np.array([[0], [0], [0], [1]]) * np.eye(d)[3]
    X = centres[class_ids - 1] + noise * rng.normal(size=(n, d))
    return X.astype(np.float32), class_ids


def block(X: Array, class_ids: Array) -> ExampleBlock:
    ids = np.arange(1, len(X) + 1)
    return ExampleBlock(ids, X, class_ids, np.zeros(len(X), dtype=np.int64))


def assessed(X: Array, class_ids: Array, **options: Any) -> Assessment:
    settings = {"event": 7, "false_alarms": 0.1, "seed": 0, **options}
    found = assess(TrainedModel().add(X, class_ids), block(X, class_ids), **settings)
    assert found is not None
    return found


def test_accuracies_are_those_of_retraining_without_each_example() -> None:
    X, class_ids = mixture(48)
    found = assessed(X, class_ids)
    right = np.zeros(len(X), dtype=bool)
    for i in range(len(X)):
        others = np.arange(len(X)) != i
        learnt = TrainedModel(hyperparameters=found.hyperparameters).add(
            X[others], class_ids[others]
        )
        weights, offsets = learnt.scoring()
        best = learnt.class_ids[(weights @ X[i] + offsets).argmax()]
        right[i] = best == class_ids[i]
    for class_id, seen in found.recognised.items():
        mine = class_ids == class_id
        assert (seen.n, seen.n_right) == (mine.sum(), right[mine].sum())


def test_classes_are_confused_with_those_they_resemble() -> None:
    X, class_ids = mixture(400)
    found = assessed(X, class_ids)
    assert found.recognised[3].confused_with == 4
    assert found.recognised[4].confused_with == 3
    assert found.recognised[1].accuracy.rate > found.recognised[3].accuracy.rate
    pairs = {(true, message): n for true, message, n in found.confusion}
    assert sum(pairs.values()) == 400
    assert pairs[1, 1] == found.recognised[1].n_right
    assert pairs[3, 4] == found.recognised[3].n_confused
    examples = [one for one in found.mistaken if one.predicted is not None]
    assert Counter((one.class_id, one.predicted) for one in examples) == {
        pair: n for pair, n in pairs.items() if pair[0] != pair[1]
    }
    assert all(class_ids[one.example_id - 1] == one.class_id for one in examples)
    unknown = [one.example_id for one in found.mistaken if one.predicted is None]
    assert len(set(unknown)) == round(400 * (found.measured_false_alarms or 0))
    assert sum((found.unknown or {}).values()) == len(unknown)
    again = Assessment.from_json(json.loads(json.dumps(found.to_json())))
    assert (again.mistaken, again.unknown) == (found.mistaken, found.unknown)


def test_some_examples_of_every_confusion_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evergrow.workspace.model.evaluation._MOST_MISTAKEN", 2)
    found = assessed(*mixture(400))
    kept = Counter((one.class_id, one.predicted) for one in found.mistaken)
    expected = {(true, other): min(2, n) for true, other, n in found.mistakes}
    expected |= {(k, None): min(2, n) for k, n in (found.unknown or {}).items()}
    assert kept == expected


def test_wrong_labels_are_doubted_the_surest_first() -> None:
    X, class_ids = mixture(200, noise=0.3)
    class_ids[[0, 4]] = 2
    found = assessed(X, class_ids)
    first = found.doubts[:2]
    assert {doubt.example_id for doubt in first} == {1, 5}
    assert {(doubt.class_id, doubt.suggestion) for doubt in first} == {(2, 1)}
    chances = [doubt.probability for doubt in found.doubts]
    assert chances == sorted(chances, reverse=True)


def test_probabilities_mean_what_they_say() -> None:
    X, class_ids = mixture(400)
    choice = assessed(X, class_ids).hyperparameters
    weights, offsets = (learnt := TrainedModel(hyperparameters=choice).add(X, class_ids)).scoring()
    X_test, ids_test = mixture(4000, seed=1)
    logits = (X_test @ weights.T + offsets) / choice.temperature
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    right = learnt.class_ids[shares.argmax(axis=1)] == ids_test
    assert shares.max(axis=1).mean() == pytest.approx(right.mean(), abs=0.04)


def test_few_examples_select_only_the_temperature_and_no_novelty_limits() -> None:
    found = assessed(*mixture(8))
    assert (found.hyperparameters.penalty, found.hyperparameters.recoding) == (
        None,
        Hyperparameters().recoding,
    )
    assert (
        found.hyperparameters.temperature
        > assessed(*mixture(8, noise=0.01)).hyperparameters.temperature
    )
    assert assessed(*mixture(4)).hyperparameters == Hyperparameters()
    assert found.limits is None
    assert found.measured_false_alarms is None
    assert {seen.n for seen in found.recognised.values()} == {2}


def test_a_single_example_or_a_single_class_cannot_be_recognised() -> None:
    X, class_ids = mixture(41)
    class_ids[-1] = 9
    assert 9 not in assessed(X, class_ids).recognised
    alone = assessed(X, np.ones_like(class_ids))
    assert not alone.recognised
    assert alone.accuracy is None


def test_limits_of_another_set_of_classes_are_those_of_the_cosine() -> None:
    limits = assessed(*mixture(200)).limits
    assert limits is not None
    assert limits.by_cosine is not None
    assert limits.valid_for(np.array([4, 3, 2, 1])) is limits
    assert limits.valid_for(np.array([1, 2, 3, 4, 5])) is limits.by_cosine
    alone = limits.by_cosine
    np.testing.assert_array_equal(alone.known.usual, limits.known.usual)
    assert alone.level != limits.level


def test_limits_may_have_only_the_cosine() -> None:
    body = assessed(*mixture(200)).to_json()
    alone = {k: v for k, v in body["limits"].items() if k not in ("scales", "share", "by_cosine")}
    read = Assessment.from_json({**body, "limits": alone}).limits
    assert read is not None
    assert read.known.scales.shape == (0, 2)
    assert read.valid_for(read.class_ids) is read
    cosines, others = np.array([0.5, 0.9]), np.ones((2, 2))
    np.testing.assert_allclose(
        read.novelty(np.array([1, 2]), cosines, others),
        (read.known.usual[:2] - cosines) / read.known.spreads[:2],
    )


def test_signs_show_whether_more_examples_are_needed() -> None:
    assert sign_of(1, None) == "new"
    assert sign_of(2, None) == "more"
    assert sign_of(8, wilson(8, 8)) == "more"
    assert sign_of(12, wilson(12, 12)) == "enough"
    assert sign_of(30, wilson(10, 30)) == "confused"
    assert sign_of(30, wilson(22, 30)) == "more"


@pytest.mark.parametrize(("right", "n"), [(0, 1), (1, 1), (3, 10), (97, 100)])
def test_intervals_are_wilsons(right: int, n: int) -> None:
    found = wilson(right, n)
    # The ends are the rates from which the one found is just 1.96 deviations away.
    for end in (found.low, found.high):
        deviation = np.sqrt(end * (1 - end) / n)
        inside = 0 < end < 1
        assert not inside or abs(right / n - end) == pytest.approx(1.959964 * deviation)
    assert 0 <= found.low <= found.rate <= found.high <= 1


def test_an_assessment_is_due_when_examples_or_classes_have_changed_much() -> None:
    found = assessed(*mixture(40))
    counts = dict(found.class_counts)
    assert not is_due(found, counts)
    # Small classes change much by one example, large ones do not.
    assert is_due(found, {**counts, 1: counts[1] + 3})
    assert is_due(found, {**counts, 1: counts[1] - 3})
    many = replace(found, class_counts=dict.fromkeys(counts, 100))
    assert not is_due(many, {**many.class_counts, 1: 119})
    assert is_due(many, {**many.class_counts, 1: 120})
    assert is_due(many, {**many.class_counts, 1: 80})
    assert is_due(found, {k: n for k, n in counts.items() if k != 1})
    assert is_due(None, counts)
    assert not is_due(None, {})


def test_an_assessment_is_due_when_a_class_comes_goes_or_has_its_second_example() -> None:
    X, class_ids = mixture(41)
    class_ids[-1] = 9
    found = assessed(X, class_ids)
    counts = dict(found.class_counts)
    assert not is_due(found, counts)
    assert is_due(found, {**counts, 5: 1})
    assert is_due(found, {**counts, 9: 2})
    assert is_due(found, {k: n for k, n in counts.items() if k != 9})


def test_after_a_class_with_one_example_all_scores_decide_again(tmp_path: Path) -> None:
    X, class_ids = mixture(40)
    with Workspace.create(tmp_path / "w", features=None) as workspace:
        examples = zip(X[class_ids < 3], class_ids[class_ids < 3], strict=True)
        workspace.teach([NewExample(x, f"class {k}") for x, k in examples])
        workspace.maintain()
        before = limits_in_use(workspace)
        assert len(before.known.scales)
        workspace.teach([NewExample(X[-1], "class 4")])
        assert not len(limits_in_use(workspace).known.scales)
        workspace.maintain()
        after = limits_in_use(workspace)
        assert len(after.known.scales)
        assert len(after.class_ids) == 3
        assert workspace.assess() is None


def limits_in_use(workspace: Workspace) -> NoveltyLimits:
    limits = workspace.snapshot.limits
    assert limits is not None
    return limits


@pytest.mark.slow
def test_the_log_does_not_grow_faster_with_many_classes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    with Workspace.create(tmp_path / "w", features=None) as workspace:
        for k in range(30):
            workspace.teach([NewExample(rng.normal(size=4), f"class {k}") for _ in range(2)])
            workspace.assess(force=True)
        choices = [event for event in workspace.events(limit=200).items if event.kind == "choose"]
        lengths = [len(json.dumps(event.body)) for event in choices]
        assert len(lengths) == 30
        assert max(lengths) < 250
        found = workspace.assessment
        assert found is not None
        assert found.class_counts.keys() == set(range(1, 31))
    with Workspace.open(tmp_path / "w") as again:
        assert again.assessment is not None
        assert again.assessment.to_json() == found.to_json()


def test_an_assessment_survives_its_json_form() -> None:
    found = assessed(*mixture(200))
    body = json.loads(json.dumps(found.to_json()))
    again = Assessment.from_json(body)
    assert again.to_json() == body
    assert again.hyperparameters == found.hyperparameters
    with pytest.raises(WorkspaceError, match="damaged"):
        Assessment.from_json({"seen": 3})


def test_a_workspace_shows_the_results_of_an_assessment(tmp_path: Path) -> None:
    X, class_ids = mixture(240, noise=0.8)
    with Workspace.create(tmp_path / "w", features=None) as workspace:
        workspace.teach([NewExample(x, f"class {k}") for x, k in zip(X, class_ids, strict=True)])
        assert workspace.assess() is not None
        assert workspace.assess() is None
        status, entry = workspace.status(), workspace.class_named("class 3")
        assert status.accuracy is not None
        assert status.assessed_event == 240
        assert entry.confused_with == "class 4"
        assert workspace.class_named("class 1").sign == "enough"
        assert entry.n_unknown == (workspace.assessment.unknown or {}).get(entry.id, 0)
        review = workspace.review()
        assert {one.reason for one in review} == {"doubt"}
        doubted = review[0].example
        workspace.relabel(doubted.id, label=review[0].suggestion)
        assert doubted.id not in {one.example.id for one in workspace.review()}
        expected = workspace.classes()
    with Workspace.open(tmp_path / "w") as again:
        assert again.classes() == expected
        assert sum(entry.n for entry in again.confusion()) == 240


def test_a_label_that_was_confirmed_is_not_doubted_again(tmp_path: Path) -> None:
    X, class_ids = mixture(240, noise=0.8)

    def doubted(workspace: Workspace) -> set[int]:
        return {one.example.id for one in workspace.review()}

    with Workspace.create(tmp_path / "w", features=None) as workspace:
        workspace.teach([NewExample(x, f"class {k}") for x, k in zip(X, class_ids, strict=True)])
        workspace.assess()
        one = workspace.review()[0].example
        change = workspace.relabel(one.id, label=one.label)
        assert (change.kind, change.n_examples) == ("confirm", 0)
        assert one.id not in doubted(workspace)
    with Workspace.open(tmp_path / "w") as again:
        assert one.id not in doubted(again)
        again.undo()
        assert one.id in doubted(again)


def test_a_confirmed_label_does_not_rebuild_the_model(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, class_ids = mixture(80)
    workspace.teach([NewExample(x, f"class {k}") for x, k in zip(X, class_ids, strict=True)])
    monkeypatch.setattr(workspace._writer.publisher, "rebuild", lambda: pytest.fail("rebuilt"))
    workspace.relabel(1, label=workspace.example(1).label)
    workspace.undo()
    (taught,) = workspace.teach([NewExample(X[0], "another")])
    assert workspace.snapshot.event == taught.event


def test_examples_taught_during_an_assessment_are_left_out(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, class_ids = mixture(80)
    workspace.teach([NewExample(x, f"class {k}") for x, k in zip(X, class_ids, strict=True)])
    real = workspace.log.examples

    def meanwhile(**options: Any) -> ExampleBlock:
        monkeypatch.undo()
        workspace.teach([NewExample(X[0], "class 9"), NewExample(X[1], "class 1")])
        workspace.relabel(2, label="class 3")
        workspace.remove(3)
        return real(**options)

    monkeypatch.setattr(workspace.log, "examples", meanwhile)
    found = workspace.assess()
    assert found is not None
    assert sum(seen.n for seen in found.recognised.values()) == 78
    assert workspace.snapshot.temperature == found.hyperparameters.temperature


def test_teaching_one_example_costs_little_however_many_are_known() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 256)).astype(np.float32)
    class_ids = 1 + np.arange(4000) % 50
    times = []
    for n in (200, 4000):
        learnt = TrainedModel(hyperparameters=Hyperparameters(penalty=10.0)).add(
            X[:n], class_ids[:n]
        )
        learnt.scoring()
        best = np.inf
        for i in range(40):
            start = perf_counter()
            learnt = learnt.add(X[i : i + 1], class_ids[i : i + 1])
            learnt.scoring()
            best = min(best, perf_counter() - start)
        times.append(best)
    assert times[1] < 3 * times[0] + 1e-3


def test_guesses_to_review_differ_from_each_other(tmp_path: Path) -> None:
    # Twelve copies of one picture, hardly less certain than four others.
    copies = np.tile([[1.0, 0.0, 0.0]], (12, 1))
    others = np.array([[0.0, 1, 0], [0, 0, 1], [0, -1, 0], [0, 0, -1]])
    rows = np.concatenate([copies, others]).astype(np.float32)
    with new_workspace(tmp_path) as workspace:
        for fine in ("red", "blue"):
            workspace.teach([NewExample(one, "cup", fine=fine) for one in rows[:2]])
        workspace.teach([NewExample(one, "cup") for one in rows])
        ids = [*range(5, 21)]
        cup = workspace.class_named("cup")
        workspace.split("cup")
        shares = [0.30] * 12 + [0.31] * 4
        guesses = [(id_, cup.fine[0].id, p) for id_, p in zip(ids, shares, strict=True)]
        workspace._writer.record_guesses(cup.id, guesses)
        listed = [one for one in workspace.review(limit=4) if one.reason == "guess"]
        assert len({one.example.id for one in listed} & set(ids[12:])) >= 3
        chances = [one.probability for one in listed]
        assert chances == sorted(chances)
        assert len(workspace.review(limit=100)) >= 16
