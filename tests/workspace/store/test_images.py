"""Image files and thumbnails."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from evergrow import ImageError
from evergrow.vision.images.thumbnails import THUMBNAIL_SIDE, make_thumbnail
from evergrow.workspace import Picture, Workspace
from evergrow.workspace.store.files import ImageStore
from tests.workspace.builders import new_example, new_workspace, picture


def drawn(width, height, kind="PNG", **options):
    pixels = np.zeros((height, width, 3), dtype=np.uint8)
    pixels[:, : width // 2, 0] = 255
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind, **options)
    return file.getvalue()


@pytest.mark.parametrize(("width", "height"), [(640, 480), (480, 640), (8, 8), (1000, 2)])
def test_a_thumbnail_fits_its_square_and_keeps_the_shape(width, height):
    small = Image.open(io.BytesIO(make_thumbnail(drawn(width, height))))
    assert small.format == "JPEG"
    assert max(small.size) == min(max(width, height), THUMBNAIL_SIDE)
    assert small.width / small.height == pytest.approx(width / height, rel=0.2) or height < 3


def test_a_thumbnail_respects_the_orientation_of_the_camera():
    exif = Image.Exif()
    exif[0x0112] = 6
    small = Image.open(io.BytesIO(make_thumbnail(drawn(400, 200, "JPEG", exif=exif))))
    assert small.height == 2 * small.width


def test_a_thumbnail_that_came_with_the_picture_is_stored(workspace):
    workspace.teach([new_example("cup", picture=picture(1))])
    assert workspace.thumbnail(1) == b"small"


@pytest.mark.parametrize("left", [None, b""])
def test_a_missing_or_empty_thumbnail_is_made_again(workspace, tmp_path, left):
    content = drawn(300, 200)
    workspace.teach([new_example("cup", picture=Picture(content, "image/png", 300, 200))])
    path = ImageStore(tmp_path / "workspace").thumbnail_path(workspace.example(1).image)
    if left is not None:
        path.parent.mkdir()
        path.write_bytes(left)
    small = workspace.thumbnail(1)
    assert small == make_thumbnail(content)
    assert path.read_bytes() == small


def test_a_reader_makes_thumbnails_and_writes_none(tmp_path):
    with new_workspace(tmp_path) as workspace:
        workspace.teach([new_example("cup", picture=Picture(drawn(9, 9), "image/png", 9, 9))])
    with Workspace.open(tmp_path / "workspace", read_only=True) as workspace:
        assert workspace.thumbnail(1)
    assert not list((tmp_path / "workspace" / "thumbnails").rglob("*.jpg"))


def test_a_picture_that_is_not_an_image_has_no_thumbnail(workspace):
    workspace.teach([new_example("cup", picture=Picture(b"no image", "image/png", 9, 9))])
    with pytest.raises(ImageError):
        workspace.thumbnail(1)
