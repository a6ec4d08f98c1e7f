"""Facts for whoever follows a workspace."""

from __future__ import annotations

import numpy as np
import pytest

from evergrow.workspace import Workspace
from evergrow.workspace import history as history_module
from evergrow.workspace.events import (
    NO_FINE,
    Added,
    Chosen,
    Erased,
    ForestLearnt,
    Guessed,
    Moved,
    Named,
    Removed,
    SplitSet,
)
from tests.workspace.builders import Mirror, lesson, made, row


class Diary:
    """Keeps all facts in the order in which they came."""

    def __init__(self):
        self.facts = []

    def opened(self, history):
        self.facts = list(history.facts())

    def applied(self, facts, history):
        self.facts += facts

    def kinds(self):
        return [type(fact) for fact in self.facts]


@pytest.fixture
def workspace(tmp_path):
    with made(tmp_path) as workspace:
        workspace._follower = Diary()
        yield workspace


def test_a_follower_hears_of_a_lesson_with_its_embedding(workspace):
    workspace.teach([lesson("cup", 1, fine="red"), lesson("pen", 2)])
    *named, added = workspace._follower.facts
    assert [(fact.class_id, fact.name, fact.parent) for fact in named] == [
        (1, "cup", None),
        (2, "red", 1),
        (3, "pen", None),
    ]
    block = added.block
    assert (block.ids.tolist(), block.class_ids.tolist()) == ([1, 2], [1, 3])
    assert block.fine_ids.tolist() == [2, NO_FINE]
    assert block.rows.tobytes() == row(("cup", 1)).tobytes() + row(("pen", 2)).tobytes()


def test_a_renamed_class_is_named_anew_and_nothing_else(workspace):
    workspace.teach([lesson("cup")])
    workspace._follower.facts.clear()
    workspace.rename("cup", "mug")
    assert workspace._follower.facts == [Named(2, 1, "mug", None)]


def test_a_class_that_is_there_again_is_named_again(workspace):
    workspace.teach([lesson("cup")])
    workspace.forget("cup")
    workspace._follower.facts.clear()
    workspace.undo()
    assert workspace._follower.kinds() == [Named, Added]


def test_an_erased_class_is_removed_from_followers_with_its_embeddings(workspace):
    workspace.teach([lesson("cup", 1), lesson("pen", 2)])
    workspace._follower.facts.clear()
    workspace.forget("cup", erase=True)
    removed, erased = workspace._follower.facts
    assert isinstance(removed, Removed)
    assert removed.block.rows.tobytes() == row(("cup", 1)).tobytes()
    assert isinstance(erased, Erased)
    assert (erased.ids.tolist(), erased.class_ids.tolist()) == ([2], [2])


def test_a_replay_never_shows_what_was_erased(workspace):
    workspace.teach([lesson("cup", 1), lesson("pen", 2)])
    workspace.forget("cup", erase=True)
    added, erased = workspace.history.facts()
    assert added.block.ids.tolist() == [2]
    assert isinstance(erased, Erased)
    assert workspace.history.usable_from == 3


def test_a_replay_gives_the_facts_in_recorded_order(workspace):
    workspace.teach([lesson("cup", n, fine=fine) for n, fine in enumerate(["r", "r", "b", "b"])])
    workspace.record("choose", {"penalty": 1.0})
    workspace.relabel(1, label="pen")
    workspace.undo()
    workspace.split("cup")
    workspace.undo()
    workspace.record("forest", {"n_changes": 1})
    workspace.remove(4)
    facts = list(workspace.history.facts())
    kinds = [Added, Chosen, Moved, SplitSet, Guessed, SplitSet, ForestLearnt, Removed]
    assert [type(fact) for fact in facts] == [kind for kind in kinds if kind is not Guessed]
    assert [fact.event for fact in facts] == sorted(fact.event for fact in facts)
    assert [fact.split for fact in facts if isinstance(fact, SplitSet)] == [True, False]
    assert facts[1].body == {"penalty": 1.0}


@pytest.mark.parametrize("block", [1, 3, 4096])
def test_a_replay_comes_in_blocks_of_bounded_size(workspace, monkeypatch, block):
    monkeypatch.setattr(history_module, "_BLOCK_ROWS", block)
    workspace.teach([lesson("cup", n) for n in range(7)])
    blocks = [fact.block for fact in workspace.history.facts()]
    assert np.concatenate([one.ids for one in blocks]).tolist() == list(range(1, 8))
    assert max(len(one) for one in blocks) == min(block, 7)


def test_a_replay_from_the_middle_goes_on_from_there(workspace):
    workspace.teach([lesson("cup", n) for n in range(4)])
    early = Mirror()
    early.take(list(workspace.history.facts()))
    middle = workspace.version
    workspace.relabel(2, label="pen")
    workspace.remove(3)
    early.take(list(workspace.history.facts(middle)))
    late = Mirror()
    late.take(list(workspace.history.facts()))
    assert early.places == late.places


