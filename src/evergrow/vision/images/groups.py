"""Images in groups that tasks read wherever they run, and what those tasks say of bad ones."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from evergrow.foundation.engine import Arrays, Engine, Job, Task, in_order
from evergrow.foundation.errors import BadImage, ImageError
from evergrow.vision.images.ahead import in_groups
from evergrow.vision.images.sources import DEFAULT_LIMITS, ReadLimits, content_of, name_of

__all__ = ["ImageGroup", "bad_arrays", "done_in_order", "image_groups"]

# Pixels and contents of files that one task is handed.
_MOST_BYTES = 64 << 20


@dataclass(frozen=True, eq=False)
class ImageGroup:
    """Neighbouring images.

    Attributes
    ----------
    first : int
        The place of the first one among all.
    sources : tuple
        What they are read from.
    """

    first: int
    sources: tuple[Any, ...]


class _Unreadable:
    """A source that only the process it was given to can read, and that could not."""

    def __init__(self, error: ImageError) -> None:
        self._said = error.source, error.reason

    def read(self, _: int) -> bytes:
        """Say again what was wrong."""
        raise ImageError(*self._said)


def image_groups(
    sources: Sequence[Any],
    *,
    most: int,
    is_remote: bool,
    limits: ReadLimits = DEFAULT_LIMITS,
) -> list[ImageGroup]:
    """Cut images into groups, of so many at most; which are together depends on them alone.

    >>> groups = image_groups(["a.png", "b.png", "c.png"], most=2, is_remote=False)
    >>> [(group.first, group.sources) for group in groups]
    [(0, ('a.png', 'b.png')), (2, ('c.png',))]
    """
    found: list[ImageGroup] = []
    for group in in_groups(sources, _n_bytes, most_items=most, most_bytes=_MOST_BYTES):
        first = found[-1].first + len(found[-1].sources) if found else 0
        travelling = [_travelling(one, limits) for one in group] if is_remote else group
        found.append(ImageGroup(first, tuple(travelling)))
    return found


def done_in_order(
    engine: Engine,
    task: Task,
    groups: Sequence[ImageGroup],
    values: Sequence[Any],
    sources: Sequence[Any],
    *,
    on_error: str,
    what: str,
    verbose: int,
) -> Iterator[tuple[ImageGroup, Arrays, list[BadImage]]]:
    """Groups with what a task made of them and their bad images, one group after the other.

    With ``on_error="raise"`` the first bad image of all is an error, whichever group is done first.
    """
    job = Job(task, groups, values, what, verbose)
    with closing(_run(engine, job)) as results:
        for place, found in in_order(results):
            bad = _bad_images(found, groups[place], sources)
            if bad and on_error == "raise":
                raise ImageError(bad[0].source, bad[0].reason)
            yield groups[place], found, bad


def bad_arrays(problems: Iterable[BadImage]) -> Arrays:
    """Bad images as a task gives them: places in its group, names and reasons."""
    listed = list(problems)
    return {
        "bad": np.array([problem.index for problem in listed], dtype=np.int64),
        "names": np.array([problem.source for problem in listed], dtype=np.str_),
        "reasons": np.array([problem.reason for problem in listed], dtype=np.str_),
    }


def _bad_images(found: Arrays, group: ImageGroup, sources: Sequence[Any]) -> list[BadImage]:
    bad = []
    said = (found[name].tolist() for name in ("bad", "names", "reasons"))
    for place, name, reason in zip(*said, strict=True):
        sent, given = group.sources[place], sources[group.first + place]
        # Named as they were given: where they were read they may be called otherwise.
        known = name if sent is given or isinstance(sent, _Unreadable) else name_of(given)
        bad.append(BadImage(group.first + place, known, reason))
    return bad


def _run(engine: Engine, job: Job) -> Generator[tuple[int, Arrays], None, None]:
    # A generator, whatever the engine returns: closing it cancels the job.
    yield from engine.run(job)


def _n_bytes(source: Any) -> int:
    if isinstance(source, (bytes, bytearray)):
        return len(source)
    return int(getattr(source, "nbytes", 0))


def _travelling(source: Any, limits: ReadLimits) -> Any:
    """The same image, as another process can read it."""
    if isinstance(source, (str, os.PathLike)):
        return os.path.abspath(source)
    try:
        # Files that are open, and memory of others, stay here: their content travels.
        return content_of(source, limits)
    except ImageError as error:
        return _Unreadable(error)
