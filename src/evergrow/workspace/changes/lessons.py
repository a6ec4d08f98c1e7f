"""Lessons of an exported page: a file from outside, checked as a whole before anything is taught.

The file is JSON with the pictures in it: ``{"format": "evergrow-lessons", "version": 1, "page": ID,
"lessons": [{"key", "label", "at", "sha256", "picture"}, ...]}``. A lesson has an idempotency key,
so that it is learnt once, however often its file comes.
"""

from __future__ import annotations

import binascii
import hashlib
import json
import os
import re
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from evergrow.foundation.errors import InvalidInputError, WorkspaceError
from evergrow.foundation.extras import __version__
from evergrow.foundation.files import open_regular
from evergrow.foundation.formatting import display_name
from evergrow.foundation.params import check_parameters
from evergrow.vision.images.parameters import ON_ERROR
from evergrow.vision.images.sources import DEFAULT_LIMITS
from evergrow.workspace.changes.image_batches import ImageBatch, LabelledImage, read_batches
from evergrow.workspace.names import normalise_name
from evergrow.workspace.records import NewExample, Request
from evergrow.workspace.store.store import Store

FORMAT, VERSION = "evergrow-lessons", 1
# The pictures are in memory at once: a file is taught as a whole.
_MOST_BYTES = 256 << 20
_MOST_LESSONS = 10_000
_KEY = re.compile(r"[0-9a-f]{32}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_ENTRIES = {"format", "version", "page", "lessons"}
_LESSON = {"key", "label", "at", "sha256", "picture"}
_LONGEST_TIME = 40


@dataclass(frozen=True)
class Lesson:
    """One picture and its class, as a page was taught it."""

    key: str
    label: str
    content: bytes
    sha256: str

    def request(self, request: Request) -> Request:
        """Return the request that teaches it: the same picture and class have the same key."""
        facts = json.dumps([self.key, self.label, self.sha256]).encode()
        digest = hashlib.sha256(facts).hexdigest()
        # A page may move a picture to another class after its lessons were learnt.
        return replace(request, key=f"lesson {digest}", digest=digest)


def read_lessons(path: str | os.PathLike[str]) -> list[Lesson]:
    """Read a file of lessons; a ``WorkspaceError`` says why it is refused.

    Every size, name, key and hash is checked. Pictures are not decoded yet.
    """
    try:
        return _parse(_read(path))
    except InvalidInputError as error:
        reason = str(error)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
    except RecursionError:
        reason = "it is nested too deeply"
    raise WorkspaceError(f"{display_name(path)} is not a file of lessons: {reason}")


def lesson_examples(
    store: Store,
    lessons: Sequence[Lesson],
    on_error: str,
    n_jobs: int | None,
    request: Request,
    move: bool,
) -> ImageBatch:
    """Decode and embed all pictures.

    With ``on_error="raise"`` an ``ImageError`` names those that cannot be read.
    """
    check_parameters({"on_error": on_error}, {"on_error": ON_ERROR})
    images = [
        LabelledImage(lesson.content, lesson.label, None, f"the picture of lesson {number}")
        for number, lesson in enumerate(lessons, start=1)
    ]
    batches = list(read_batches(store, images, on_error, n_jobs, request, move))
    examples = []
    # In the same order; those that cannot be read are passed over.
    remaining = iter(lessons)
    for example in (one for batch in batches for one in batch.examples):
        lesson = next(one for one in remaining if _is_of(example, one))
        examples.append(replace(example, request=lesson.request(request)))
    return ImageBatch(examples, [problem for batch in batches for problem in batch.problems])


def _is_of(example: NewExample, lesson: Lesson) -> bool:
    return example.picture is not None and example.picture.content == lesson.content


def _read(path: str | os.PathLike[str]) -> bytes:
    with open_regular(path) as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise InvalidInputError(f"it is larger than {_MOST_BYTES >> 20} MiB: save fewer lessons")
    return content


def _parse(content: bytes) -> list[Lesson]:
    try:
        entry = json.loads(
            content.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant
        )
    except ValueError as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(f"it is not JSON: {error}") from error
    if not isinstance(entry, dict) or entry.get("format") != FORMAT:
        raise InvalidInputError(f'it has no entry "format" of "{FORMAT}"')
    version = entry.get("version")
    if type(version) is not int or version != VERSION:
        raise InvalidInputError(
            f"it has version {repr(version)[:40]}, and Evergrow {__version__} reads {VERSION}: "
            "teach it with the version of Evergrow that exported the page"
        )
    if set(entry) != _ENTRIES or not isinstance(entry["lessons"], list):
        raise InvalidInputError(f"it must have the entries {', '.join(sorted(_ENTRIES))}")
    if len(entry["lessons"]) > _MOST_LESSONS:
        raise InvalidInputError(f"it has more than {_MOST_LESSONS} lessons")
    lessons = [_lesson(one, number) for number, one in enumerate(entry["lessons"], start=1)]
    if len({lesson.key for lesson in lessons}) < len(lessons):
        raise InvalidInputError("two lessons have the same key")
    return lessons


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entry = dict(pairs)
    if len(entry) < len(pairs):
        raise InvalidInputError("an object has two entries of the same name")
    return entry


def _no_constant(name: str) -> Any:
    raise InvalidInputError(f"it contains {name}, which is not JSON")


def _lesson(entry: Any, number: int) -> Lesson:
    what = f"lesson {number}"
    if not isinstance(entry, dict) or set(entry) != _LESSON:
        raise InvalidInputError(f"{what} must have the entries {', '.join(sorted(_LESSON))}")
    for name in _LESSON:
        if not isinstance(entry[name], str):
            raise InvalidInputError(f"{name} of {what} must be a text")
    if not _KEY.fullmatch(entry["key"]):
        raise InvalidInputError(f"key of {what} must be 32 hexadecimal digits")
    if not _SHA256.fullmatch(entry["sha256"]):
        raise InvalidInputError(f"sha256 of {what} must be 64 hexadecimal digits")
    if len(entry["at"]) > _LONGEST_TIME:
        raise InvalidInputError(f"at of {what} must be a time")
    try:
        label = normalise_name(entry["label"])
    except WorkspaceError as error:
        raise InvalidInputError(f"{what}: {error}") from error
    try:
        content = b64decode(entry["picture"], validate=True)
        DEFAULT_LIMITS.check_bytes(len(content))
    except (binascii.Error, ValueError) as error:
        raise InvalidInputError(f"picture of {what}: {error}") from error
    if hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise InvalidInputError(f"picture of {what} has another hash: the file is damaged")
    return Lesson(entry["key"], label, content, entry["sha256"])
