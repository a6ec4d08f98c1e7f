"""Tables of paths and labels, next to a few images."""

from __future__ import annotations

import contextlib
import tempfile
from functools import cache
from pathlib import Path
from random import Random

from evergrow.foundation.errors import InvalidInputError
from evergrow.vision.images.labelled.finder import find_labelled
from evergrow.vision.images.labelled.labelled_images import check_label
from tests.fuzz.mutate_bytes import mutate_bytes
from tests.fuzz.targets import Target

_WORDS = (
    b",", b";", b"\t", b"|", b'"', b'""', b"\r\n", b"\n", b"\xef\xbb\xbf", b"../", b"/", b"\\",
    b"C:", b"a.png", b"b/c.png", b"red", b"path", b"label", b"split", b"train", b"known", b"false",
    b"path,label,fine,time,id,image\n", b"\0", b"\xff\xfe", b"'=",
)  # fmt: skip


@cache
def folder() -> Path:
    found = Path(tempfile.mkdtemp(prefix="evergrow-fuzz-")) / "data"
    (found / "b").mkdir(parents=True)
    for name in ("a.png", "b/c.png", "../outside.png"):
        (found / name).write_bytes(b"")
    return found


def run(content: bytes) -> None:
    path = folder() / "table.csv"
    path.write_bytes(content)
    for split in ("train", None):
        with contextlib.suppress(InvalidInputError):
            found = find_labelled(path, split=split)  # type: ignore[arg-type]
            assert len(found.paths) == len(found.labels) > 0
            for file, label in zip(found.paths, found.labels.tolist(), strict=True):
                assert file.resolve().is_relative_to(folder().resolve())
                assert check_label(label) is None


def change(content: bytes, random: Random) -> bytes:
    return mutate_bytes(content, random, _WORDS)


def seeds() -> dict[str, bytes]:
    return {
        "plain": b"path,label\na.png,red\nb/c.png,green\n",
        "quotes": b'\xef\xbb\xbfImage;Class;split\r\n"a.png";"red; or ""pink""";train\r\n',
        "workspace": b"path,label,fine,time,id,image\r\na.png,'=red,dark,,1,\r\n,x,,,2,\r\n",
        "answers": b"image,label,probability,known\na.png,red,0.9,true\nb/c.png,unknown,,false\n",
    }


TARGET = Target(run, change, seeds)
