"""Model snapshots on disk: a folder per event, whole or not there, the newest two kept.

A snapshot holds the nonce of its event. That of another history, such as of a database that a
backup has taken the place of, is not used.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from evergrow.estimators.forest import NCMForestClassifier
from evergrow.estimators.linear import RLSClassifier
from evergrow.foundation.atomic import sync_folder
from evergrow.foundation.errors import ModelFileError, WorkspaceError
from evergrow.storage.loading import load
from evergrow.workspace.model.assessment import Assessment, choice_of
from evergrow.workspace.model.forest import Beside
from evergrow.workspace.model.least_squares import Learnt

__all__ = [
    "Saved",
    "drop_before",
    "drop_foreign",
    "newest_event",
    "read_snapshots",
    "unusable",
    "write_snapshot",
]

# The nonce that an event has in the database; None if there is no such event.
NonceOf: TypeAlias = Callable[[int], str | None]

_FORMAT = 2
_KEPT = 2
_TABLE = "snapshot.json"
_LEAST_SQUARES = "least_squares.evergrow"
_FOREST = "forest.evergrow"
_ASIDE = ".aside-"


@dataclass(frozen=True, eq=False)
class Saved:
    """All of a model that cannot be read off the examples at once, as of one event."""

    event: int
    learnt: Learnt
    assessment: Assessment | None
    beside: Beside | None
    split_at: Mapping[int, int]


def write_snapshot(folder: Path, saved: Saved, nonce: str | None) -> Path:
    """Write a snapshot and let older ones go; the folder of the snapshot.

    The files are written and synced in a folder aside that is then renamed, so a snapshot that has
    its name is whole.
    """
    target = folder / f"{saved.event:012d}"
    folder.mkdir(exist_ok=True)
    if target.is_dir():
        return target
    aside = folder / f"{_ASIDE}{secrets.token_hex(8)}"
    aside.mkdir()
    try:
        _write_files(aside, saved, nonce)
        sync_folder(aside)
        os.rename(aside, target)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    sync_folder(folder)
    for path in _folders(folder)[_KEPT:]:
        shutil.rmtree(path, ignore_errors=True)
    for path in folder.glob(f"{_ASIDE}*"):
        shutil.rmtree(path, ignore_errors=True)
    return target


def read_snapshots(
    folder: Path, nonce_of: NonceOf, *, seed: int, first: int, last: int
) -> Iterator[Saved]:
    """Whole snapshots of events from ``first`` to ``last``, the newest first."""
    for path in _folders(folder):
        if first <= int(path.name) <= last:
            # What is damaged is passed over: the one before, or the examples, say the same.
            with contextlib.suppress(WorkspaceError, ModelFileError, OSError):
                yield _read(path, nonce_of(int(path.name)), seed)


def unusable(
    folder: Path, nonce_of: NonceOf, *, seed: int, first: int, is_busy: Callable[[], bool]
) -> dict[Path, str]:
    """Snapshots that are damaged, hold what was erased or are of events not there, and why.

    Those that were left when something was interrupted too, unless someone is at it right now.
    """
    left = dict.fromkeys(folder.glob(f"{_ASIDE}*"), "its writing was interrupted")
    found: dict[Path, str] = {}
    for path in _folders(folder):
        if int(path.name) < first:
            left[path] = "it holds what was erased"
            continue
        nonce = nonce_of(int(path.name))
        if nonce is None:
            found[path] = f"there is no event {int(path.name)} yet"
            continue
        try:
            _read(path, nonce, seed)
        except (WorkspaceError, ModelFileError, OSError) as error:
            found[path] = str(error)
    return found if not left or is_busy() else {**left, **found}


def newest_event(folder: Path) -> int | None:
    """Event of the newest snapshot; None without any."""
    found = _folders(folder)
    return int(found[0].name) if found else None


def drop_before(folder: Path, event: int) -> None:
    """Remove snapshots of earlier events: they hold what was erased since."""
    for path in _folders(folder):
        if int(path.name) < event:
            shutil.rmtree(path, ignore_errors=True)


def drop_foreign(folder: Path, nonce_of: NonceOf) -> None:
    """Remove snapshots of another history: they would be in the way of those of this one."""
    for path in _folders(folder):
        nonce = nonce_of(int(path.name))
        # Of one that is damaged nobody knows; 'check' speaks of it.
        with contextlib.suppress(OSError, ValueError, AttributeError):
            if nonce is None or _table(path).get("nonce") != nonce:
                shutil.rmtree(path, ignore_errors=True)


def _table(path: Path) -> Any:
    return json.loads((path / _TABLE).read_bytes())


def _folders(folder: Path) -> list[Path]:
    """Folders of snapshots, the newest first."""
    if not folder.is_dir():
        return []
    found = [path for path in folder.iterdir() if path.name.isdecimal() and path.is_dir()]
    return sorted(found, key=lambda path: int(path.name), reverse=True)


def _write_files(aside: Path, saved: Saved, nonce: str | None) -> None:
    if saved.learnt.fitted is not None:
        saved.learnt.estimator().save(aside / _LEAST_SQUARES)
    if saved.beside is not None and saved.beside.forest is not None:
        saved.beside.forest.save(aside / _FOREST)
    table = {
        "format": _FORMAT,
        "event": saved.event,
        "nonce": nonce,
        "choice": asdict(saved.learnt.choice),
        "assessment": None if saved.assessment is None else saved.assessment.to_json(),
        "beside": None if saved.beside is None else saved.beside.to_json(),
        "split_at": [list(item) for item in saved.split_at.items()],
        "files": {path.name: _digest(path) for path in sorted(aside.iterdir())},
    }
    with open(aside / _TABLE, "xb") as file:
        file.write(json.dumps(table).encode())
        file.flush()
        os.fsync(file.fileno())


def _read(path: Path, nonce: str | None, seed: int) -> Saved:
    try:
        table = _table(path)
        if table["format"] != _FORMAT or table["event"] != int(path.name):
            raise WorkspaceError(f"{str(path)!r} is not a snapshot that this version reads")
        if nonce is None or table["nonce"] != nonce:
            raise WorkspaceError(f"the snapshot {str(path)!r} is of another history")
        for name, digest in table["files"].items():
            if name not in (_LEAST_SQUARES, _FOREST) or _digest(path / name) != digest:
                raise WorkspaceError(f"the snapshot {str(path)!r} is damaged: its file {name!r}")
        return _built(path, table, seed)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise WorkspaceError(f"the snapshot {str(path)!r} is damaged: {error!r}") from error


def _built(path: Path, table: Mapping[str, Any], seed: int) -> Saved:
    files, beside = table["files"], table["beside"]
    body = table["assessment"]
    assessment = None if body is None else Assessment.from_json(body)
    learnt = Learnt().choose(choice_of(table["choice"]))
    if _LEAST_SQUARES in files:
        model = load(path / _LEAST_SQUARES)
        if not isinstance(model, RLSClassifier):
            raise WorkspaceError(f"the snapshot {str(path)!r} holds another kind of model")
        learnt = Learnt.from_estimator(model, learnt.choice)
    forest = load(path / _FOREST) if _FOREST in files else None
    if forest is not None and not isinstance(forest, NCMForestClassifier):
        raise WorkspaceError(f"the snapshot {str(path)!r} holds another kind of forest")
    kept = None if beside is None else Beside.from_json(beside, seed, forest)
    split_at = {int(class_id): int(event) for class_id, event in table["split_at"]}
    return Saved(table["event"], learnt, assessment, kept, split_at)


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
