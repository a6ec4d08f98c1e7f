"""Memory: size of the trees, peak while fitting, size of the files, cost of the import."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.data import Split, image_features
from benchmarks.measure import THREADS, call_in_child, show_figures
from benchmarks.peers import N_TREES, ncm_forest
from benchmarks.processes import peak_bytes, reset_peak

# In a process that has imported nothing of ours.
IMPORT = """
import sklearn.ensemble, sklearn.utils.multiclass, time
start = time.perf_counter()
import evergrow
print(time.perf_counter() - start)
"""


def run(quick: bool) -> None:
    """Measure on image features."""
    features = image_features()
    split = features.head(4000, 1000) if quick else features
    trees(split)
    peak(split)
    command = [sys.executable, "-c", IMPORT]
    times = [subprocess.run(command, capture_output=True, check=True).stdout for _ in range(3)]
    seconds = statistics.median(map(float, times))
    show_figures("memory: import", {"import evergrow, s": seconds})


def trees(split: Split) -> None:
    """Bytes of the trees against centroids in single precision, and of the saved files."""
    forest = ncm_forest(THREADS).fit(split.X, split.y)
    core = forest._fitted.forest
    arrays = [core.tree_arrays(t) for t in range(len(core))]
    n_centroids = sum(len(a["centroid_class"]) for a in arrays)
    n_single = sum(int((a["centroid_source"] >= 0).sum()) for a in arrays)
    float32_bytes = 4 * n_centroids * split.X.shape[1]
    with tempfile.TemporaryDirectory() as folder:
        sizes = []
        for inference_only in (False, True):
            path = Path(folder) / "model.evergrow"
            forest.save(path, inference_only=inference_only)
            sizes.append(path.stat().st_size / 1e6)
    show_figures(
        f"memory: {split.name}",
        {
            "trees, MB": forest.nbytes / 1e6,
            "training samples, MB": core.samples.nbytes / 1e6,
            "centroids that are one sample, %": 100 * n_single / n_centroids,
            "trees / float32 centroids, %": 100 * forest.nbytes / float32_bytes,
            "model file, MB": sizes[0],
            "model file for inference only, MB": sizes[1],
        },
    )


def peak(split: Split) -> None:
    """Peak resident memory of a fit beyond what was there before it."""
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/X.npy", split.X)
        np.save(f"{folder}/y.npy", split.y)
        beyond, model = call_in_child("benchmarks.memory:bytes_of_fit", folder)
    show_figures(
        f"memory of fit: {split.name}",
        {
            "model (trees and samples), MB": model / 1e6,
            "peak of fit beyond the data, MB": beyond / 1e6,
            "peak beyond the data / model": beyond / model,
        },
    )


def bytes_of_fit(folder: str) -> tuple[int, int]:
    """Peak of this process while it fits, beyond what it had before, and the model's size."""
    X, y = np.load(f"{folder}/X.npy"), np.load(f"{folder}/y.npy")
    ncm_forest(THREADS).set_params(n_estimators=2).fit(X[:200], y[:200])
    before = reset_peak()
    forest = ncm_forest(THREADS).set_params(n_estimators=N_TREES).fit(X, y)
    core = forest._fitted.forest
    return peak_bytes() - before, core.nbytes + core.samples.nbytes
