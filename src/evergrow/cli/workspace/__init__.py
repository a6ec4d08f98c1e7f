"""Commands for workspaces: folders that keep all that was taught, and a model that follows."""

from __future__ import annotations

from evergrow.cli.workspace.changing import merge, rename, split, undo, unsplit
from evergrow.cli.workspace.init import init
from evergrow.cli.workspace.keeping import backup, check, export
from evergrow.cli.workspace.learn import learn
from evergrow.cli.workspace.looking import classes, status
from evergrow.cli.workspace.serve import serve
from evergrow.cli.workspace.token import token

__all__ = ["WORKSPACE_COMMANDS"]

WORKSPACE_COMMANDS = (
    init,
    learn,
    serve,
    status,
    classes,
    rename,
    merge,
    split,
    unsplit,
    undo,
    export,
    check,
    backup,
    token,
)
