"""Pictures to teach with, and files that are none or worse."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib

import numpy as np
from PIL import Image


def picture(
    kind: str = "JPEG", size: tuple[int, int] = (64, 48), seed: int = 0, **options: object
) -> bytes:
    """An image file of coloured patches."""
    rng = np.random.default_rng(seed)
    patches = rng.integers(0, 255, (6, 8, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(patches).resize(size, Image.Resampling.NEAREST).save(file, kind, **options)
    return file.getvalue()


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)


def png_that_claims(width: int, height: int, rows: bytes = b"") -> bytes:
    """A small PNG file that says it is large."""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", head)
        + _chunk(b"IDAT", zlib.compress(rows))
        + _chunk(b"IEND", b"")
    )


def line(width: int = 10_000) -> bytes:
    """An image of one row."""
    file = io.BytesIO()
    Image.new("RGB", (width, 1)).save(file, "PNG")
    return file.getvalue()


def archive() -> bytes:
    """A ZIP file."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as zipped:
        zipped.writestr("script.js", "alert(1)")
    return file.getvalue()


def bomb_of_text() -> bytes:
    """A PNG with a compressed note that is a thousand times as large."""
    whole = picture("PNG")
    note = b"Comment\x00\x00" + zlib.compress(b"A" * 80_000_000)
    return whole[:33] + _chunk(b"zTXt", note) + whole[33:]


def hostile() -> dict[str, tuple[bytes, set[int], str]]:
    """Files that must be refused: content, statuses that fit, a word of the reason."""
    jpeg, png, gif = picture(), picture("PNG"), picture("GIF")
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
    return {
        "empty": (b"", {422}, "empty"),
        "text": (b"hello", {415}, "format"),
        "svg": (svg, {415}, "format"),
        "html": (b"<!doctype html><script>alert(1)</script>", {415}, "format"),
        "zip": (archive(), {415}, "format"),
        "pdf": (b"%PDF-1.7\n" + b"x" * 100, {415}, "format"),
        "a bomb of pixels": (png_that_claims(50_000, 50_000), {413}, "pixels"),
        "a bomb of a few bytes": (png_that_claims(65_535, 65_535), {413}, "pixels"),
        "a bomb of text": (bomb_of_text(), {413, 422}, ""),
        "rows that are missing": (png_that_claims(5_000, 5_000), {422}, ""),
        "too long": (line(), {413}, "100 times"),
        "too high": (png_that_claims(1, 10_000, bytes(40_000)), {413}, "100 times"),
        "no pixels": (png_that_claims(0, 5), {413, 422}, ""),
        "a truncated JPEG": (jpeg[: len(jpeg) // 2], {422}, "truncated"),
        "a JPEG without an end": (jpeg[:-2], {422}, "truncated"),
        "a truncated PNG": (png[: len(png) // 2], {422}, "truncated"),
        "a truncated GIF": (gif[: len(gif) // 2], {422}, ""),
        "only the head of a JPEG": (jpeg[:4], {415, 422}, ""),
        "a broken JPEG": (jpeg[:100] + bytes(200) + jpeg[300:], {422}, ""),
        "a JPEG and a ZIP": (jpeg + archive(), {422}, "ZIP"),
        "a PNG and a ZIP": (png + archive(), {422}, "ZIP"),
        "a JPEG and a PDF": (_with_comment(jpeg, b"%PDF-1.7"), {422}, "PDF"),
        "a JPEG and markup": (_with_comment(jpeg, b"<script>alert(1)</script>"), {422}, "markup"),
        "a GIF and markup": (gif + b"<html><script>alert(1)</script>", {422}, "markup"),
        "a JPEG and a program": (jpeg + b"\x7fELF" + bytes(100) + b"x", {422}, "follow"),
        "a PNG and PHP": (png + b"<?php system($_GET['c']); ?>", {422}, "markup"),
    }


def _with_comment(jpeg: bytes, text: bytes) -> bytes:
    return jpeg[:2] + b"\xff\xfe" + struct.pack(">H", len(text) + 2) + text + jpeg[2:]
