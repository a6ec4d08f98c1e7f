"""Many threads, many classes, many examples."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from evergrow import WorkspaceError
from evergrow.workspace import ConflictError, NewExample
from evergrow.workspace.events import NullProjection
from tests.workspace.builders import asked, counts, labels, made, new_example, picture


def test_two_threads_that_name_the_same_class_at_once_make_one(tmp_path):
    with made(tmp_path) as workspace, ThreadPoolExecutor(8) as pool:
        taught = pool.map(
            lambda n: workspace.teach([new_example("cup", n, fine="red")])[0], range(40)
        )
        assert sum(one.new_class for one in taught) == 1
        assert counts(workspace) == {"cup": 40}
        assert workspace.check() == []


def test_a_key_that_comes_from_many_threads_at_once_is_taught_once(tmp_path):
    with made(tmp_path) as workspace, ThreadPoolExecutor(8) as pool:
        once = new_example("cup", 1, request=asked("k"), picture=picture(1))
        answers = list(pool.map(lambda _: workspace.teach([once])[0], range(16)))
        assert len(set(answers)) == 1
        assert counts(workspace) == {"cup": 1}


def test_readers_see_whole_states_while_everything_changes(tmp_path):
    with made(tmp_path) as workspace:
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


def test_changes_from_many_threads_all_stand_or_are_refused(tmp_path):
    def change(number):
        workspace.teach([new_example(f"class {number % 3}", number)])
        try:
            [workspace.undo, lambda: workspace.merge("class 0", "class 1")][number % 2]()
        except WorkspaceError:
            return

    with made(tmp_path) as workspace, ThreadPoolExecutor(6) as pool:
        list(pool.map(change, range(30)))
        assert workspace.check() == []


def test_a_full_house_of_ten_thousand_classes_is_listed_and_refuses_one_more(tmp_path):
    with made(tmp_path) as workspace:
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
