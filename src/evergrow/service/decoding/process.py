"""A decoder: ``python -m evergrow.service.decoding.process``, fed through its pipes.

It limits itself before it reads the first image, and ends when its input ends.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import BinaryIO

import numpy as np

from evergrow.service.decoding.examining import examine
from evergrow.service.decoding.frames import read_frame, write_frame
from evergrow.service.decoding.refusals import RefusedImageError
from evergrow.vision.embedding.preprocessing import Preprocessing
from evergrow.vision.images.sources import ReadLimits

__all__ = ["main"]

_MAX_SETUP_BYTES = 0


def main() -> None:
    """Answer until the input ends."""
    _go_first()
    source, target = _pipes()
    setup = read_frame(source, max_bytes=_MAX_SETUP_BYTES)
    if setup is None:
        return
    preprocessing = Preprocessing.from_json(setup[0]["preprocessing"])
    limits = ReadLimits(**setup[0]["limits"])
    _warm_up(preprocessing)
    _limit(setup[0]["memory_bytes"])
    write_frame(target, {"ready": True})
    while (message := read_frame(source, max_bytes=limits.max_bytes)) is not None:
        header, (content,) = message
        _limit_time(header["seconds"])
        try:
            _answer(target, bytes(content), preprocessing, limits, thumbnail=header["thumbnail"])
        except MemoryError:
            refusal = RefusedImageError("size", "it needs more memory than one image may take")
            _refuse(target, refusal, leaving=True)
            # What is left of the memory may be in pieces: a new process has all of it.
            return


def _answer(
    target: BinaryIO,
    content: bytes,
    preprocessing: Preprocessing,
    limits: ReadLimits,
    *,
    thumbnail: bool,
) -> None:
    try:
        found = examine(content, preprocessing, limits, thumbnail=thumbnail)
    except RefusedImageError as error:
        _refuse(target, error)
        return
    facts = {"media_type": found.media_type, "width": found.width, "height": found.height}
    blobs: list[bytes | memoryview] = [np.ascontiguousarray(found.pixels).data]
    if found.thumbnail is not None:
        blobs.append(found.thumbnail)
    write_frame(target, facts, blobs)


def _refuse(target: BinaryIO, error: RefusedImageError, *, leaving: bool = False) -> None:
    # Reasons quote what libraries say of hostile bytes.
    facts = {"refused": error.kind, "reason": error.reason[:500], "leaving": leaving}
    write_frame(target, facts)


def _go_first() -> None:
    """Have the system end decoders, and not the service, when memory runs out."""
    try:
        Path("/proc/self/oom_score_adj").write_text("1000")
    except OSError:
        # Other systems, or one that hides this.
        return


def _pipes() -> tuple[BinaryIO, BinaryIO]:
    """Input and output as pipes of our own: what a library prints must not reach the service."""
    source = open(os.dup(0), "rb", buffering=0)  # noqa: SIM115
    target = open(os.dup(1), "wb", buffering=0)  # noqa: SIM115
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(nothing, descriptor)
    return source, target


def _warm_up(preprocessing: Preprocessing) -> None:
    """Load all that decoding needs, while files may still be opened."""
    import io

    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(file, "PNG")
    examine(file.getvalue(), preprocessing, ReadLimits(), thumbnail=True)


if sys.platform == "win32":

    def _limit(memory_bytes: int) -> None:
        """The system has no such limits: the service's own time limit remains."""

    def _limit_time(seconds: int) -> None:
        """Likewise."""

else:
    import resource

    def _limit(memory_bytes: int) -> None:
        """Take away what decoding does not need."""
        _at_most(resource.RLIMIT_AS, memory_bytes)
        # Neither new files nor new content of files, nor an image of the memory left on disk.
        _at_most(resource.RLIMIT_FSIZE, 0)
        _at_most(resource.RLIMIT_CORE, 0)
        _at_most(resource.RLIMIT_NOFILE, 16)

    def _limit_time(seconds: int) -> None:
        """Let the system end this process after so many more seconds of work."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        spent = int(used.ru_utime + used.ru_stime) + 1
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (spent + seconds, hard))

    def _at_most(kind: int, value: int) -> None:
        _, hard = resource.getrlimit(kind)
        allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (allowed, allowed))


if __name__ == "__main__":
    main()
