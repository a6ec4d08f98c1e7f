"""``python -m benchmarks fit|predict|memory|scaling|kernels|growing|linear|codebook|subcategory|
service [--quick] [--only PART]``."""

from __future__ import annotations

import platform

import click
import numpy as np
import sklearn

import evergrow
from benchmarks import (
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

BENCHMARKS = {
    module.__name__.split(".")[-1]: module
    for module in (
        fit,
        predict,
        memory,
        scaling,
        kernels,
        growing,
        linear,
        codebook,
        subcategory,
        service,
    )
}


@click.command()
@click.argument("names", nargs=-1, required=True, type=click.Choice([*BENCHMARKS]))
@click.option(
    "--quick", is_flag=True, help="Small data, under a minute; bars are not meant for it."
)
@click.option(
    "--only",
    multiple=True,
    type=click.Choice([*service.PARTS]),
    help="This part of the benchmark service; may be given several times.",
)
def main(names: tuple[str, ...], quick: bool, only: tuple[str, ...]) -> None:
    """Measure and print tables and one JSON line per figure.

    Uses the data in the folder EVERGROW_DATA when that variable is set, generated data otherwise.
    """
    if only and names != ("service",):
        raise click.UsageError("--only names parts of the benchmark service alone")
    click.echo(
        f"evergrow {evergrow.__version__} ({_core.chosen_kernel()}), "
        f"scikit-learn {sklearn.__version__}, numpy {np.__version__}, "
        f"Python {platform.python_version()}, {_processor()}"
    )
    for name in names:
        if only:
            service.run(quick, only)
        else:
            BENCHMARKS[name].run(quick)


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
