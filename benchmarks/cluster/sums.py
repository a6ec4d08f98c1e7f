"""Least squares over shards on Ray: the same model as one pass, and what travels for it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

import evergrow
from benchmarks.measure import Figure, report, show_table
from evergrow import RLSClassifier, Shards
from evergrow.foundation.engine import (
    Arrays,
    Capacity,
    Engine,
    Job,
    VersionChange,
    current_engine,
    use_engine,
)

_SHARDS = 64
_CLASSES = 100
# Rows per shard, the second 8 times the first, and features.
_ROWS, _FEATURES = (500, 4000), 512
_QUICK_ROWS, _QUICK_FEATURES = (200, 1600), 64
_DIFFERENCE = 1e-9
# Products of all pairs of features and sums of all classes, as whole matrices: what travels is
# about half of the first.
_BYTES = 8


class _Recorded(Engine):
    """An engine that records what every part returns before it is joined."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.n_bytes: list[int] = []

    @property
    def capacity(self) -> Capacity:
        return self._engine.capacity

    def run(self, job: Job) -> Iterator[tuple[int, Arrays]]:
        for index, found in self._engine.run(job):
            self.n_bytes.append(sum(array.nbytes for array in found.values()))
            yield index, found

    def update(self, job: Job, versions: VersionChange) -> Iterator[tuple[int, Arrays]]:
        return self._engine.update(job, versions)

    def release(self, name: str) -> None:
        self._engine.release(name)

    def share(self, value: Any) -> Any:
        return self._engine.share(value)


def run(quick: bool) -> None:
    """Fit by one pass and on two workers of Ray; compare, and count what travels."""
    rows, features = (_QUICK_ROWS, _QUICK_FEATURES) if quick else (_ROWS, _FEATURES)
    table, figures, sent = [], [], []
    with evergrow.cluster("local", n_workers=2):
        for n in rows:
            with tempfile.TemporaryDirectory() as folder:
                found = _compared(_shards(folder, n, features))
            table.append((f"{_SHARDS} shards of {n} x {features}", *found))
            what = f"{n} rows per shard: largest difference from one pass"
            figures.append(Figure(what, found[2], _DIFFERENCE, "at most"))
            sent.append(found[3])
    most = _BYTES * ((features + 1) ** 2 + _CLASSES * (features + 1)) / 1024
    figures += [
        Figure("KiB per shard", sent[-1], most, "at most"),
        Figure("KiB per shard, 8 times the rows over once", sent[-1] / sent[0], 1.01, "at most"),
    ]
    columns = ["", "one pass s", "Ray s", "difference", "KiB per shard"]
    show_table("least squares over shards", columns, table)
    report("cluster", "least squares over shards", figures, bars=not quick)


def _shards(folder: str, n_rows: int, n_features: int) -> Shards:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(_CLASSES, n_features)).astype(np.float32)

    def batches() -> Iterator[tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]]:
        for _ in range(_SHARDS):
            # Every class in every shard: there is nothing to leave out.
            y = np.arange(n_rows) % _CLASSES
            noise = rng.normal(size=(n_rows, n_features)).astype(np.float32)
            yield centres[y] + 3 * noise, y

    return evergrow.write_shards(folder, batches(), rows_per_shard=n_rows)


def _compared(shards: Shards) -> tuple[float, float, float, float]:
    """Seconds of one pass and on the engine in use, the largest difference, KiB per shard."""
    here, there, recorded = (RLSClassifier(regularization=1.0, recoding=0.0) for _ in range(3))
    X, labels = shards, shards.labels
    # Workers begin, and look at the files, before anything is timed.
    evergrow.NCMClassifier().fit(X, labels)
    with use_engine(None):
        evergrow.NCMClassifier().fit(X, labels)
        start = time.perf_counter()
        here.fit(X, labels)
        one_pass = time.perf_counter() - start
    start = time.perf_counter()
    there.fit(X, labels)
    on_ray = time.perf_counter() - start
    engine = current_engine()
    if engine is None:
        raise RuntimeError("there is no cluster")
    noting = _Recorded(engine)
    with use_engine(noting):
        recorded.fit(X, labels)
    queries = X[:1000]
    differences = [np.abs(there.coef_ - here.coef_).max()]
    differences += [
        np.abs(model.predict_proba(queries) - here.predict_proba(queries)).max()
        for model in (there, recorded)
    ]
    return one_pass, on_ray, float(max(differences)), max(noting.n_bytes) / 1024
