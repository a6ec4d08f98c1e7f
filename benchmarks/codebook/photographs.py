"""Photographs: embedded against the network alone, and learnt folder after folder."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.codebook.pictures import RGB, as_jpeg, pictures
from benchmarks.measure import THREADS, Figure, report, show_table
from evergrow import ImageClassifier
from evergrow.research.papers.nips2006.photographs import Photographs
from evergrow.vision import Embedder, find_labelled
from evergrow.vision.embedding.model_zoo import PRETRAINED


def embedding(quick: bool) -> None:
    """Time both runs and the network on batches that are ready."""
    data = pictures(quick)
    with tempfile.TemporaryDirectory() as folder:
        paths = _written(data.images, Path(folder))
        embedder = Embedder(cache=Path(folder) / "cache", n_jobs=THREADS)
        # The network is converted and loaded before the clock starts.
        embedder.transform(data.images[:2])
        first, features = _seconds(embedder, paths)
        again, cached = _seconds(embedder, paths)
        stages = Embedder(stages=(5, 6, 7), cache=Path(folder) / "stages", n_jobs=THREADS)
        stages.transform(data.images[:2])
        staged, _ = _seconds(stages, paths)
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
            ("Embedder with stages 5, 6 and 7, first run", staged, len(paths) / staged),
        ],
    )
    figures = [
        Figure("Embedder / onnxruntime alone", first / alone, 1.3, "at most"),
        Figure("first run / second run", first / again, 50),
        Figure("with stages 5, 6 and 7 / without", staged / first, 1.05, "at most"),
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


LEARNERS = ("rls", "forest")


def folders(quick: bool) -> None:
    """Fit on the first folders, add the others, compare with fitting all at once."""
    data = pictures(quick)
    names = [str(name) for name in np.unique(data.classes)]
    first = names[: (5 * len(names) + 8) // 9]
    rows, figures = [], []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _write(data, root, first)
        for learner in LEARNERS:
            grown, whole, seconds = _grown_and_whole(root, learner)
            rows.append((learner, *(100 * a for a in (grown, whole)), *seconds))
            # A forest of so few pictures is fitted in the time an update takes to begin.
            bar = 10 if learner == LEARNERS[0] else None
            figures += [
                Figure(f"{learner}: added minus fitted at once, points", 100 * (grown - whole), -1),
                Figure(f"{learner}: fitting all / the update", seconds[2] / seconds[1], bar),
            ]
    show_table(
        f"{len(first)} folders, then {len(names) - len(first)} more; seconds of learning alone",
        ["learner", "added, %", "at once, %", "fit, s", "update, s", "fit of all, s"],
        rows,
    )
    report("codebook", data.name, figures, bars=not quick)


def _write(data: Photographs, root: Path, first: list[str]) -> None:
    for number, (image, name) in enumerate(zip(data.images, data.classes, strict=True)):
        part = ("first" if name in first else "more") if data.trains[number] else "test"
        place = root / part / str(name)
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number}.jpg").write_bytes(as_jpeg(image))
    shutil.copytree(root / "first", root / "all")
    shutil.copytree(root / "more", root / "all", dirs_exist_ok=True)


def _grown_and_whole(root: Path, learner: str) -> tuple[float, float, tuple[float, float, float]]:
    """Accuracies of both, and the seconds of learning itself."""
    grown, whole = (ImageClassifier(learner=learner, random_state=0) for _ in range(2))
    first = _learning(grown.fit(root / "first"))
    update = _learning(grown.partial_fit(root / "more"))
    everything = _learning(whole.fit(root / "all"))
    test = find_labelled(root / "test")
    accuracies = [model.score(test.paths, test.labels) for model in (grown, whole)]
    return accuracies[0], accuracies[1], (first, update, everything)


def _learning(model: ImageClassifier) -> float:
    report = model.report_
    assert report is not None
    return report.seconds_learning
