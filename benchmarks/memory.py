"""Memory: size of the trees, peak while fitting, size of the files, cost of the import."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import psutil

from benchmarks.data import Split, image_features
from benchmarks.measure import THREADS, Figure, call_in_child, report
from benchmarks.peers import N_TREES, ncm_forest

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
    trees(split, bars=not quick)
    peak(split, bars=not quick)
    command = [sys.executable, "-c", IMPORT]
    times = [subprocess.run(command, capture_output=True, check=True).stdout for _ in range(3)]
    seconds = statistics.median(map(float, times))
    report("memory", "import", [Figure("import evergrow, s", seconds, 0.5, "at most")])


def trees(split: Split, bars: bool) -> None:
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
    share = 100 * forest.nbytes / float32_bytes
    figures = [
        Figure("trees, MB", forest.nbytes / 1e6),
        Figure("training samples, MB", core.samples.nbytes / 1e6),
        Figure("centroids that are one sample, %", 100 * n_single / n_centroids),
        Figure("trees / float32 centroids, %", share, 16, "at most"),
        Figure("model file, MB", sizes[0]),
        Figure("model file for inference only, MB", sizes[1]),
    ]
    report("memory", split.name, figures, bars=bars)


def peak(split: Split, bars: bool) -> None:
    """Peak resident memory of a fit beyond what was there before it."""
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/X.npy", split.X)
        np.save(f"{folder}/y.npy", split.y)
        beyond, model = call_in_child("benchmarks.memory:bytes_of_fit", folder)
    figures = [
        Figure("model (trees and samples), MB", model / 1e6),
        Figure("peak of fit beyond the data, MB", beyond / 1e6),
        Figure("peak beyond the data / model", beyond / model, 1.3, "at most"),
    ]
    report("memory", split.name, figures, bars=bars)


def bytes_of_fit(folder: str) -> tuple[int, int]:
    """Peak of this process while it fits, beyond what it had before, and the model's size."""
    from evergrow import NCMForestClassifier

    X, y = np.load(f"{folder}/X.npy"), np.load(f"{folder}/y.npy")
    NCMForestClassifier(2, n_jobs=THREADS).fit(X[:200], y[:200])
    before = reset_peak()
    forest = NCMForestClassifier(N_TREES, n_jobs=THREADS, random_state=0).fit(X, y)
    core = forest._fitted.forest
    return peak_bytes() - before, core.nbytes + core.samples.nbytes


def reset_peak() -> int:
    """Forget the peak so far; return the memory that this process has now."""
    forget = Path("/proc/self/clear_refs")
    if forget.exists():
        forget.write_text("5")
    return int(psutil.Process().memory_info().rss)


def peak_bytes() -> int:
    """The most memory that this process has had."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    line = next(line for line in status.read_text().splitlines() if "VmHWM" in line)
    return 1024 * int(line.split()[1])
