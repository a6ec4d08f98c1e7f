"""Visual words: learning and coding against k-means, and whole images by stage."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.cluster import MiniBatchKMeans
from threadpoolctl import threadpool_limits

from benchmarks.measure import THREADS, median_seconds, show_figures, show_table
from benchmarks.pictures import RGB, as_jpeg, photographs
from evergrow import ERCForest
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
    name, images, classes = photographs(quick)
    n_words = 50 if quick else 1000
    _words(name, *_descriptors(images, classes, "haar", 2000 if quick else 20_000), n_words)
    _sift(name, *_descriptors(images, classes, "sift", 2000 if quick else 100_000), n_words)
    _whole_images(images, classes, n_words, quick)


def _descriptors(
    images: list[RGB], classes: npt.NDArray[np.str_], descriptor: str, n: int
) -> tuple[Rows, npt.NDArray[np.str_]]:
    """About so many descriptors, as many of each image, with the class of their image."""
    patches = RandomPatches(-(-n // len(images)))
    parts = [
        DESCRIPTORS[descriptor].describe(image, patches.boxes(image.shape[:2], seed=i))
        for i, image in enumerate(images)
    ]
    return np.concatenate(parts), np.repeat(classes, [len(part) for part in parts])


def _words(name: str, rows: Rows, classes: npt.NDArray[np.str_], n_words: int) -> None:
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
        f"{5 * n_words} words from {len(rows)} Haar descriptors: {name}",
        ["codebook", "learning, s", "coding on one core, us per descriptor"],
        [(label, learning[label], 1e6 * coding[label]) for label in learning],
    )


def _nearest_centre_seconds(rows: Rows, centres: Rows) -> float:
    """The product with all centres, in blocks that suit the cache, and the smallest of each row."""
    half_norms = (centres**2).sum(axis=1) / 2

    def nearest() -> None:
        for begin in range(0, len(rows), 1024):
            scores = rows[begin : begin + 1024] @ centres.T
            np.subtract(half_norms, scores, out=scores)
            scores.argmin(axis=1)

    return median_seconds(nearest)


def _sift(name: str, rows: Rows, classes: npt.NDArray[np.str_], n_words: int) -> None:
    forest = ERCForest(n_words=n_words, random_state=0, n_jobs=THREADS)
    forest.fit(rows[::5], classes[::5]).set_params(n_jobs=1)
    rate = len(rows) / median_seconds(lambda: forest.transform(rows), 5)
    figures = {"million SIFT-size descriptors per second and core": rate / 1e6}
    show_figures(f"coding: {name}", figures)


def _whole_images(
    images: list[RGB], classes: npt.NDArray[np.str_], n_words: int, quick: bool
) -> None:
    """Images per second of each stage, one core, for each descriptor."""
    n_patches = 200 if quick else 8000
    files = [as_jpeg(image) for image in images[:: len(images) // 10]]
    table = []
    for descriptor in DESCRIPTORS:
        given = _descriptors(images, classes, descriptor, 2000 if quick else 20_000)
        forest = ERCForest(n_words=n_words, random_state=0, n_jobs=THREADS).fit(*given)
        seconds = _stages(files, descriptor, n_patches, forest.set_params(n_jobs=1))
        table.append((descriptor, *(len(files) / s for s in seconds), len(files) / sum(seconds)))
    show_table(
        f"images per second on one core, {n_patches} patches each",
        ["descriptor", "decode", "place patches", "describe", "code", "all"],
        table,
    )


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
