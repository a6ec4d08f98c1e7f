"""Domain events that a projection gets, live and in a replay."""

from __future__ import annotations

import numpy as np
import pytest

from evergrow.workspace import Workspace
from evergrow.workspace.events import (
    NO_FINE,
    AssessmentAdopted,
    ClassNamed,
    ExamplesAdded,
    ExamplesErased,
    ExamplesMoved,
    ExamplesRemoved,
    FineNamesGuessed,
    ForestTrained,
    SplitChanged,
)
from evergrow.workspace.store import event_log
from tests.workspace.builders import Mirror, new_example, row


class EventRecorder:
    """Records all events in their order."""

    def __init__(self):
        self.events = []

    def rebuild(self, log):
        self.events = list(log.replay())

    def apply(self, events, log):
        self.events += events

    def kinds(self):
        return [type(event) for event in self.events]


@pytest.fixture
def workspace(workspace):
    workspace._writer.publisher.projection = EventRecorder()
    return workspace


def test_a_projection_gets_an_example_with_its_embedding(workspace):
    workspace.teach([new_example("cup", 1, fine="red"), new_example("pen", 2)])
    *named, added = workspace._writer.publisher.projection.events
    assert [(event.class_id, event.name, event.parent) for event in named] == [
        (1, "cup", None),
        (2, "red", 1),
        (3, "pen", None),
    ]
    block = added.block
    assert (block.ids.tolist(), block.class_ids.tolist()) == ([1, 2], [1, 3])
    assert block.fine_ids.tolist() == [2, NO_FINE]
    assert block.rows.tobytes() == row(("cup", 1)).tobytes() + row(("pen", 2)).tobytes()


def test_renaming_a_class_publishes_only_its_name(workspace):
    workspace.teach([new_example("cup")])
    workspace._writer.publisher.projection.events.clear()
    workspace.rename("cup", "mug")
    assert workspace._writer.publisher.projection.events == [ClassNamed(2, 1, "mug", None)]


def test_an_erased_class_is_removed_from_projections_with_its_embeddings(workspace):
    workspace.teach([new_example("cup", 1), new_example("pen", 2)])
    workspace._writer.publisher.projection.events.clear()
    workspace.forget("cup", erase=True)
    removed, erased = workspace._writer.publisher.projection.events
    assert isinstance(removed, ExamplesRemoved)
    assert removed.block.rows.tobytes() == row(("cup", 1)).tobytes()
    assert isinstance(erased, ExamplesErased)
    assert (erased.ids.tolist(), erased.class_ids.tolist()) == ([2], [2])


def test_a_replay_gives_the_events_in_recorded_order(workspace):
    workspace.teach(
        [new_example("cup", n, fine=fine) for n, fine in enumerate(["r", "r", "b", "b"])]
    )
    workspace._writer.record("choose", {"penalty": 1.0})
    workspace.relabel(1, label="pen")
    workspace.undo()
    workspace.split("cup")
    workspace.undo()
    workspace._writer.record("forest", {"n_changes": 1})
    workspace.remove(4)
    events = list(workspace.log.replay())
    kinds = [
        ExamplesAdded,
        AssessmentAdopted,
        ExamplesMoved,
        SplitChanged,
        FineNamesGuessed,
        SplitChanged,
        ForestTrained,
        ExamplesRemoved,
    ]
    assert [type(event) for event in events] == [
        kind for kind in kinds if kind is not FineNamesGuessed
    ]
    assert [event.seq for event in events] == sorted(event.seq for event in events)
    assert [event.split for event in events if isinstance(event, SplitChanged)] == [True, False]
    assert events[1].body == {"penalty": 1.0}


@pytest.mark.parametrize("block", [1, 3, 4096])
def test_a_replay_comes_in_blocks_of_bounded_size(workspace, monkeypatch, block):
    monkeypatch.setattr(event_log, "_BLOCK_ROWS", block)
    workspace.teach([new_example("cup", n) for n in range(7)])
    blocks = [event.block for event in workspace.log.replay()]
    assert np.concatenate([one.ids for one in blocks]).tolist() == list(range(1, 8))
    assert max(len(one) for one in blocks) == min(block, 7)


def test_a_projection_that_fails_is_rebuilt_and_the_change_is_kept(workspace):
    class Fragile(EventRecorder):
        def apply(self, events, log):
            raise RuntimeError("no")

    workspace._writer.publisher.projection = Fragile()
    workspace.teach([new_example("cup")])
    assert workspace._writer.publisher.projection.kinds() == [ExamplesAdded]


