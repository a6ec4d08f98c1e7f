"""The command line: train, teach, ask, measure and serve classifiers of images.

Commands import what they need when they run, so that ``--help`` answers at once.
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
from evergrow.cli.workspace.changing import merge, rename, split, undo, unsplit
from evergrow.cli.workspace.init import init
from evergrow.cli.workspace.keeping import backup, check, export
from evergrow.cli.workspace.learn import learn
from evergrow.cli.workspace.looking import classes, status
from evergrow.cli.workspace.serve import serve
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
@click.option("--traceback", is_flag=True, help="Show where in the program an error arose.")
def main(traceback: bool) -> None:
    """Classify images, with classes that never stop growing.

    Put the pictures of each class in a folder of its own, and train a model file. Or make a
    workspace, a folder that keeps all you teach, and serve it with a page to teach on. Results go
    to standard output, everything else to standard error.

    Exit codes: 0 all went well, 1 something is wrong with the data or the model, 2 the command was
    not understood, 130 interrupted.
    """


_OF_MODEL_FILES = (fit, add, predict, evaluate, info, forget)
_OF_WORKSPACES = (
    *(init, learn, serve, status, classes),
    *(rename, merge, split, unsplit, undo),
    *(export, check, backup, token),
)
_OF_RESEARCH = (experiment, compare, download)
_OF_CLUSTERS = (shard, plan)
for command in (*_OF_MODEL_FILES, *_OF_WORKSPACES, *_OF_RESEARCH, *_OF_CLUSTERS):
    main.add_command(command)
