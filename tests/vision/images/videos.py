"""Videos of one colour after the other, written by OpenCV, and a camera without a device."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.vision.classifier.pictures import picture

RATE = 10.0
# Codecs for the containers that OpenCV can write.
CODECS = {".mp4": "mp4v", ".mov": "mp4v", ".avi": "MJPG", ".mkv": "MJPG", ".webm": "VP80"}


def frames(*colours: str, n: int = 20) -> Iterator[np.ndarray]:
    for number, colour in enumerate(colours):
        for i in range(n):
            small = picture(colour, number * n + i)
            yield small.repeat(2, axis=0).repeat(2, axis=1)


def write_video(path: Path, *colours: str, n: int = 20) -> Path:
    """A video with ``n`` frames of each colour, ten per second."""
    import cv2

    code = cv2.VideoWriter_fourcc(*CODECS[path.suffix])
    writer = cv2.VideoWriter(str(path), cv2.CAP_FFMPEG, code, RATE, (64, 48))
    assert writer.isOpened()
    for frame in frames(*colours, n=n):
        writer.write(np.ascontiguousarray(frame[..., ::-1]))
    writer.release()
    return path


class FakeCamera:
    """Frames of colours in place of ``cv2.VideoCapture``; then it stops, or raises an error."""

    def __init__(self, *colours: str, n: int = 2, end: BaseException | None = None) -> None:
        self._frames = frames(*colours, n=n)
        self._end = end
        self._last: np.ndarray | None = None
        self.is_released = False

    def isOpened(self) -> bool:  # noqa: N802
        return True

    def grab(self) -> bool:
        self._last = next(self._frames, None)
        if self._last is None and self._end is not None:
            raise self._end
        return self._last is not None

    def retrieve(self) -> tuple[bool, Any]:
        assert self._last is not None
        return True, self._last[..., ::-1]

    def get(self, prop: int) -> float:
        import cv2

        size = {cv2.CAP_PROP_FRAME_WIDTH: 64.0, cv2.CAP_PROP_FRAME_HEIGHT: 48.0}
        return size.get(prop, 0.0)

    def release(self) -> None:
        self.is_released = True
