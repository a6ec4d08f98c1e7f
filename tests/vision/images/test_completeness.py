"""Images whose last rows are missing are refused, complete ones are not."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from evergrow import ImageError
from evergrow.vision import read_image
from evergrow.vision.images.completeness import check_png_length
from tests.harness.malicious_files import png_that_claims
from tests.harness.pictures import photograph


def encode(image: Image.Image, kind: str, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def drawn(mode: str, size: tuple[int, int] = (37, 29)) -> Image.Image:
    pixels = np.random.default_rng(0).integers(1, 255, (size[1], size[0], 3), dtype=np.uint8)
    return Image.fromarray(pixels).convert(mode)


def with_less_data(png: bytes, n_lost: int) -> bytes:
    """The same file with the last bytes of the decompressed rows removed, and a proper end."""
    out, place, data = png[:8], 8, b""
    while place < len(png):
        size = int.from_bytes(png[place : place + 4], "big")
        kind = png[place + 4 : place + 8]
        if kind == b"IDAT":
            data += png[place + 8 : place + 8 + size]
        elif kind == b"IEND":
            packed = zlib.compress(zlib.decompress(data)[:-n_lost])
            body = b"IDAT" + packed
            out += struct.pack(">I", len(packed)) + body + struct.pack(">I", zlib.crc32(body))
            out += png[place:]
        else:
            out += png[place : place + 12 + size]
        place += 12 + size
    return out


def interlaced(width: int, height: int) -> bytes:
    """A grey PNG in seven passes, which Pillow cannot write."""
    pixels = np.random.default_rng(1).integers(1, 255, (height, width), dtype=np.uint8)
    passes = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2))
    rows = b""
    for left, top, step_x, step_y in (*passes, (0, 1, 1, 2)):
        for row in pixels[top::step_y, left::step_x]:
            rows += b"\0" + row.tobytes() if row.size else b""
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 1)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    ]
    content = b"\x89PNG\r\n\x1a\n"
    for kind, data in parts:
        body = kind + data
        content += struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))
    return content


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
@pytest.mark.parametrize("n_lost", [1, 40, 400])
def test_a_png_without_its_last_rows_is_refused(mode: str, n_lost: int) -> None:
    image = drawn("L" if mode == "I;16" else mode, (64, 64))
    content = encode(image.convert("I").convert("I;16") if mode == "I;16" else image, "PNG")
    n_bytes = 64 * (1 + 64 * {"1": 1, "L": 8, "P": 8, "LA": 16, "I;16": 16}.get(mode, 24) // 8)
    assert read_image(content).shape == (64, 64, 3)
    with pytest.raises(ImageError, match="truncated"):
        read_image(with_less_data(content, min(n_lost, n_bytes - 1)))


@pytest.mark.parametrize("size", [(1, 1), (3, 2), (5, 4), (8, 8), (9, 7), (33, 30)])
def test_an_interlaced_png_is_counted_pass_by_pass(size: tuple[int, int]) -> None:
    content = interlaced(*size)
    assert read_image(content).shape == (size[1], size[0], 3)
    with pytest.raises(ImageError, match="truncated"):
        read_image(with_less_data(content, 1))


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize("value", [0, 128, 255])
def test_a_complete_image_of_one_colour_is_not_refused(kind: str, mode: str, value: int) -> None:
    image = Image.new("L", (70, 50), value).convert(mode)
    assert read_image(encode(image, kind)).shape == (50, 70, 3)


def test_a_file_too_short_for_its_rows_is_refused_without_decoding_it() -> None:
    with pytest.raises(ValueError, match="truncated"):
        check_png_length(png_that_claims(7_000, 7_000, bytes(10 * 21_001)))


@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("max_side", [None, 64])
def test_a_jpeg_whose_data_end_early_is_refused(share: float, max_side: int | None) -> None:
    content = photograph(0)
    scan = content.rindex(b"\xff\xda")
    kept = content[: scan + 14 + int(share * (len(content) - scan - 14))].rstrip(b"\xff")
    assert read_image(content, max_side=max_side).size
    with pytest.raises(ImageError, match="truncated"):
        read_image(kept + b"\xff\xd9", max_side=max_side)


def cut_short(content: bytes, end: bytes) -> bytes:
    scan = content.rindex(b"\xff\xda")
    return content[: (scan + len(content)) // 2].rstrip(b"\xff") + end


@pytest.mark.parametrize("end", [b"\xff\xfe\x00\x04ab", b"\xff\xdc\x00\x04\x00\x40", b"\xff\xd3"])
def test_other_markers_at_the_end_do_not_hide_it(end: bytes) -> None:
    with pytest.raises(ImageError, match="truncated"):
        read_image(cut_short(photograph(0), end + b"\xff\xd9"))


def test_a_jpeg_in_cmyk_whose_data_end_early_is_refused() -> None:
    content = encode(Image.open(io.BytesIO(photograph(0))).convert("CMYK"), "JPEG")
    assert read_image(content).size
    with pytest.raises(ImageError, match="truncated"):
        read_image(cut_short(content, b"\xff\xd9"))


def test_a_jpeg_that_claims_more_rows_than_it_has_is_refused() -> None:
    content = photograph(0)
    place = content.index(b"\xff\xc0") + 5
    (height,) = struct.unpack_from(">H", content, place)
    taller = content[:place] + struct.pack(">H", height + 40) + content[place + 2 :]
    with pytest.raises(ImageError, match="truncated"):
        read_image(taller)


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"restart_marker_rows": 1}])
@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_complete_images_with_one_colour_at_their_end_are_not_refused(
    mode: str, options: dict[str, object]
) -> None:
    pixels = np.asarray(drawn("RGB", (120, 90))).copy()
    pixels[40:] = 255
    content = encode(Image.fromarray(pixels).convert(mode), "JPEG", **options)
    assert read_image(content).shape == (90, 120, 3)
    assert read_image(content, max_side=16).size


def test_a_jpeg_that_is_grey_below_is_not_refused() -> None:
    pixels = np.asarray(drawn("RGB", (64, 64))).copy()
    pixels[32:] = 128
    assert read_image(encode(Image.fromarray(pixels), "JPEG")).shape == (64, 64, 3)
