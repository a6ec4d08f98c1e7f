"""One decoder as the service sees it: started, asked, and replaced when it fails."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from typing import Any, BinaryIO

import numpy as np

from evergrow.service.decoding.examining import Examined
from evergrow.service.decoding.frames import FrameError, read_frame, write_frame
from evergrow.service.decoding.refusals import (
    STATUS_OF_REFUSAL,
    DecoderError,
    RefusedImageError,
)
from evergrow.vision.embedding.preprocessing import Preprocessing
from evergrow.vision.images.sources import ReadLimits

__all__ = ["DecoderLimits", "DecoderProcess"]

_MILLION = 1_000_000
_START_SECONDS = 60.0
_MAX_THUMBNAIL_BYTES = 200_000
_PIPE_BYTES = 1 << 20
# What finding Python's modules and the system's libraries needs; nothing else of the environment,
# which may hold tokens.
_KEPT_VARIABLES = (
    "PATH",
    "PYTHONPATH",
    "PYTHONHOME",
    "VIRTUAL_ENV",
    "LD_LIBRARY_PATH",
    "SYSTEMROOT",
    "TEMP",
)
# Memory of one image is kept for the next: to give it back and ask for it again took nearly half of
# a decoder's time. Read by the C library of most Linux systems, ignored by others.
_KEEP_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(64 << 20),
}
_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class DecoderLimits:
    """How much one image may take.

    Parameters
    ----------
    reading : ReadLimits
        Pixels and bytes.
    memory_bytes : int
        Address space of the process that decodes. Lower it on small computers: large images are
        then refused rather than decoded.
    seconds : float
        Time for one image, of the clock and of the processor.
    seconds_together : float
        Time for all images of one request, one after the other.
    """

    reading: ReadLimits = field(
        default_factory=lambda: ReadLimits(max_pixels=50 * _MILLION, max_bytes=20 * _MILLION)
    )
    memory_bytes: int = 2_000 * _MILLION
    seconds: float = 10.0
    seconds_together: float = 20.0


class DecoderProcess:
    """A child process that decodes one image after the other.

    Parameters
    ----------
    preprocessing : Preprocessing
        What the network wants.
    limits : DecoderLimits
        How much one image may take.
    """

    def __init__(self, preprocessing: Preprocessing, limits: DecoderLimits) -> None:
        self._preprocessing = preprocessing
        self._limits = limits
        self._shape = (*preprocessing.height_and_width, 3)
        self._n_pixel_bytes = math.prod(self._shape)
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ready = False
        # Clock at which the present work must be done; infinite while there is none.
        self._deadline = math.inf
        self._overdue = False
        self._ended = False
        self._guard = threading.Lock()

    def start(self) -> None:
        """Start the process, which gets ready by itself."""
        if self._ended:
            raise DecoderError("the service is stopping")
        self._is_ready, self._overdue = False, False
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "evergrow.service.decoding.process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                env=_environment(),
            )
        # No files, no memory or no processes left: the next image tries again.
        except OSError as error:
            raise DecoderError(f"a decoder cannot be started: {error.strerror}") from error
        _widen(self._source)
        _widen(self._target)
        setup = {
            "preprocessing": self._preprocessing.to_json(),
            "limits": asdict(self._limits.reading),
            "memory_bytes": self._limits.memory_bytes,
        }
        try:
            write_frame(self._target, setup)
        except OSError as error:
            self.stop()
            raise DecoderError(f"a decoder cannot be started: {error.strerror}") from error

    def wait_until_ready(self) -> None:
        """Return when images can be decoded; a ``DecoderError`` if they cannot."""
        if self._is_ready:
            return
        if self._process is None:
            self.start()
        self._deadline = time.monotonic() + _START_SECONDS
        try:
            answer = read_frame(self._source, max_bytes=0)
        except (OSError, FrameError):
            answer = None
        finally:
            self._deadline = math.inf
        if answer is None:
            self.stop()
            raise DecoderError("a decoder ended before it was ready")
        self._is_ready = True

    def decode(self, content: bytes, *, thumbnail: bool) -> Examined:
        """What an image is; a ``RefusedImageError`` says why it is not taken."""
        self.wait_until_ready()
        header = {"thumbnail": thumbnail, "seconds": math.ceil(self._limits.seconds)}
        self._deadline = time.monotonic() + self._limits.seconds
        try:
            write_frame(self._target, header, [content])
            answer = read_frame(self._source, max_bytes=self._n_pixel_bytes + _MAX_THUMBNAIL_BYTES)
        except (OSError, FrameError):
            answer = None
        finally:
            self._deadline = math.inf
        if answer is None:
            raise self._replaced()
        if answer[0].get("leaving"):
            self.stop()
            self.start()
        return self._checked(*answer)

    def kill_if_late(self, now: float) -> None:
        """End the process if its time is over; called by another thread."""
        with self._guard:
            if now > self._deadline and self._process is not None:
                self._overdue = True
                self._process.kill()

    def end(self) -> None:
        """End the process in the middle of its work, for good; called by another thread."""
        with self._guard:
            self._ended = True
            if self._process is not None:
                self._process.kill()

    def stop(self) -> None:
        """End the process."""
        with self._guard:
            process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                _close(pipe)

    @property
    def pid(self) -> int | None:
        """Number of the process, if there is one."""
        return None if self._process is None else self._process.pid

    @property
    def _target(self) -> BinaryIO:
        pipe: Any = None if self._process is None else self._process.stdin
        if pipe is None:
            raise FrameError("there is no decoder")
        return pipe  # type: ignore[no-any-return]

    @property
    def _source(self) -> BinaryIO:
        pipe: Any = None if self._process is None else self._process.stdout
        if pipe is None:
            raise FrameError("there is no decoder")
        return pipe  # type: ignore[no-any-return]

    def _replaced(self) -> RefusedImageError:
        process, overdue = self._process, self._overdue
        self.stop()
        code = None if process is None else process.returncode
        too_long = overdue or (sys.platform != "win32" and code == -signal.SIGXCPU)
        self.start()
        if too_long:
            reason = f"decoding it took longer than {self._limits.seconds:g} seconds"
        else:
            reason = "decoding it ended the process that decodes"
        return RefusedImageError("decoder", reason)

    def _checked(self, header: dict[str, Any], blobs: list[bytearray]) -> Examined:
        """Take nothing on trust: whoever sent the image may speak for the decoder."""
        kind, reason = header.get("refused"), header.get("reason")
        if kind in STATUS_OF_REFUSAL and isinstance(reason, str):
            raise RefusedImageError(kind, reason)
        media_type, width, height = (header.get(name) for name in ("media_type", "width", "height"))
        right = (
            isinstance(media_type, str)
            and type(width) is int
            and type(height) is int
            and 0 < width * height <= self._limits.reading.max_pixels
            and len(blobs) in (1, 2)
            and len(blobs[0]) == self._n_pixel_bytes
        )
        if not right:
            raise self._replaced()
        return Examined(
            pixels=np.frombuffer(blobs[0], np.uint8).reshape(self._shape),
            media_type=str(media_type),
            width=int(width or 0),
            height=int(height or 0),
            thumbnail=bytes(blobs[1]) if len(blobs) == 2 else None,
        )


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    # Threads that a decoder does not need take address space from its images.
    return {**kept, **_KEEP_MEMORY, **dict.fromkeys(_ONE_THREAD, "1")}


def _widen(pipe: Any) -> None:
    """Let whole answers fit into a pipe, where the system can: fewer turns for each image."""
    if sys.platform != "linux":
        return
    import fcntl

    try:
        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    except OSError:
        # More than this user may have; a narrow pipe works too.
        return


def _close(pipe: Any) -> None:
    try:
        pipe.close()
    except OSError:
        return
