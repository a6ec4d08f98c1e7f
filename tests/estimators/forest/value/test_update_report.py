"""What an update says it did, and how it shows its progress."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evergrow import RTST, NCMForestClassifier
from tests.conftest import FORESTS
from tests.estimators.forest.blobs import CASES, blobs, leaf_counts, strategies_of, strategy

FIRST, SECOND = blobs(150, [0, 1, 2]), blobs(60, [1, 3, 4], seed=1)


def trained(kind: Any, update: Any, refresh: Any = 0.0, **options: Any) -> Any:
    options = {"min_samples_leaf": 3, "random_state": 0, **options}
    return kind(4, update=strategy(update, refresh), **options).fit(*FIRST)


@pytest.mark.parametrize("kind", FORESTS)
def test_a_fit_reports_samples_classes_and_time(kind: Any) -> None:
    report = trained(kind, "igt").update_report_
    assert (report.strategy, report.n_samples, report.n_new_classes) == ("fit", 150, 3)
    assert report.n_added == 150 * 4
    assert report.seconds > 0


@pytest.mark.parametrize(("kind", "update"), CASES)
def test_an_update_reports_samples_classes_and_time(kind: Any, update: str) -> None:
    report = trained(kind, update).partial_fit(*SECOND).update_report_
    assert (report.strategy, report.n_samples, report.n_new_classes) == (update, 60, 2)
    assert report.seconds > 0
    assert report.pass_seconds > 0
    assert report.n_refreshed == 0


@pytest.mark.parametrize(("kind", "update"), [case for case in CASES if case[1] != "rust"])
def test_every_tree_adds_every_sample(kind: Any, update: str) -> None:
    assert trained(kind, update).partial_fit(*SECOND).update_report_.n_added == 60 * 4


@pytest.mark.parametrize("kind", FORESTS)
def test_only_strategies_that_choose_nodes_choose_nodes(kind: Any) -> None:
    reports = {
        name: trained(kind, name).partial_fit(*SECOND).update_report_
        for name in strategies_of(kind)
    }
    assert {name for name, report in reports.items() if report.n_chosen} == (
        {"rtst", "rust"} & set(strategies_of(kind))
    )
    assert reports["uls"].n_grown == reports["uls"].n_cut == reports["uls"].n_edited == 0
    assert reports["igt"].n_grown > 0
    assert reports["igt"].n_cut == 0


@pytest.mark.parametrize("kind", FORESTS)
def test_every_tree_is_cut_once_when_all_nodes_are_chosen(kind: Any) -> None:
    report = trained(kind, RTST(share=1)).partial_fit(*SECOND).update_report_
    assert report.n_cut == 4
    assert report.n_edited == 0


def test_nodes_that_take_new_means_are_counted() -> None:
    report = trained(NCMForestClassifier, "rust").partial_fit(*SECOND).update_report_
    assert report.n_edited > 0
    assert report.n_comparisons > 0


@pytest.mark.parametrize("kind", FORESTS)
def test_refreshed_trees_are_counted(kind: Any) -> None:
    forest = trained(kind, "uls", refresh=0.5)
    assert [forest.partial_fit(*SECOND).update_report_.n_refreshed for _ in range(3)] == [2, 2, 2]


def test_trees_that_see_a_share_add_a_share() -> None:
    forest = trained(NCMForestClassifier, "igt", max_samples=0.5).partial_fit(*SECOND)
    assert forest.update_report_.n_added == 30 * 4
    assert sum(leaf_counts(forest, tree).sum() for tree in range(4)) == (75 + 30) * 4


@pytest.mark.parametrize("kind", FORESTS)
def test_forgetting_reports_the_samples_that_went(kind: Any) -> None:
    report = trained(kind, "igt").forget(classes=[1]).update_report_
    assert report.strategy == "forget"
    assert report.n_samples == (FIRST[1] == 1).sum()
    assert report.n_added == report.n_new_classes == 0
    assert report.seconds > 0


def test_an_early_update_reports_its_own_samples() -> None:
    forest = NCMForestClassifier(4, random_state=0).partial_fit(*blobs(20, [0, 1]))
    report = forest.partial_fit(*blobs(7, [0, 2], seed=1)).update_report_
    assert report.n_samples == 7


def test_a_report_reads_as_text_without_what_did_not_happen() -> None:
    text = str(trained(NCMForestClassifier, "uls").partial_fit(*SECOND).update_report_)
    assert text.startswith("uls: 60 samples in ")
    assert "\n  n_added: 240" in text
    assert "n_cut" not in text


def test_ids_count_samples_from_the_first_on() -> None:
    forest = trained(NCMForestClassifier, "rust")
    assert forest.sample_ids_.tolist() == list(range(150))
    assert forest.partial_fit(*SECOND).sample_ids_.tolist() == list(range(150, 210))
    assert forest.sample_ids_.dtype == np.int64
    assert forest.fit(*SECOND).sample_ids_.tolist() == list(range(60))


def test_ids_count_on_through_early_samples() -> None:
    X, y = blobs(80, [0, 1, 2])
    forest = NCMForestClassifier(2, random_state=0)
    found = [forest.partial_fit(X[i : i + 20], y[i : i + 20]).sample_ids_ for i in range(0, 80, 20)]
    assert np.concatenate(found).tolist() == list(range(80))


@pytest.mark.parametrize("kind", FORESTS)
def test_a_bar_shows_the_trees_on_standard_error(
    kind: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    forest = trained(kind, "igt").set_params(verbose=1).partial_fit(*SECOND)
    shown = capsys.readouterr()
    assert "Updating trees" in shown.err
    assert "4/4" in shown.err
    forest.forget(classes=[1])
    shown = capsys.readouterr()
    assert "Forgetting" in shown.err
    assert shown.out == ""


def test_nothing_is_shown_unless_asked(capsys: pytest.CaptureFixture[str]) -> None:
    trained(NCMForestClassifier, "rust").partial_fit(*SECOND).forget(classes=[1])
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "")
