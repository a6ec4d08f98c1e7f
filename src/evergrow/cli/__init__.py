"""The command line: train, update, query, evaluate and serve image classifiers.

One file per command or small group of commands. Modules import the library inside the command, so
that ``--help`` is fast. ``group`` turns errors into one-line messages and exit codes, ``models``
and ``workspace/access`` open model files and workspaces, ``output`` writes tables, CSV and JSON.
Start reading with ``fit`` and ``workspace/learn``.
"""

from __future__ import annotations

from importlib import import_module

import click

from evergrow.cli.group import Commands
from evergrow.cli.options import examples
from evergrow.foundation.version import __version__

__all__ = ["main"]

# The modules of this package, and the commands in each.
_COMMANDS = {
    "add": ["add"],
    "compare": ["compare"],
    "curation": ["label_issues", "next_to_label"],
    "download": ["download"],
    "evaluate": ["evaluate"],
    "experiment": ["experiment"],
    "fit": ["fit"],
    "forget": ["forget"],
    "info": ["info"],
    "plan": ["plan"],
    "predict": ["predict"],
    "shard": ["shard"],
    "workspace.edits": ["merge", "rename", "split", "undo", "unsplit"],
    "workspace.init": ["init"],
    "workspace.learn": ["learn"],
    "workspace.maintenance": ["backup", "check", "export"],
    "workspace.re_embed": ["re_embed"],
    "workspace.serve": ["serve"],
    "workspace.status": ["classes", "status"],
    "workspace.token": ["token"],
}


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
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


for module, names in _COMMANDS.items():
    for name in names:
        main.add_command(getattr(import_module(f"evergrow.cli.{module}"), name))
