"""What training will cost."""

from __future__ import annotations

import math
from typing import Any

import click

from evergrow.cli.options import QUIET, examples, verbosity
from evergrow.cli.output import write_json, write_table

__all__ = ["plan"]

# As in evergrow.distributed.planning.families, which is too slow to import for --help; a test
# compares them.
_ESTIMATORS = ("ncm_forest", "axis", "linear", "svm", "least_squares", "means", "erc")
_DTYPES = ("float16", "float32", "float64")


# A plan whose calibration is less certain than this says so.
_LARGE_SPREAD = 0.5
# Beyond this numbers stay floats: the library refuses them, and says them in few digits.
_MOST = 2**63


def count(value: str) -> int | float:
    """A whole number, at least 1, that may be written as 1.2e6."""
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= 1 and number == int(number)):
        raise click.BadParameter(f"{value!r} is not a whole number of at least 1, such as 1.2e6")
    return int(number) if number < _MOST else number


def amount(value: str) -> int | str:
    """A number of bytes, such as 1e9, or one with a unit, which the library reads."""
    try:
        number = float(value)
    except ValueError:
        return value
    return int(number) if 1 <= number < _MOST and number == int(number) else value


@click.command(
    epilog=examples(
        "evergrow plan --rows 1.2e6 --features 1000 --classes 1000",
        "evergrow plan --rows 1.2e6 --features 1280 --classes 1000 --images --nodes 50 \\",
        "              --cores-per-node 16 --memory-per-node 64GiB --memory-limit 2GiB",
        "evergrow plan --rows 1e5 --features 512 --classes 100 --estimator least_squares --json",
    )
)
@click.option("--rows", type=count, required=True, help="Training examples.")
@click.option("--features", type=count, required=True, help="Numbers in each.")
@click.option("--classes", type=count, required=True, help="Classes.")
@click.option(
    "--estimator",
    type=click.Choice(_ESTIMATORS),
    default="ncm_forest",
    show_default=True,
    help="What is to learn, with its default parameters.",
)
@click.option("--trees", type=count, default=50, show_default=True, help="Trees of a forest.")
@click.option(
    "--min-samples-leaf",
    type=count,
    default=10,
    show_default=True,
    help="Fewest examples in a leaf of a forest.",
)
@click.option(
    "--dtype",
    type=click.Choice(_DTYPES),
    default="float32",
    show_default=True,
    help="Precision of the features as they are given.",
)
@click.option("--images", is_flag=True, help="Rows are photographs that are embedded first.")
@click.option("--nodes", type=count, default=1, show_default=True, help="Machines of the cluster.")
@click.option("--cores-per-node", type=count, help="Cores of each; as many as here.")
@click.option("--workers", type=count, help="Processes at work at the same time; one per core.")
@click.option(
    "--memory-per-node", type=amount, help="Memory of each, such as 64GiB; as much as here."
)
@click.option(
    "--memory-limit",
    type=amount,
    help="The most a worker of a forest has to itself beside its trees, such as 2GiB.",
)
@click.option(
    "--shards/--no-shards",
    default=None,
    help="Whether data are shards on shared storage; by default if they must be.",
)
@click.option(
    "--network",
    type=amount,
    default="1.25GB",
    show_default=True,
    help="What a machine receives in a second, such as 1.25GB or 1.25GB/s.",
)
@click.option(
    "--storage",
    type=amount,
    default="1GB",
    show_default=True,
    help="What it reads of shards in a second.",
)
@click.option(
    "--core-speed",
    type=click.FloatRange(0, 1000, min_open=True),
    default=1.0,
    show_default=True,
    help="How fast a core of the cluster is, in cores of this machine.",
)
@click.option("--calibrate", is_flag=True, help="Measure this machine again.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, in seconds and bytes.")
@QUIET
def plan(as_json: bool, quiet: bool, **options: Any) -> None:
    """Tell what training will cost, before it is begun.

    Prints time on one core, on this machine and on the given cluster, each with an interval;
    memory of each worker, of its own and shared; disk; what travels over the network; and what
    limits. The first time for an estimator, and when the processor or a version has changed, this
    machine is measured for up to a minute.
    """
    from evergrow.distributed.planning import plan as make_plan

    found = make_plan(**options, verbose=verbosity(quiet))
    if found.calibration_spread > _LARGE_SPREAD and not quiet:
        click.echo(
            f"What was measured of this machine is uncertain by {found.calibration_spread:.0%}: "
            "it may have been busy. --calibrate measures again.",
            err=True,
        )
    if as_json:
        write_json(found.to_dict())
        return
    write_table(found.fields())
