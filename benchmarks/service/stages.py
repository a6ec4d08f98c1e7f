"""What the stages of the network give a workspace, and what they cost."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.codebook.pictures import as_jpeg, pictures
from benchmarks.data import Array
from benchmarks.measure import THREADS, Figure, report, show_table
from benchmarks.service.teaching import N_CLASSES
from evergrow.foundation.threads import one_blas_thread
from evergrow.vision import Embedder
from evergrow.workspace import NewExample, Picture, Workspace
from evergrow.workspace.store.creation import folder_size
from tests.harness.pictures import photographs
from tests.harness.workspaces import fill_workspace, new_workspace

# Only the output of the network, and the default.
_HEAD, _STAGES = "efficientnet-lite0", "auto"
_PER_CLASS = (5, 20)
_DRAWS = 5


@dataclass(frozen=True)
class _Taught:
    """Accuracy on other pictures, processor seconds to assess, bytes on disk, blocks in use."""

    accuracy: float
    seconds: float
    n_bytes: int
    blocks: str


def run(quick: bool) -> None:
    """Teach some photographs of each class and predict all others; then time the teaching."""
    data = pictures(quick)
    files, classes = [as_jpeg(image) for image in data.images], data.classes
    sizes = _PER_CLASS[:1] if quick else _PER_CLASS
    rows, accuracies = [], {}
    head, staged = (Embedder(stages=s, n_jobs=THREADS).transform(files) for s in ((), (5, 6, 7)))
    # Blocks are scaled to length one, which has an effect of its own.
    scaled = staged[:, : head.shape[1]]
    variants = {"head": (_HEAD, head), "scaled": (None, scaled), "stages": (_STAGES, staged)}
    for name, (features, X) in variants.items():
        for n_each in sizes:
            found = [_measure(features, X, classes, files, n_each, k) for k in range(_DRAWS)]
            right = np.array([one.accuracy for one in found])
            accuracies[name, n_each] = right
            rows.append(
                (
                    name,
                    n_each,
                    f"{right.mean():.1f} ± {right.std(ddof=1):.1f}",
                    float(np.median([one.seconds for one in found])),
                    float(np.mean([one.n_bytes for one in found])) / 1e6,
                    "; ".join(sorted({one.blocks for one in found})),
                )
            )
    columns = ["features", "per class", "accuracy %", "assess, s", "size, MB", "blocks in use"]
    show_table(f"service: stages, {data.name}, {_DRAWS} draws", columns, rows)
    teaching = {name: _teaching(name, quick) for name in (_HEAD, _STAGES)}
    figures = [
        *(
            Figure(f"accuracy %, {name}, {n}", float(x.mean()))
            for (name, n), x in accuracies.items()
        ),
        *(Figure(f"640 x 480 JPEG, {name}, ms", ms) for name, (ms, _) in teaching.items()),
        *(Figure(f"processor time, {name}, ms", ms) for name, (_, ms) in teaching.items()),
    ]
    report("service", f"stages, {data.name}", figures, bars=not quick)


def _measure(
    features: str | None, X: Array, classes: Array, files: Sequence[bytes], n_each: int, draw: int
) -> _Taught:
    rng = np.random.default_rng(draw)
    taught = np.concatenate(
        [rng.permutation(np.flatnonzero(classes == name))[:n_each] for name in np.unique(classes)]
    )
    others = np.setdiff1d(np.arange(len(classes)), taught)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "workspace")
        with Workspace.create(folder, features=features) as workspace:
            workspace.teach(
                [
                    NewExample(
                        X[i], str(classes[i]), picture=Picture(files[i], "image/jpeg", 300, 200)
                    )
                    for i in rng.permutation(taught)
                ]
            )
            begun = time.process_time()
            workspace.assess()
            seconds = time.process_time() - begun
            workspace.save_snapshot()
            answers = workspace.predict(X[others])
            blocks = [block.name for block in workspace.status().blocks if block.used]
        size = folder_size(folder)
    right = [a.top[0][0] == str(name) for a, name in zip(answers, classes[others], strict=True)]
    return _Taught(100 * float(np.mean(right)), seconds, size, "+".join(blocks))


def _teaching(features: str, quick: bool) -> tuple[float, float]:
    """Median milliseconds to embed and teach a JPEG, by the clock and of the processor.

    1000 vectors are known. In this process and one thread: what HTTP adds does not depend on the
    features.
    """
    shown = photographs(33, first=1000)[: 13 if quick else None]
    times = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "workspace")
        new_workspace(folder, features=features)
        fill_workspace(folder, 1000, N_CLASSES)
        with Workspace.open(folder) as workspace, one_blas_thread():
            embedder = workspace.embedder
            assert embedder is not None
            embedder.set_params(cache=False, n_jobs=1)
            for number, content in enumerate(shown):
                begun = np.array([time.perf_counter(), time.process_time()])
                row = embedder.transform([content])[0]
                picture = Picture(content, "image/jpeg", 640, 480)
                workspace.teach([NewExample(row, f"class {number}", picture=picture)])
                times.append([time.perf_counter(), time.process_time()] - begun)
    # The first ones load the network and solve for the weights.
    wall, processor = 1e3 * np.median(times[3:], axis=0)
    return float(wall), float(processor)
