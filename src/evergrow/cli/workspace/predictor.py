"""A workspace with the interface of an image classifier, for ``evergrow predict``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from evergrow.cli.workspace.access import read_workspace
from evergrow.foundation.errors import ImageError
from evergrow.vision.classifier import Answers
from evergrow.vision.images.sources import DEFAULT_LIMITS, read_content

if TYPE_CHECKING:
    from evergrow.workspace import Workspace
    from evergrow.workspace.records import Answer


@dataclass(frozen=True, eq=False)
class WorkspaceAnswers(Answers):
    """Predictions of a workspace, with the details of each."""

    told: tuple[Answer, ...]


class WorkspaceClassifier:
    """Predictions of the current model of a workspace, in the form of ``ImageClassifier``."""

    def __init__(self, path: str, *, verbose: int, jobs: int) -> None:
        self._path = path
        with read_workspace(path) as workspace:
            self._snapshot = workspace.snapshot
            embedder = workspace.embedder
            self.false_alarms = workspace.status().false_alarms
        name = click.format_filename(path)
        if embedder is None:
            raise click.ClickException(
                f"{name!r} takes embeddings, not images: query it with evergrow.Client"
            )
        names = self._snapshot.names
        known = [names[number] for number in self._snapshot.class_ids.tolist()]
        self.classes_ = np.array(known, dtype=object)
        if not len(self.classes_):
            raise click.ClickException(f"{name!r} has no classes yet: teach it first")
        self._embedder = embedder.set_params(verbose=verbose, n_jobs=jobs)

    def answer(self, images: Sequence[Any], *, k: int, on_error: str) -> WorkspaceAnswers:
        """Predict the images that can be read; the others are listed as problems."""
        found = self._embedder.extract([_as_source(image) for image in images], on_error=on_error)
        told = self._snapshot.predict(found.features, top=k) if len(found.kept) else ()
        return WorkspaceAnswers(
            np.array([one.label for one in told], dtype=object),
            np.array([one.known for one in told], dtype=bool),
            _columns([[name for name, _ in one.top] for one in told], k, object),
            _columns([[share for _, share in one.top] for one in told], k, np.float64),
            found.kept,
            found.problems,
            tuple(told),
        )

    def count_learnt(self, images: Sequence[Any]) -> int:
        """How many of these images a class of the workspace has."""
        with read_workspace(self._path) as workspace:
            return sum(_has(workspace, _as_source(image)) for image in images)


def _has(workspace: Workspace, image: Any) -> bool:
    try:
        content = read_content(image, DEFAULT_LIMITS)
    except ImageError:
        # It was readable when it was predicted.
        return False
    return isinstance(content, bytes) and workspace.has_picture(content)


def _as_source(image: Any) -> Any:
    return Path(image) if isinstance(image, str) else image


def _columns(rows: list[list[Any]], k: int, kind: Any) -> Any:
    # Without rows NumPy cannot infer the number of columns.
    return np.array(rows, dtype=kind).reshape(len(rows), k)
