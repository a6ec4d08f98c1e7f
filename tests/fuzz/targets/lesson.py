"""Lessons: JSON bodies that teach a class, and what the workspace makes of those that are valid."""

from __future__ import annotations

import contextlib
import json
import tempfile
from functools import cache
from pathlib import Path
from random import Random

import numpy as np

from evergrow.foundation.errors import EvergrowError
from evergrow.service.http.bodies import PredictBody, RelabelBody, TeachBody
from evergrow.service.http.requests import parse_json
from evergrow.service.http.responses import ProblemError
from evergrow.workspace import NewExample, Workspace
from tests.fuzz.mutate_bytes import mutate_bytes
from tests.fuzz.mutations import mutate_json
from tests.fuzz.targets import Target

_WORDS = (b"NaN", b"1e999", b"\\ud800", b"\\u0000", b"null", b"{}", b"[[", b'"label":', b"-0.0")


@cache
def _workspace() -> Workspace:
    folder = Path(tempfile.mkdtemp(prefix="evergrow-fuzz-"))
    workspace = Workspace.create(folder / "workspace", features=None)
    workspace.teach([NewExample(np.ones(3, np.float32), "cup")])
    return workspace


def run(content: bytes) -> None:
    for body in (PredictBody, RelabelBody):
        with contextlib.suppress(ProblemError):
            parse_json(content, body)
    with contextlib.suppress(ProblemError, EvergrowError):
        lesson = parse_json(content, TeachBody)
        embedding = np.asarray(lesson.embedding, dtype=np.float32)
        workspace = _workspace()
        taught = workspace.teach([NewExample(embedding, lesson.label, fine=lesson.fine)])
        assert taught is not None
        workspace.predict(embedding[None])


def change(content: bytes, random: Random) -> bytes:
    with contextlib.suppress(ValueError, TypeError, RecursionError, IndexError):
        value = json.loads(content)
        if random.random() < 0.8 and isinstance(value, dict):
            mutate_json(value, random)
            return json.dumps(value).encode()
    return mutate_bytes(content, random, _WORDS)


def seeds() -> dict[str, bytes]:
    lessons = {
        "teach": {"embedding": [1.0, 0.5, -2], "label": "cup"},
        "fine": {"embedding": [0.0, 1e-3, 7], "label": "cup", "fine": "blue cup"},
        "predict": {"embeddings": [[1.0, 2.0, 3.0]]},
        "relabel": {"label": "Häferl", "fine": None},
    }
    return {name: json.dumps(value).encode() for name, value in lessons.items()}


TARGET = Target(run, change, seeds)
