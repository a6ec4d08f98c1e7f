"""``evergrow token``: access to the service of a workspace."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

import click

from evergrow.cli.options import QUIET, examples, output_forms
from evergrow.cli.output import is_for_people, report, write_fields, write_json, write_table
from evergrow.cli.workspace.access import DIR
from evergrow.cli.workspace.token_options import EXPIRES, TOKEN_FILE, token_file

if TYPE_CHECKING:
    from evergrow.workspace.tokens import TokenRecord, Tokens


_NAME = click.argument("name")


@click.group(
    epilog=examples(
        "evergrow token add things robot --scope read",
        "evergrow token list things",
        "evergrow token revoke things robot",
    )
)
def token() -> None:
    """Make, list and revoke tokens for the service of a workspace.

    Changes apply to a running service from the next request on.
    """


def _tokens(folder: str) -> Tokens:
    from evergrow.workspace.store.layout import Layout, read_manifest
    from evergrow.workspace.tokens import Tokens

    # Raises an error if the folder is not a workspace.
    read_manifest(Layout(folder))
    return Tokens(folder)


@token.command(
    epilog=examples(
        "evergrow token add things robot --scope read",
        "evergrow token add things anna --expires 30d --token-file anna-token",
    )
)
@DIR
@_NAME
@click.option(
    "--scope",
    type=click.Choice(["read", "teach"]),
    default="read",
    help="Permissions: to predict and read, or to teach and change as well.",
)
@EXPIRES
@TOKEN_FILE
@QUIET
def add(
    folder: str,
    name: str,
    scope: Literal["read", "teach"],
    expires_in: timedelta | None,
    token_file_path: str | None,
    quiet: bool,
) -> None:
    """Make a token called NAME for the workspace DIR, and print it once.

    The audit log records the name with every change made with it.
    """
    tokens = _tokens(folder)
    with token_file(token_file_path) as write_tokens:
        secret = tokens.add(name, scope, expires_in=expires_in)
        if write_tokens is not None:
            write_tokens([secret])
    if write_tokens is None:
        write_fields([secret])
        report("Keep the token: it is shown only once.", quiet=quiet)


@token.command("list", epilog=examples("evergrow token list things"))
@DIR
@output_forms("json", "tsv", each=" per line")
def list_tokens(folder: str, form: str | None) -> None:
    """List the tokens of the workspace DIR, never the secrets.

    Shows for each token its name, scope, state (valid, expired or revoked), time of creation and
    time of expiry. In a pipe, or with --tsv, writes tab-separated lines.
    """
    listed = [_shown(record) for record in _tokens(folder).list()]
    if is_for_people(form):
        columns = ("name", "scope", "state", "created", "expires")
        write_table(dict.fromkeys(columns, "left"), [[*shown.values()] for shown in listed])
        return
    for shown in listed:
        write_json(shown) if form == "json" else write_fields(shown.values())


def _shown(record: TokenRecord) -> dict[str, Any]:
    from evergrow.workspace.store.event_log import format_time, now

    return {
        "name": record.name,
        "scope": record.scope,
        "state": record.refusal(format_time(now())) or "valid",
        "created": record.created,
        "expires": record.expires,
    }


@token.command(epilog=examples("evergrow token revoke things robot"))
@DIR
@_NAME
@QUIET
def revoke(folder: str, name: str, quiet: bool) -> None:
    """Revoke the token called NAME."""
    _tokens(folder).revoke(name)
    report(f"{name}: revoked.", quiet=quiet)
