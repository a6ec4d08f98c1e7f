"""Options of the commands that make tokens: when a token expires and which file it goes to."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_LENGTH = re.compile(r"([1-9][0-9]{0,4})([hdw])")
_DAY = "%Y-%m-%d"


def _time_left(_: click.Context, __: click.Parameter, value: str | None) -> timedelta | None:
    if value is None:
        return None
    length = _LENGTH.fullmatch(value)
    if length is not None:
        return int(length[1]) * _UNITS[length[2]]
    try:
        day = datetime.strptime(value, _DAY).replace(tzinfo=UTC)
    except ValueError as error:
        raise click.BadParameter(
            f"must be like 12h, 30d, 8w or 2030-01-31, got {value!r}"
        ) from error
    # The token is valid until the end of the day.
    left = day + timedelta(days=1) - datetime.now(UTC)
    if left <= timedelta(0):
        raise click.BadParameter(f"{value} is in the past")
    return left


EXPIRES = click.option(
    "--expires",
    "expires_in",
    callback=_time_left,
    metavar="WHEN",
    help="When the token expires: after 12h, 30d or 8w, or on a day, 2030-01-31 (UTC). Never if "
    "not given.",
)

TOKEN_FILE = click.option(
    "--token-file",
    "token_file_path",
    type=click.Path(),
    metavar="PATH",
    help="Write the token to this new file, which only you can read, instead of printing it.",
)


@contextmanager
def token_file(path: str | None) -> Iterator[Callable[[Sequence[str]], None] | None]:
    """Create a file of mode 600, and give a function that writes one token per line to it.

    It is created first, because a token that cannot be written is lost, and removed if the block
    fails.
    """
    if path is None:
        yield None
        return
    target = Path(path)
    name = click.format_filename(path)
    if not target.parent.is_dir():
        raise click.ClickException(
            f"cannot write {name!r}: the folder {str(target.parent)!r} does not exist"
        )
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise click.ClickException(f"{name!r} exists: name a new file for the tokens") from error

    def write(lines: Sequence[str]) -> None:
        # Some systems ignore the mode given to open.
        os.chmod(target, 0o600)
        os.write(descriptor, "".join(f"{line}\n" for line in lines).encode())
        os.fsync(descriptor)

    try:
        yield write
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)
