"""``python -m benchmarks NAME ... [--quick] [--only PART]``."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping

import click
import numpy as np
import sklearn

import evergrow
from benchmarks import (
    cluster,
    codebook,
    fit,
    growing,
    kernels,
    linear,
    memory,
    predict,
    scaling,
    service,
    subcategory,
)
from evergrow import _core

# By name, the parts of each benchmark, which can be asked for one by one.
BENCHMARKS: Mapping[str, Mapping[str, Callable[[bool], None]]] = {
    "fit": {"fit": fit.run},
    "predict": {"predict": predict.run},
    "memory": {"memory": memory.run},
    "scaling": {"scaling": scaling.run},
    "kernels": {"kernels": kernels.run},
    "growing": growing.PARTS,
    "linear": linear.PARTS,
    "codebook": codebook.PARTS,
    "subcategory": subcategory.PARTS,
    "service": service.PARTS,
    "cluster": cluster.PARTS,
}


@click.command()
@click.argument("names", nargs=-1, required=True, type=click.Choice([*BENCHMARKS]))
@click.option(
    "--quick", is_flag=True, help="Small data, under a minute; bars are not meant for it."
)
@click.option(
    "--only", multiple=True, help="This part of the one benchmark; may be given several times."
)
def main(names: tuple[str, ...], quick: bool, only: tuple[str, ...]) -> None:
    """Measure and print tables and one JSON line per figure.

    Uses the data in the folder EVERGROW_DATA when that variable is set, generated data otherwise.
    """
    if only and not (len(names) == 1 and {*only} <= {*BENCHMARKS[names[0]]}):
        parts = ", ".join(BENCHMARKS[names[0]])
        raise click.UsageError(f"--only takes parts of one benchmark; {names[0]} has {parts}")
    click.echo(
        f"evergrow {evergrow.__version__} ({_core.chosen_kernel()}), "
        f"scikit-learn {sklearn.__version__}, numpy {np.__version__}, "
        f"Python {platform.python_version()}, {_processor()}"
    )
    for name in names:
        for part in only or BENCHMARKS[name]:
            BENCHMARKS[name][part](quick)


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
