"""One image from any source: correct colours, upright, complete, and within the limits."""

from __future__ import annotations

import io
import os
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from evergrow import ImageError
from evergrow.vision import ReadLimits, read_image
from evergrow.vision.images.completeness import check_png_length
from evergrow.vision.images.decoder import read_upright_size
from tests.harness.malicious_files import png_that_claims
from tests.harness.pictures import photograph
from tests.vision.images.drawn import encoded, huge_png, noise, quarters

PICTURE = quarters()


def test_every_kind_of_source_gives_the_same_pixels(tmp_path: Path) -> None:
    content = encoded(PICTURE)
    path = tmp_path / "picture.png"
    path.write_bytes(content)
    with open(path, "rb") as file:
        sources = [path, str(path), content, bytearray(content), file, io.BytesIO(content)]
        sources += [PICTURE, Image.fromarray(PICTURE)]
        for source in sources:
            np.testing.assert_array_equal(read_image(source), PICTURE)


@pytest.mark.parametrize("kind", ["PNG", "BMP", "GIF", "TIFF", "PPM"])
def test_formats_without_loss_give_the_pixels_that_were_drawn(kind: str) -> None:
    np.testing.assert_array_equal(read_image(encoded(PICTURE, kind)), PICTURE)


def assert_close(content: bytes, most: int = 20) -> None:
    """The red quarter is as it was drawn, but for the loss of a format."""
    assert np.abs(read_image(content).astype(int) - PICTURE)[4:12, 4:12].max() < most


def heif(**options: Any) -> bytes:
    import pillow_heif

    file = io.BytesIO()
    pillow_heif.from_pillow(Image.fromarray(PICTURE)).save(file, quality=90, **options)
    return file.getvalue()


def test_pictures_of_phones_are_read_upright() -> None:
    assert_close(heif())
    assert_close(encoded(PICTURE, "AVIF", quality=90))
    exif = Image.Exif()
    exif[0x0112] = 3
    for content in (heif(exif=exif.tobytes()), encoded(PICTURE, "AVIF", exif=exif)):
        turned = read_image(content).astype(int)
        assert np.abs(turned[::-1, ::-1] - PICTURE)[4:12, 4:12].max() < 40


@pytest.mark.parametrize("share", [0.2, 0.6, 0.95])
def test_truncated_pictures_of_phones_are_refused(share: float) -> None:
    for content in (heif(), encoded(PICTURE, "AVIF")):
        with pytest.raises(ImageError):
            read_image(content[: int(share * len(content))])


FRAMES = {"save_all": True, "append_images": [Image.fromarray(PICTURE[::-1])]}


@pytest.mark.parametrize(
    ("kind", "options"),
    [("JPEG", {"quality": 95}), ("WEBP", {}), ("MPO", {**FRAMES, "quality": 95})],
)
def test_formats_with_loss_come_close(kind: str, options: dict[str, Any]) -> None:
    assert_close(encoded(PICTURE, kind, **options))


def test_an_animation_is_its_first_frame() -> None:
    np.testing.assert_array_equal(read_image(encoded(PICTURE, "GIF", **FRAMES)), PICTURE)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "WEBP"])
def test_an_image_is_rotated_by_its_exif_orientation(kind: str, orientation: int) -> None:
    # What a camera stores for each orientation, the world being the upright picture.
    wide = np.repeat(PICTURE, 2, axis=1)
    turned = wide.swapaxes(0, 1)
    stored = [
        wide,
        wide[:, ::-1],
        wide[::-1, ::-1],
        wide[::-1],
        turned,
        turned[::-1],
        turned[::-1, ::-1],
        turned[:, ::-1],
    ][orientation - 1]
    exif = Image.Exif()
    exif[0x0112] = orientation
    found = read_image(encoded(np.ascontiguousarray(stored), kind, exif=exif.tobytes()))
    assert found.shape == wide.shape
    assert np.abs(found.astype(int) - wide).mean() < 12


