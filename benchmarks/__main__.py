"""``python -m benchmarks fit|predict|memory|scaling|kernels|growing|linear|codebook|subcategory|
service|cluster [--quick] [--only PART]``."""

from __future__ import annotations

import platform

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
        cluster,
    )
}
# Benchmarks of which single parts can be asked for.
PARTED = {"service": service, "cluster": cluster}


@click.command()
@click.argument("names", nargs=-1, required=True, type=click.Choice([*BENCHMARKS]))
@click.option(
    "--quick", is_flag=True, help="Small data, under a minute; bars are not meant for it."
)
@click.option(
    "--only",
    multiple=True,
    type=click.Choice([part for module in PARTED.values() for part in module.PARTS]),
    help="This part of the benchmark service or cluster; may be given several times.",
)
def main(names: tuple[str, ...], quick: bool, only: tuple[str, ...]) -> None:
    """Measure and print tables and one JSON line per figure.

    Uses the data in the folder EVERGROW_DATA when that variable is set, generated data otherwise.
    """
    parted = PARTED.get(names[0]) if len(names) == 1 else None
    if only and (parted is None or not {*only} <= {*parted.PARTS}):
        listed = "; ".join(f"{name}: {', '.join(module.PARTS)}" for name, module in PARTED.items())
        raise click.UsageError(f"--only names parts of one benchmark ({listed})")
    click.echo(
        f"evergrow {evergrow.__version__} ({_core.chosen_kernel()}), "
        f"scikit-learn {sklearn.__version__}, numpy {np.__version__}, "
        f"Python {platform.python_version()}, {_processor()}"
    )
    for name in names:
        if parted is not None:
            parted.run(quick, only)
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
