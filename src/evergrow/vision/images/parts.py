"""Images cut into parts for the tasks of an engine."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from evergrow.foundation.engine import Arrays, Engine, Job, Task, current_engine, in_order
from evergrow.foundation.errors import BadImage, ImageError
from evergrow.foundation.formatting import display_name
from evergrow.vision.images.prefetch import group_by_size
from evergrow.vision.images.sources import (
    DEFAULT_LIMITS,
    ReadLimits,
    UnreadableSource,
    read_content_once,
)

# Limit for the pixels and file contents that are sent to one task.
_MAX_PART_BYTES = 64 << 20


@dataclass(frozen=True, eq=False)
class ImagePart:
    """Consecutive images that one task processes; ``first`` is the index of the first one."""

    first: int
    sources: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class ImageJob:
    """Images that are processed part by part, wherever the engine runs its tasks.

    Embedding, local descriptors and bags of words all use this class: each has a task that takes an
    :class:`ImagePart` and returns arrays, among them those of :func:`problem_arrays`.
    """

    engine: Engine
    sources: Sequence[Any]
    parts: list[ImagePart]

    @classmethod
    def for_engine(
        cls,
        sources: Sequence[Any],
        *,
        images_per_part: int,
        limits: ReadLimits = DEFAULT_LIMITS,
    ) -> ImageJob | None:
        """Cut images for the engine in use; None without an engine, or if one part is enough."""
        engine = current_engine()
        if engine is None or len(sources) <= images_per_part:
            return None
        remote_limits = limits if engine.capacity.is_remote else None
        return cls(engine, sources, cut_images(sources, images_per_part, remote_limits))

    def run(
        self, task: Task, shared: Sequence[Any], description: str, *, on_error: str, verbose: int
    ) -> Iterator[tuple[ImagePart, Arrays, list[BadImage]]]:
        """Yield each part with its result and its bad images, in the order of the images.

        With ``on_error="raise"`` the first bad image of the job is the error, whichever part
        finishes first.
        """
        job = Job(task, self.parts, shared, description, verbose)
        with closing(_run(self.engine, job)) as results:
            for place, found in in_order(results):
                part = self.parts[place]
                problems = self._problems(found, part)
                if problems and on_error == "raise":
                    raise ImageError.of(problems)
                yield part, found, problems

    def _problems(self, found: Arrays, part: ImagePart) -> list[BadImage]:
        problems = []
        columns = (found[name].tolist() for name in ("bad", "names", "reasons"))
        for place, name, reason in zip(*columns, strict=True):
            sent, given = part.sources[place], self.sources[part.first + place]
            # Use the caller's name: the worker may have read it under another one.
            same = sent is given or isinstance(sent, UnreadableSource)
            problems.append(
                BadImage(part.first + place, name if same else display_name(given), reason)
            )
        return problems


def _run(engine: Engine, job: Job) -> Generator[tuple[int, Arrays], None, None]:
    # A generator whatever the engine returns, because closing it cancels the job.
    yield from engine.run(job)


def cut_images(
    sources: Sequence[Any], images_per_part: int, remote_limits: ReadLimits | None = None
) -> list[ImagePart]:
    """Cut images into parts; the cuts depend on the images alone.

    ``remote_limits`` is given if other processes read the images. Sources that only this process
    can read are then read here, within these limits.

    >>> parts = cut_images(["a.png", "b.png", "c.png"], 2)
    >>> [(part.first, part.sources) for part in parts]
    [(0, ('a.png', 'b.png')), (2, ('c.png',))]
    """
    parts: list[ImagePart] = []
    groups = group_by_size(sources, _n_bytes, max_items=images_per_part, max_bytes=_MAX_PART_BYTES)
    for group in groups:
        first = parts[-1].first + len(parts[-1].sources) if parts else 0
        sent = group
        if remote_limits is not None:
            sent = [_for_other_process(source, remote_limits) for source in group]
        parts.append(ImagePart(first, tuple(sent)))
    return parts


def problem_arrays(problems: Iterable[BadImage]) -> Arrays:
    """The bad images of a part as arrays: their places in the part, names and reasons."""
    listed = list(problems)
    return {
        "bad": np.array([problem.index for problem in listed], dtype=np.int64),
        "names": np.array([problem.source for problem in listed], dtype=np.str_),
        "reasons": np.array([problem.reason for problem in listed], dtype=np.str_),
    }


def _n_bytes(source: Any) -> int:
    if isinstance(source, (bytes, bytearray)):
        return len(source)
    return int(getattr(source, "nbytes", 0))


def _for_other_process(source: Any, limits: ReadLimits) -> Any:
    """The same image in a form that another process can read."""
    if isinstance(source, (str, os.PathLike)):
        return os.path.abspath(source)
    # Open files and borrowed memory cannot be sent, but their content can.
    return read_content_once(source, limits)
