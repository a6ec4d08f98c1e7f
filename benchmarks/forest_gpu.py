"""Forests on a GPU: rows per second against all processors, equal answers, and where time goes.

``python -m benchmarks predict --only gpu``, or ``python -m benchmarks.forest_gpu`` where only what
Evergrow itself needs is installed.
"""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.data import Split, image_features
from benchmarks.measure import Figure, median_seconds, report, show_table
from evergrow import (
    AxisForestClassifier,
    LinearForestClassifier,
    NCMForestClassifier,
    SVMForestClassifier,
)
from evergrow.estimators.forest.device.descent import GroupArrays, GroupDescent
from evergrow.estimators.forest.device.device_forest import DeviceForest
from evergrow.estimators.forest.device.flat_forest import GroupShape, Nodes
from evergrow.foundation.device import Device, find_device, import_torch, to_host

# "cuda", or "torch-cpu" to try the benchmark itself.
DEVICE = os.environ.get("EVERGROW_BENCH_DEVICE", "cuda")
N_TREES = 64


def run(quick: bool) -> None:
    """Measure a forest of class means in all ways, then the other kinds of forests."""
    device = find_device(DEVICE)
    assert device is not None
    _describe(device)
    split = image_features()
    if quick:
        split = split.head(5000, 1000)
    forest = NCMForestClassifier(4 if quick else N_TREES, random_state=0, n_jobs=-1)
    start = time.perf_counter()
    forest.fit(split.X, split.y)
    print(f"grown in {time.perf_counter() - start:.1f} s", flush=True)
    rows = split.X_test if quick else np.concatenate([split.X_test, split.X])
    _against_processors(forest, split, rows, device)
    _guard(_stages, forest, rows, device)
    _guard(_kernels, forest, rows, device)
    for kind in (SVMForestClassifier, LinearForestClassifier, AxisForestClassifier):
        _guard(_other_kind, kind, split, device, quick)
    # Last, because each of them is compiled.
    _guard(_variants, forest, rows, device, quick)


def _describe(device: Device) -> None:
    torch = import_torch()
    name = torch.cuda.get_device_name(device.name) if device.is_gpu else "the processor"
    try:
        import triton

        version = triton.__version__
    except ImportError:
        version = "not installed"
    print(f"{name}, torch {torch.__version__}, triton {version}, {os.cpu_count()} processors")


def _guard(part: Callable[..., None], *arguments: Any) -> None:
    """Run a part; one that fails says why, and the others still run."""
    try:
        part(*arguments)
    except Exception:  # noqa: BLE001 - the rest of a run on a rare machine must not be lost
        print(f"{part.__name__} failed")
        traceback.print_exc(limit=-6)


def _seconds(device: Device, work: Callable[[], Any], repeat: int = 5) -> float:
    """Median time, all work of the device included, after one run that compiles kernels."""
    torch = import_torch()

    def finished() -> None:
        work()
        if device.is_gpu:
            torch.cuda.synchronize()

    finished()
    return median_seconds(finished, repeat)


