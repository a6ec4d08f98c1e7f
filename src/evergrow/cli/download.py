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

    Downloads use https only, and the SHA-256 of every file is checked. After an interruption, run
    the same command again to resume. No other command downloads anything, except that 'evergrow
    export' to .html may fetch its browser runtime with npm.
    """
    from evergrow.research import datasets

    for path in datasets.download(name, folder, verbose=verbosity(quiet)):
        report(f"{click.format_filename(path)}: complete.", quiet=quiet)
