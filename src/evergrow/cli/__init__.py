"""The command line: train, update, query, evaluate and serve image classifiers.

One file per command or small group of commands. Modules import the library inside the command, so
that ``--help`` is fast. ``group`` turns errors into one-line messages and exit codes, ``models``
and ``workspace/access`` open model files and workspaces, ``output`` writes tables, CSV and JSON.
Start reading with ``fit`` and ``workspace/learn``.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points

import click

from evergrow.cli.group import Commands
from evergrow.cli.options import examples
from evergrow.foundation.extras import __version__

__all__ = ["main"]

# To add a command: a function with ``@command`` in a file of its own, such as ``forget``, which
# imports the library inside the function, a line here, and one in docs/command_line.md.
# Groups of commands as the help lists them: for each command its module and a summary.
_COMMANDS = {
    "Models from folders of images": {
        "fit": ("fit", "Train a model file."),
        "add": ("add", "Train a model file on more images or classes."),
        "predict": ("predict", "Classify images with a model file or a workspace."),
        "evaluate": ("evaluate", "Measure the accuracy of a model file or a workspace."),
        "info": ("info", "Describe a model file."),
        "forget": ("forget", "Remove classes from a model file or a workspace."),
        "export": ("export", "Write a model file or a workspace for other software."),
    },
    "Workspaces": {
        "init": ("workspace.init", "Make a workspace."),
        "learn": ("workspace.learn", "Teach a workspace the images of a folder."),
        "status": ("workspace.status", "Describe a workspace."),
        "classes": ("workspace.status", "List the classes of a workspace."),
        "rename": ("workspace.edits", "Rename a class."),
        "merge": ("workspace.edits", "Merge a class into another one."),
        "split": ("workspace.edits", "Split a class into its fine classes."),
        "unsplit": ("workspace.edits", "Undo the split of a class."),
        "undo": ("workspace.edits", "Undo what was done last."),
        "check": ("workspace.maintenance", "Verify a workspace, and repair it."),
        "backup": ("workspace.maintenance", "Copy a workspace, even while it is served."),
        "re-embed": ("workspace.re_embed", "Compute the features of all images again."),
    },
    "Service": {
        "serve": ("workspace.serve", "Serve a workspace over HTTP, with a page to teach it."),
        "token": ("workspace.token", "Make, list and revoke tokens for the service."),
    },
    "Labels and large data": {
        "label-issues": ("curation", "Find wrong labels, near-duplicates and harmful images."),
        "next-to-label": ("curation", "Choose which images to label next."),
        "shard": ("shard", "Store features in shards, for data larger than memory."),
        "plan": ("plan", "Estimate time, memory, disk and network of training."),
    },
    "Comparisons": {
        "compare": ("compare", "Compare learners on your data and recommend one."),
    },
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


for title, commands in _COMMANDS.items():
    for name, (module, summary) in commands.items():
        command = getattr(import_module(f"evergrow.cli.{module}"), name.replace("-", "_"))
        main.add_to_section(title, command, summary)

# Other packages add commands of their own, such as those that repeat the papers.
for entry in sorted(entry_points(group="evergrow.commands"), key=lambda each: each.name):
    main.add_from_package("Papers", entry)
