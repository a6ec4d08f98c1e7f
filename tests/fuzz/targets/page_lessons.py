"""Files of lessons of exported pages, with right hashes of their pictures."""

from __future__ import annotations

import contextlib
import hashlib
import json
import tempfile
from base64 import b64decode, b64encode
from functools import cache
from pathlib import Path
from random import Random

from evergrow import WorkspaceError
from evergrow.workspace.changes.lessons import FORMAT, VERSION, read_lessons
from tests.fuzz.mutations import mutate_json
from tests.fuzz.targets import Target


@cache
def _path() -> Path:
    return Path(tempfile.mkdtemp(prefix="evergrow-fuzz-")) / "lessons.json"


def run(content: bytes) -> None:
    _path().write_bytes(content)
    with contextlib.suppress(WorkspaceError):
        lessons = read_lessons(_path())
        for lesson in lessons:
            assert hashlib.sha256(lesson.content).hexdigest() == lesson.sha256
            assert 1 <= len(lesson.label) <= 200
        assert len({lesson.key for lesson in lessons}) == len(lessons)


def change(content: bytes, random: Random) -> bytes:
    try:
        entry = json.loads(content)
        for _ in range(random.choice((1, 1, 2, 3))):
            mutate_json(entry, random)
        for lesson in entry["lessons"]:
            with contextlib.suppress(ValueError, TypeError, KeyError):
                picture = b64decode(lesson["picture"], validate=True)
                lesson["sha256"] = hashlib.sha256(picture).hexdigest()
        return json.dumps(entry).encode()
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return next(iter(seeds().values()))


@cache
def seeds() -> dict[str, bytes]:
    lessons = [
        {
            "key": f"{number:032x}",
            "label": label,
            "at": "2026-01-01T00:00:00.000Z",
            "sha256": hashlib.sha256(picture).hexdigest(),
            "picture": b64encode(picture).decode(),
        }
        for number, (label, picture) in enumerate([("cup", b"one"), ("pen", b"two")])
    ]
    head = {"format": FORMAT, "version": VERSION, "page": "0" * 32}
    return {
        "two": json.dumps({**head, "lessons": lessons}).encode(),
        "none": json.dumps({**head, "lessons": []}).encode(),
    }


TARGET = Target(run, change, seeds)
