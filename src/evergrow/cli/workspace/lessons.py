"""From class folders to lessons: images read ahead, embedded together, a few at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evergrow.foundation.errors import BadImage, ImageError
from evergrow.foundation.naming import name_of
from evergrow.vision.images import find_labelled
from evergrow.vision.images.decoder import decode_image
from evergrow.vision.images.folders import raise_first
from evergrow.vision.images.prefetch import group_by_size, prefetch
from evergrow.vision.images.results import warn_about
from evergrow.vision.images.sources import DEFAULT_LIMITS, read_content
from evergrow.vision.images.thumbnails import THUMBNAIL_SIDE, make_thumbnail
from evergrow.workspace.names import checked_name
from evergrow.workspace.records import Lesson, Picture

# Taught in one transaction: few enough that an interruption costs little and memory stays small,
# enough to keep all processors busy.
_MOST_IMAGES = 64
_MOST_BYTES = 64 << 20


@dataclass(frozen=True)
class LabelledPath:
    """An image file and what it shows."""

    path: Path
    label: str
    fine: str | None


@dataclass(frozen=True)
class Lessons:
    """Some lessons, and the images among them that could not be read."""

    ready: list[Lesson]
    problems: list[BadImage]


def labelled_paths(folder: str, *, fine: bool, on_error: str) -> list[LabelledPath]:
    """The images of class folders, all names checked before minutes of work for them."""
    found = find_labelled(folder)
    if on_error == "raise":
        raise_first(found.unreadable)
    warn_about(found.problems)
    root = Path(folder)
    return [
        LabelledPath(path, checked_name(label), _fine_name(root, path) if fine else None)
        for path, label in zip(found.paths, found.labels.tolist(), strict=True)
    ]


def _fine_name(root: Path, path: Path) -> str | None:
    parts = path.relative_to(root).parts
    # The class, the finer class, perhaps more, the file.
    return checked_name(parts[1], "fine") if len(parts) > 2 else None


def lessons_of(
    labelled: Sequence[LabelledPath], embedder: Any, *, on_error: str, n_threads: int
) -> Iterator[Lessons]:
    """Lessons of all images, as many at a time as are taught together."""
    ahead = prefetch(_read, labelled, n_threads)
    for group in group_by_size(ahead, _n_bytes, max_items=_MOST_IMAGES, max_bytes=_MOST_BYTES):
        problems = [one for _, one in group if isinstance(one, BadImage)]
        read = [(one, what) for one, what in group if isinstance(what, Picture)]
        ready, more = _embedded(read, embedder)
        problems += more
        if problems and on_error == "raise":
            raise ImageError(problems[0].source, problems[0].reason)
        yield Lessons(ready, problems)


def _read(one: LabelledPath) -> tuple[LabelledPath, Picture | BadImage]:
    try:
        # Of a path it is bytes.
        content: Any = read_content(one.path, DEFAULT_LIMITS)
        image = decode_image(content, DEFAULT_LIMITS, THUMBNAIL_SIDE)
    except ImageError as error:
        return one, BadImage(None, name_of(one.path), error.reason)
    except ValueError as error:
        return one, BadImage(None, name_of(one.path), str(error))
    # Made here, in threads, so that nobody who looks at the gallery waits for it.
    thumbnail = make_thumbnail(image.pixels)
    return one, Picture(content, image.media_type, image.width, image.height, thumbnail)


def _n_bytes(read: tuple[LabelledPath, Picture | BadImage]) -> int:
    return len(read[1].content) if isinstance(read[1], Picture) else 0


def _embedded(
    read: list[tuple[LabelledPath, Picture]], embedder: Any
) -> tuple[list[Lesson], list[BadImage]]:
    if not read:
        return [], []
    # The bytes that are kept are those that are embedded, whatever becomes of the file meanwhile.
    found = embedder.extract([picture.content for _, picture in read], on_error="skip")
    problems = [
        BadImage(None, name_of(read[problem.index][0].path), problem.reason)
        for problem in found.problems
    ]
    chosen = [read[place] for place in found.kept.tolist()]
    lessons = [
        Lesson(row, one.label, one.fine, picture)
        for row, (one, picture) in zip(found.features, chosen, strict=True)
    ]
    return lessons, problems
