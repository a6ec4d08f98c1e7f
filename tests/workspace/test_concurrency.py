"""Many threads, many classes, many examples."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from evergrow import WorkspaceError
from evergrow.workspace import ConflictError, NewExample
from evergrow.workspace.events import NullProjection
from tests.workspace.builders import counts, labels, new_example, picture, request_with_key


def test_threads_that_name_a_new_class_at_once_create_one(workspace):
    with ThreadPoolExecutor(8) as pool:
        taught = pool.map(
            lambda n: workspace.teach([new_example("cup", n, fine="red")])[0], range(40)
        )
        assert sum(one.new_class for one in taught) == 1
        assert counts(workspace) == {"cup": 40}
        assert workspace.check() == []


def test_a_key_that_comes_from_many_threads_at_once_is_taught_once(workspace):
    with ThreadPoolExecutor(8) as pool:
        once = new_example("cup", 1, request=request_with_key("k"), picture=picture(1))
        answers = list(pool.map(lambda _: workspace.teach([once])[0], range(16)))
        assert len(set(answers)) == 1
        assert counts(workspace) == {"cup": 1}


def test_readers_see_consistent_states_during_changes(workspace):
    workspace.teach([new_example("a", n) for n in range(20)])
    stop, wrong = threading.Event(), []

    def read():
        while not stop.is_set():
            # All twenty are together at every moment.
            page = workspace.classes()
            if [one.n_examples for one in page.items] != [20]:
                wrong.append(page)
            if len(labels(workspace)) != 20:
                wrong.append(page)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for _ in range(10):
        workspace.rename("a", "b")
        workspace.undo()
    stop.set()
    for reader in readers:
        reader.join()
    assert not wrong


def test_changes_from_many_threads_are_made_or_refused(workspace):
    def change(number):
        workspace.teach([new_example(f"class {number % 3}", number)])
        try:
            [workspace.undo, lambda: workspace.merge("class 0", "class 1")][number % 2]()
        except WorkspaceError:
            return

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(change, range(30)))
        assert workspace.check() == []


@pytest.mark.slow
def test_ten_thousand_classes_are_listed_and_one_more_is_refused(workspace):
    workspace._writer.publisher.projection = NullProjection()
    rows = np.ones((10_000, 3), dtype=np.float32)
    workspace.teach([NewExample(row, f"class {n}") for n, row in enumerate(rows)])
    assert workspace.status().n_classes == 10_000
    with pytest.raises(ConflictError, match="there are 10000 classes already"):
        workspace.teach([new_example("one more")])
    page = workspace.classes(limit=10_000)
    assert (len(page.items), page.next) == (10_000, None)
    workspace.teach([new_example("class 77", 1)])
    assert workspace.class_named("class 77").n_examples == 2