def test_transparent_parts_lie_on_white() -> None:
    layers = np.dstack([PICTURE, np.full((32, 32), 128, np.uint8)])
    layers[0, 0, 3] = 0
    found = read_image(encoded(layers))
    assert found[0, 0].tolist() == [255, 255, 255]
    assert found[1, 1].tolist() == [255, 127, 127]
    np.testing.assert_array_equal(read_image(layers), found)


def test_transparent_colours_of_a_palette_lie_on_white() -> None:
    palette = Image.fromarray(PICTURE).quantize(4)
    clear = palette.getpixel((0, 0))
    found = read_image(encoded(palette, transparency=clear))
    assert found[0, 0].tolist() == [255, 255, 255]
    np.testing.assert_array_equal(found[16:], PICTURE[16:])


def test_16_bits_of_grey_are_scaled_and_not_cut_off() -> None:
    deep = np.array([[0, 257, 65535, 32896]], dtype=np.uint16)
    for source in (deep, encoded(deep), encoded(deep, "TIFF"), Image.fromarray(deep)):
        assert read_image(source)[0, :, 0].tolist() == [0, 1, 255, 128]


def test_floating_point_grey_of_a_file_runs_from_0_to_1() -> None:
    content = encoded(np.array([[0.0, 1.0]], dtype=np.float32), "TIFF")
    assert read_image(content)[0, :, 0].tolist() == [0, 255]


def test_inverted_inks_of_a_jpeg_are_understood() -> None:
    content = encoded(Image.fromarray(PICTURE).convert("CMYK"), "JPEG", quality=95)
    assert_close(content, most=25)


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.array([[0, 255]], np.uint8), [0, 255]),
        (np.array([[[7], [9]]], np.uint8), [7, 9]),
        (np.array([[True, False]]), [255, 0]),
        (np.array([[0.0, 0.5, 1.0]]), [0, 128, 255]),
        (np.array([[0.0, 1.0]], np.float16), [0, 255]),
    ],
)
def test_arrays_of_every_allowed_type_are_read(array: Any, expected: list[int]) -> None:
    found = read_image(array)
    assert found.dtype == np.uint8
    assert found[0, :, 0].tolist() == expected


def test_what_is_read_from_an_array_is_a_copy() -> None:
    mine = PICTURE.copy()
    read_image(mine)[:] = 0
    np.testing.assert_array_equal(mine, PICTURE)


def test_a_jpeg_is_decoded_smaller_but_never_smaller_than_needed() -> None:
    content = encoded(noise(400, 900), "JPEG")
    assert read_image(content, max_side=90).shape == (100, 225, 3)
    assert read_image(content, max_side=101).shape == (200, 450, 3)
    assert read_image(content, max_side=500).shape == (400, 900, 3)


