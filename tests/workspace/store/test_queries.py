"""Listings, page by page."""

from __future__ import annotations

import pytest

from evergrow import WorkspaceError
from evergrow.workspace import NoSuchClassError
from tests.workspace.builders import new_example


@pytest.fixture
def workspace(workspace):
    workspace.teach([new_example(f"class {n % 5}", n, fine=f"fine {n % 2}") for n in range(20)])
    return workspace


def all_items(ask, **options):
    items, after, n_pages = [], None, 0
    while True:
        page = ask(after=after, **options)
        items += page.items
        after, n_pages = page.next, n_pages + 1
        if after is None:
            return items, n_pages


@pytest.mark.parametrize("limit", [1, 2, 4, 5, 6])
def test_pages_of_classes_show_each_class_once_in_order_of_creation(workspace, limit):
    items, n_pages = all_items(workspace.classes, limit=limit)
    assert [one.name for one in items] == [f"class {n}" for n in range(5)]
    assert n_pages == -(-5 // limit)


@pytest.mark.parametrize("limit", [1, 7, 20, 21])
def test_pages_of_examples_show_each_example_once(workspace, limit):
    items, _ = all_items(workspace.examples, limit=limit)
    assert [one.id for one in items] == list(range(1, 21))


def test_examples_of_a_fine_name_include_guesses(workspace):
    entry = workspace.class_named("class 2")
    workspace.relabel(3, clear_fine=True)
    fine = {one.name: one.id for one in entry.fine}
    workspace._writer.record_guesses(entry.id, [(3, fine["fine 1"], 0.5)])
    listed = {
        guessed: [
            one.id
            for one in all_items(
                workspace.examples, limit=1, label="class 2", fine="fine 1", guessed=guessed
            )[0]
        ]
        for guessed in (None, True, False)
    }
    assert listed == {None: [3, 8, 18], True: [3], False: [8, 18]}


@pytest.mark.parametrize("label", [None, "class 2"])
def test_examples_can_be_filtered_by_whether_they_are_guessed(workspace, label):
    entry = workspace.class_named("class 2")
    workspace.relabel(3, clear_fine=True)
    workspace._writer.record_guesses(entry.id, [(3, entry.fine[0].id, 0.5)])
    assert [one.id for one in workspace.examples(label=label, guessed=True).items] == [3]
    assert 3 not in [one.id for one in workspace.examples(label=label, guessed=False).items]


def test_an_example_taught_between_two_pages_comes_at_the_end(workspace):
    page = workspace.examples(limit=10)
    workspace.remove(10)
    workspace.teach([new_example("class 0", "new")])
    rest = workspace.examples(after=page.next, limit=100)
    assert [one.id for one in rest.items] == list(range(11, 22))


def test_events_are_listed_newest_first(workspace):
    workspace.rename("class 0", "zero")
    items, _ = all_items(workspace.events, limit=4)
    assert [one.seq for one in items] == list(range(21, 0, -1))
    assert (items[0].kind, items[0].body["to"], items[0].actor) == (
        "rename",
        "zero",
        "command line",
    )


def test_events_can_be_listed_oldest_first(workspace):
    items, _ = all_items(workspace.events, limit=4, newest_first=False)
    assert [one.seq for one in items] == list(range(1, 21))


@pytest.mark.parametrize("after", ["", "x", "MQ==", "LTE", "MDE", "é", "MTIz" * 7])
def test_an_invalid_cursor_is_refused(workspace, after):
    for ask in (workspace.classes, workspace.examples, workspace.events):
        with pytest.raises(WorkspaceError, match="after must be what an earlier page gave"):
            ask(after=after)


@pytest.mark.parametrize("limit", [0, -1, 10_001, True, 2.0])
def test_a_page_too_small_or_too_large_is_refused(workspace, limit):
    with pytest.raises(WorkspaceError, match="limit must be an integer from 1 to 10000"):
        workspace.examples(limit=limit)


def test_a_fine_name_without_its_class_is_searched_in_all_classes(workspace):
    found = workspace.examples(fine="fine 1").items
    assert {one.fine for one in found} == {"fine 1"}
    assert len({one.label for one in found}) > 1
    assert workspace.examples(fine="nobody's").items == ()


def test_examples_of_an_unknown_class_are_refused(workspace):
    with pytest.raises(NoSuchClassError, match="class 'mug' does not exist"):
        workspace.examples(label="mug")


def test_a_class_is_found_by_any_spelling_of_its_name(workspace):
    workspace.rename("class 0", "cafe\u0301")
    assert workspace.class_named(" caf\u00e9 ").n_examples == 4


def test_the_status_has_the_current_counts(workspace):
    workspace.remove(1)
    status = workspace.status()
    assert (status.n_examples, status.n_classes, status.event) == (19, 5, 21)
    assert (status.n_features, status.takes_images, status.forest) == (3, False, False)
    assert status.n_bytes > 4096
