"""Timestamps that never go backwards."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from evergrow.workspace import Workspace
from evergrow.workspace.store.event_log import Clock, format_time
from tests.workspace.builders import new_example, new_workspace

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_the_time_repeats_while_the_clock_is_behind():
    times = iter([NOON, NOON - timedelta(hours=1), NOON + timedelta(seconds=1)])
    clock = Clock(read=lambda: next(times))
    assert [clock(), clock(), clock()] == [
        "2026-01-01T12:00:00.000Z",
        "2026-01-01T12:00:00.000Z",
        "2026-01-01T12:00:01.000Z",
    ]


def test_times_of_other_zones_are_written_in_utc():
    there = datetime(2026, 1, 1, 14, tzinfo=timezone(timedelta(hours=2)))
    assert format_time(there) == format_time(NOON)


def test_years_of_few_digits_keep_the_length():
    assert format_time(datetime(1, 1, 1, tzinfo=UTC)) == "0001-01-01T00:00:00.000Z"


def test_events_after_the_clock_was_set_back_are_not_earlier(tmp_path):
    with new_workspace(tmp_path) as workspace:
        workspace._writer.clock = Clock(read=lambda: NOON + timedelta(days=36500))
        workspace.teach([new_example("cup", 1)])
    with Workspace.open(tmp_path / "workspace") as workspace:
        workspace.teach([new_example("cup", 2)])
        later, earlier = workspace.events().items
        assert later.at == earlier.at
        assert [one.seq for one in (earlier, later)] == [1, 2]
        assert workspace.check() == []
