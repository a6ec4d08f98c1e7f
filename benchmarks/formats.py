"""Labelled images of each format: processor time to list and to decode them, and memory."""

from __future__ import annotations

import csv
import gzip
import io
import json
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.measure import call_in_child, show_table
from benchmarks.processes import peak_bytes

# Classes, and the side of the images.
N_CLASSES, SIDE = 10, 96


def listing(quick: bool) -> None:
    """Tables and annotations of many images: only names are read."""
    n = 2_000 if quick else 100_000
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        names = _many_files(Path(folder), n)
        for source in (_table(Path(folder), names), _annotations(Path(folder), names)):
            found = call_in_child("benchmarks.formats:measure_listing", str(source))
            size = f"{source.stat().st_size / 1e6:.1f} MB"
            rows.append((source.name, n, size, f"{found['seconds']:.2f}", f"{found['mb']:.0f}"))
    show_table("Listing", ("source", "images", "file", "processor seconds", "memory (MB)"), rows)


def decoding(quick: bool) -> None:
    """The same small JPEGs in class folders and in a tar file, all decoded by two threads."""
    n = 500 if quick else 10_000
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        contents = [_jpeg(seed) for seed in range(100)]
        for i in range(n):
            path = root / "photos" / f"class {i % N_CLASSES}" / f"{i:06d}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(contents[i % len(contents)])
        tar = _tar(root / "a.tar", n, contents)
        (root / "a.tar.gz").write_bytes(gzip.compress(tar.read_bytes(), 1))
        for source in (root / "photos", tar, root / "a.tar.gz"):
            found = call_in_child("benchmarks.formats:measure_decoding", str(source))
            rows.append(
                (
                    source.name,
                    n,
                    f"{found['listed']:.2f}",
                    f"{n / found['decoded']:.0f}",
                    f"{found['mb']:.0f}",
                )
            )
    columns = ("source", "images", "seconds to list", "decoded per second", "memory (MB)")
    show_table("Decoding", columns, rows)


def video(quick: bool) -> None:
    """Frames of a video of 640 x 480 pixels."""
    n = 200 if quick else 3_000
    with tempfile.TemporaryDirectory() as folder:
        path = _video(Path(folder) / "clip.mp4", n)
        found = call_in_child("benchmarks.formats:measure_video", str(path))
    rows = [(n, found["n_yielded"], f"{n / found['seconds']:.0f}", f"{found['mb']:.0f}")]
    show_table("Video", ("frames", "yielded", "frames/s", "memory (MB)"), rows)


def measure_listing(source: str) -> dict[str, float]:
    """In a process of its own: the time, and how far the memory grew."""
    from evergrow.vision import find_labelled

    before, began = _peak_mb(), time.process_time()
    found = find_labelled(source)
    assert len(found.sources) == len(found.labels) > 0
    return {"seconds": time.process_time() - began, "mb": _peak_mb() - before}


def measure_decoding(source: str) -> dict[str, float]:
    """In a process of its own: the times to list and to decode, and how far the memory grew."""
    from evergrow.vision import find_labelled, iterate_images, read_image

    read_image(_jpeg(0))
    before, began = _peak_mb(), time.process_time()
    found = find_labelled(source)
    listed = time.process_time()
    n = sum(1 for _ in iterate_images(found.sources, n_jobs=2))
    assert n == len(found.labels)
    decoded = time.process_time() - listed
    return {"listed": listed - began, "decoded": decoded, "mb": _peak_mb() - before}


def measure_video(path: str) -> dict[str, float]:
    """In a process of its own: the time, and how far the memory grew."""
    import cv2  # noqa: F401

    from evergrow.vision import iterate_frames

    before, began = _peak_mb(), time.process_time()
    n = sum(1 for _ in iterate_frames(path))
    seconds = time.process_time() - began
    return {"seconds": seconds, "n_yielded": n, "mb": _peak_mb() - before}


def _peak_mb() -> float:
    return peak_bytes() / 1e6


def _many_files(folder: Path, n: int) -> list[str]:
    names = [f"images/{i // 1000:03d}/{i:06d}.jpg" for i in range(n)]
    for name in names:
        if name.endswith("000.jpg"):
            (folder / name).parent.mkdir(parents=True)
        # Their content is not read.
        (folder / name).touch()
    return names


def _table(folder: Path, names: list[str]) -> Path:
    path = folder / "labels.csv"
    with open(path, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["path", "label"])
        rows.writerows((name, f"class {i % N_CLASSES}") for i, name in enumerate(names))
    return path


def _annotations(folder: Path, names: list[str]) -> Path:
    path = folder / "annotations.json"
    entries: dict[str, Any] = {
        "images": [
            {"id": i, "file_name": name, "width": SIDE, "height": SIDE}
            for i, name in enumerate(names)
        ],
        "categories": [{"id": k, "name": f"class {k}"} for k in range(N_CLASSES)],
        "annotations": [
            {"id": i, "image_id": i, "category_id": i % N_CLASSES, "bbox": [0, 0, SIDE, SIDE]}
            for i in range(len(names))
        ],
    }
    path.write_text(json.dumps(entries))
    return path


def _jpeg(seed: int) -> bytes:
    coarse = np.random.default_rng(seed).integers(0, 256, (12, 12, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(coarse).resize((SIDE, SIDE), Image.Resampling.BICUBIC).save(file, "JPEG")
    return file.getvalue()


def _tar(path: Path, n: int, contents: list[bytes]) -> Path:
    with tarfile.open(path, "w") as archive:
        for i in range(n):
            label = f"class {i % N_CLASSES}".encode()
            for ending, content in (("jpg", contents[i % len(contents)]), ("cls", label)):
                member = tarfile.TarInfo(f"{i:06d}.{ending}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return path


def _video(path: Path, n: int) -> Path:
    import cv2

    # mypy's stubs of OpenCV lack it.
    code = getattr(cv2, "VideoWriter_fourcc")(*"mp4v")  # noqa: B009
    writer = cv2.VideoWriter(str(path), cv2.CAP_FFMPEG, code, 30.0, (640, 480))
    noise = np.random.default_rng(0).integers(0, 256, (48, 64, 3), dtype=np.uint8)
    for i in range(n):
        writer.write(np.roll(noise, i, axis=1).repeat(10, axis=0).repeat(10, axis=1))
    writer.release()
    return path