def _against_processors(
    forest: NCMForestClassifier, split: Split, rows: Any, device: Device
) -> None:
    """The public methods: rows in arrays and in the memory of the device."""
    torch = import_torch()
    tensor = torch.as_tensor(rows, device=device.name)
    inputs = {"array": rows, "tensor": tensor} if device.is_gpu else {"array": rows}
    forest.set_params(device="cpu")
    labels, proba = forest.predict(rows), forest.predict_proba(split.X_test)
    leaves = forest.apply(split.X_test)
    rate = len(rows) / median_seconds(lambda: forest.predict(rows), 5)
    table: list[tuple[object, ...]] = [("all processors, predict", rate, 1.0, "", "")]
    proba_rate = len(rows) / median_seconds(lambda: forest.predict_proba(rows), 3)
    table.append(("all processors, predict_proba", proba_rate, 1.0, "", ""))
    forest.set_params(device=DEVICE)
    start = time.perf_counter()
    forest.predict(split.X_test[:256])
    print(f"first prediction on the device: {time.perf_counter() - start:.1f} s", flush=True)
    same_leaves = float((forest.apply(split.X_test) == leaves).mean())
    difference = np.abs(forest.predict_proba(split.X_test) - proba)
    best = 0.0
    for name, X in inputs.items():
        own = len(rows) / _seconds(device, lambda: forest.predict(X))  # noqa: B023
        found = forest.predict(X)
        same = float((to_host(found) == labels).mean())
        table.append((f"device, predict, {name}", own, own / rate, same, same_leaves))
        best = max(best, own / rate)
        own = len(rows) / _seconds(device, lambda: forest.predict_proba(X), 3)  # noqa: B023
        table.append((f"device, predict_proba, {name}", own, own / proba_rate, "", ""))
    columns = ["", "rows/s", "times processors", "equal answers", "equal leaves"]
    show_table(f"{len(rows)} rows, {forest.n_estimators} trees: {split.name}", columns, table)
    print(
        f"probabilities: {100 * float((difference.max(axis=1) < 1e-6).mean()):.3f} % of the rows "
        f"within 1e-6; largest difference {difference.max():.2e}"
    )
    figures = [
        Figure("device / all processors, rows per second", best, 20),
        Figure("equal answers %", 100 * same, 99.9),
    ]
    report("predict gpu", split.name, figures)


def _copy(forest: NCMForestClassifier, device: Device) -> DeviceForest:
    fitted = forest._fitted
    return fitted._on_devices.of(device, fitted.forest, fitted.standardization)


def _transformed(copy: DeviceForest, rows: Any) -> Any:
    """Rows as the descent of a forest takes them."""
    return copy.standardizer.apply(copy.device.tensor(rows), copy.descent.width)


def _descents(forest: NCMForestClassifier, device: Device) -> Iterator[tuple[str, Any]]:
    nodes = Nodes.of(forest._fitted.forest)
    for columns, levels in ((32, 3), (64, 4), (128, 4)):
        arrays = GroupArrays(device, nodes, GroupShape(columns, levels))
        name = f"{columns} columns, {levels} levels"
        if device.is_gpu:
            from evergrow.estimators.forest.device.kernels import Settings, TritonDescent

            for features, stages in ((32, 3), (64, 2), (64, 3)) if columns < 128 else ((32, 3),):
                settings = Settings(features, stages)
                yield (
                    f"Triton, {name}, {features} features, {stages} stages",
                    TritonDescent(device, nodes, arrays, settings),
                )
        yield f"plain torch, {name}", GroupDescent(device, nodes, arrays)


def _variants(forest: NCMForestClassifier, rows: Any, device: Device, quick: bool) -> None:
    """The descent alone, in all its ways, for blocks of several sizes."""
    torch = import_torch()
    copy = _copy(forest, device)
    truth = copy.descent.leaves(_transformed(copy, rows[:4096]))
    processors = forest.set_params(device="cpu").apply(rows[:4096])
    table: list[tuple[object, ...]] = []
    for name, descent in _descents(forest, device):
        for size in (1024,) if quick else (1024, 8192, 16384, 32768):
            # Plain torch is slow, and other settings are compared at one size.
            if size != 16384 and "32 features, 3 stages" not in name and not quick:
                continue
            try:
                block = copy.standardizer.apply(
                    torch.as_tensor(rows[:size], device=device.name), descent.width
                )
                seconds = _seconds(device, lambda: descent.leaves(block))  # noqa: B023
                found = descent.leaves(block)
                n = min(len(found), len(truth))
                own = copy._node[found[:n].long()].cpu().numpy()
                same = float((own == processors[:n]).mean())
                table.append((name, size, 1e3 * seconds, size / seconds, same))
                # At once: a run that is cut short has said what it found.
                print(*table[-1], sep="; ", flush=True)
            except Exception as error:  # noqa: BLE001 - as above
                table.append((name, size, "failed", type(error).__name__, str(error)[:40]))
                traceback.print_exc(limit=-3)
    show_table(
        "descent of one block", ["", "rows", "ms", "rows/s", "leaves as by processors"], table
    )