def test_a_projection_that_missed_events_is_rebuilt(workspace):
    publish = workspace._writer.publisher.publish
    workspace._writer.publisher.publish = lambda before, events: None
    workspace.teach([new_example("cup", 1)])
    workspace._writer.publisher.publish = publish
    workspace.teach([new_example("cup", 2)])
    (added,) = workspace._writer.publisher.projection.events
    assert added.block.ids.tolist() == [1, 2]


def test_examples_can_be_filtered_by_a_given_fine_name(workspace):
    workspace.teach(
        [
            new_example("cup", 1, fine="red"),
            new_example("cup", 2),
            new_example("pen", 3, fine="red"),
        ]
    )
    history = workspace.log
    assert history.examples(class_id=1, given=True).ids.tolist() == [1]
    assert history.examples(class_id=1, given=False).ids.tolist() == [2]
    assert history.examples(given=True).ids.tolist() == [1, 3]


def test_a_sample_of_examples_is_the_same_every_time(workspace):
    workspace.teach([new_example("cup", n) for n in range(30)])
    first = workspace.log.examples(limit=5).ids
    assert len(first) == 5
    assert first.tolist() == workspace.log.examples(limit=5).ids.tolist()
    assert len(workspace.log.examples(limit=100)) == 30


class Broken:
    """A projection that fails, also to rebuild, until ``broken`` is reset."""

    def __init__(self):
        self.broken = True
        self.n_examples = 0

    def rebuild(self, log):
        if self.broken:
            raise RuntimeError("broken")
        self.n_examples = sum(len(event.block) for event in log.replay())

    def apply(self, events, log):
        raise RuntimeError("broken")


@pytest.mark.parametrize("change", ["teach", "remove"])
def test_a_change_is_acknowledged_even_if_its_projection_fails(workspace, caplog, change):
    workspace.teach([new_example("cup", 1)])
    workspace._writer.publisher.projection = Broken()
    act = {
        "teach": lambda: workspace.teach([new_example("cup", 2)]),
        "remove": lambda: workspace.remove(1),
    }
    assert act[change]()
    assert "could not be rebuilt; the next change tries again" in caplog.text


def test_a_projection_that_could_not_be_rebuilt_is_rebuilt_by_the_next_change(workspace):
    workspace._writer.publisher.projection = Broken()
    workspace.teach([new_example("cup", 1)])
    workspace._writer.publisher.projection.broken = False
    workspace.teach([new_example("cup", 2)])
    assert workspace._writer.publisher.projection.n_examples == 2


def test_embeddings_that_cannot_be_read_do_not_fail_a_change(workspace, monkeypatch):
    workspace.teach([new_example("cup", 1)])

    def refuse(self, ids):
        raise OSError("unreadable")

    monkeypatch.setattr(event_log.EventLog, "rows", refuse)
    assert workspace.remove(1).n_examples == 1


class Slow:
    """A projection during whose rebuild another example is taught."""

    def __init__(self, teach):
        self.teach = teach
        self.seen = []

    def rebuild(self, log):
        self.seen.append((log.version, len(log.classes())))
        self.teach()
        (added,) = log.replay()
        self.seen.append((log.version, len(added.block)))

    def apply(self, events, log):
        raise AssertionError("a reader gets no events")


def test_opening_sees_one_state_despite_concurrent_teaching(workspace):
    workspace.teach([new_example("cup", 1)])
    with Workspace.open(workspace.layout.folder, read_only=True) as reader:
        reader._writer.publisher.projection = Slow(lambda: workspace.teach([new_example("pen", 2)]))
        reader._writer.publisher.rebuild()
        assert reader._writer.publisher.projection.seen == [(1, 1), (1, 1)]
        assert reader._writer.publisher._applied == 1


@pytest.mark.nightly
@pytest.mark.slow
def test_opening_starts_again_after_a_concurrent_erasure(workspace):
    workspace.teach([new_example("cup", 1), new_example("pen", 2)])
    erase = iter([lambda: workspace.forget("cup", erase=True)])
    with Workspace.open(workspace.layout.folder, read_only=True) as reader:
        mirror = reader._writer.publisher.projection = Mirror()
        take = mirror.take

        def take_and_erase(events):
            next(erase, lambda: None)()
            take(events)

        mirror.take = take_and_erase
        reader._writer.publisher.rebuild()
        assert list(mirror.places) == [2]
        assert mirror.rows[2] == row(("pen", 2)).tobytes()
