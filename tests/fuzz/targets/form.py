"""Multipart bodies: a form of the service, with its Content-Type on the first line."""

from __future__ import annotations

import contextlib
from random import Random

from evergrow.service.http.requests import parse_form
from evergrow.service.http.responses import ProblemError
from tests.fuzz.mutate_bytes import mutate_bytes
from tests.fuzz.targets import Target

_WORDS = (
    b"--", b"\r\n", b"\r\n\r\n", b"--b", b"\r\n--b\r\n", b"\r\n--b--", b"--b--\r\n", b"boundary=",
    b"multipart/form-data; boundary=b", b'Content-Disposition: form-data; name="image"',
    b'; filename="a.jpg"', b"Content-Type: image/png\r\n", b'name="label"', b'name=""', b"\\\"",
    b"Content-Transfer-Encoding: base64\r\n", b"name*=UTF-8''image", b'"', b";", b":", b"\n",
)  # fmt: skip
_TYPE = b"multipart/form-data; boundary=b\n"


def run(content: bytes) -> None:
    content_type, _, body = content.partition(b"\n")
    with contextlib.suppress(ProblemError):
        parts = parse_form(body, content_type.decode("latin-1"), max_parts=3)
        assert len(parts) <= 3
        assert all(type(name) is str for name, _ in parts)
        assert sum(len(part) for _, part in parts) <= len(body)


def change(content: bytes, random: Random) -> bytes:
    return mutate_bytes(content, random, _WORDS)


def seeds() -> dict[str, bytes]:
    part = b'--b\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n'
    image = part % (
        b"image",
        b'; filename="a.png"\r\nContent-Type: image/png',
        b"\x89PNG\r\n\x1a\n",
    )
    label = part % (b"label", b"", "Häferl".encode())
    fine = part % (b"fine", b"", b"blue cup")
    return {
        "image": _TYPE + image + b"--b--\r\n",
        "labelled": _TYPE + image + label + fine + b"--b--\r\n",
        "unquoted": b"Multipart/Form-Data; charset=utf-8; boundary=b\n" + label + b"--b--",
        "without_end": _TYPE + image,
    }


TARGET = Target(run, change, seeds)
