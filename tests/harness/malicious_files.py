"""Malicious files: each is refused with a reason, and memory is released afterwards."""

from __future__ import annotations

import gzip
import io
import socket
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from tests.harness.floods import malicious_json
from tests.harness.http_client import LOST, Body, Caller, Reply, picture_body, pictures_body
from tests.harness.pictures import photograph, picture

MEGABYTE = 1 << 20


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _png(width: int, height: int, packed: bytes, *, kind: int = 0, depth: int = 8) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", packed), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in parts)


def png_that_claims(width: int, height: int, rows: bytes = b"") -> bytes:
    """A small PNG file that claims to be large."""
    return _png(width, height, zlib.compress(rows), kind=2)


def _zeros(n_bytes: int) -> bytes:
    """Compress very many zeros without holding them in memory."""
    packer = zlib.compressobj(9)
    block = bytes(MEGABYTE)
    whole = b"".join(packer.compress(block) for _ in range(n_bytes // MEGABYTE))
    return whole + packer.flush()


def _saved(kind: str, size: tuple[int, int] = (64, 48), **options: object) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", size, "green").save(file, kind, **options)
    return file.getvalue()


def _with_size(jpeg: bytes, width: int, height: int) -> bytes:
    """A JPEG whose header claims another size."""
    place = jpeg.index(b"\xff\xc0") + 5
    return jpeg[:place] + struct.pack(">HH", height, width) + jpeg[place + 4 :]


def _with_less_data(jpeg: bytes) -> bytes:
    """A JPEG with a proper end and half of its data."""
    scan = jpeg.rindex(b"\xff\xda")
    return jpeg[: (scan + len(jpeg)) // 2].rstrip(b"\xff") + b"\xff\xd9"


def _text_bomb(text: bytes) -> bytes:
    """A small PNG with a long compressed text."""
    png = _saved("PNG")
    return png[:33] + _chunk(b"zTXt", b"Comment\0\0" + text) + png[33:]


def _archive(content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("picture.png", content)
    return file.getvalue()


def _svg() -> bytes:
    return (
        b'<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY a "aaaaaaaaaa">'
        b'<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
        b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script>&b;</svg>'
    )


@cache
def malicious_files() -> Mapping[str, bytes]:
    """Files that are not valid pictures, by name."""
    jpeg, png, archive = photograph(0), _saved("PNG"), _archive(bytes(256 * MEGABYTE))
    return {
        "empty": b"",
        "one byte": b"\xff",
        "text": b"not a picture at all\n" * 50,
        "PNG bomb, 50000 x 50000": _png(50_000, 50_000, _zeros(256 * MEGABYTE)),
        "PNG bomb, just the header": _png(2_147_483_647, 2_147_483_647, b"", depth=1),
        "PNG with 512 MB of packed text": _text_bomb(_zeros(512 * MEGABYTE)),
        "JPEG claiming 65500 x 65500": _with_size(jpeg, 65_500, 65_500),
        "JPEG claiming no pixel": _with_size(jpeg, 0, 0),
        "truncated JPEG": jpeg[: len(jpeg) // 2],
        "truncated JPEG header": jpeg[:20],
        "truncated PNG": png[: len(png) // 2],
        "PNG with a wrong checksum": png[:40] + b"\0\0\0\0" + png[44:],
        "10000 x 1 pixels": _saved("PNG", (10_000, 1)),
        "1 x 10000 pixels": _saved("PNG", (1, 10_000)),
        "SVG with a script and entities": _svg(),
        "script that begins as a GIF": b"GIF89a/*" + bytes(64) + b"*/=1;alert(document.domain)//",
        "page that begins as a PNG": png[:8] + b"<html><script>alert(1)</script></html>",
        "JPEG with an archive behind it": jpeg + archive,
        "PostScript that never ends": (
            b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 99 99\n{ } loop\n"
        ),
        "zip bomb": archive,
        "gzip": gzip.compress(jpeg),
        "PDF": b"%PDF-1.7\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n",
    }


@cache
def refused_files() -> Mapping[str, tuple[bytes, set[int], str]]:
    """Files that decoders refuse: content, statuses that fit, a word of the reason."""
    jpeg, png, gif = picture(), picture("PNG"), picture("GIF")
    archive = _archive(b"alert(1)")
    return {
        "empty": (b"", {422}, "empty"),
        "text": (b"hello", {415}, "format"),
        "svg": (_svg(), {415}, "format"),
        "html": (b"<!doctype html><script>alert(1)</script>", {415}, "format"),
        "zip": (archive, {415}, "format"),
        "pdf": (b"%PDF-1.7\n" + b"x" * 100, {415}, "format"),
        "many pixels": (png_that_claims(50_000, 50_000), {413}, "pixels"),
        "many pixels in a few bytes": (png_that_claims(65_535, 65_535), {413}, "pixels"),
        "long text": (_text_bomb(zlib.compress(b"A" * 80_000_000)), {413, 422}, ""),
        "rows that are missing": (png_that_claims(5_000, 5_000), {422}, "rows are missing"),
        "most rows missing": (
            png_that_claims(5_000, 5_000, bytes(10 * 15_001)),
            {422},
            "rows are missing",
        ),
        "data of a JPEG end early": (_with_less_data(photograph(0)), {422}, "rows are missing"),
        "too long": (_saved("PNG", (10_000, 1)), {413}, "100 times"),
        "too high": (png_that_claims(1, 10_000, bytes(40_000)), {413}, "100 times"),
        "no pixels": (png_that_claims(0, 5), {413, 422}, ""),
        "a truncated JPEG": (jpeg[: len(jpeg) // 2], {422}, "truncated"),
        "a JPEG without an end": (jpeg[:-2], {422}, "truncated"),
        "a truncated PNG": (png[: len(png) // 2], {422}, "truncated"),
        "a truncated GIF": (gif[: len(gif) // 2], {422}, ""),
        "only the head of a JPEG": (jpeg[:4], {415, 422}, ""),
        "a broken JPEG": (jpeg[:100] + bytes(200) + jpeg[300:], {422}, ""),
        "a JPEG and a ZIP": (jpeg + archive, {422}, "ZIP"),
        "a PNG and a ZIP": (png + archive, {422}, "ZIP"),
        "a JPEG and a PDF": (_with_comment(jpeg, b"%PDF-1.7"), {422}, "PDF"),
        "a JPEG and markup": (_with_comment(jpeg, b"<script>alert(1)</script>"), {422}, "markup"),
        "a GIF and markup": (gif + b"<html><script>alert(1)</script>", {422}, "markup"),
        "a JPEG and a program": (jpeg + b"\x7fELF" + bytes(100) + b"x", {422}, "follow"),
        "a PNG and PHP": (png + b"<?php system($_GET['c']); ?>", {422}, "markup"),
    }


def _with_comment(jpeg: bytes, text: bytes) -> bytes:
    return jpeg[:2] + b"\xff\xfe" + struct.pack(">H", len(text) + 2) + text + jpeg[2:]


@dataclass(frozen=True)
class Refusal:
    """The response to a malicious file."""

    name: str
    status: int
    detail: str

    @property
    def refused(self) -> bool:
        return 400 <= self.status < 500 and bool(self.detail)


def refusals(port: int, token: str) -> Iterator[Refusal]:
    """Send every malicious file as an example and for a prediction."""
    for name, content in malicious_files().items():
        yield _refusal(name, port, token, "/v1/examples", picture_body(content, "malicious"))
        yield _refusal(f"{name}, predict", port, token, "/v1/predictions", pictures_body([content]))
    for name, body in malicious_json().items():
        yield _refusal(f"{name}, predict", port, token, "/v1/predictions", body)
        yield _refusal(f"{name}, as a change", port, token, "/v1/forget", body)
    many = pictures_body([photograph(0, width=32, height=24)] * 33)
    yield _refusal("33 pictures at once, predict", port, token, "/v1/predictions", many)
    for stated in (True, False):
        name = f"200 MB, length {'stated' if stated else 'not stated'}"
        yield _to_refusal(name, _too_large(port, token, 200 * MEGABYTE, stated=stated))


def _refusal(name: str, port: int, token: str, path: str, body: Body) -> Refusal:
    caller = Caller(port, token, timeout=120)
    try:
        return _to_refusal(name, caller.request("POST", path, body))
    except LOST as error:
        return Refusal(name, 0, repr(error))
    finally:
        caller.close()


def _to_refusal(name: str, reply: Reply) -> Refusal:
    right = reply.headers.get("content-type", "").startswith("application/problem+json")
    detail = str(reply.json()["detail"]) if right else ""
    return Refusal(name, reply.status, detail)


def _too_large(port: int, token: str, n_bytes: int, *, stated: bool) -> Reply:
    """Send more than the limit, until the service responds."""
    length = f"Content-Length: {n_bytes}" if stated else "Transfer-Encoding: chunked"
    head = (
        f"POST /v1/examples HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: multipart/form-data; boundary=x\r\n{length}\r\n\r\n"
    )
    block = bytes(MEGABYTE)
    piece = block if stated else f"{len(block):x}\r\n".encode() + block + b"\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        try:
            connection.sendall(head.encode())
            for _ in range(n_bytes // MEGABYTE):
                connection.sendall(piece)
        except OSError:
            # The service has responded and closed the connection.
            pass
        return _read(connection)


def _read(connection: socket.socket) -> Reply:
    received = b""
    try:
        while content := connection.recv(1 << 16):
            received += content
            if _is_complete(received):
                break
    except OSError:
        pass
    if b"\r\n\r\n" not in received:
        return Reply(0, {}, b"no response")
    head, content = received.split(b"\r\n\r\n", 1)
    lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}
    return Reply(int(lines[0].split(" ")[1]), headers, content)


def _is_complete(received: bytes) -> bool:
    head, _, content = received.partition(b"\r\n\r\n")
    place = head.lower().find(b"content-length:")
    if place < 0:
        return False
    return len(content) >= int(head[place + 15 :].split(b"\r\n", 1)[0])
