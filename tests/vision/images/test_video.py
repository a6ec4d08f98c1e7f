"""Frames of videos and cameras: which come, with which times, and what broken files say."""

from __future__ import annotations

import os
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from evergrow.foundation.errors import ImageError, InvalidInputError, InvalidTypeError
from evergrow.vision import ReadLimits, iterate_frames
from evergrow.vision.images import video
from tests.vision.images.videos import CODECS, FakeCamera, write_video

pytest.importorskip("cv2")


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two seconds of red and two of green, in each container."""
    folder = tmp_path_factory.mktemp("clips")
    return {suffix: write_video(folder / f"clip{suffix}", "red", "green") for suffix in CODECS}


@pytest.mark.parametrize("suffix", CODECS)
def test_one_frame_per_second_has_its_colour_and_time(clips: dict[str, Path], suffix: str) -> None:
    found = list(iterate_frames(clips[suffix]))
    assert [frame.seconds for frame in found] == pytest.approx([0, 1, 2, 3], abs=0.01)
    assert [frame.index for frame in found] == [0, 10, 20, 30]
    assert {frame.pixels.shape for frame in found} == {(48, 64, 3)}
    strongest = [int(np.argmax(frame.pixels.mean(axis=(0, 1)))) for frame in found]
    assert strongest == [0, 0, 1, 1]


def test_the_step_is_seconds_or_frames(clips: dict[str, Path]) -> None:
    path = clips[".mp4"]
    assert [one.index for one in iterate_frames(path, seconds=0.25)][:4] == [0, 3, 5, 8]
    assert [one.index for one in iterate_frames(path, frames=15)] == [0, 15, 30]
    assert len(list(iterate_frames(path, seconds=0.001))) == 40
    assert len(list(iterate_frames(path, frames=10**9))) == 1
    for wrong in ({"seconds": 0}, {"seconds": float("nan")}, {"frames": 0}, {"frames": 1.5}):
        with pytest.raises(InvalidInputError, match="must be"):
            iterate_frames(path, **wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="not both"):
        iterate_frames(path, seconds=1, frames=1)
    with pytest.raises(InvalidTypeError, match="the number of a camera"):
        iterate_frames(True)


def test_truncated_videos_end_with_an_error_after_their_frames(
    clips: dict[str, Path], tmp_path: Path
) -> None:
    for suffix in (".avi", ".mkv", ".webm"):
        content = clips[suffix].read_bytes()
        path = tmp_path / f"half{suffix}"
        path.write_bytes(content[: len(content) // 2])
        frames = iterate_frames(path, frames=1)
        assert next(frames).index == 0
        with pytest.raises(ImageError, match=r"ends after \d+ of 40 frames: it is truncated"):
            list(frames)
    # The list of frames comes last in this container.
    content = clips[".mp4"].read_bytes()
    (tmp_path / "half.mp4").write_bytes(content[: len(content) // 2])
    with pytest.raises(ImageError, match="damaged, truncated or of unknown kind"):
        iterate_frames(tmp_path / "half.mp4")


PLAYLIST = b"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\n/etc/passwd\n#EXT-X-ENDLIST\n"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not a video"),
        (b"hello", "not a video"),
        (PLAYLIST, "not a video"),
        (b"#EXTM3U\nAVI \n#EXT-X-TARGETDURATION:3\n", "not a video"),
        (b"ffconcat version 1.0\nfile '/etc/passwd'\n", "not a video"),
        (b"\0\0\0\x1cftypisom" + bytes(100), "damaged, truncated"),
        (b"\x1aE\xdf\xa3" + bytes(100), "damaged, truncated"),
        (b"RIFF\xff\xff\xff\xffAVI LIST" + b"\xff" * 100, "damaged, truncated"),
        (b"G" * 1000, "damaged, truncated|no frame"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "clip.mp4"
    path.write_bytes(content)
    with pytest.raises(ImageError, match=reason):
        list(iterate_frames(path))


def test_names_of_playlists_are_refused(clips: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "clip.m3u8"
    path.write_bytes(clips[".mp4"].read_bytes())
    with pytest.raises(ImageError, match="not a video"):
        list(iterate_frames(path))


def test_missing_files_folders_and_pipes_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="no such file"):
        iterate_frames(tmp_path / "no.mp4")
    with pytest.raises(ImageError, match="directory"):
        iterate_frames(tmp_path)
    if sys.platform != "win32":
        os.mkfifo(tmp_path / "pipe.mp4")
        with pytest.raises(ImageError, match="not a regular file"):
            iterate_frames(tmp_path / "pipe.mp4")


def test_large_frames_are_refused(clips: dict[str, Path]) -> None:
    with pytest.raises(ImageError, match="64 x 48 pixels, more than the limit of 100"):
        list(iterate_frames(clips[".avi"], limits=ReadLimits(max_pixels=100)))


def test_a_camera_goes_on_until_it_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    camera = FakeCamera("red", "green")
    monkeypatch.setattr(video, "open_camera", lambda _: camera)
    frames = iterate_frames(0, frames=1)
    found = [next(frames) for _ in range(4)]
    assert [int(np.argmax(one.pixels.mean(axis=(0, 1)))) for one in found] == [0, 0, 1, 1]
    assert all(a.seconds <= b.seconds for a, b in pairwise(found))
    with pytest.raises(ImageError, match="camera 0: it stopped sending"):
        next(frames)
    assert camera.is_released


def test_closing_the_iterator_releases_the_camera(monkeypatch: pytest.MonkeyPatch) -> None:
    camera = FakeCamera("red", n=9)
    monkeypatch.setattr(video, "open_camera", lambda _: camera)
    frames = iterate_frames(0, frames=1)
    next(frames)
    frames.close()  # type: ignore[attr-defined]
    assert camera.is_released


@pytest.mark.skipif(os.path.exists("/dev/video63"), reason="there are many cameras")
def test_a_missing_camera_is_an_error() -> None:
    with pytest.raises(ImageError, match="camera 63: it is missing"):
        iterate_frames(63)
