"""Memory: size of the trees, peak while fitting, size of the files, cost of the import."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.data import Split, image_features
from benchmarks.measure import THREADS, Figure, report
from benchmarks.peers import N_TREES, ncm_forest

__all__ = ["run"]

# In a process of its own, whose peak nothing else has raised.
PEAK = """
import json, pathlib, resource, sys
import numpy as np
import psutil
from evergrow import NCMForestClassifier

def peak():
    status = pathlib.Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if "VmHWM" in line)
        return 1024 * int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

X, y = np.load(sys.argv[1]), np.load(sys.argv[2])
NCMForestClassifier(2, n_jobs=2).fit(X[:200], y[:200])
forget = pathlib.Path("/proc/self/clear_refs")
if forget.exists():
    forget.write_text("5")
before = psutil.Process().memory_info().rss
forest = NCMForestClassifier(int(sys.argv[3]), n_jobs=2, random_state=0).fit(X, y)
core = forest._fitted.forest
print(json.dumps({"beyond": peak() - before, "model": core.nbytes + core.samples.nbytes}))
"""

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
    start_up()


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
    report(
        "memory",
        split.name,
        [
            Figure("trees, MB", forest.nbytes / 1e6),
            Figure("training samples, MB", core.samples.nbytes / 1e6),
            Figure("centroids that are one sample, %", 100 * n_single / n_centroids),
            Figure(
                "trees / float32 centroids, %", 100 * forest.nbytes / float32_bytes, 35, "at most"
            ),
            Figure("model file, MB", sizes[0]),
            Figure("model file for inference only, MB", sizes[1]),
        ],
        bars=bars,
    )


def peak(split: Split, bars: bool) -> None:
    """Peak resident memory of a fit beyond what was there before it."""
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / f"{name}.npy") for name in ("X", "y")]
        for path, array in zip(paths, (split.X, split.y), strict=True):
            np.save(path, array)
        done = subprocess.run(
            [sys.executable, "-c", PEAK, *paths, str(N_TREES)],
            capture_output=True,
            text=True,
            check=True,
        )
    found = json.loads(done.stdout)
    report(
        "memory",
        split.name,
        [
            Figure("model (trees and samples), MB", found["model"] / 1e6),
            Figure("peak of fit beyond the data, MB", found["beyond"] / 1e6),
            Figure(
                "peak beyond the data / model", found["beyond"] / found["model"], 1.3, "at most"
            ),
        ],
        bars=bars,
    )


def start_up() -> None:
    """Time of ``import evergrow`` after scikit-learn."""
    times = [
        float(
            subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, check=True).stdout
        )
        for _ in range(3)
    ]
    report("memory", "import", [Figure("import evergrow, s", sorted(times)[1], 0.5, "at most")])
