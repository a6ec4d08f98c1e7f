"""Random changes of a workspace, compared with a model of a few lines of Python."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from evergrow import WorkspaceError
from evergrow.workspace import ConflictError, Workspace
from tests.budget import budget
from tests.workspace.builders import Mirror, labels, new_example, new_workspace, picture

NAMES = st.sampled_from(["a", "b", "c", "d"])
FINE = st.sampled_from([None, None, "x", "y"])


class RandomChanges(RuleBasedStateMachine):
    """Examples by number, as they should be, and all states that undo can lead back to."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.workspace = new_workspace(Path(self.folder.name), rows_per_shard=4)
        self.follow()
        self.examples = {}
        self.before = []
        self.n_taught = 0

    def follow(self):
        self.mirror = Mirror()
        self.mirror.rebuild(self.workspace.log)
        self.workspace._writer.publisher.projection = self.mirror

    def teardown(self):
        self.workspace.close()
        self.folder.cleanup()

    def names(self):
        return {label for label, _ in self.examples.values()}

    def changed(self, examples):
        self.before.append(self.examples)
        self.examples = examples

    @rule(label=NAMES, fine=FINE, with_picture=st.booleans())
    def teach(self, label, fine, with_picture):
        self.n_taught += 1
        image = picture(self.n_taught) if with_picture else None
        self.workspace.teach([new_example(label, self.n_taught, fine=fine, picture=image)])
        self.changed({**self.examples, self.n_taught: (label, fine)})

    @rule(labels=st.lists(NAMES, min_size=2, max_size=6))
    def teach_many(self, labels):
        numbers = range(self.n_taught + 1, self.n_taught + len(labels) + 1)
        self.workspace.teach([new_example(*pair) for pair in zip(labels, numbers, strict=True)])
        for number, label in zip(numbers, labels, strict=True):
            self.changed({**self.examples, number: (label, None)})
        self.n_taught += len(labels)

    @precondition(lambda self: self.examples)
    @rule(data=st.data(), label=NAMES, fine=FINE)
    def relabel(self, data, label, fine):
        number = data.draw(st.sampled_from(sorted(self.examples)))
        old, old_fine = self.examples[number]
        now = (label, old_fine if fine is None and old == label else fine)
        self.workspace.relabel(number, label=label, fine=fine)
        # The class that it has, and nothing else, confirms it: a change to take back as well.
        if now != self.examples[number] or fine is None:
            self.changed({**self.examples, number: now})

    @precondition(lambda self: self.examples)
    @rule(data=st.data())
    def remove(self, data):
        number = data.draw(st.sampled_from(sorted(self.examples)))
        self.workspace.remove(number)
        self.changed({n: place for n, place in self.examples.items() if n != number})

    @rule(label=NAMES)
    def forget(self, label):
        if label in self.names():
            self.workspace.forget(label)
            self.changed({n: p for n, p in self.examples.items() if p[0] != label})

    @rule(label=NAMES)
    def erase(self, label):
        if label in self.names():
            self.workspace.forget(label, erase=True)
            self.changed({n: p for n, p in self.examples.items() if p[0] != label})
            self.before.clear()

    @rule(label=NAMES, to=NAMES)
    def rename(self, label, to):
        known = self.names()
        try:
            self.workspace.rename(label, to)
        except WorkspaceError:
            assert label not in known or to in known
            return
        if label != to:
            self.changed(
                {n: (to if p[0] == label else p[0], p[1]) for n, p in self.examples.items()}
            )

    @rule(label=NAMES, into=NAMES)
    def merge(self, label, into):
        if label != into and {label, into} <= self.names():
            self.workspace.merge(label, into)
            self.changed(
                {n: (into if p[0] == label else p[0], p[1]) for n, p in self.examples.items()}
            )

    @rule()
    def undo(self):
        if self.before:
            self.workspace.undo()
            self.examples = self.before.pop()
        else:
            try:
                self.workspace.undo()
            except ConflictError:
                return
            raise AssertionError("there was nothing to undo")

    @rule()
    def close_and_open(self):
        self.workspace.close()
        self.workspace = Workspace.open(Path(self.folder.name) / "workspace")
        self.follow()

    @invariant()
    def the_examples_are_as_they_should_be(self):
        assert labels(self.workspace) == self.examples

    @invariant()
    def the_counts_are_right(self):
        expected = {}
        for label, _ in self.examples.values():
            expected[label] = expected.get(label, 0) + 1
        found = {one.name: one.n_examples for one in self.workspace.classes().items}
        assert found == expected

    @invariant()
    def the_facts_lead_to_what_is_there(self):
        block = self.workspace.log.examples()
        places = zip(block.class_ids.tolist(), block.fine_ids.tolist(), strict=True)
        there = dict(zip(block.ids.tolist(), places, strict=True))
        assert self.mirror.places == there
        replayed = Mirror()
        replayed.rebuild(self.workspace.log)
        assert replayed.places == there

    @invariant()
    def nothing_is_wrong(self):
        assert self.workspace.check() == []


RandomChanges.TestCase.settings = settings(max_examples=budget(15), stateful_step_count=20)
TestRandomChanges = RandomChanges.TestCase
