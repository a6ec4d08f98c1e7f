"""Folders of workspaces: a manifest, a database as SQL, and embeddings, in one JSON object."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import sqlite3
import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path
from random import Random

import numpy as np

from evergrow.foundation.errors import EvergrowError
from evergrow.workspace import Workspace, check_workspace
from evergrow.workspace.store.layout import FORMAT
from tests.fuzz.mutate_bytes import mutate_bytes
from tests.fuzz.mutations import mutate_json
from tests.fuzz.targets import Target
from tests.workspace.builders import new_example, new_workspace, picture, request_with_key

_PARENT = Path(tempfile.mkdtemp(prefix="evergrow-fuzz-"))
# A value in a row: text, a number or nothing.
_VALUE = re.compile(r"(?<=[(,])(?:'(?:[^']|'')*'|-?[0-9.]+|NULL)(?=[,)])")
_VALUES = (
    "NULL", "0", "1", "2", "-1", "99", "9223372036854775807", "-9223372036854775808", "1e308",
    "0.5", "''", "'a'", "'cup'", "'{}'", "'[]'", "'{\"class\": 1}'", "'null'", "x'00ff'",
    "'2026-13-45T99:99:99Z'", "'teach'", "'undo'", "'embed'", "'choose'", "'../../a'",
)  # fmt: skip
_N_FEATURES = 3
# A file that a manifest promises may be missing.
_ALLOWED = (EvergrowError, FileNotFoundError)


def run(content: bytes) -> None:
    folder = _PARENT / "workspace"
    shutil.rmtree(folder, ignore_errors=True)
    if not _write(folder, content):
        return
    with contextlib.suppress(*_ALLOWED):
        check_workspace(folder)
    with contextlib.suppress(*_ALLOWED), Workspace.open(folder, read_only=True) as workspace:
        _read(workspace)
    with contextlib.suppress(*_ALLOWED), Workspace.open(folder) as workspace:
        _read(workspace)
        with contextlib.suppress(*_ALLOWED):
            workspace.undo()
        workspace.check(repair=True)
    with contextlib.suppress(*_ALLOWED), Workspace.open(folder) as workspace:
        _read(workspace)


def _read(workspace: Workspace) -> None:
    workspace.status()
    workspace.classes(limit=10)
    workspace.examples(limit=10)
    workspace.events(limit=10)
    workspace.predict(np.ones((1, _N_FEATURES), np.float32))


def _write(folder: Path, content: bytes) -> bool:
    """Write the folder; whether there is anything to open."""
    try:
        entry = json.loads(content)
        manifest, sql = json.dumps(entry["manifest"]), str(entry["sql"])
        embeddings = bytes.fromhex(entry["embeddings"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return False
    (folder / "embeddings").mkdir(parents=True)
    (folder / "images").mkdir()
    (folder / "workspace.json").write_text(manifest)
    (folder / "embeddings" / "000000.npy").write_bytes(embeddings)
    database = sqlite3.connect(folder / "examples.sqlite", isolation_level=None)
    try:
        database.executescript(sql.replace("\0", ""))
    except (sqlite3.Error, UnicodeEncodeError):
        return False
    finally:
        database.close()
    return True


def change(content: bytes, random: Random) -> bytes:
    try:
        entry = json.loads(content)
        match random.randrange(5):
            case 0:
                mutate_json(entry["manifest"], random)
            case 1:
                embeddings = mutate_bytes(bytes.fromhex(entry["embeddings"]), random)
                entry["embeddings"] = embeddings.hex()
            case _:
                entry["sql"] = _with_other_value(entry["sql"], random)
        return json.dumps(entry).encode()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, IndexError):
        return random.choice(list(seeds().values()))


def _with_other_value(sql: str, random: Random) -> str:
    lines = sql.split("\n")
    places = [n for n, line in enumerate(lines) if line.startswith("INSERT")]
    at = random.choice(places)
    if random.random() < 0.1:
        del lines[at]
        return "\n".join(lines)
    values = list(_VALUE.finditer(lines[at]))
    chosen = random.choice(values)
    # Another value of the same row, of the same place in another row, or a fixed one.
    other = random.choice(list(_VALUE.finditer(lines[random.choice(places)])) or values)
    new = random.choice((other.group(), random.choice(_VALUES), random.choice(_VALUES)))
    lines[at] = lines[at][: chosen.start()] + new + lines[at][chosen.end() :]
    return "\n".join(lines)


@cache
def seeds() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as parent:
        with new_workspace(Path(parent), rows_per_shard=16) as workspace:
            _change_everything(workspace)
        folder = Path(parent) / "workspace"
        with closing(sqlite3.connect(folder / "examples.sqlite")) as connection:
            lines = [*connection.iterdump(), f"PRAGMA user_version = {FORMAT};"]
        entry = {
            "manifest": json.loads((folder / "workspace.json").read_text()),
            "sql": "\n".join(lines) + "\n",
            "embeddings": (folder / "embeddings" / "000000.npy").read_bytes().hex(),
        }
    return {"every_change": json.dumps(entry).encode()}


def _change_everything(workspace: Workspace) -> None:
    """Make every kind of change once."""
    workspace.teach([new_example("cup", n, fine="red", picture=picture(n)) for n in range(2)])
    workspace.teach([new_example("cup", n, fine="blue") for n in range(2, 4)])
    workspace.teach([new_example("cup", 4, request=request_with_key("key"))])
    workspace.teach(
        [new_example("mug", 5), new_example("pen", 6), new_example("secret", 7, picture=picture(7))]
    )
    workspace.forget("secret", erase=True)
    workspace.merge("mug", "pen")
    workspace.rename("pen", "pencil")
    workspace.relabel(6, label="cup", fine="red")
    workspace.remove(7)
    workspace.undo()
    cup = workspace.class_named("cup")
    workspace.split("cup")
    workspace._writer.record_guesses(cup.id, [(5, cup.fine[0].id, 0.75)])
    workspace.assess(force=True)


TARGET = Target(run, change, seeds)
