"""Encoded images, as the process of the service decodes them; checksums of PNG are made right."""

from __future__ import annotations

import contextlib
import io
import struct
import warnings
import zlib
from random import Random

import numpy as np
import pillow_heif
from PIL import Image

from evergrow.service.decoding.protocol import RefusedImageError
from evergrow.service.decoding.worker import prepare_image
from evergrow.vision.embedding.preprocessing import Preprocessing
from evergrow.vision.images.decoder import read_header
from evergrow.vision.images.sources import ReadLimits
from tests.fuzz.mutate_bytes import mutate_bytes
from tests.fuzz.targets import Target

_LIMITS = ReadLimits(max_pixels=1 << 16, max_bytes=1 << 16)
_SIDE = 8
_PNG = b"\x89PNG\r\n\x1a\n"
_WORDS = (
    b"IHDR", b"IDAT", b"IEND", b"tRNS", b"PLTE", b"acTL", b"\xff\xd8\xff", b"\xff\xc0", b"\xff\xda",
    b"\xff\xd9", b"\xff\xe1", b"Exif\0\0", b"GIF89a", b"RIFF", b"WEBPVP8L", b"BM", b"<script>",
    b"%PDF-", b"PK\x05\x06", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\0",
    b"ftypavif", b"ftypheic", b"iloc", b"ispe", b"mdat",
)  # fmt: skip


def run(content: bytes) -> None:
    with warnings.catch_warnings(), contextlib.suppress(RefusedImageError):
        warnings.simplefilter("ignore")
        preprocessing = Preprocessing(size=_SIDE)
        found = prepare_image(content, preprocessing, _LIMITS, thumbnail=True)
        assert found.pixels.shape[:2] == (_SIDE, _SIDE)
        assert found.width * found.height <= _LIMITS.max_pixels
    with warnings.catch_warnings(), contextlib.suppress(ValueError):
        warnings.simplefilter("ignore")
        read_header(content)


def change(content: bytes, random: Random) -> bytes:
    changed = mutate_bytes(content, random, _WORDS)
    return _with_checksums(changed) if changed.startswith(_PNG) else changed


def _with_checksums(content: bytes) -> bytes:
    """A PNG whose chunks have the checksums that belong to them, as far as there are chunks."""
    parts, at = [_PNG], len(_PNG)
    while at + 12 <= len(content):
        (size,) = struct.unpack(">I", content[at : at + 4])
        chunk = content[at + 4 : at + 8 + size]
        if len(chunk) < 4 + size:
            break
        parts += [content[at : at + 4], chunk, struct.pack(">I", zlib.crc32(chunk))]
        at += 12 + size
    return b"".join([*parts, content[at:]])


def seeds() -> dict[str, bytes]:
    pixels = np.random.default_rng(0).integers(0, 255, (5, 7, 4), dtype=np.uint8)
    found = {}
    for name, mode, options in (
        ("png", "RGBA", {}),
        ("png", "P", {}),
        ("jpeg", "RGB", {"quality": 30}),
        ("gif", "P", {}),
        ("webp", "RGB", {"quality": 10}),
        ("bmp", "RGB", {}),
        ("avif", "RGB", {"quality": 10}),
        ("heif", "RGB", {"quality": 10}),
    ):
        target = io.BytesIO()
        image = Image.fromarray(pixels).convert(mode)
        if name == "heif":
            pillow_heif.from_pillow(image).save(target, **options)
        else:
            image.save(target, name, **options)
        found[f"{name}_{mode.lower()}"] = target.getvalue()
    return found


TARGET = Target(run, change, seeds)
