"""The frames of video files and cameras as 8-bit RGB, one at a time.

OpenCV decodes, with FFmpeg, in this process. Only files of known containers are opened, so that
none can be a playlist, which would make FFmpeg open other files and addresses.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import ImageError, InvalidInputError, InvalidTypeError
from evergrow.foundation.files import open_regular
from evergrow.foundation.formatting import display_name
from evergrow.foundation.params import Integer, Nothing, Number, Rule, check_parameters
from evergrow.vision.images.decoder import array_to_rgb
from evergrow.vision.images.sources import DEFAULT_LIMITS, ReadLimits, import_extra

StrPath = str | os.PathLike[str]

# File name extensions of the containers below.
VIDEO_SUFFIXES = frozenset(
    (".mp4", ".m4v", ".mov", ".3gp", ".mkv", ".webm", ".avi", ".mpg", ".mpeg", ".mts", ".m2ts")
)
# How these containers begin: the place, and the bytes there.
_SIGNATURES = (
    (4, b"ftyp"),
    # QuickTime before 2001.
    (4, b"moov"),
    (4, b"mdat"),
    (4, b"wide"),
    # Matroska and WebM.
    (0, b"\x1aE\xdf\xa3"),
    # MPEG program streams.
    (0, b"\x00\x00\x01\xba"),
    (0, b"\x00\x00\x01\xb3"),
)
# Transport streams of broadcasts and camcorders: this byte begins every packet, which has so many
# bytes after a number of others.
_SYNC = 0x47
_PACKETS = ((0, 188), (4, 192))
_N_PACKETS = 3
_BEGINNING = 1024
_SECONDS = 1.0
_STEPS: dict[str, list[Rule]] = {
    "seconds": [Nothing(), Number(1e-3, 1e6)],
    "frames": [Nothing(), Integer(1)],
}
# Containers estimate the number of their frames; a file with fewer than this share is truncated.
_COMPLETE_SHARE = 0.9
# Later time stamps, in seconds, are damaged.
_LONGEST = 1e7


@dataclass(frozen=True, eq=False)
class Frame:
    """A frame of a video.

    Attributes
    ----------
    pixels : ndarray of shape (height, width, 3)
        The image, 8-bit RGB.
    index : int
        Index of the frame in the video.
    seconds : float
        Seconds since the beginning of the video, or since the camera was opened.
    """

    pixels: npt.NDArray[np.uint8]
    index: int
    seconds: float


class Capture(Protocol):
    """What is used of ``cv2.VideoCapture``."""

    def isOpened(self) -> bool: ...  # noqa: D102, N802

    def grab(self) -> bool: ...  # noqa: D102

    def retrieve(self) -> tuple[bool, Any]: ...  # noqa: D102

    def get(self, prop: int, /) -> float: ...  # noqa: D102

    def release(self) -> None: ...  # noqa: D102


def iterate_frames(
    source: StrPath | int,
    *,
    seconds: float | None = None,
    frames: int | None = None,
    limits: ReadLimits = DEFAULT_LIMITS,
) -> Iterator[Frame]:
    """Iterate over the frames of a video file or a camera.

    Only one frame is in memory at a time.

    Parameters
    ----------
    source : path or int
        A video file (MP4, QuickTime, Matroska, WebM, AVI or MPEG), or the number of a camera, where
        0 is the first one. A camera runs until the iterator is closed.
    seconds : float, default=None
        Seconds between two frames. None is one second, unless `frames` is given.
    frames : int, default=None
        Yield every n-th frame instead.
    limits : ReadLimits
        The largest frame to accept.

    Yields
    ------
    frame : Frame
        The pixels of the frame, its index and its time.

    Raises
    ------
    evergrow.ImageError
        If the file is not a video in one of these formats, if it is incomplete, or if the camera
        cannot be opened or stops. Frames before the error are yielded.

    Examples
    --------
    >>> from evergrow.vision import iterate_frames
    >>> for frame in iterate_frames("clip.mp4", seconds=0.5):  # doctest: +SKIP
    ...     print(frame.seconds, model.predict([frame.pixels])[0])
    """
    is_due = _schedule(seconds, frames)
    is_camera = isinstance(source, int) and not isinstance(source, bool)
    if not is_camera and not isinstance(source, (str, os.PathLike)):
        raise InvalidTypeError(
            f"source must be a path or the number of a camera, got {type(source).__name__}"
        )
    name = f"camera {source}" if is_camera else display_name(source)
    capture = open_camera(source) if isinstance(source, int) else open_video(source)
    return _frames(capture, name, is_due, limits, is_camera=is_camera)


def is_video(path: StrPath) -> bool:
    """Whether a path ends like a video file."""
    return os.path.splitext(path)[1].lower() in VIDEO_SUFFIXES


def open_video(path: StrPath) -> Capture:
    """Open a video file; an ``ImageError`` if it is not one of a known container."""
    try:
        with open_regular(path) as file:
            beginning = file.read(_BEGINNING)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ImageError(display_name(path), reason) from error
    except InvalidInputError as error:
        raise ImageError(display_name(path), str(error)) from error
    if Path(path).suffix.lower() not in VIDEO_SUFFIXES or not _is_container(beginning):
        reason = "it is not a video: MP4, QuickTime, Matroska, WebM, AVI or MPEG"
        raise ImageError(display_name(path), reason)
    cv2 = import_extra("cv2", what="videos")
    # An absolute path cannot be taken for an address or a pattern of file names.
    capture = _open(cv2, os.path.abspath(path), cv2.CAP_FFMPEG)
    if not capture.isOpened():
        capture.release()
        raise ImageError(display_name(path), "its video is damaged, truncated or of unknown kind")
    return capture


def _is_container(beginning: bytes) -> bool:
    """Whether a file begins as a container does: a playlist, which names other files, does not."""
    if beginning[:4] == b"RIFF" and beginning[8:12] == b"AVI ":
        return True
    if any(beginning[at : at + len(mark)] == mark for at, mark in _SIGNATURES):
        return True
    return any(
        len(marks := beginning[first::step][:_N_PACKETS]) == _N_PACKETS and set(marks) == {_SYNC}
        for first, step in _PACKETS
    )


def open_camera(number: int) -> Capture:
    """Open a camera; an ``ImageError`` if there is none of this number."""
    cv2 = import_extra("cv2", what="cameras")
    capture = _open(cv2, number, cv2.CAP_ANY)
    if not capture.isOpened():
        capture.release()
        raise ImageError(f"camera {number}", "it is missing, used by another program or forbidden")
    return capture


def _open(cv2: Any, source: str | int, backend: int) -> Capture:
    logging = cv2.utils.logging
    level = logging.getLogLevel()
    # The reason is reported as an error; OpenCV would print its own too.
    logging.setLogLevel(logging.LOG_LEVEL_SILENT)
    before = os.environ.get("OPENCV_FFMPEG_LOGLEVEL")
    os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")
    try:
        found: Capture = cv2.VideoCapture(source, backend)
        return found
    finally:
        logging.setLogLevel(level)
        if before is None:
            del os.environ["OPENCV_FFMPEG_LOGLEVEL"]


def _schedule(seconds: float | None, frames: int | None) -> Callable[[int, float], bool]:
    """Which frames are due, by their places and time stamps."""
    if seconds is not None and frames is not None:
        raise InvalidInputError("give seconds or frames, not both")
    check_parameters({"seconds": seconds, "frames": frames}, _STEPS)
    if frames is not None:
        return lambda index, _: index % frames == 0
    step = _SECONDS if seconds is None else seconds
    return _Clock(step).is_due


@dataclass
class _Clock:
    step: float
    # The time at which the next frame is due.
    due: float = 0.0

    def is_due(self, _: int, at: float) -> bool:
        # Time stamps are rounded, for example to milliseconds.
        if at < self.due - 1e-3:
            return False
        # Not step by step: a damaged time stamp may lie far ahead.
        self.due = (math.floor((at + 1e-3) / self.step) + 1) * self.step
        return True


def _frames(
    capture: Capture,
    name: str,
    is_due: Callable[[int, float], bool],
    limits: ReadLimits,
    *,
    is_camera: bool,
) -> Iterator[Frame]:
    cv2 = import_extra("cv2", what="videos")
    began, index = time.monotonic(), 0
    with ExitStack() as stack:
        stack.callback(capture.release)
        expected = 0 if is_camera else capture.get(cv2.CAP_PROP_FRAME_COUNT)
        rate = capture.get(cv2.CAP_PROP_FPS)
        _check_size(capture, name, cv2, limits)
        while capture.grab():
            at = time.monotonic() - began
            if not is_camera:
                stamp = capture.get(cv2.CAP_PROP_POS_MSEC) / 1000
                at = stamp if 0 < stamp < _LONGEST or not rate > 0 else index / rate
            if is_due(index, at):
                yield Frame(_retrieve(capture, name, cv2, limits), index, at)
            index += 1
        if is_camera:
            raise ImageError(name, "it stopped sending")
        if index == 0:
            raise ImageError(name, "it has no frame that can be decoded")
        if index < _COMPLETE_SHARE * expected - 1:
            raise ImageError(
                name, f"it ends after {index} of {expected:.0f} frames: it is truncated"
            )


def _check_size(capture: Capture, name: str, cv2: Any, limits: ReadLimits) -> None:
    size = (capture.get(one) for one in (cv2.CAP_PROP_FRAME_WIDTH, cv2.CAP_PROP_FRAME_HEIGHT))
    try:
        limits.check_size(*map(int, size))
    except InvalidInputError as error:
        raise ImageError(name, str(error)) from error


def _retrieve(capture: Capture, name: str, cv2: Any, limits: ReadLimits) -> npt.NDArray[np.uint8]:
    # Before the pixels are converted, and again in case the size changed within the video.
    _check_size(capture, name, cv2, limits)
    is_decoded, pixels = capture.retrieve()
    if not is_decoded:
        raise ImageError(name, "a frame cannot be decoded")
    try:
        limits.check_size(pixels.shape[1], pixels.shape[0])
    except InvalidInputError as error:
        raise ImageError(name, str(error)) from error
    # OpenCV has blue first. Some cameras send grey.
    return array_to_rgb(pixels if pixels.ndim == 2 else pixels[..., 2::-1])