def _stages(forest: NCMForestClassifier, rows: Any, device: Device) -> None:
    """Time of each stage of a block."""
    torch = import_torch()
    copy = _copy(forest, device)
    n = min(len(rows), copy.rows_at_once)
    raw = rows[:n]
    there = torch.as_tensor(raw, device=device.name)
    block = _transformed(copy, there)
    leaves = copy.descent.leaves(block)
    fitted = forest._fitted
    ballot = fitted.ballot(forest._checked_balance(), 1)
    votes = copy.votes(ballot.trees, None, fitted.history.ages.votes)
    proba = votes.probabilities(leaves)
    stages: dict[str, Callable[[], Any]] = {
        "copy rows to the device": lambda: torch.as_tensor(raw, device=device.name),
        "transform": lambda: _transformed(copy, there),
        "descent": lambda: copy.descent.leaves(block),
        "votes": lambda: votes.probabilities(leaves),
        "best class": lambda: proba.argmax(1),
        "copy probabilities back": proba.cpu,
    }
    table = []
    for name, work in stages.items():
        seconds = _seconds(device, work, 9)
        table.append((name, 1e3 * seconds, n / seconds))
    show_table(f"stages of a block of {n} rows", ["", "ms", "rows/s"], table)


def _kernels(forest: NCMForestClassifier, rows: Any, device: Device) -> None:
    """Time of every kernel of a block, and of each step."""
    torch = import_torch()
    if not device.is_gpu:
        return
    from torch.profiler import ProfilerActivity, profile

    copy = _copy(forest, device)
    block = torch.as_tensor(rows[: copy.rows_at_once], device=device.name)
    tensors = (_transformed(copy, block) for _ in range(3))
    for rows_there in tensors:
        copy.descent.leaves(rows_there)
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as found:
        copy.descent.leaves(_transformed(copy, block))
        torch.cuda.synchronize()
    print(found.key_averages().table(sort_by="self_cuda_time_total", row_limit=16))
    for kernel in ("_route_tiles", "_scatter_rows"):
        times = [
            round(event.device_time_total, 1)
            for event in sorted(found.events(), key=lambda event: event.time_range.start)
            if event.name == kernel and "CUDA" in str(event.device_type)
        ]
        print(f"{kernel}, microseconds per step: {times}", flush=True)
    groups: Any = getattr(copy.descent, "_arrays", None)
    print(f"groups per step: {np.diff(groups.steps).tolist()}")


def _other_kind(kind: Any, split: Split, device: Device, quick: bool) -> None:
    """Equal answers and speed of another kind of forest."""
    part = split if quick else split.head(10000, 10000)
    forest = kind(4 if quick else 16, random_state=0, n_jobs=-1).fit(part.X, part.y)
    forest.set_params(device="cpu")
    labels, leaves = forest.predict(part.X_test), forest.apply(part.X_test)
    seconds = median_seconds(lambda: forest.predict(part.X_test))
    forest.set_params(device=DEVICE)
    own = _seconds(device, lambda: forest.predict(part.X_test), 3)
    same = float((forest.predict(part.X_test) == labels).mean())
    same_leaves = float((forest.apply(part.X_test) == leaves).mean())
    n = len(part.X_test)
    show_table(
        f"{kind.__name__}, {forest.n_estimators} trees, {n} rows",
        ["", "rows/s", "equal answers", "equal leaves"],
        [("all processors", n / seconds, "", ""), ("device", n / own, same, same_leaves)],
    )


if __name__ == "__main__":
    import sys

    run("--quick" in sys.argv)
