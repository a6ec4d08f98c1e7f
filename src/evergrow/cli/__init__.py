"""The command line: train, update, query, evaluate and serve image classifiers.

One file per command or small group of commands. Modules import the library inside the command, so
that ``--help`` is fast. ``group`` turns errors into one-line messages and exit codes, ``models``
and ``workspace/access`` open model files and workspaces, ``output`` writes tables, CSV and JSON.
Start reading with ``fit`` and ``workspace/learn``.
"""

from __future__ import annotations

import click

from evergrow.cli.add import add
from evergrow.cli.compare import compare
from evergrow.cli.download import download
from evergrow.cli.evaluate import evaluate
from evergrow.cli.experiment import experiment
from evergrow.cli.fit import fit
from evergrow.cli.forget import forget
from evergrow.cli.group import Commands
from evergrow.cli.info import info
from evergrow.cli.options import examples
from evergrow.cli.plan import plan
from evergrow.cli.predict import predict
from evergrow.cli.shard import shard
from evergrow.cli.workspace.edits import merge, rename, split, undo, unsplit
from evergrow.cli.workspace.init import init
from evergrow.cli.workspace.learn import learn
from evergrow.cli.workspace.maintenance import backup, check, export
from evergrow.cli.workspace.serve import serve
from evergrow.cli.workspace.status import classes, status
from evergrow.cli.workspace.token import token
from evergrow.foundation.version import __version__

__all__ = ["main"]


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "evergrow fit photos/ -o model.evergrow",
        "evergrow predict model.evergrow new/*.jpg",
        "evergrow add model.evergrow more_photos/",
        "evergrow init things && evergrow serve things",
    ),
)
@click.version_option(__version__, "-V", "--version", prog_name="evergrow")
@click.option(
    "--debug", "--traceback", "debug", is_flag=True, help="Show the traceback of an error."
)
def main(debug: bool) -> None:
    """Classify images, with classes that never stop growing.

    Put the images of each class in a folder of its own, and train a model file. Or make a
    workspace, a folder that stores everything you teach, and serve it with a web page. Results go
    to standard output, all other messages to standard error.

    Exit codes: 0 success, 1 a problem with the data or the model, 2 a wrong command line, 3 a bug
    in Evergrow, 130 interrupted.
    """


_MODEL_FILE_COMMANDS = (fit, add, predict, evaluate, info, forget)
_WORKSPACE_COMMANDS = (
    *(init, learn, serve, status, classes),
    *(rename, merge, split, unsplit, undo),
    *(export, check, backup, token),
)
_RESEARCH_COMMANDS = (experiment, compare, download)
_CLUSTER_COMMANDS = (shard, plan)
for command in (
    *_MODEL_FILE_COMMANDS,
    *_WORKSPACE_COMMANDS,
    *_RESEARCH_COMMANDS,
    *_CLUSTER_COMMANDS,
):
    main.add_command(command)
