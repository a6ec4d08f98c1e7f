"""When tokens end: options that say so, as a length or as a day."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import click

__all__ = ["EXPIRES"]

_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_LENGTH = re.compile(r"([1-9][0-9]{0,4})([hdw])")


class _Expiry(click.ParamType):
    """A length such as 12h, 30d or 8w, or a day such as 2030-01-31, when it ends at its end."""

    name = "when"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        if isinstance(value, timedelta):
            return value
        length = _LENGTH.fullmatch(value)
        if length is not None:
            return int(length[1]) * _UNITS[length[2]]
        try:
            day = datetime.strptime(value, "%Y-%m-%d").replace(tzinfo=UTC)
        except ValueError:
            self.fail(f"must be like 12h, 30d, 8w or 2030-01-31, got {value!r}", param, ctx)
        left = day + timedelta(days=1) - datetime.now(UTC)
        if left <= timedelta(0):
            self.fail(f"{value} is over already", param, ctx)
        return left


EXPIRES = click.option(
    "--expires",
    "expires_in",
    type=_Expiry(),
    metavar="WHEN",
    help="When the token ends: after 12h, 30d or 8w, or with a day, 2030-01-31 (UTC). Never if "
    "not given.",
)
