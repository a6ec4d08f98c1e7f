"""Model files: refused, or good for everything that a model can do."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

from tests.fuzz.files import decode, encode
from tests.fuzz.models import KINDS, files_of
from tests.fuzz.mutations import mutate
from tests.fuzz.targets import Target
from tests.fuzz.use import load_or_refuse, use

_FOLDER = Path(tempfile.mkdtemp(prefix="evergrow-fuzz-"))


def run(content: bytes) -> None:
    path = _FOLDER / "model.evergrow"
    path.write_bytes(content)
    model = load_or_refuse(str(path))
    if model is not None:
        use(model, str(_FOLDER / "again.evergrow"))


def change(content: bytes, random: Random) -> bytes:
    decoded = decode(content)
    if decoded is None or random.random() < 0.1:
        decoded = decode(random.choice(files_of(random.choice(list(KINDS)))))
    assert decoded is not None
    return encode(*mutate(*decoded, random))


def seeds() -> dict[str, bytes]:
    # The smallest of each kind: mutations start from the others too.
    return {kind.replace(" ", "_"): min(files_of(kind), key=len) for kind in KINDS}


TARGET = Target(run, change, seeds)
