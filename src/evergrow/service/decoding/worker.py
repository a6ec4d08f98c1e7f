"""A decoder process: ``python -m evergrow.service.decoding.worker``, driven through its pipes.

It limits its own memory and processor time and enters a sandbox before it reads the first image. It
exits when its input is closed.
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from evergrow.service.decoding.polyglots import check_not_polyglot
from evergrow.service.decoding.protocol import (
    PreparedImage,
    RefusedImageError,
    read_frame,
    write_frame,
)
from evergrow.service.decoding.sandbox import SandboxError, enter_sandbox
from evergrow.vision.embedding.preprocessing import Preprocessing
from evergrow.vision.images.decoder import (
    DecodedImage,
    UnknownFormatError,
    decode_image,
    load_formats,
    read_header,
)
from evergrow.vision.images.sources import ReadLimits
from evergrow.vision.images.thumbnails import THUMBNAIL_SIDE, make_thumbnail

# A line of pixels shows nothing, yet costs as much to process as a whole picture.
_MAX_ASPECT_RATIO = 100


def main() -> None:
    """Decode images until the input is closed."""
    _prefer_for_oom_killer()
    source, target = _redirect_pipes()
    setup = read_frame(source, max_bytes=0)
    if setup is None:
        return
    preprocessing = Preprocessing.from_json(setup[0]["preprocessing"])
    limits = ReadLimits(**setup[0]["limits"])
    _load_libraries(preprocessing)
    _limit_resources(setup[0]["memory_bytes"])
    write_frame(target, {"ready": True, "no_sandbox": _enter_sandbox()})
    while (message := read_frame(source, max_bytes=limits.max_bytes)) is not None:
        header, (content,) = message
        _limit_cpu_time(header["seconds"])
        try:
            _respond(target, bytes(content), preprocessing, limits, thumbnail=header["thumbnail"])
        except MemoryError:
            refusal = RefusedImageError("size", "it needs more memory than one image may use")
            _refuse(target, refusal, exiting=True)
            # The remaining memory may be fragmented: a new process starts with all of it.
            return


def prepare_image(
    content: bytes, preprocessing: Preprocessing, limits: ReadLimits, *, thumbnail: bool
) -> PreparedImage:
    """Check, decode and resize one image for the network, as an ``Embedder`` does.

    A ``RefusedImageError`` says why an image is refused.
    """
    try:
        limits.check_bytes(len(content))
        header = read_header(content)
    except UnknownFormatError as error:
        raise RefusedImageError("format", str(error)) from error
    except ValueError as error:
        raise RefusedImageError("damaged", str(error)) from error
    _check_size(header.width, header.height, limits)
    try:
        check_not_polyglot(content, header.format)
    except ValueError as error:
        raise RefusedImageError("hidden", str(error)) from error
    image = _decode(content, limits, preprocessing.min_side)
    return PreparedImage(
        pixels=preprocessing.fit_to_input(image.pixels),
        media_type=image.media_type,
        width=image.width,
        height=image.height,
        thumbnail=_make_thumbnail(content, image.pixels, limits) if thumbnail else None,
    )


def _respond(
    target: BinaryIO,
    content: bytes,
    preprocessing: Preprocessing,
    limits: ReadLimits,
    *,
    thumbnail: bool,
) -> None:
    try:
        found = prepare_image(content, preprocessing, limits, thumbnail=thumbnail)
    except RefusedImageError as error:
        _refuse(target, error)
        return
    facts = {"media_type": found.media_type, "width": found.width, "height": found.height}
    blobs: list[bytes | memoryview] = [np.ascontiguousarray(found.pixels).data]
    if found.thumbnail is not None:
        blobs.append(found.thumbnail)
    write_frame(target, facts, blobs)


def _refuse(target: BinaryIO, error: RefusedImageError, *, exiting: bool = False) -> None:
    # Reasons may quote what libraries say about untrusted bytes.
    facts = {"refused": error.kind, "reason": error.reason[:500], "exiting": exiting}
    write_frame(target, facts)


def _decode(content: bytes, limits: ReadLimits, max_side: int | None) -> DecodedImage:
    try:
        return decode_image(content, limits, max_side)
    except ValueError as error:
        if isinstance(error.__cause__, MemoryError):
            raise error.__cause__ from error
        raise RefusedImageError("damaged", str(error)) from error


def _check_size(width: int, height: int, limits: ReadLimits) -> None:
    try:
        limits.check_size(width, height)
    except ValueError as error:
        raise RefusedImageError("size", str(error)) from error
    longer, shorter = max(width, height), min(width, height)
    if longer > _MAX_ASPECT_RATIO * shorter:
        raise RefusedImageError(
            "size",
            f"it has {width} x {height} pixels: one side may be at most {_MAX_ASPECT_RATIO} times "
            "as long as the other",
        )


def _make_thumbnail(content: bytes, pixels: npt.NDArray[np.uint8], limits: ReadLimits) -> bytes:
    if max(pixels.shape) < THUMBNAIL_SIDE:
        # The network needs fewer pixels than a thumbnail has.
        pixels = _decode(content, limits, THUMBNAIL_SIDE).pixels
    return make_thumbnail(pixels)


def _prefer_for_oom_killer() -> None:
    """Let the system kill decoders, and not the service, when memory runs out."""
    try:
        Path("/proc/self/oom_score_adj").write_text("1000")
    except OSError:
        # Not Linux, or a system that hides this file.
        return


def _redirect_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Take over standard input and output: what a library prints must not reach the service."""
    source = open(os.dup(0), "rb", buffering=0)  # noqa: SIM115
    target = open(os.dup(1), "wb", buffering=0)  # noqa: SIM115
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(nothing, descriptor)
    return source, target


def _load_libraries(preprocessing: Preprocessing) -> None:
    """Import everything that decoding needs, while files may still be opened."""
    load_formats()
    from PIL import Image

    # Resizing and thumbnails import more.
    for mode in ("RGB", "P", "RGBA"):
        file = io.BytesIO()
        Image.new(mode, (8, 8)).save(file, "PNG")
        prepare_image(file.getvalue(), preprocessing, ReadLimits(), thumbnail=True)


def _enter_sandbox() -> str | None:
    """Enter the sandbox; return why that was impossible, or None."""
    try:
        enter_sandbox()
    except SandboxError as error:
        return str(error)
    return None


if sys.platform == "win32":

    def _limit_resources(memory_bytes: int) -> None:
        """Do nothing: Windows has no such limits, only the timeout of the service remains."""

    def _limit_cpu_time(seconds: int) -> None:
        """Do nothing, likewise."""

else:
    import resource

    def _limit_resources(memory_bytes: int) -> None:
        """Limit memory, file size and open files, with or without a sandbox."""
        _set_limit(resource.RLIMIT_AS, memory_bytes)
        # No writing to files, no core dumps, few open files.
        _set_limit(resource.RLIMIT_FSIZE, 0)
        _set_limit(resource.RLIMIT_CORE, 0)
        _set_limit(resource.RLIMIT_NOFILE, 16)

    def _limit_cpu_time(seconds: int) -> None:
        """Let the system kill this process after so many more seconds of processor time."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        spent = int(used.ru_utime + used.ru_stime) + 1
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (spent + seconds, hard))

    def _set_limit(kind: int, value: int) -> None:
        _, hard = resource.getrlimit(kind)
        allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (allowed, allowed))


if __name__ == "__main__":
    main()
