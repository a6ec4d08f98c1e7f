"""The command ``evergrow plan``: what training will need."""

from __future__ import annotations

import math
from typing import Any

import click

from evergrow.cli.options import QUIET, command, output_forms, verbosity
from evergrow.cli.output import FACTS, is_for_people, write_fields, write_json, write_table

# As in evergrow.distributed.planning.workload, which is too slow to import for --help; a test
# compares them.
_ESTIMATORS = ("ncm_forest", "axis", "linear", "svm", "least_squares", "means", "erc")
_DTYPES = ("float16", "float32", "float64")

# Larger numbers stay floats: the library refuses them, and its message shows them in few digits.
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


@command(
    "evergrow plan --rows 1.2e6 --features 1000 --classes 1000",
    "evergrow plan --rows 1.2e6 --features 1280 --classes 1000 --images --nodes 50 \\",
    "              --cores-per-node 16 --memory-per-node 64GiB --memory-limit 2GiB",
    "evergrow plan --rows 1e5 --features 512 --classes 100 --estimator least_squares --json",
)
@click.option("--rows", type=count, required=True, help="Number of training examples.")
@click.option("--features", type=count, required=True, help="Number of features.")
@click.option("--classes", type=count, required=True, help="Number of classes.")
@click.option(
    "--estimator",
    type=click.Choice(_ESTIMATORS),
    default="ncm_forest",
    help="What is trained, with its default parameters.",
)
@click.option("--trees", type=count, default=50, help="Number of trees of a forest.")
@click.option(
    "--min-samples-leaf",
    type=count,
    help="Smallest number of examples in a leaf; by default chosen by class size.",
)
@click.option(
    "--dtype",
    type=click.Choice(_DTYPES),
    default="float32",
    help="Type of the features.",
)
@click.option("--images", is_flag=True, help="Rows are photographs that are embedded first.")
@click.option("--nodes", type=count, default=1, help="Number of machines.")
@click.option("--cores-per-node", type=count, help="Cores of each machine; by default as here.")
@click.option("--workers", type=count, help="Number of worker processes; by default one per core.")
@click.option("--memory-per-node", type=amount, help="Memory of each machine; by default as here.")
@click.option(
    "--memory-limit",
    type=amount,
    help="Samples that a forest may have in memory, such as 2GiB; more of them are in a file.",
)
@click.option(
    "--shards/--no-shards",
    default=None,
    help="Whether data are shards on shared storage; by default if memory is too small.",
)
@click.option(
    "--network",
    type=amount,
    default="1.25GB",
    help="Bytes that a machine receives per second, such as 1.25GB or 1.25GB/s.",
)
@click.option(
    "--storage",
    type=amount,
    default="1GB",
    help="Bytes that a machine reads or writes on storage per second.",
)
@click.option(
    "--core-speed",
    type=click.FloatRange(0, 1000, min_open=True),
    default=1.0,
    help="Speed of a core of the cluster, relative to a core of this machine.",
)
@output_forms("json", "tsv", each=", in seconds and bytes")
@QUIET
def plan(form: str | None, quiet: bool, **options: Any) -> None:
    """Estimate time, memory, disk and network of training, before it is started.

    Prints the time on one core, on this machine and on the given cluster, the memory of each
    worker, disk space, network traffic, and what limits the training. Times are scaled from a trial
    run of a few seconds on this machine.
    """
    from evergrow.distributed.planning import plan as make_plan

    leaf = options.pop("min_samples_leaf") or "auto"
    answer = make_plan(**options, min_samples_leaf=leaf, verbose=verbosity(quiet))
    if form == "json":
        write_json(answer.to_dict())
    elif is_for_people(form):
        write_table(FACTS, answer.fields())
    else:
        for fields in answer.fields():
            write_fields(fields)
