"""Tokens that go to a file which nobody else may read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import click

__all__ = ["TOKEN_FILE", "token_file"]

TOKEN_FILE = click.option(
    "--token-file",
    "token_file_path",
    type=click.Path(),
    metavar="PATH",
    help="Write the secret to this new file, which only you can read, and print none.",
)


class _Write(Protocol):
    def __call__(self, lines: Sequence[str]) -> None:
        """Write one token per line."""


@contextmanager
def token_file(path: str | None) -> Iterator[_Write | None]:
    """Claim a new file of mode 600 for tokens; it goes away again if the block fails.

    Claimed before anything else is done: a token that cannot be written down is lost.
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
        raise click.ClickException(
            f"{name!r} is there already: name a new file for the tokens"
        ) from error

    def write(lines: Sequence[str]) -> None:
        # The mode given to open is narrowed by the umask, never widened; some systems ignore it.
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
