"""``python -m benchmarks NAME ... [--quick] [--only PART] [--out FOLDER]``."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import click
import numpy as np
import sklearn

import evergrow
from benchmarks.measure import THREADS, take_records
from evergrow import _core

# By name, the parts of each benchmark, which can be asked for one by one: a module and a function.
# A module is imported when it runs, since some need more packages than others.
BENCHMARKS: Mapping[str, Mapping[str, str]] = {
    "fit": {"fit": "fit:run", "small-classes": "fit:small_classes"},
    "predict": {"predict": "predict:run", "gpu": "forest_gpu:run"},
    "memory": {"memory": "memory:run"},
    "scaling": {"scaling": "scaling:run", "large": "scaling:large"},
    "kernels": {"kernels": "kernels:run"},
    "embeddings": {"tables": "embeddings:tables", "networks": "embeddings:networks"},
    "growing": {
        "strategies": "growing.streams:strategies",
        "hundred": "growing.streams:hundred",
        "others": "growing.streams:others",
        "settings": "growing.streams:settings",
        "votes": "growing.votes:run",
        "chunks": "growing.streams:chunks",
        "one-class": "growing.updates:one_class",
        "few-samples": "growing.small_classes:few_samples",
        "uneven": "growing.small_classes:uneven",
        "more-samples": "growing.updates:more_samples",
        "small": "growing.updates:small_forests",
        "memory": "growing.memory:run",
    },
    "linear": {
        "one-example": "linear.examples:one_example",
        "stream": "linear.stream:run",
        "auto": "linear.rejection:calibrate_auto",
        "rejection": "linear.rejection:reject_unknown",
        "false-alarms": "linear.rejection:count_false_alarms",
        "choosing": "linear.examples:choosing",
        "cores": "linear.cores:cores",
    },
    "codebook": {
        "speed": "codebook.speed:run",
        "embedding": "codebook.photographs:embedding",
        "folders": "codebook.photographs:folders",
        "accuracy": "codebook.accuracy:run",
    },
    "subcategory": {
        "regularised": "subcategory:regularised",
        "refine": "subcategory:refine",
        "back-off": "subcategory:back_off",
    },
    "curation": {
        "wrong-labels": "curation:wrong_labels",
        "speed": "curation:speed",
        "next": "curation:next_labels",
    },
    "export": {
        "rows": "export:rows",
        "images": "export:images",
        "weights": "export:weights",
        "page": "export_page:run",
    },
    "formats": {
        "listing": "formats:listing",
        "decoding": "formats:decoding",
        "video": "formats:video",
    },
    "gpu": {
        "least-squares": "gpu:least_squares",
        "shards": "gpu:shards",
        "selection": "gpu:selection",
        "kmeans": "gpu:kmeans",
        "metric": "gpu:metric",
        "guesses": "gpu:guesses",
        "embedding": "gpu:embedding",
    },
    "label-studio": {"clicks": "label_studio:clicks", "kills": "label_studio:kills"},
    "service": {
        "crashes": "service.robustness:measure_crashes",
        "two-services": "service.robustness:measure_two_services",
        "full-disk": "service.robustness:measure_full_disk",
        "teaching": "service.teaching:run",
        "predictions": "service.predictions:run",
        "fuzzing": "service.robustness:measure_fuzzing",
        "malicious-requests": "service.robustness:measure_malicious_requests",
        "attacks": "service.attacks:run",
        "downloads": "service.downloads:run",
        "restarts": "service.restarts:run",
        "stages": "service.stages:run",
        "unknown": "service.unknown:run",
    },
    "cluster": {
        "limited": "cluster.training:limited",
        "on-ray": "cluster.training:on_ray",
        "killing": "cluster.failures:killing",
        "resuming": "cluster.failures:resuming",
        "sums": "cluster.sums:run",
        "plan": "cluster.planning:run",
        "updates": "cluster.updates:run",
    },
}


def find_part(name: str, part: str) -> Callable[[bool], None]:
    """Import the module of a part; return the function that measures it."""
    module, function = BENCHMARKS[name][part].split(":")
    measure: Callable[[bool], None] = getattr(import_module(f"benchmarks.{module}"), function)
    return measure


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
            find_part(name, part)(quick)
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
