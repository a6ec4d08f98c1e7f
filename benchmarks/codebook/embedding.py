"""Embedding photographs: against the network alone, and a second time from the cache."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.codebook.pictures import RGB, as_jpeg, pictures
from benchmarks.measure import THREADS, Figure, report, show_table
from evergrow.vision import Embedder
from evergrow.vision.embedding.model_zoo import PRETRAINED


def run(quick: bool) -> None:
    """Time both runs and the network on batches that are ready."""
    data = pictures(quick)
    with tempfile.TemporaryDirectory() as folder:
        paths = _written(data.images, Path(folder))
        embedder = Embedder(cache=Path(folder) / "cache", n_jobs=THREADS)
        # The network is converted and loaded before the clock starts.
        embedder.transform(data.images[:2])
        first, features = _seconds(embedder, paths)
        again, cached = _seconds(embedder, paths)
    alone = _network_seconds(data.images, embedder.batch_size)
    if not np.array_equal(features, cached):
        raise RuntimeError("embeddings from the cache differ from those computed")
    show_table(
        f"embedding {len(paths)} photographs, {THREADS} threads",
        ["", "s", "images per second"],
        [
            ("onnxruntime alone, batches ready", alone, len(paths) / alone),
            ("Embedder, first run", first, len(paths) / first),
            ("Embedder, second run, from the cache", again, len(paths) / again),
        ],
    )
    figures = [
        Figure("Embedder / onnxruntime alone", first / alone, 1.3, "at most"),
        Figure("first run / second run", first / again, 50),
    ]
    report("codebook", data.name, figures, bars=not quick)


def _written(images: list[RGB], folder: Path) -> list[Path]:
    paths = [folder / f"{number}.jpg" for number in range(len(images))]
    for path, image in zip(paths, images, strict=True):
        path.write_bytes(as_jpeg(image))
    return paths


def _seconds(embedder: Embedder, paths: list[Path]) -> tuple[float, npt.NDArray[np.float32]]:
    begin = time.perf_counter()
    features = embedder.transform(paths)
    return time.perf_counter() - begin, features


def _network_seconds(images: list[RGB], size: int) -> float:
    """The network on the same pictures, prepared beforehand in batches of the same size."""
    import onnxruntime

    network = PRETRAINED["efficientnet-lite0"]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = onnxruntime.InferenceSession(
        network.onnx(None), options, providers=["CPUExecutionProvider"]
    )
    batches = [
        np.stack([network.preprocessing(image) for image in images[i : i + size]])
        for i in range(0, len(images), size)
    ]
    name = session.get_inputs()[0].name
    session.run(None, {name: batches[0]})
    begin = time.perf_counter()
    for batch in batches:
        session.run(None, {name: batch})
    return time.perf_counter() - begin
