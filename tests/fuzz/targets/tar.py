"""WebDataset tar files; the checksums of their headers are made right."""

from __future__ import annotations

import contextlib
import gzip
import io
import tarfile
from random import Random

from evergrow.foundation.errors import InvalidInputError
from evergrow.vision.images.labelled.finder import find_labelled
from evergrow.vision.images.labelled.labelled_images import check_label
from evergrow.vision.images.labelled.webdataset import TarImage
from evergrow.vision.images.sources import DEFAULT_LIMITS
from tests.fuzz.mutate_bytes import mutate_bytes
from tests.fuzz.targets import Target
from tests.fuzz.targets.table import folder

_BLOCK = 512
_WORDS = (
    b"ustar\x0000", b"ustar  \0", b"0", b"5", b"L", b"K", b"x", b"g", b"2", b"00000001000\0",
    b"\x80", b"\xff", b"../", b"/", b"./", b".png", b".cls", b".json", b".txt", b"GNU.sparse",
    b"20 path=a/b.png\n", b'{"label": "red"}', b"\x1f\x8b\x08",
)  # fmt: skip


def run(content: bytes) -> None:
    path = folder() / "shard.tar"
    path.write_bytes(content)
    with contextlib.suppress(InvalidInputError):
        found = find_labelled(path)
        assert len(found.sources) == len(found.labels) > 0
        for source, label in zip(found.sources, found.labels.tolist(), strict=True):
            assert isinstance(source, TarImage)
            assert check_label(label) is None
            assert ".." not in source.member.name.split("/")
            with contextlib.suppress(InvalidInputError):
                assert len(source.read_bytes(DEFAULT_LIMITS)) == source.member.n_bytes


def change(content: bytes, random: Random) -> bytes:
    if content[:2] == b"\x1f\x8b":
        with contextlib.suppress(OSError, EOFError, ValueError):
            return gzip.compress(change(gzip.decompress(content), random), mtime=0)
    changed = bytearray(mutate_bytes(content, random, _WORDS))
    for at in range(0, len(changed) - _BLOCK + 1, _BLOCK):
        block = changed[at : at + _BLOCK]
        if block[257:262] == b"ustar":
            total = sum(block[:148]) + 8 * 32 + sum(block[156:])
            changed[at + 148 : at + 156] = f"{total:06o}\0 ".encode()
    return bytes(changed)


def seeds() -> dict[str, bytes]:
    found = {}
    for name, kind in (("gnu", tarfile.GNU_FORMAT), ("pax", tarfile.PAX_FORMAT)):
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w", format=kind) as archive:
            for member, content in (
                (f"{'d/' * 60}a.png", b"image"),
                (f"{'d/' * 60}a.cls", b"7"),
                ("b.jpg", b"other"),
                ("b.json", b'{"label": "red"}'),
            ):
                entry = tarfile.TarInfo(member)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        # Without the padding to twenty blocks.
        found[name] = file.getvalue().rstrip(b"\0")
        found[name] += bytes(-len(found[name]) % _BLOCK + 2 * _BLOCK)
    return {**found, "gzip": gzip.compress(found["gnu"], mtime=0)}


TARGET = Target(run, change, seeds)
