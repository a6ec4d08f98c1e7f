"""Manifests of shards, with a right hash of their own, next to files that are as they should be."""

from __future__ import annotations

import contextlib
import json
import tempfile
from functools import cache
from pathlib import Path
from random import Random

from evergrow import ShardError, open_shards
from evergrow.storage.shards.manifest import _hash
from tests.fuzz.mutations import mutate_json
from tests.fuzz.targets import Target
from tests.storage.shards.folders import folder_of_shards


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="evergrow-fuzz-")) / "shards"
    folder_of_shards(folder)
    return folder


def run(content: bytes) -> None:
    (_folder() / "shards.json").write_bytes(content)
    with contextlib.suppress(ShardError):
        shards = open_shards(_folder())
        shards.verify()
        rows = shards[:]
        assert len(rows) == len(shards)
        if shards.labels is not None:
            assert len(shards.labels) == len(shards)


def change(content: bytes, random: Random) -> bytes:
    try:
        manifest = json.loads(content)
        manifest.pop("sha256", None)
        for _ in range(random.choice((1, 1, 2, 3))):
            mutate_json(manifest, random)
        return json.dumps({**manifest, "sha256": _hash(manifest)}).encode()
    except (ValueError, TypeError, AttributeError, RecursionError):
        return next(iter(seeds().values()))


@cache
def seeds() -> dict[str, bytes]:
    folder = Path(tempfile.mkdtemp(prefix="evergrow-fuzz-")) / "shards"
    folder_of_shards(folder)
    return {"labelled": (folder / "shards.json").read_bytes()}


TARGET = Target(run, change, seeds)
