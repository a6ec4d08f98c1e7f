"""``evergrow download``: fetch public data sets."""

from __future__ import annotations

import click

from evergrow.cli.options import QUIET, command, verbosity
from evergrow.cli.output import report


@command(
    "evergrow download mnist data/mnist",
    "evergrow download cifar100 data/cifar100",
)
@click.argument("name", type=click.Choice(["cifar10", "cifar100", "mnist"]))
@click.argument("folder", type=click.Path())
@QUIET
def download(name: str, folder: str, quiet: bool) -> None:
    """Download the data set NAME into FOLDER.

    Uses https only and checks the SHA-256 of every file. After an interruption, run the same
    command again to resume. No other command uses the network.
    """
    from evergrow.research import datasets

    for path in datasets.download(name, folder, verbose=verbosity(quiet)):
        report(f"{click.format_filename(path)}: complete.", quiet=quiet)
