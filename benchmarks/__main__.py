"""``python -m benchmarks NAME ... [--quick] [--only PART] [--out FOLDER]``."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import numpy as np
import sklearn

import evergrow
from benchmarks.measure import THREADS, take_tables, to_markdown
from evergrow import _core

# By name, the parts of each benchmark, which can be asked for one by one: a module and a function.
# A module is imported when it runs, since some need more packages than others.
BENCHMARKS: Mapping[str, Mapping[str, str]] = {
    "fit": {"fit": "fit:run"},
    "predict": {"predict": "predict:run"},
    "memory": {"memory": "memory:run"},
    "scaling": {"scaling": "scaling:run", "large": "scaling:large"},
    "kernels": {"kernels": "kernels:run"},
    "growing": {
        "strategies": "growing:strategies",
        "chunks": "growing:chunks",
        "one-class": "growing:one_class",
        "more-samples": "growing:more_samples",
        "one-row": "growing:one_row",
        "small": "growing:small_forests",
        "memory": "growing:memory",
    },
    "linear": {
        "one-example": "linear:one_example",
        "stream": "linear:stream",
        "choosing": "linear:choosing",
        "cores": "linear:cores",
    },
    "subcategory": {"regularised": "subcategory:regularised", "refine": "subcategory:refine"},
    "codebook": {"speed": "codebook:run"},
    "embeddings": {
        "images": "embeddings:images",
        "tables": "embeddings:tables",
        "networks": "embeddings:networks",
    },
    "formats": {
        "listing": "formats:listing",
        "decoding": "formats:decoding",
        "video": "formats:video",
    },
    "export": {"rows": "export:rows", "images": "export:images"},
    "service": {
        "teaching": "service:teaching",
        "predictions": "service:predictions",
        "starts": "service:starts",
    },
    "cluster": {
        "limited": "cluster:limited",
        "on-ray": "cluster:on_ray",
        "sums": "cluster:sums",
    },
    "gpu": {
        "least-squares": "gpu:least_squares",
        "shards": "gpu:shards",
        "selection": "gpu:selection",
        "metric": "gpu:metric",
        "forests": "gpu:forests",
    },
}


def find_part(name: str, part: str) -> Callable[[bool], None]:
    """Import the module of a part; return the function that measures it."""
    module, function = BENCHMARKS[name][part].split(":")
    measure: Callable[[bool], None] = getattr(import_module(f"benchmarks.{module}"), function)
    return measure


@click.command()
@click.argument("names", nargs=-1, required=True, type=click.Choice([*BENCHMARKS, "all"]))
@click.option("--quick", is_flag=True, help="Small data, under a minute each.")
@click.option(
    "--only", multiple=True, help="This part of the one benchmark; may be given several times."
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Also write the tables of each part to FOLDER/NAME-PART.json and NAME-PART.md.",
)
def main(names: tuple[str, ...], quick: bool, only: tuple[str, ...], out: Path | None) -> None:
    """Measure speed and memory, and print tables; "all" measures everything without a GPU.

    Uses the data in the folder EVERGROW_DATA when that variable is set, generated data otherwise.
    """
    parts_of_one = BENCHMARKS.get(names[0], {}) if len(names) == 1 else {}
    if only and not {*only} <= {*parts_of_one}:
        parts = ", ".join(parts_of_one or BENCHMARKS)
        raise click.UsageError(f"--only takes parts of one benchmark; {names[0]} has {parts}")
    machine = _describe_machine()
    click.echo(", ".join(f"{key} {value}" for key, value in machine.items()))
    for name in [each for each in BENCHMARKS if each != "gpu"] if "all" in names else names:
        for part in only or BENCHMARKS[name]:
            take_tables()
            try:
                find_part(name, part)(quick)
            except ModuleNotFoundError as error:
                if "all" not in names:
                    raise
                click.echo(f"{name} --only {part}: skipped, {error.name} is not installed")
                continue
            record = {
                "benchmark": name,
                "part": part,
                "quick": quick,
                "date": datetime.now(UTC).date().isoformat(),
                "machine": machine,
                "tables": take_tables(),
            }
            if out is not None:
                write_record(record, out)


def write_record(record: Mapping[str, Any], folder: Path) -> None:
    """Write the tables of a part as JSON, and as Markdown for the documentation."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{record['benchmark']}-{record['part']}.json"
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    path.with_suffix(".md").write_text(to_markdown(record), encoding="utf-8")


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
