"""When tokens end: an option that says so, as a length or as a day."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import click

__all__ = ["EXPIRES"]

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
    # A day that is named is still a good one.
    left = day + timedelta(days=1) - datetime.now(UTC)
    if left <= timedelta(0):
        raise click.BadParameter(f"{value} is over already")
    return left


EXPIRES = click.option(
    "--expires",
    "expires_in",
    callback=_time_left,
    metavar="WHEN",
    help="When the token ends: after 12h, 30d or 8w, or with a day, 2030-01-31 (UTC). Never if "
    "not given.",
)
