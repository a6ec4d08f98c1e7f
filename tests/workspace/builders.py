"""Workspaces and examples that many tests share."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from evergrow.workspace import NewExample, Picture, Request, Workspace
from evergrow.workspace.events import DomainEvent, ExamplesAdded, ExamplesMoved, ExamplesRemoved
from evergrow.workspace.store.event_log import EventLog

N_FEATURES = 3


def new_workspace(folder: Path, **options: Any) -> Workspace:
    """A new workspace for embeddings, open."""
    return Workspace.create(folder / "workspace", features=None, **options)


def row(seed: object) -> np.ndarray[Any, Any]:
    """An embedding that is the same for the same seed."""
    digest = hashlib.sha256(repr(seed).encode()).digest()
    return np.frombuffer(digest[: 4 * N_FEATURES], dtype=np.uint32).astype(np.float32) / 2**32


def picture(seed: object) -> Picture:
    """Something that passes for an image file, of its own content for each seed."""
    return Picture(f"picture {seed!r}".encode(), "image/png", 4, 3, b"small")


def new_example(label: str, seed: object = 0, **options: Any) -> NewExample:
    """A new example whose embedding follows from the label and a seed."""
    return NewExample(row((label, seed)), label, **options)


def request_with_key(key: str | None, actor: str = "robot") -> Request:
    """A request with a key."""
    return Request(actor, key)


def labels(workspace: Workspace) -> dict[int, tuple[str, str | None]]:
    """Label and given fine class of every example, by number."""
    found = {}
    after = None
    while True:
        page = workspace.examples(after=after, limit=7)
        for example in page.items:
            fine = example.fine if example.fine_kind == "given" else None
            found[example.id] = (example.label, fine)
        after = page.next
        if after is None:
            return found


def counts(workspace: Workspace) -> dict[str, int]:
    """Examples of every class, by name."""
    return {one.name: one.n_examples for one in workspace.classes(limit=1000).items}


class Mirror:
    """A projection that stores the classes and the embedding of every example."""

    def __init__(self) -> None:
        self.places: dict[int, tuple[int, int]] = {}
        self.rows: dict[int, bytes] = {}

    def rebuild(self, log: EventLog) -> None:
        self.places, self.rows = {}, {}
        self.take(list(log.replay()))

    def apply(self, events: Any, log: EventLog) -> None:
        self.take(events)

    def take(self, events: Any) -> None:
        for event in events:
            self.take_one(event)

    def take_one(self, event: DomainEvent) -> None:
        if not isinstance(event, (ExamplesAdded, ExamplesRemoved, ExamplesMoved)):
            return
        block = event.block
        before = list(zip(block.class_ids.tolist(), block.fine_ids.tolist(), strict=True))
        after: list[Any] = [None] * len(block)
        if isinstance(event, ExamplesAdded):
            before, after = [None] * len(block), before
        if isinstance(event, ExamplesMoved):
            after = list(zip(event.to_class_ids.tolist(), event.to_fine_ids.tolist(), strict=True))
        for number, left, came, values in zip(
            block.ids.tolist(), before, after, block.rows, strict=True
        ):
            assert self.places.pop(number, None) == left
            if came is not None:
                self.places[number] = came
            assert self.rows.setdefault(number, values.tobytes()) == values.tobytes()