def test_a_follower_that_fails_begins_anew_and_the_change_stands(workspace):
    class Fragile(Diary):
        def applied(self, facts, history):
            raise RuntimeError("no")

    workspace._follower = Fragile()
    workspace.teach([lesson("cup")])
    assert workspace._follower.kinds() == [Added]


def test_a_follower_that_missed_something_begins_anew(workspace):
    tell = workspace._tell
    workspace._tell = lambda before, facts: None
    workspace.teach([lesson("cup", 1)])
    workspace._tell = tell
    workspace.teach([lesson("cup", 2)])
    (added,) = workspace._follower.facts
    assert added.block.ids.tolist() == [1, 2]


def test_examples_can_be_had_by_whether_they_have_a_fine_name(workspace):
    workspace.teach([lesson("cup", 1, fine="red"), lesson("cup", 2), lesson("pen", 3, fine="red")])
    history = workspace.history
    assert history.examples(class_id=1, given=True).ids.tolist() == [1]
    assert history.examples(class_id=1, given=False).ids.tolist() == [2]
    assert history.examples(given=True).ids.tolist() == [1, 3]


def test_a_sample_of_examples_is_the_same_every_time(workspace):
    workspace.teach([lesson("cup", n) for n in range(30)])
    first = workspace.history.examples(limit=5).ids
    assert len(first) == 5
    assert first.tolist() == workspace.history.examples(limit=5).ids.tolist()
    assert len(workspace.history.examples(limit=100)) == 30


def test_a_class_knows_its_newest_change_and_guess(workspace):
    workspace.teach([lesson("cup", 1, fine="red"), lesson("pen", 2)])
    history = workspace.history
    assert (history.changed_at(1), history.changed_at(3), history.guessed_at(1)) == (1, 2, 0)
    workspace.relabel(1, fine="blue")
    seq = workspace.record_guesses(1, [])
    assert (history.changed_at(1), history.guessed_at(1)) == (3, seq)


def test_a_workspace_without_examples_has_no_facts(workspace):
    assert list(workspace.history.facts()) == []
    assert len(workspace.history.examples()) == 0
    assert workspace.history.n_features is None


class Broken:
    """A follower that fails, also at beginning anew, until it is mended."""

    def __init__(self):
        self.broken = True
        self.n_examples = 0

    def opened(self, history):
        if self.broken:
            raise RuntimeError("broken")
        self.n_examples = sum(len(fact.block) for fact in history.facts())

    def applied(self, facts, history):
        raise RuntimeError("broken")


@pytest.mark.parametrize("change", ["teach", "remove"])
def test_a_change_is_acknowledged_whatever_its_follower_meets(workspace, caplog, change):
    workspace.teach([lesson("cup", 1)])
    workspace._follower = Broken()
    act = {
        "teach": lambda: workspace.teach([lesson("cup", 2)]),
        "remove": lambda: workspace.remove(1),
    }
    assert act[change]()
    assert "could not be opened anew; the next change tries again" in caplog.text


def test_a_follower_that_could_not_begin_anew_does_so_at_the_next_change(workspace):
    workspace._follower = Broken()
    workspace.teach([lesson("cup", 1)])
    workspace._follower.broken = False
    workspace.teach([lesson("cup", 2)])
    assert workspace._follower.n_examples == 2


def test_embeddings_that_cannot_be_read_do_not_fail_a_change(workspace, monkeypatch):
    workspace.teach([lesson("cup", 1)])

    def refuse(self, ids):
        raise OSError("unreadable")

    monkeypatch.setattr(history_module.StoredHistory, "rows", refuse)
    assert workspace.remove(1).n_examples == 1


class Slow:
    """A follower that lets another teach while it opens."""

    def __init__(self, teach):
        self.teach = teach
        self.seen = []

    def opened(self, history):
        self.seen.append((history.version, len(history.names())))
        self.teach()
        (added,) = history.facts()
        self.seen.append((history.version, len(added.block)))

    def applied(self, facts, history):
        raise AssertionError("nothing is told to a reader")


def test_opening_sees_one_state_whatever_is_taught_meanwhile(workspace):
    workspace.teach([lesson("cup", 1)])
    with Workspace.open(workspace.layout.folder, read_only=True) as reader:
        reader._follower = Slow(lambda: workspace.teach([lesson("pen", 2)]))
        reader._open_follower()
        assert reader._follower.seen == [(1, 1), (1, 1)]
        assert reader._told == 1


def test_opening_begins_again_when_something_was_erased_meanwhile(workspace):
    workspace.teach([lesson("cup", 1), lesson("pen", 2)])
    erase = iter([lambda: workspace.forget("cup", erase=True)])
    with Workspace.open(workspace.layout.folder, read_only=True) as reader:
        mirror = reader._follower = Mirror()
        take = mirror.take

        def take_and_erase(facts):
            next(erase, lambda: None)()
            take(facts)

        mirror.take = take_and_erase
        reader._open_follower()
        assert list(mirror.places) == [2]
        assert mirror.rows[2] == row(("pen", 2)).tobytes()
