"""``evergrow init``: make a workspace."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal

import click

from evergrow.cli.options import QUIET, examples
from evergrow.cli.output import write_fields, write_json
from evergrow.cli.workspace.access import DIR
from evergrow.cli.workspace.token_options import EXPIRES, TOKEN_FILE, token_file

_NETWORK = "efficientnet-lite0"
# Names by which the audit log knows them, and what they allow.
_TOKENS: tuple[tuple[str, Literal["teach", "read"]], ...] = (
    ("teaching", "teach"),
    ("reading", "read"),
)


def _checked_features(ctx: click.Context, param: click.Parameter, value: str) -> str | None:
    if value == "none":
        return None
    if value == _NETWORK or value.endswith(".onnx"):
        return value
    raise click.BadParameter(
        f"must be {_NETWORK}, none, or a file that ends in .onnx; got {value!r}", ctx, param
    )


@click.command(
    epilog=examples(
        "evergrow init things",
        "evergrow init things --token-file ~/.things-token --expires 90d",
        "evergrow init things --features network.onnx --forest",
        "evergrow init things --features none --n-features 512",
    )
)
@DIR
@click.option(
    "--features",
    default=_NETWORK,
    show_default=True,
    callback=_checked_features,
    help="What turns images into features: the included network, your own .onnx file, or none if "
    "you send embeddings instead of images.",
)
@click.option(
    "--n-features",
    type=click.IntRange(1, 1 << 20),
    help="Length of embeddings, with --features none; by default that of the first example.",
)
@click.option("--forest", is_flag=True, help="Train an NCM forest in addition to least squares.")
@click.option(
    "--false-alarms",
    type=click.FloatRange(0, 0.5, min_open=True),
    default=0.1,
    show_default=True,
    help="Share of known objects that may be called unknown; a lower share detects fewer unknown "
    "objects.",
)
@click.option(
    "--max-classes",
    type=click.IntRange(1, 1_000_000),
    default=10_000,
    show_default=True,
    help="Maximum number of classes.",
)
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Random seed."
)
@TOKEN_FILE
@EXPIRES
@click.option("--json", "as_json", is_flag=True, help="One JSON object with the tokens.")
@QUIET
def init(
    folder: str,
    features: str | None,
    token_file_path: str | None,
    expires_in: timedelta | None,
    as_json: bool,
    quiet: bool,
    **choices: Any,
) -> None:
    """Make a workspace in the new folder DIR.

    A workspace stores everything you teach and keeps its model up to date. Teach it with 'evergrow
    learn', or over HTTP and on a web page with 'evergrow serve'. Two tokens for the service are
    made, one to teach and one to read. They are printed once, or written to --token-file (the
    teaching token first), and only their hashes are stored.
    """
    if features is not None and choices["n_features"] is not None:
        raise click.UsageError("--n-features is for --features none")
    from evergrow.workspace import Workspace
    from evergrow.workspace.tokens import Tokens

    with token_file(token_file_path) as write_tokens:
        with Workspace.create(folder, features=features, **choices):
            pass
        tokens = Tokens(folder)
        made = {scope: tokens.add(name, scope, expires_in=expires_in) for name, scope in _TOKENS}
        if write_tokens is not None:
            write_tokens(list(made.values()))
    if write_tokens is None and not as_json:
        for scope, token in made.items():
            write_fields([scope, token])
    if as_json:
        write_json({"folder": folder, **({} if write_tokens else made)})
    if not quiet:
        _report(folder, token_file_path)


def _report(folder: str, token_file_path: str | None) -> None:
    name = click.format_filename(folder)
    if token_file_path is None:
        click.echo("Keep the tokens: they are shown only once.", err=True)
    else:
        click.echo(f"The tokens are in {click.format_filename(token_file_path)}.", err=True)
    click.echo(f"{name}: ready. Next: evergrow serve {name}", err=True)
