"""Random sequences of all kinds of changes; those that are not possible are refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from evergrow.workspace import (
    ConflictError,
    NewExample,
    NoSuchClassError,
    NoSuchExampleError,
    Workspace,
)

Array = np.ndarray[Any, Any]

N_FEATURES = 6
LABELS = ("ant", "bee", "cat", "dog")
FINES = (None, "red", "blue", "green")
# Refusals that a random step may get.
REFUSED = (ConflictError, NoSuchClassError, NoSuchExampleError)


@dataclass(frozen=True)
class Step:
    """One step of a life: what to do, and a seed for with what."""

    kind: str
    seed: int


def embedding(rng: np.random.Generator, label: str, fine: str | None = None) -> Array:
    """An example that looks like its class and, less so, like its fine class."""
    rows = np.random.default_rng(7).normal(size=(len(LABELS) + len(FINES), N_FEATURES))
    centre = 2 * rows[LABELS.index(label)] + rows[len(LABELS) + FINES.index(fine)]
    return (centre + 0.5 * rng.normal(size=N_FEATURES)).astype(np.float32)


def new_examples(
    rng: np.random.Generator, n: int, labels: Sequence[str] = LABELS
) -> list[NewExample]:
    """Examples of random classes, half of them with fine classes."""
    made = []
    for _ in range(n):
        label, fine = str(rng.choice(labels)), FINES[int(rng.choice([0, 0, 1, 2, 3]))]
        made.append(NewExample(embedding(rng, label, fine), label, fine))
    return made


def _some_example(workspace: Workspace, rng: np.random.Generator) -> int:
    return int(rng.integers(1, max(2, workspace.version)))


def _relabel(workspace: Workspace, rng: np.random.Generator) -> None:
    label = str(rng.choice(LABELS)) if rng.random() < 0.5 else None
    fine = FINES[int(rng.integers(1, len(FINES)))] if label is None or rng.random() < 0.5 else None
    workspace.relabel(_some_example(workspace, rng), label=label, fine=fine)


def _merge(workspace: Workspace, rng: np.random.Generator) -> None:
    source, into = rng.permutation(LABELS)[:2].tolist()
    workspace.merge(source, into)


def _rename(workspace: Workspace, rng: np.random.Generator) -> None:
    # Back to a name that examples know, so that later steps find the class.
    old, new = rng.permutation(LABELS)[:2].tolist()
    workspace.rename(old, new)


STEPS: dict[str, Callable[[Workspace, np.random.Generator], object]] = {
    "teach one": lambda workspace, rng: workspace.teach(new_examples(rng, 1)),
    "teach some": lambda workspace, rng: workspace.teach(new_examples(rng, 12)),
    "relabel": _relabel,
    "remove": lambda workspace, rng: workspace.remove(_some_example(workspace, rng)),
    "forget": lambda workspace, rng: workspace.forget(str(rng.choice(LABELS))),
    "erase": lambda workspace, rng: workspace.forget(str(rng.choice(LABELS)), erase=True),
    "rename": _rename,
    "merge": _merge,
    "split": lambda workspace, rng: workspace.split(str(rng.choice(LABELS))),
    "unsplit": lambda workspace, rng: workspace.unsplit(str(rng.choice(LABELS))),
    "undo": lambda workspace, _: workspace.undo(),
    "assess": lambda workspace, _: workspace.assess(force=True),
    "guess": lambda workspace, _: workspace.update_guesses(),
    "forest": lambda workspace, _: workspace.update_forest(force=True),
    "snapshot": lambda workspace, _: workspace.save_snapshot(),
}
CHANGES = tuple(
    kind for kind in STEPS if kind not in ("erase", "undo", "assess", "guess", "forest", "snapshot")
)


def steps(kinds: Sequence[str] = tuple(STEPS), max_size: int = 14) -> st.SearchStrategy[list[Step]]:
    """Random lives."""
    seeds = st.integers(0, 2**16)
    return st.lists(st.builds(Step, st.sampled_from(kinds), seeds), max_size=max_size)


def live(workspace: Workspace, life: Sequence[Step]) -> None:
    """Take the steps; those that do not fit are refused and change nothing."""
    for step in life:
        take(workspace, step)


def take(workspace: Workspace, step: Step) -> bool:
    """Take one step; whether it was not refused."""
    try:
        STEPS[step.kind](workspace, np.random.default_rng(step.seed))
    except REFUSED:
        return False
    return True


def new_workspace(folder: Path, **options: Any) -> Workspace:
    """A workspace for embeddings, with examples to begin with."""
    workspace = Workspace.create(folder, features=None, **options)
    workspace.teach(new_examples(np.random.default_rng(0), 30))
    return workspace


def answers(workspace: Workspace) -> dict[str, Any]:
    """All that the model says of fixed examples, by names of classes."""
    snapshot = workspace.snapshot
    rng = np.random.default_rng(3)
    X = np.array([new_example.embedding for new_example in new_examples(rng, 20)])
    if not len(snapshot.class_ids):
        return {"classes": []}
    names = [snapshot.names[k] for k in snapshot.class_ids.tolist()]
    order = np.argsort(names)
    answers: dict[str, Any] = {
        "classes": sorted(names),
        "scores": snapshot.scores(X)[:, order],
        "novelty": snapshot.novelty(X),
        "known": [answer.known for answer in snapshot.predict(X)],
        "fine": [answer.fine for answer in snapshot.predict(X)],
        "fine_top": [dict(answer.fine_top) for answer in snapshot.predict(X, top=len(LABELS) + 1)],
        "temperature": snapshot.temperature,
    }
    if snapshot.forest is not None:
        answers["forest"] = snapshot.forest.predict_proba(X)
        answers["forest classes"] = snapshot.forest.classes_.tolist()
        answers["forest lacks"] = workspace.status().forest_lacks
    return answers


def assert_same(found: dict[str, Any], expected: dict[str, Any], tolerance: float = 1e-9) -> None:
    """Two models say the same."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_allclose(found[name], value, atol=tolerance, err_msg=name)
        elif name == "fine_top":
            for here, there in zip(found[name], value, strict=True):
                assert here == _approximately(there)
        else:
            assert found[name] == value, name


def _approximately(values: dict[str, float]) -> Any:
    import pytest

    return pytest.approx(values, abs=1e-8)
