"""Learning and coding against k-means, and whole images by stage."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.cluster import MiniBatchKMeans
from threadpoolctl import threadpool_limits

from benchmarks.codebook.pictures import as_jpeg, pictures
from benchmarks.measure import THREADS, Figure, median_seconds, report, show_table
from evergrow import ERCForest
from evergrow.research.papers.nips2006.histograms import training_descriptors
from evergrow.research.papers.nips2006.photographs import Photographs
from evergrow.vision import (
    HierarchicalKMeans,
    KMeansCodebook,
    RandomKDTrees,
    RandomPatches,
    read_image,
)
from evergrow.vision.descriptors.kinds import DESCRIPTORS

Rows = npt.NDArray[np.float32]
PEER = "MiniBatchKMeans as scikit-learn sets it, nearest centre by BLAS"


def run(quick: bool) -> None:
    """Measure on descriptors of photographs, or of drawn pictures."""
    data = pictures(quick)
    n_words = 50 if quick else 1000
    given = training_descriptors(data, "haar", 0, 2000 if quick else 20_000)
    _words(data.name, given.rows, given.classes, n_words, quick)
    _whole_images(data, n_words, quick)


def _words(name: str, rows: Rows, classes: npt.NDArray[np.str_], n_words: int, quick: bool) -> None:
    codebooks: dict[str, Any] = {
        "ERC forest": ERCForest(n_words=n_words, n_jobs=THREADS, random_state=0),
        "random kd-trees": RandomKDTrees(5, n_words=n_words, n_jobs=THREADS, random_state=0),
        "hierarchical k-means": HierarchicalKMeans(5 * n_words, random_state=0),
        "k-means from random centres": KMeansCodebook(5 * n_words, start="random", random_state=0),
    }
    learning = {
        label: median_seconds(lambda c=codebook: c.fit(rows, classes))  # type: ignore[misc]
        for label, codebook in codebooks.items()
    }
    peer = MiniBatchKMeans(5 * n_words, random_state=0)
    learning[PEER] = median_seconds(lambda: peer.fit(rows), 1)
    coding = {}
    with threadpool_limits(1):
        for label, codebook in codebooks.items():
            codebook.set_params(**{"n_jobs": 1} if "n_jobs" in codebook.get_params() else {})
            coding[label] = median_seconds(lambda c=codebook: c.transform(rows)) / len(rows)  # type: ignore[misc]
        coding[PEER] = _nearest_centre_seconds(rows, peer.cluster_centers_) / len(rows)
    show_table(
        f"{5 * n_words} words from {len(rows)} Haar descriptors",
        ["codebook", "learning, s", "coding on one core, us per descriptor"],
        [(label, learning[label], 1e6 * coding[label]) for label in learning],
    )
    ours = "ERC forest"
    sift_rate = _sift_rate(n_words, quick)
    figures = [
        Figure("learning: MiniBatchKMeans / ERC", learning[PEER] / learning[ours], 20),
        Figure("coding on one core: BLAS / ERC", coding[PEER] / coding[ours], 50),
        Figure("coding: million SIFT-size descriptors per second and core", sift_rate / 1e6, 1),
    ]
    report("codebook", name, figures, bars=not quick)


def _nearest_centre_seconds(rows: Rows, centres: Rows) -> float:
    """The product with all centres, in blocks that suit the cache, and the smallest of each row."""
    half_norms = (centres**2).sum(axis=1) / 2

    def nearest() -> None:
        for begin in range(0, len(rows), 1024):
            scores = rows[begin : begin + 1024] @ centres.T
            np.subtract(half_norms, scores, out=scores)
            scores.argmin(axis=1)

    return median_seconds(nearest)


def _sift_rate(n_words: int, quick: bool) -> float:
    data = pictures(quick)
    given = training_descriptors(data, "sift", 0, 2000 if quick else 100_000)
    rows = given.rows
    forest = ERCForest(n_words=n_words, random_state=0, n_jobs=THREADS)
    forest.fit(rows[::5], given.classes[::5])
    forest.set_params(n_jobs=1)
    return len(rows) / median_seconds(lambda: forest.transform(rows), 5)


def _whole_images(data: Photographs, n_words: int, quick: bool) -> None:
    """Images per second of each stage, one core, for each descriptor."""
    n_patches = 200 if quick else 8000
    some = data.where(np.arange(len(data.images)) % (len(data.images) // 10) == 0)
    files = [as_jpeg(image) for image in some.images]
    table, slowest = [], {}
    for descriptor in DESCRIPTORS:
        given = training_descriptors(data, descriptor, 0, 2000 if quick else 20_000)
        forest = ERCForest(n_words=n_words, random_state=0)
        forest.fit(given.rows, given.classes)
        seconds = _stages(files, descriptor, n_patches, forest)
        table.append((descriptor, *(len(files) / s for s in seconds), len(files) / sum(seconds)))
        slowest[descriptor] = max(seconds[:-1]) / seconds[-1]
    show_table(
        f"images per second on one core, {n_patches} patches each",
        ["descriptor", "decode", "place patches", "describe", "code", "all"],
        table,
    )
    figures = [
        Figure(f"slowest other stage / coding, {name}", ratio, 1.0)
        for name, ratio in slowest.items()
    ]
    report("codebook", data.name, figures, bars=not quick)


def _stages(
    files: list[bytes], descriptor: str, n_patches: int, forest: ERCForest
) -> tuple[float, float, float, float]:
    patches = RandomPatches(n_patches)
    describe = DESCRIPTORS[descriptor].describe
    images = [read_image(file) for file in files]
    boxes = [patches.boxes(image.shape[:2], seed=0) for image in images]
    rows = [describe(image, box) for image, box in zip(images, boxes, strict=True)]
    with threadpool_limits(1):
        return (
            median_seconds(lambda: [read_image(file) for file in files]),
            median_seconds(lambda: [patches.boxes(i.shape[:2], seed=0) for i in images]),
            median_seconds(lambda: [describe(i, b) for i, b in zip(images, boxes, strict=True)]),
            median_seconds(lambda: [forest.encode([r]) for r in rows]),
        )
