"""``evergrow init``: make a workspace."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any, Literal

import click

from evergrow.cli.options import QUIET, command, make_embedder
from evergrow.cli.output import is_for_people, report, write_fields, write_json
from evergrow.cli.workspace.access import DIR
from evergrow.cli.workspace.token_options import EXPIRES, TOKEN_FILE, token_file

# Known by name without loading the library.
_NETWORKS = ("efficientnet-lite0", "efficientnet-lite1", "efficientnet-lite2")
# Names by which the audit log knows them, and what they allow.
_TOKENS: tuple[tuple[str, Literal["teach", "read"]], ...] = (
    ("teaching", "teach"),
    ("reading", "read"),
)


def _checked_features(ctx: click.Context, param: click.Parameter, value: str) -> str | None:
    if value == "none":
        return None
    if value in ("auto", *_NETWORKS) or value.endswith(".onnx") or os.path.isdir(value):
        return value
    names = ", ".join(("auto", *_NETWORKS))
    raise click.BadParameter(
        f"must be one of {names}, none, a file that ends in .onnx, or a folder with a network; got "
        f"{value!r}",
        ctx,
        param,
    )


def _checked_stages(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> tuple[int, ...] | None:
    if value is None:
        return None
    parts = [] if value == "none" else value.split(",")
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise click.BadParameter(
            f"must be numbers with commas between them, such as 5,6,7, or none; got {value!r}",
            ctx,
            param,
        )
    return tuple(int(part) for part in parts)


FEATURES = click.option(
    "--features",
    default="auto",
    metavar="NAME|FILE|FOLDER",
    callback=_checked_features,
    help="What turns images into features: auto for the included network with some of its stages, "
    f"{', '.join(_NETWORKS)}, your own .onnx file, a folder of Hugging Face transformers or "
    "timm, or none if you send embeddings instead of images.",
)
STAGES = click.option(
    "--stages",
    metavar="NUMBERS",
    callback=_checked_stages,
    help="Earlier stages of the network whose features are added if they help, such as 5,6,7; "
    "none for its output alone. By default 5,6,7 with --features auto, else none.",
)


def chosen_features(features: str | None, stages: tuple[int, ...] | None) -> Any:
    """The parameter ``features`` of a workspace for the options."""
    if features is None and stages is not None:
        raise click.UsageError("--stages needs a network: leave out --features none")
    if features is not None and os.path.isdir(features):
        return make_embedder(features, stages=stages or ())
    if stages is None:
        return features
    return make_embedder(_NETWORKS[0] if features == "auto" else str(features), stages=stages)


@command(
    "evergrow init things",
    "evergrow init things --token-file ~/.things-token --expires 90d",
    "evergrow init things --features network.onnx --forest",
    "evergrow init things --features none --n-features 512",
)
@DIR
@FEATURES
@STAGES
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
    help="Share of known objects that may be called unknown; a lower share detects fewer unknown "
    "objects.",
)
@click.option(
    "--max-classes",
    type=click.IntRange(1, 1_000_000),
    default=10_000,
    help="Maximum number of classes.",
)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, help="Random seed.")
@TOKEN_FILE
@EXPIRES
@click.option("--json", "as_json", is_flag=True, help="One JSON object with the tokens.")
@QUIET
def init(
    folder: str,
    features: str | None,
    stages: tuple[int, ...] | None,
    token_file_path: str | None,
    expires_in: timedelta | None,
    as_json: bool,
    quiet: bool,
    **choices: Any,
) -> None:
    """Make a workspace in the new folder DIR.

    A workspace stores everything you teach and keeps its model up to date. Teach it with 'evergrow
    learn', or over HTTP and on a web page with 'evergrow serve'. The command creates two tokens for
    the service, one to teach and one to read. It prints them once, or writes them to --token-file,
    the teaching token first. Only their hashes are stored.
    """
    if features is not None and choices["n_features"] is not None:
        raise click.UsageError("--n-features is for --features none")
    chosen = chosen_features(features, stages)
    from evergrow.workspace import Workspace
    from evergrow.workspace.tokens import Tokens

    with token_file(token_file_path) as write_tokens:
        with Workspace.create(folder, features=chosen, **choices):
            pass
        tokens = Tokens(folder)
        made = {scope: tokens.add(name, scope, expires_in=expires_in) for name, scope in _TOKENS}
        if write_tokens is not None:
            write_tokens(list(made.values()))
    if write_tokens is None and not as_json:
        _write_tokens(made)
    if as_json:
        write_json({"folder": folder, **({} if write_tokens else made)})
    name = click.format_filename(folder)
    if token_file_path is None:
        report("Keep the tokens: they are shown only once.", quiet=quiet)
    else:
        report(f"The tokens are in {click.format_filename(token_file_path)}.", quiet=quiet)
    report(f"{name}: ready. Next: evergrow serve {name}", quiet=quiet)


def _write_tokens(made: dict[Literal["teach", "read"], str]) -> None:
    for scope, token in made.items():
        if is_for_people(None):
            # Not wrapped: a token must be copied as a whole.
            click.echo(f"Token to {scope}: {token}")
        else:
            write_fields([scope, token])
