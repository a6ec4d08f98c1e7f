"""GPUs against the processor, in one run: seconds of both.

``python -m benchmarks gpu`` needs the dependencies of Evergrow and torch. Without a GPU the same
code runs by torch on the processor, which tests it but says nothing about speed.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.data import Array, image_features
from benchmarks.measure import median_seconds, show_figures, show_table
from evergrow import (
    AxisForestClassifier,
    LinearForestClassifier,
    NCMForestClassifier,
    NCMMetric,
    RLSClassifier,
    SVMForestClassifier,
    write_shards,
)
from evergrow.estimators import ReLU
from evergrow.foundation.device import (
    TORCH_CPU,
    Device,
    Precision,
    device,
    import_torch,
    named_device,
)
from evergrow.foundation.rows import float_blocks
from evergrow.storage.device_rows import DeviceRows, Uploader


@dataclass(frozen=True)
class Bench:
    """The device to measure."""

    device: Device
    title: str

    @classmethod
    def here(cls) -> Bench:
        """The first GPU, or torch on the processor."""
        torch = import_torch()
        is_there = torch.cuda.is_available()
        found = named_device("cuda" if is_there else TORCH_CPU)
        assert found is not None
        name = torch.cuda.get_device_name(0) if is_there else "no GPU"
        return cls(found, f"{name}, torch {torch.__version__}, {os.cpu_count()} processors")

    @property
    def name(self) -> str:
        """The name that :func:`evergrow.device` takes."""
        return "cuda" if self.device.is_gpu else TORCH_CPU

    def rows(self, X: Array) -> DeviceRows:
        """Rows that lie on the device."""
        return DeviceRows.of(self.device.tensor(X))

    def seconds(
        self, work: Callable[[], Any], repeat: int = 3, precision: Precision = "double"
    ) -> float:
        """Median time on the device after one more run, which loads its libraries."""

        def finish() -> None:
            work()
            # Calls return while a GPU still computes.
            if self.device.is_gpu:
                import_torch().cuda.synchronize()

        with device(self.name, precision=precision):
            finish()
            return median_seconds(finish, repeat)


def _least_squares(width: int, **options: Any) -> RLSClassifier:
    return RLSClassifier(features=ReLU(width), random_state=0, **options)


def least_squares(quick: bool) -> None:
    """Fit least squares with random features on data of ImageNet's size that lie on the device."""
    torch, bench = import_torch(), Bench.here()
    n, d, n_classes = (4000, 32, 10) if quick else (1_281_167, 1280, 1000)
    y = np.random.default_rng(0).integers(0, n_classes, n)
    generator = torch.Generator(bench.device.name).manual_seed(0)
    rows = DeviceRows.of(torch.randn((n, d), device=bench.device.name, generator=generator))
    runs: list[tuple[int, Precision]]
    runs = [(4096, "double"), (4096, "tf32"), (16384, "double"), (16384, "tf32")]
    table = []
    for width, precision in runs:
        model = _least_squares(width // 32 if quick else width, regularization=1e3, recoding=0.0)
        repeat = 3 if width < 8192 else 1
        seconds = bench.seconds(partial(model.fit, rows, y), repeat, precision)
        table.append((width, precision, seconds))
    title = f"least squares, {n} x {d}, {n_classes} classes; {bench.title}"
    show_table(title, ["random features", "precision", "fit s"], table)


def shards(quick: bool) -> None:
    """Fit least squares from shards on disk, next to reading and copying them alone."""
    bench = Bench.here()
    n, d, n_classes = (4000, 32, 10) if quick else (1_281_167, 1280, 1000)
    y = np.random.default_rng(0).integers(0, n_classes, n)
    step, draw = 1 << 16, np.random.default_rng(1)
    blocks = (draw.standard_normal((min(step, n - k), d), np.float32) for k in range(0, n, step))
    with tempfile.TemporaryDirectory() as folder:
        stored: Any = write_shards(folder, blocks)

        def read_and_copy() -> None:
            uploader = Uploader(bench.device)
            for _, block in float_blocks(stored, (64 << 20) // (8 * d)):
                uploader.upload(block)

        model = _least_squares(128 if quick else 4096, regularization=1e3, recoding=0.0)
        figures = {
            "s to read and copy": bench.seconds(read_and_copy),
            "s to fit": bench.seconds(lambda: model.fit(stored, y), precision="tf32"),
        }
    show_figures(f"shards, {n} x {d}; {bench.title}", figures)


def selection(quick: bool) -> None:
    """Fit and select penalty and recoding with random features on image features."""
    bench, data = Bench.here(), image_features()
    data = data.head(2000, 1) if quick else data
    runs: list[tuple[int, Precision]] = [(4096, "double"), (16384, "double"), (16384, "tf32")]
    table = []
    for width, precision in runs:
        model = _least_squares(width // 64 if quick else width)
        seconds = bench.seconds(partial(model.fit, data.X, data.y), 1, precision)
        table.append((width, precision, seconds))
    title = f"fit and select, {data.name}; {bench.title}"
    show_table(title, ["random features", "precision", "s"], table)


def metric(quick: bool) -> None:
    """Learn a metric, and project."""
    bench = Bench.here()
    n, d, n_classes, epochs = (3000, 64, 20, 5) if quick else (50_000, 1280, 100, 10)
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n)
    centres = rng.standard_normal((n_classes, d), dtype=np.float32)
    X = rng.standard_normal((n, d), dtype=np.float32) + 0.1 * centres[y]
    there, table = bench.rows(X), []
    learner = NCMMetric(max_iter=epochs, random_state=0)
    works: dict[str, Callable[[Any], Any]] = {
        f"learn, {epochs} epochs at most": lambda rows: learner.fit(rows, y),
        "project": learner.transform,
    }
    for name, work in works.items():
        own = median_seconds(partial(work, X), 1)
        sent, lying = (bench.seconds(partial(work, rows)) for rows in (X, there))
        table.append((name, own, sent, lying))
    columns = ["", "processor, s", "device, s", "device, rows there, s"]
    show_table(f"metric, {n} x {d}, {n_classes} classes; {bench.title}", columns, table)


def forests(quick: bool) -> None:
    """Rows per second of every kind of forest, rows in memory and on the device."""
    bench, split = Bench.here(), image_features()
    split = split.head(5000, 1000) if quick else split
    table = []
    for kind in (
        NCMForestClassifier,
        SVMForestClassifier,
        LinearForestClassifier,
        AxisForestClassifier,
    ):
        is_ours = kind is NCMForestClassifier
        n = len(split.X) if is_ours else min(10000, len(split.X))
        n_trees = 4 if quick else 64 if is_ours else 16
        forest = kind(n_trees, random_state=0, n_jobs=-1).fit(split.X[:n], split.y[:n])
        rows = split.X if is_ours and not quick else split.X_test
        rates = [len(rows) / median_seconds(partial(forest.predict, rows), 5)]
        tensor = bench.device.tensor(rows)
        rates += [len(rows) / bench.seconds(partial(forest.predict, X), 5) for X in (rows, tensor)]
        table.append((kind.__name__, n_trees, *rates))
    columns = ["", "trees", "processors, rows/s", "device, rows/s", "device, rows there, rows/s"]
    show_table(f"forests: {split.name}; {bench.title}", columns, table)
