"""Least squares over shards on Ray: the same model as one pass, and what travels for it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import evergrow
from benchmarks.measure import Figure, report, show_table
from evergrow import RLSClassifier, Shards
from evergrow.foundation.engine import (
    Arrays,
    Engine,
    InProcess,
    Join,
    Shared,
    Task,
    engine_in_use,
    using,
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


class _Recorded:
    """An engine that notes what every part sends before it is joined."""

    keeps_results = False

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.n_workers = engine.n_workers
        self.is_remote = engine.is_remote
        self.threads_per_worker = engine.threads_per_worker
        self.updates = engine.updates
        self.change = engine.change
        self.let_go = engine.let_go
        self.share = engine.share
        self.remember = engine.remember
        self.on_every_node = engine.on_every_node
        self.n_bytes: list[int] = []

    def run(
        self, task: Task, parts: Sequence[Any], shared: Sequence[Shared] = (), **options: Any
    ) -> Iterator[tuple[int, Arrays]]:
        """Give results as they come."""
        for place, found in self._engine.run(task, parts, shared, **options):
            self.n_bytes.append(sum(array.nbytes for array in found.values()))
            yield place, found

    def fold(
        self,
        task: Task,
        parts: Sequence[Any],
        join: Join,
        shared: Sequence[Shared] = (),
        **options: Any,
    ) -> Arrays:
        """Join results here, in the order in which engines join them."""
        found = dict(self.run(task, parts, shared, **options))
        in_order = [found[place] for place in range(len(parts))]
        return InProcess().fold(_itself, in_order, join, what=options["what"])


def _itself(part: Arrays) -> Arrays:
    return part


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
    with using(None):
        evergrow.NCMClassifier().fit(X, labels)
        start = time.perf_counter()
        here.fit(X, labels)
        one_pass = time.perf_counter() - start
    start = time.perf_counter()
    there.fit(X, labels)
    on_ray = time.perf_counter() - start
    engine = engine_in_use()
    if engine is None:
        raise RuntimeError("there is no cluster")
    noting = _Recorded(engine)
    with using(noting):
        recorded.fit(X, labels)
    queries = X[:1000]
    differences = [np.abs(there.coef_ - here.coef_).max()]
    differences += [
        np.abs(model.predict_proba(queries) - here.predict_proba(queries)).max()
        for model in (there, recorded)
    ]
    return one_pass, on_ray, float(max(differences)), max(noting.n_bytes) / 1024
