"""Workspaces for tests: create, fill, read back, and compare with an undisturbed twin."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from evergrow.workspace import Event, NewExample, Page, Picture, Workspace
from evergrow.workspace.tokens import Tokens as TokenFile
from tests.harness.teaching_clients import row_digest

Item = TypeVar("Item")

# By example id: the label, and the SHA-256 of what was sent.
Contents = dict[int, tuple[str, str]]

_PAGE = 500
_BATCH = 1000
# Vectors on which a workspace and its twin are compared.
_N_QUESTIONS = 200


@dataclass(frozen=True)
class Tokens:
    """The tokens and the length of embeddings of a new workspace."""

    teach: str
    read: str
    n_features: int


def new_workspace(folder: Path, *, features: Any = None, n_features: int | None = None) -> Tokens:
    """Create a workspace that accepts images, or vectors of a given length."""
    with Workspace.create(folder, features=features, n_features=n_features) as workspace:
        embedder = workspace.embedder
        length = n_features if embedder is None else embedder.fit().n_features_out_
    assert length is not None
    tokens = TokenFile(folder)
    return Tokens(tokens.add("teacher", "teach"), tokens.add("robot", "read"), int(length))


def vectors(
    n: int, n_features: int, n_classes: int, seed: int
) -> tuple[npt.NDArray[np.float32], list[str]]:
    """Vectors around class means, and their labels; the classes alternate."""
    means = np.random.default_rng(5).normal(size=(n_classes, n_features))
    known = np.arange(n) % n_classes
    noise = np.random.default_rng([7, seed]).normal(size=(n, n_features))
    return (means[known] + noise).astype(np.float32), [f"class {i}" for i in known]


def fill_workspace(folder: Path, n_examples: int, n_classes: int) -> None:
    """Teach vectors until there are so many examples, then assess and save a snapshot."""
    with Workspace.open(folder) as workspace:
        n_features = workspace.n_features
        if n_features is None:
            embedder = workspace.embedder
            assert embedder is not None
            n_features = int(embedder.fit().n_features_out_)
        while (n_known := workspace.status().n_examples) < n_examples:
            n = min(_BATCH, n_examples - n_known)
            X, labels = vectors(n, n_features, n_classes, seed=n_known)
            workspace.teach([NewExample(row, label) for row, label in zip(X, labels, strict=True)])
        workspace.assess()
        workspace.save_snapshot()


def read_contents(folder: Path) -> Contents:
    """Read all examples of a workspace; works while it is served."""
    with Workspace.open(folder, read_only=True) as workspace:
        found = {}
        for one in _all(workspace.examples):
            content = one.image or row_digest(workspace.embedding(one.id))
            found[one.id] = (one.label, content)
        return found


def find_damage(folder: Path) -> list[str]:
    """Return the damage that ``evergrow check`` finds."""
    with Workspace.open(folder, read_only=True) as workspace:
        findings = workspace.check()
    return [f"{one.what}: {one.mend}" for one in findings if one.severity == "damage"]


def twin_difference(folder: Path, twin: Path) -> float:
    """Return the largest difference of scores between a workspace and an undisturbed twin.

    The twin is taught the same examples in the recorded order, one at a time, without restarts.
    The choices of an assessment are taken from the log, because they depend on when it ran.
    """
    with Workspace.open(folder) as original:
        manifest = original.manifest
        settings = {name: getattr(manifest, name) for name in ("seed", "false_alarms", "forest")}
        n_features = original.n_features
        with Workspace.create(twin, features=None, n_features=n_features, **settings) as other:
            for event in _all(original.events, newest_first=False):
                _repeat(event, original, other)
            rows = np.random.default_rng(3).normal(size=(_N_QUESTIONS, n_features or 0))
            mine, other_ones = original.snapshot, other.snapshot
            assert mine.class_ids.tolist() == other_ones.class_ids.tolist()
            return float(np.abs(mine.scores(rows) - other_ones.scores(rows)).max())


def _repeat(event: Event, original: Workspace, other: Workspace) -> None:
    """Apply an event of the original workspace to another one."""
    if event.kind == "teach":
        example = original.example(event.body["example"])
        picture = None
        if example.image is not None:
            assert example.media_type is not None
            picture = Picture(
                original.picture(example.id),
                example.media_type,
                example.width or 0,
                example.height or 0,
            )
        other.teach([NewExample(original.embedding(example.id), example.label, picture=picture)])
    elif event.kind == "choose":
        other._writer.record("choose", event.body)
    else:
        raise ValueError(f"an event of kind {event.kind!r} was not expected")


def _all(listing: Callable[..., Page[Item]], **options: Any) -> Iterator[Item]:
    """Iterate over the items of all pages."""
    after = None
    while True:
        page = listing(after=after, limit=_PAGE, **options)
        yield from page.items
        after = page.next
        if after is None:
            return