BAD = [
    (b"", "it is empty"),
    (b"hello", "not an image of a known format"),
    (b"%!PS-Adobe-3.0 EPSF-3.0\n", "not an image of a known format"),
    (b"\x89PNG\r\n\x1a\n", "PNG file is damaged"),
    (b"\xff\xd8\xff\xe0", "damaged"),
    (huge_png(50_000, 100), "50000 x 50000 pixels, more than the limit of 100000000"),
    (np.zeros((2, 2), np.int64), "uint8, uint16, bool or float in"),
    (np.full((2, 2), 255.0), "must lie in .0, 1., got values from 255 to 255"),
    (np.full((2, 2), np.nan), "must lie in"),
    (np.zeros((2, 2, 2), np.uint8), "1, 3 or 4 channels"),
    (np.zeros(4, np.uint8), "height, width"),
    (np.zeros((0, 4), np.uint8), "no pixels"),
    (np.array([["a"]]), "uint8, uint16"),
    (Image.new("I", (2, 2), 1 << 20), "more than 16 bits"),
    (io.StringIO("text"), "binary mode"),
    (None, "must be a path, bytes, a binary file, a Pillow image or an array, got NoneType"),
    ([[1, 2]], "got list"),
    ("a\0b.jpg", "null"),
    *(
        (encoded(noise(), kind)[: len(encoded(noise(), kind)) * 2 // 3], "file is truncated")
        for kind in ("JPEG", "PNG", "BMP", "GIF", "TIFF", "PPM")
    ),
    (encoded(noise(), "WEBP")[:1000], "could not create decoder object"),
]


@pytest.mark.parametrize(("source", "reason"), BAD)
def test_content_that_is_not_an_image_gives_an_error_with_the_reason(
    source: Any, reason: str
) -> None:
    with pytest.raises(ImageError, match=reason):
        read_image(source)


def test_the_pixel_limit_holds_for_every_source() -> None:
    limits = ReadLimits(max_pixels=32 * 32 - 1)
    for source in (encoded(PICTURE), PICTURE, Image.fromarray(PICTURE)):
        with pytest.raises(ImageError, match="more than the limit of 1023"):
            read_image(source, limits=limits)


def test_a_raised_pixel_limit_is_obeyed_without_a_warning(monkeypatch: Any) -> None:
    # Pillow's own limit belongs to the whole process; ours to the call.
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)
    assert read_image(encoded(PICTURE)).shape == PICTURE.shape


def test_a_stream_is_not_read_beyond_the_byte_limit() -> None:
    class Endless(io.RawIOBase):
        given = 0

        def read(self, size: int = -1) -> bytes:
            assert size > 0
            self.given += min(size, 64)
            return b"x" * min(size, 64)

    stream = Endless()
    with pytest.raises(ImageError, match="limit of 1000 bytes"):
        read_image(stream, limits=ReadLimits(max_bytes=1000))
    assert stream.given == 1001


def test_a_file_beyond_the_byte_limit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(encoded(PICTURE))
    with pytest.raises(ImageError, match=r"a\.png.*limit of 10 bytes"):
        read_image(tmp_path / "a.png", limits=ReadLimits(max_bytes=10))


def test_a_missing_file_a_folder_and_text_are_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "text.jpg").write_text("hello")
    for name, reason in [
        ("no.jpg", "no such file"),
        ("", "directory"),
        ("text.jpg", "not an image"),
    ]:
        with pytest.raises(ImageError, match=reason) as caught:
            read_image(tmp_path / name)
        assert str(tmp_path) in caught.value.source


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such pipes")
def test_a_pipe_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jpg")
    with pytest.raises(ImageError, match="not a regular file"):
        read_image(tmp_path / "pipe.jpg")


def test_a_name_cannot_write_into_the_terminal() -> None:
    with pytest.raises(ImageError) as caught:
        read_image("red\x1b[31m\nline\udcff.jpg")
    assert caught.value.source == r"'red\x1b[31m\nline\udcff.jpg'"


def test_limits_must_be_positive_integers() -> None:
    for value in (0, -1, 1.5, True, None):
        with pytest.raises(ValueError, match="max_pixels must be an integer of at least 1"):
            ReadLimits(max_pixels=value)  # type: ignore[arg-type]


def test_the_size_of_a_png_is_limited_before_its_orientation_is_looked_for() -> None:
    with pytest.raises(ValueError, match="more than the limit"):
        read_upright_size(huge_png(60_000, 1), ReadLimits())


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
    content = encoded(image.convert("I").convert("I;16") if mode == "I;16" else image, "PNG")
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
    content = encoded(Image.fromarray(pixels).convert(mode), "JPEG", **options)
    assert read_image(content).shape == (90, 120, 3)
    assert read_image(content, max_side=16).size


def test_a_jpeg_that_is_grey_below_is_not_refused() -> None:
    pixels = np.asarray(drawn("RGB", (64, 64))).copy()
    pixels[32:] = 128
    assert read_image(encoded(Image.fromarray(pixels), "JPEG")).shape == (64, 64, 3)
