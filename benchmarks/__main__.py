"""``python -m benchmarks NAME ... [--quick] [--only PART] [--out FOLDER]``."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import click
import numpy as np
import sklearn

import evergrow
from benchmarks import (
    curation,
    embeddings,
    export,
    export_page,
    fit,
    forest_gpu,
    formats,
    gpu,
    kernels,
    label_studio,
    memory,
    predict,
    scaling,
    service,
    subcategory,
)
from benchmarks.cluster import failures, planning, sums, training
from benchmarks.cluster.updates import run as cluster_updates
from benchmarks.codebook import accuracy, photographs, speed
from benchmarks.growing import small_classes, streams, updates
from benchmarks.growing.memory import run as long_life
from benchmarks.linear import examples, rejection
from benchmarks.linear.cores import cores as linear_cores
from benchmarks.linear.stream import run as linear_stream
from benchmarks.measure import THREADS, take_records
from evergrow import _core

# By name, the parts of each benchmark, which can be asked for one by one.
BENCHMARKS: Mapping[str, Mapping[str, Callable[[bool], None]]] = {
    "fit": {"fit": fit.run, "small-classes": fit.small_classes},
    "predict": {"predict": predict.run, "gpu": forest_gpu.run},
    "memory": {"memory": memory.run},
    "scaling": {"scaling": scaling.run, "large": scaling.large},
    "kernels": {"kernels": kernels.run},
    "embeddings": {"tables": embeddings.tables, "networks": embeddings.networks},
    "growing": {
        "strategies": streams.strategies,
        "hundred": streams.hundred,
        "others": streams.others,
        "settings": streams.settings,
        "chunks": streams.chunks,
        "one-class": updates.one_class,
        "few-samples": small_classes.few_samples,
        "uneven": small_classes.uneven,
        "more-samples": updates.more_samples,
        "small": updates.small_forests,
        "memory": long_life,
    },
    "linear": {
        "one-example": examples.one_example,
        "stream": linear_stream,
        "auto": rejection.calibrate_auto,
        "rejection": rejection.reject_unknown,
        "false-alarms": rejection.count_false_alarms,
        "choosing": examples.choosing,
        "cores": linear_cores,
    },
    "codebook": {
        "speed": speed.run,
        "embedding": photographs.embedding,
        "folders": photographs.folders,
        "accuracy": accuracy.run,
    },
    "subcategory": {
        "regularised": subcategory.regularised,
        "refine": subcategory.refine,
        "back-off": subcategory.back_off,
    },
    "curation": {
        "wrong-labels": curation.wrong_labels,
        "speed": curation.speed,
        "next": curation.next_labels,
    },
    "export": {**export.PARTS, "page": export_page.run},
    "formats": formats.PARTS,
    "gpu": gpu.PARTS,
    "label-studio": {"clicks": label_studio.clicks, "kills": label_studio.kills},
    "service": service.PARTS,
    "cluster": {
        "limited": training.limited,
        "on-ray": training.on_ray,
        "killing": failures.killing,
        "resuming": failures.resuming,
        "sums": sums.run,
        "plan": planning.run,
        "updates": cluster_updates,
    },
}


@click.command()
@click.argument("names", nargs=-1, required=True, type=click.Choice([*BENCHMARKS]))
@click.option(
    "--quick", is_flag=True, help="Small data, under a minute; bars are not meant for it."
)
@click.option(
    "--only", multiple=True, help="This part of the one benchmark; may be given several times."
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Also write the tables and figures of each part to FOLDER/NAME-PART.json.",
)
def main(names: tuple[str, ...], quick: bool, only: tuple[str, ...], out: Path | None) -> None:
    """Measure and print tables and one JSON line per figure.

    Uses the data in the folder EVERGROW_DATA when that variable is set, generated data otherwise.
    """
    if only and not (len(names) == 1 and {*only} <= {*BENCHMARKS[names[0]]}):
        parts = ", ".join(BENCHMARKS[names[0]])
        raise click.UsageError(f"--only takes parts of one benchmark; {names[0]} has {parts}")
    machine = _describe_machine()
    click.echo(", ".join(f"{key} {value}" for key, value in machine.items()))
    for name in names:
        for part in only or BENCHMARKS[name]:
            take_records()
            BENCHMARKS[name][part](quick)
            if out is not None:
                setup = {"benchmark": name, "part": part, "quick": quick}
                setup |= {"date": datetime.now(UTC).date().isoformat(), "machine": machine}
                out.mkdir(parents=True, exist_ok=True)
                text = json.dumps(setup | take_records(), indent=1, ensure_ascii=False)
                (out / f"{name}-{part}.json").write_text(text + "\n", encoding="utf-8")


def _describe_machine() -> dict[str, object]:
    return {
        "evergrow": evergrow.__version__,
        "kernel": _core.chosen_kernel(),
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "threads": THREADS,
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


if __name__ == "__main__":
    main()
