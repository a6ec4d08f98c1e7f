"""Stored pictures and their thumbnails, and the clock of the log."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from PIL import Image

from evergrow.vision import read_image
from evergrow.vision.images.thumbnails import THUMBNAIL_SIDE, make_thumbnail
from evergrow.workspace import Picture, Workspace
from evergrow.workspace.store.event_log import Clock, format_time
from evergrow.workspace.store.files import ImageStore
from tests.workspace.builders import new_example, new_workspace, picture


def drawn(width, height, kind="PNG", **options):
    pixels = np.zeros((height, width, 3), dtype=np.uint8)
    pixels[:, : width // 2, 0] = 255
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind, **options)
    return file.getvalue()


def decoded(content):
    return read_image(content, max_side=THUMBNAIL_SIDE)


@pytest.mark.parametrize(("width", "height"), [(640, 480), (480, 640), (8, 8), (1000, 2)])
def test_a_thumbnail_fits_its_square_and_keeps_the_shape(width, height):
    small = Image.open(io.BytesIO(make_thumbnail(decoded(drawn(width, height)))))
    assert small.format == "JPEG"
    assert max(small.size) == min(max(width, height), THUMBNAIL_SIDE)
    assert small.width / small.height == pytest.approx(width / height, rel=0.2) or height < 3


def test_a_thumbnail_respects_the_orientation_of_the_camera():
    exif = Image.Exif()
    exif[0x0112] = 6
    small = Image.open(io.BytesIO(make_thumbnail(decoded(drawn(400, 200, "JPEG", exif=exif)))))
    assert small.height == 2 * small.width


def test_a_thumbnail_that_came_with_the_picture_is_stored(workspace):
    workspace.teach([new_example("cup", picture=picture(1))])
    assert workspace.thumbnail(1) == b"small"


@pytest.mark.parametrize("left", [None, b""])
def test_a_missing_or_empty_thumbnail_is_not_made_by_the_workspace(workspace, tmp_path, left):
    workspace.teach([new_example("cup", picture=Picture(drawn(9, 9), "image/png", 9, 9))])
    path = ImageStore(tmp_path / "workspace").thumbnail_path(workspace.example(1).image)
    if left is not None:
        path.parent.mkdir()
        path.write_bytes(left)
    assert workspace.thumbnail(1) is None
    workspace.write_thumbnail(1, b"made again")
    assert workspace.thumbnail(1) == b"made again"


def test_a_reader_writes_no_thumbnails(tmp_path):
    with new_workspace(tmp_path) as workspace:
        workspace.teach([new_example("cup", picture=Picture(drawn(9, 9), "image/png", 9, 9))])
    with Workspace.open(tmp_path / "workspace", read_only=True) as workspace:
        workspace.write_thumbnail(1, b"small")
        assert workspace.thumbnail(1) is None
    assert not list((tmp_path / "workspace" / "thumbnails").rglob("*.jpg"))


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
