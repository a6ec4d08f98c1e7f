"""The service's handle of one decoder process: start it, use it, replace it after a failure."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from typing import IO, Any, BinaryIO, cast

import numpy as np

from evergrow.service.decoding.protocol import (
    STATUS_OF_REFUSAL,
    DecoderError,
    FrameError,
    PreparedImage,
    RefusedImageError,
    read_frame,
    write_frame,
)
from evergrow.vision.embedding.preprocessing import Preprocessing
from evergrow.vision.images.decoder import MEDIA_TYPES
from evergrow.vision.images.sources import ReadLimits

_COMMAND = (sys.executable, "-P", "-m", "evergrow.service.decoding.worker")
_MILLION = 1_000_000
_START_SECONDS = 60.0
_MAX_THUMBNAIL_BYTES = 200_000
_JPEG_START = b"\xff\xd8\xff"
_PIPE_BYTES = 1 << 20
# Enough to find Python's modules and the system's libraries. The rest of the environment is not
# passed on, because it may contain secrets.
_PASSED_VARIABLES = (
    "PATH",
    "PYTHONPATH",
    "PYTHONHOME",
    "VIRTUAL_ENV",
    "LD_LIBRARY_PATH",
    "SYSTEMROOT",
    "TEMP",
)
# Memory of one image is reused for the next: returning it to the system and requesting it again
# took nearly half of a decoder's time. Read by glibc, ignored by other C libraries.
_MALLOC_OPTIONS = {
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(64 << 20),
}
_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class DecoderLimits:
    """Memory and time that one image may use.

    Parameters
    ----------
    reading : ReadLimits
        Maximum number of pixels and bytes.
    memory_bytes : int
        Address space of a decoder process. Lower it on small computers: large images are then
        refused.
    seconds : float
        Timeout for one image, for both wall-clock time and processor time.
    seconds_together : float
        Total decoding time for all images of one request.
    """

    reading: ReadLimits = field(
        default_factory=lambda: ReadLimits(max_pixels=50 * _MILLION, max_bytes=20 * _MILLION)
    )
    memory_bytes: int = 2_000 * _MILLION
    seconds: float = 10.0
    seconds_together: float = 20.0


class DecoderProcess:
    """A child process that decodes one image at a time for a network."""

    def __init__(self, preprocessing: Preprocessing, limits: DecoderLimits) -> None:
        self._preprocessing = preprocessing
        self._limits = limits
        self._shape = (*preprocessing.height_and_width, 3)
        self._n_pixel_bytes = math.prod(self._shape)
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ready = False
        # Why the process has no sandbox; None if it has one, or is not ready.
        self.no_sandbox: str | None = None
        # When the current image must be done; infinite while the decoder is idle.
        self._deadline = math.inf
        self._overdue = False
        self._terminated = False
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start the process without waiting until it is ready."""
        if self._terminated:
            raise DecoderError("the service is stopping")
        self._is_ready, self._overdue = False, False
        try:
            self._process = subprocess.Popen(  # noqa: S603
                _COMMAND,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                env=_environment(),
            )
        # Out of file descriptors, memory or processes: the next image tries again.
        except OSError as error:
            raise DecoderError(f"a decoder cannot be started: {error.strerror}") from error
        _enlarge_pipe(self._source)
        _enlarge_pipe(self._target)
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
        """Wait until images can be decoded; raise a ``DecoderError`` if the process fails."""
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
            raise DecoderError("a decoder exited before it was ready")
        # Said before the first image is decoded, so it can be trusted.
        self.no_sandbox = answer[0].get("no_sandbox")
        self._is_ready = True

    def decode(self, content: bytes, *, thumbnail: bool) -> PreparedImage:
        """Decode one image; raise a ``RefusedImageError`` if it is refused."""
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
            raise self._restart()
        if answer[0].get("exiting"):
            self.stop()
            self.start()
        return self._validate(*answer)

    def kill_if_late(self, now: float) -> None:
        """Kill the process if it exceeded its timeout; called by another thread."""
        with self._lock:
            if now > self._deadline and self._process is not None:
                self._overdue = True
                self._process.kill()

    def terminate(self) -> None:
        """Kill the process and never start it again; called by another thread."""
        with self._lock:
            self._terminated = True
            if self._process is not None:
                self._process.kill()

    def stop(self) -> None:
        """Kill the process and wait for its end."""
        with self._lock:
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
        """Process id, or None while there is no process."""
        return None if self._process is None else self._process.pid

    @property
    def _target(self) -> BinaryIO:
        return _require_pipe(None if self._process is None else self._process.stdin)

    @property
    def _source(self) -> BinaryIO:
        return _require_pipe(None if self._process is None else self._process.stdout)

    def _restart(self) -> RefusedImageError:
        """Replace the process after a failure; return the error to report."""
        process, overdue = self._process, self._overdue
        self.stop()
        code = None if process is None else process.returncode
        too_long = overdue or (sys.platform != "win32" and code == -signal.SIGXCPU)
        self.start()
        if too_long:
            reason = f"decoding it took longer than {self._limits.seconds:g} seconds"
        else:
            reason = "decoding it crashed the decoder"
        return RefusedImageError("decoder", reason)

    def _validate(self, header: dict[str, Any], blobs: list[bytearray]) -> PreparedImage:
        """Check a response: a malicious image may have taken over the decoder."""
        kind, reason = header.get("refused"), header.get("reason")
        if kind in STATUS_OF_REFUSAL and isinstance(reason, str):
            raise RefusedImageError(kind, reason)
        media_type, width, height = (header.get(name) for name in ("media_type", "width", "height"))
        is_valid = (
            media_type in MEDIA_TYPES
            and type(width) is int
            and type(height) is int
            and min(width, height) > 0
            and width * height <= self._limits.reading.max_pixels
            and len(blobs) in (1, 2)
            and len(blobs[0]) == self._n_pixel_bytes
            and all(blob.startswith(_JPEG_START) for blob in blobs[1:])
        )
        if not is_valid:
            raise self._restart()
        return PreparedImage(
            pixels=np.frombuffer(blobs[0], np.uint8).reshape(self._shape),
            media_type=str(media_type),
            width=int(width or 0),
            height=int(height or 0),
            thumbnail=bytes(blobs[1]) if len(blobs) == 2 else None,
        )


def _require_pipe(pipe: IO[bytes] | None) -> BinaryIO:
    if pipe is None:
        raise FrameError("the decoder process is not running")
    return cast(BinaryIO, pipe)


def _environment() -> dict[str, str]:
    passed = {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ}
    # Unneeded threads would use address space that images need.
    return {**passed, **_MALLOC_OPTIONS, **dict.fromkeys(_ONE_THREAD, "1")}


def _enlarge_pipe(pipe: Any) -> None:
    """Make a pipe hold whole responses, where the system can: fewer context switches per image."""
    if sys.platform != "linux":
        return
    import fcntl

    try:
        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    except OSError:
        # More than this user may have; a small pipe works too.
        return


def _close(pipe: Any) -> None:
    try:
        pipe.close()
    except OSError:
        return
