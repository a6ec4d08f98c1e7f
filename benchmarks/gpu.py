"""GPUs against the processor, in one run: seconds of both, and how much their results differ.

``python -m benchmarks gpu [--quick] [--only PART ...]``, or ``python -m benchmarks.gpu``, which
imports no other benchmark and needs only the dependencies of Evergrow and torch. Without a GPU the
same code runs by torch on the processor, which tests it but says nothing about speed.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import click
import numpy as np
import numpy.typing as npt

from benchmarks.data import image_features
from benchmarks.measure import Figure, median_seconds, report, show_table
from evergrow.foundation.device import TORCH_CPU, Precision, find_device, import_torch, to_host
from evergrow.storage.device_rows import DeviceRows

Array = npt.NDArray[Any]
COLUMNS = ["", "processor, s", "device, s", "device, rows there, s", "times as fast"]


@dataclass(frozen=True)
class Bench:
    """The device to measure."""

    name: str
    title: str

    @classmethod
    def here(cls) -> Bench:
        """The first GPU, or torch on the processor."""
        torch = import_torch()
        if not torch.cuda.is_available():
            return cls(TORCH_CPU, f"torch {torch.__version__} on the processor, no GPU")
        title = f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}"
        return cls("cuda", f"{title}, {os.cpu_count()} processors")

    def rows(self, X: Array) -> DeviceRows:
        """Rows that lie on the device."""
        device = find_device(self.name)
        assert device is not None
        return DeviceRows.of(device.tensor(X))

    def seconds(self, work: Callable[[], Any], repeat: int = 3) -> float:
        """Median time after one more run, which loads the libraries of the device."""

        def finish() -> None:
            work()
            # Calls return while a GPU still computes.
            if self.name != TORCH_CPU:
                import_torch().cuda.synchronize()

        finish()
        return median_seconds(finish, repeat)

    def both(self, work: Callable[[Any], Any], X: Array, there: DeviceRows) -> tuple[float, float]:
        """Seconds for rows in the memory of the processor, and for rows on the device."""
        return self.seconds(lambda: work(X)), self.seconds(lambda: work(there))


@dataclass(frozen=True)
class Times:
    """Seconds of one piece of work: on the processor, on the device, and with rows there."""

    what: str
    processor: float
    device: float
    there: float

    @property
    def row(self) -> tuple[object, ...]:
        """The row of the table."""
        return (self.what, self.processor, self.device, self.there, self.processor / self.device)


def _report(name: str, data: str, bench: Bench, times: list[Times], figures: list[Figure]) -> None:
    show_table(f"{name}: {data}; {bench.title}", COLUMNS, [one.row for one in times])
    speed = [Figure(f"{one.what}: processor / device", one.processor / one.device) for one in times]
    seconds = [
        Figure(f"{one.what}: s on the {where}", value)
        for one in times
        for where, value in (("processor", one.processor), ("device", one.device))
    ]
    report("gpu", f"{name}, {data}", [*figures, *speed, *seconds])


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    found = work()
    return found, time.perf_counter() - start


def _classes(n: int, d: int, n_classes: int, *, spread: float) -> tuple[Array, Array]:
    """Overlapping Gaussian classes in single precision."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n)
    X = rng.standard_normal((n, d), dtype=np.float32)
    X += spread * rng.standard_normal((n_classes, d), dtype=np.float32)[y]
    return X, y


def kmeans(quick: bool) -> None:
    """Learn and code visual words, flat and hierarchical."""
    from evergrow.vision import HierarchicalKMeans, KMeansCodebook

    bench = Bench.here()
    n, d, n_words = (5000, 32, 100) if quick else (200_000, 128, 1000)
    X, _ = _classes(n, d, 5 * n_words, spread=1.0)
    there, times, figures = bench.rows(X), [], []
    makers: dict[str, Callable[..., Any]] = {
        "k-means": lambda **device: KMeansCodebook(n_words, random_state=0, **device),
        "hierarchical": lambda **device: HierarchicalKMeans(n_words, random_state=0, **device),
    }
    for label, make in makers.items():
        plain, seconds = _timed(partial(make().fit, X))
        placed = make(device=bench.name).fit(X)
        learning = bench.both(make(device=bench.name).fit, X, there)
        times.append(Times(f"{label}: learn", seconds, *learning))
        words, seconds = plain.transform(X), median_seconds(partial(plain.transform, X))
        same = plain.set_params(device=bench.name)
        times.append(Times(f"{label}: code", seconds, *bench.both(same.transform, X, there)))
        differ = float((to_host(same.transform(there)) != words).mean())
        ratio = _distortion(X, placed) / _distortion(X, same)
        figures += [
            Figure(f"{label}: mean squared distance, device / processor", ratio, 1.02, "at most"),
            Figure(f"{label}: share of other words, same centres", differ, 1e-4, "at most"),
        ]
    _report("k-means", f"{n} x {d}, {n_words} words", bench, times, figures)


