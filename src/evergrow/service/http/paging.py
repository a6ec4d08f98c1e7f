"""Parameters that all listings share."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from evergrow.service.http.bodies import CURSOR_PATTERN, Asked

__all__ = ["MOST_ITEMS", "Limited", "Listing"]

MOST_ITEMS = 500


class Limited(Asked):
    """How many items to give."""

    # Parameters of a query are text; the strictness of bodies would refuse all numbers.
    model_config = ConfigDict(extra="forbid", strict=False)

    limit: int = Field(100, ge=1, le=MOST_ITEMS, description="Most items of one page.")


class Listing(Limited):
    """Which page of a listing."""

    after: str | None = Field(
        None,
        description="Where to go on: what the page before gave as its next.",
        json_schema_extra={"pattern": CURSOR_PATTERN},
    )