def _distortion(X: Array, codebook: Any) -> float:
    """Mean squared distance of the rows of a word from their mean."""
    words = np.asarray(codebook.transform(X))[:, 0]
    order = np.argsort(words, kind="stable")
    starts = np.flatnonzero(np.diff(words[order], prepend=-1))
    sums = np.add.reduceat(X[order].astype(np.float64), starts)
    counts = np.diff(np.append(starts, len(X)))
    total = float(np.square(X, dtype=np.float64).sum() - (np.square(sums).sum(1) / counts).sum())
    return total / len(X)


def metric(quick: bool) -> None:
    """Learn a metric, and project."""
    from evergrow import NCMMetric

    bench = Bench.here()
    n, d, n_classes, epochs = (3000, 64, 20, 5) if quick else (50_000, 1280, 100, 10)
    X, y = _classes(n + n // 5, d, n_classes, spread=0.35 if quick else 0.09)
    X, X_test, y, y_test = X[:n], X[n:], y[:n], y[n:]
    there = bench.rows(X)
    options: dict[str, Any] = {"max_iter": epochs, "random_state": 0}
    plain, seconds = _timed(lambda: NCMMetric(**options).fit(X, y))
    placed = NCMMetric(**options, device=bench.name).fit(X, y)
    learning = bench.both(
        lambda rows: NCMMetric(**options, device=bench.name).fit(rows, y), X, there
    )
    times = [Times(f"learn, {epochs} epochs at most", seconds, *learning)]
    expected = placed.set_params(device="cpu").transform(X)
    seconds = median_seconds(lambda: placed.transform(X))
    placed.set_params(device=bench.name)
    times.append(Times("project", seconds, *bench.both(placed.transform, X, there)))
    found = to_host(placed.transform(there))
    error = float(np.abs(found - expected).max() / np.abs(expected).max())
    right = [_accuracy(one, X, y, X_test, y_test) for one in (placed, plain)]
    gain = placed.log_likelihoods_.max() - plain.log_likelihoods_.max()
    figures = [
        Figure("percent right on the device - processor", 100 * (right[0] - right[1]), -1.0),
        Figure("percent right on the processor", 100 * right[1]),
        Figure("log-likelihood on the device - processor", float(gain), -0.02),
        Figure("project: largest difference, relative", error, 1e-9, "at most"),
    ]
    _report("metric", f"{n} x {d}, {n_classes} classes", bench, times, figures)


def _accuracy(metric: Any, X: Array, y: Array, X_test: Array, y_test: Array) -> float:
    W = metric.components_
    means = np.stack([X[y == c].mean(axis=0) for c in np.unique(y)]) @ W.T
    scores = (X_test @ W.T) @ means.T - np.square(means).sum(axis=1) / 2
    return float((scores.argmax(axis=1) == y_test).mean())


def guesses(quick: bool) -> None:
    """Guess the fine classes of half of all samples."""
    from evergrow.estimators import NearestGuesser, RidgeGuesser, guess_fine

    bench = Bench.here()
    n, d, n_coarse = (2000, 64, 5) if quick else (50_000, 1280, 20)
    X, fine = _classes(n, d, 5 * n_coarse, spread=0.15 if quick else 0.1)
    parents = np.arange(5 * n_coarse) // 5
    coarse, known = parents[fine], np.arange(n) % 2 == 0
    labels: dict[str, Any] = {
        "coarse": coarse,
        "fine": np.where(known, fine, -1),
        "parents": parents,
    }
    there, times, figures = bench.rows(X), [], []
    for label, kind in {"ridge": RidgeGuesser, "nearest": NearestGuesser}.items():
        guess = partial(guess_fine, **labels, random_state=0)
        plain, seconds = _timed(partial(guess, X, guesser=kind(), n_jobs=-1))
        placed = partial(guess, guesser=kind(device=bench.name))
        spent = bench.both(placed, X, there)
        times.append(Times(f"{label}: guess and check", seconds, *spent))
        found = placed(there)
        differ = float((found.fine != plain.fine).mean())
        right = 100 * float((plain.fine == fine)[~known].mean())
        figures += [
            Figure(f"{label}: share of other guesses", differ, 1e-4, "at most"),
            Figure(f"{label}: percent right on the processor", right),
            Figure(
                f"{label}: difference of the measured accuracies",
                abs(found.report.rate - plain.report.rate),
                1e-3,
                "at most",
            ),
        ]
    _report("guesses", f"{n} x {d}, {n_coarse} coarse classes", bench, times, figures)


def embedding(quick: bool) -> None:
    """Embed images that are in memory with a small residual network."""
    from evergrow.vision import Embedder, Preprocessing

    torch, bench = import_torch(), Bench.here()
    n, size = (8, 64) if quick else (1024, 224)
    images = [*np.random.default_rng(0).integers(0, 256, (n, size, size, 3), dtype=np.uint8)]
    torch.manual_seed(0)
    module = _network(torch, 16 if quick else 64)
    options: dict[str, Any] = {"preprocessing": Preprocessing(size=size), "batch_size": 64}
    few = images[: max(4, n // 16)]
    expected, seconds = _timed(lambda: Embedder(module, **options, device="cpu").transform(few))
    placed = Embedder(module, **options, device=bench.name, n_jobs=-1)
    spent = bench.seconds(lambda: placed.transform(images))
    found = placed.transform(few)
    error = float(np.abs(found - expected).max() / np.abs(expected).max())
    figures = [
        Figure("images per second on the processor", len(few) / seconds),
        Figure("images per second on the device", n / spent),
        Figure("largest difference, relative", error, 1e-2, "at most"),
    ]
    report("gpu", f"embedding, {n} images of {size} x {size}; {bench.title}", figures)


def _network(torch: Any, width: int) -> Any:
    layers = torch.nn

    class Block(layers.Module):  # type: ignore[misc, name-defined]
        def __init__(self, n_channels: int) -> None:
            super().__init__()
            self.steps = layers.Sequential(
                layers.Conv2d(n_channels, n_channels, 3, padding=1),
                layers.BatchNorm2d(n_channels),
                layers.ReLU(),
                layers.Conv2d(n_channels, n_channels, 3, padding=1),
            )

        def forward(self, maps: Any) -> Any:
            return torch.relu(maps + self.steps(maps))

    stages = [layers.Conv2d(3, width, 7, stride=4, padding=3)]
    for factor in (1, 2, 4):
        stages += [Block(factor * width), Block(factor * width)]
        stages += [layers.Conv2d(factor * width, 2 * factor * width, 3, stride=2, padding=1)]
    return layers.Sequential(*stages, layers.AdaptiveAvgPool2d(1))


def least_squares(quick: bool) -> None:
    """Fit least squares with random features on data of ImageNet's size that lie on the device."""
    from evergrow import RLSClassifier

    torch, bench = import_torch(), Bench.here()
    n, d, n_classes = (4000, 32, 10) if quick else (1_281_167, 1280, 1000)
    device = find_device(bench.name)
    assert device is not None
    y = np.random.default_rng(0).integers(0, n_classes, n)
    generator = torch.Generator(device.name).manual_seed(0)
    rows = torch.randn((n, d), device=device.name, generator=generator)
    centres = torch.randn((n_classes, d), device=device.name, generator=generator)
    rows += 0.1 * centres[device.tensor(y)]
    there, figures = DeviceRows.of(rows), []
    bars: dict[tuple[int, Precision], float]
    bars = {(4096, "double"): 1.5, (4096, "tf32"): 0.35, (16384, "tf32"): 4.0}
    runs: list[tuple[int, Precision]] = [*bars, (16384, "double")]
    for width, precision in runs:
        model = RLSClassifier(
            n_random_features=width // 32 if quick else width,
            regularization=1e3,
            recoding=0.0,
            precision=precision,
            device=bench.name,
            random_state=0,
        )
        seconds = bench.seconds(partial(model.fit, there, y), 3 if width < 8192 else 1)
        bar = bars.get((width, precision))
        name = f"{width} random features, {precision}"
        figures.append(Figure(f"{name}: s to fit", seconds, bar, "at most"))
        few = DeviceRows.of(rows[: n // 10])
        solving = _timed(lambda model=model, few=few: model.score(few, y[: n // 10]))  # type: ignore[misc]
        figures.append(Figure(f"{name}: s to solve and predict a tenth", solving[1]))
    report(
        "gpu",
        f"least squares, {n} x {d}, {n_classes} classes; {bench.title}",
        figures,
        bars=not quick,
    )


def shards(quick: bool) -> None:
    """Fit least squares from shards on disk, next to reading and copying them alone."""
    from evergrow import RLSClassifier, write_shards
    from evergrow.foundation.rows import float_blocks
    from evergrow.storage.device_rows import Uploader

    bench = Bench.here()
    device = find_device(bench.name)
    assert device is not None
    n, d, n_classes = (4000, 32, 10) if quick else (1_281_167, 1280, 1000)
    y = np.random.default_rng(0).integers(0, n_classes, n)
    step, draw = 1 << 16, np.random.default_rng(1)
    blocks = (draw.standard_normal((min(step, n - k), d), np.float32) for k in range(0, n, step))
    with tempfile.TemporaryDirectory() as folder:
        stored: Any = write_shards(folder, blocks)

        def read_and_copy() -> None:
            uploader = Uploader(device)
            for _, block in float_blocks(stored, (64 << 20) // (8 * d)):
                uploader.upload(block)

        model = RLSClassifier(
            n_random_features=128 if quick else 4096,
            regularization=1e3,
            recoding=0.0,
            precision="tf32",
            device=bench.name,
            random_state=0,
        )
        alone, fitting = bench.seconds(read_and_copy), bench.seconds(lambda: model.fit(stored, y))
    figures = [
        Figure("reading and copying alone / fit", alone / fitting, 0.8),
        Figure("s to read and copy", alone),
        Figure("s to fit", fitting),
    ]
    report("gpu", f"shards, {n} x {d}; {bench.title}", figures, bars=not quick)


def selection(quick: bool) -> None:
    """Fit and select parameters with 16384 random features on CIFAR-100; the accuracy."""
    from evergrow import RLSClassifier

    bench, data = Bench.here(), image_features()
    figures = []
    runs: list[tuple[int, Precision]] = [(4096, "double"), (16384, "double"), (16384, "tf32")]
    for width, precision in runs:
        model = RLSClassifier(
            n_random_features=width // 64 if quick else width,
            precision=precision,
            device=bench.name,
            random_state=0,
        )
        seconds = bench.seconds(partial(model.fit, data.X, data.y), 1)
        right = 100 * model.score(data.X_test, data.y_test)
        wide = width > 8192
        name = f"{width} random features, {precision}"
        figures += [
            Figure(f"{name}: s to fit and select", seconds, 5.0 if wide else None, "at most"),
            Figure(f"{name}: percent right", right, 73.0 if wide else None),
        ]
    report("gpu", f"selection, {data.name}; {bench.title}", figures, bars=not quick)


PARTS: Mapping[str, Callable[[bool], None]] = {
    "least-squares": least_squares,
    "shards": shards,
    "selection": selection,
    "kmeans": kmeans,
    "metric": metric,
    "guesses": guesses,
    "embedding": embedding,
}


@click.command()
@click.argument("parts", nargs=-1, type=click.Choice([*PARTS]))
@click.option("--quick", is_flag=True, help="Small data, under a minute.")
def main(parts: tuple[str, ...], quick: bool) -> None:
    """Measure these parts, by default all."""
    for part in parts or PARTS:
        PARTS[part](quick)


if __name__ == "__main__":
    main()
