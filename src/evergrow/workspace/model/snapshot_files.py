"""Model snapshots on disk: one folder per event, written atomically; the newest two are kept.

A snapshot contains the nonce of its event. A snapshot of another history, such as one from before a
backup was restored, is not used.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from evergrow.estimators.forest import NCMForestClassifier
from evergrow.estimators.linear import RLSClassifier
from evergrow.foundation.errors import ModelFileError, WorkspaceError
from evergrow.foundation.files import atomic_write, open_regular, sync_folder
from evergrow.storage.models.loader import load
from evergrow.workspace.model.assessment import Assessment, hyperparameters_from
from evergrow.workspace.model.forest import BackgroundForest
from evergrow.workspace.model.least_squares import TrainedModel
from evergrow.workspace.store.files import sha256_of_file

# Returns the nonce of an event in the database; None if there is no such event.
NonceOf: TypeAlias = Callable[[int], str | None]

_FORMAT = 1
_KEPT = 2
_INDEX = "snapshot.json"
_LEAST_SQUARES = "least_squares.evergrow"
_FOREST = "forest.evergrow"
_TEMPORARY = ".aside-"


@dataclass(frozen=True, eq=False)
class SavedState:
    """The part of the model's state that is saved, as of one event."""

    event: int
    trained: TrainedModel
    assessment: Assessment | None
    forest: BackgroundForest | None
    # The event that split each class that is split, with or without examples.
    split_at: Mapping[int, int]


def write_snapshot(folder: Path, saved: SavedState, nonce: str | None) -> Path:
    """Write a snapshot, delete older ones, and return its folder.

    The files are written and synced in a temporary folder that is then renamed, so a snapshot under
    its final name is complete.
    """
    target = folder / f"{saved.event:012d}"
    folder.mkdir(0o700, exist_ok=True)
    if target.is_dir():
        return target
    temporary = folder / f"{_TEMPORARY}{secrets.token_hex(8)}"
    temporary.mkdir(0o700)
    try:
        _write_files(temporary, saved, nonce)
        sync_folder(temporary)
        os.rename(temporary, target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    sync_folder(folder)
    for path in _folders(folder)[_KEPT:]:
        shutil.rmtree(path, ignore_errors=True)
    for path in folder.glob(f"{_TEMPORARY}*"):
        shutil.rmtree(path, ignore_errors=True)
    return target


def read_snapshots(
    folder: Path, nonce_of: NonceOf, *, seed: int, first: int, last: int
) -> Iterator[SavedState]:
    """Intact snapshots of events from ``first`` to ``last``, the newest first."""
    for path in _folders(folder):
        if first <= int(path.name) <= last:
            # A damaged one is skipped: an older one or the whole log gives the same state.
            with contextlib.suppress(WorkspaceError, ModelFileError, OSError):
                yield _read(path, nonce_of(int(path.name)), seed)


def find_unusable(
    folder: Path, nonce_of: NonceOf, *, seed: int, first: int, is_busy: Callable[[], bool]
) -> dict[Path, str]:
    """Snapshots that cannot be used, and why: damaged, too old, or of unknown events.

    Leftovers of interrupted writes are included, unless another process is writing right now.
    """
    left = dict.fromkeys(folder.glob(f"{_TEMPORARY}*"), "it was not written completely")
    found: dict[Path, str] = {}
    for path in _folders(folder):
        if int(path.name) < first:
            left[path] = "it contains what was erased since"
            continue
        nonce = nonce_of(int(path.name))
        if nonce is None:
            found[path] = f"event {int(path.name)} does not exist"
            continue
        try:
            _read(path, nonce, seed)
        except (WorkspaceError, ModelFileError, OSError) as error:
            found[path] = str(error)
    return found if not left or is_busy() else {**left, **found}


def newest_event(folder: Path) -> int | None:
    """Event of the newest snapshot; None if there is none."""
    found = _folders(folder)
    return int(found[0].name) if found else None


def delete_before(folder: Path, event: int) -> None:
    """Delete snapshots of earlier events, which contain what was erased since."""
    for path in _folders(folder):
        if int(path.name) < event:
            shutil.rmtree(path, ignore_errors=True)


def delete_foreign(folder: Path, nonce_of: NonceOf) -> None:
    """Delete snapshots of another history, whose names would block new ones."""
    for path in _folders(folder):
        nonce = nonce_of(int(path.name))
        # A damaged one cannot be told; 'check' reports it.
        with contextlib.suppress(OSError, ValueError, AttributeError, RecursionError):
            if nonce is None or _index(path).get("nonce") != nonce:
                shutil.rmtree(path, ignore_errors=True)


def _index(path: Path) -> Any:
    with open_regular(path / _INDEX, follow_links=False) as file:
        return json.loads(file.read())


def _folders(folder: Path) -> list[Path]:
    """Folders of snapshots, the newest first."""
    if not folder.is_dir():
        return []
    found = [
        path
        for path in folder.iterdir()
        # A link is not followed, and left alone.
        if path.name.isdecimal() and path.is_dir() and not path.is_symlink()
    ]
    return sorted(found, key=lambda path: int(path.name), reverse=True)


def _write_files(temporary: Path, saved: SavedState, nonce: str | None) -> None:
    if saved.trained.fitted is not None:
        saved.trained.estimator().save(temporary / _LEAST_SQUARES)
    if saved.forest is not None and saved.forest.forest is not None:
        saved.forest.forest.save(temporary / _FOREST)
    for path in temporary.iterdir():
        os.chmod(path, 0o600)
    index = {
        "format": _FORMAT,
        "event": saved.event,
        "nonce": nonce,
        "choice": saved.trained.hyperparameters.to_json(),
        "assessment": None if saved.assessment is None else saved.assessment.to_json(),
        "beside": None if saved.forest is None else saved.forest.to_json(),
        "split_at": [list(item) for item in saved.split_at.items()],
        "files": {path.name: sha256_of_file(path) for path in sorted(temporary.iterdir())},
    }
    with atomic_write(temporary / _INDEX, private=True) as file:
        file.write(json.dumps(index).encode())


def _read(path: Path, nonce: str | None, seed: int) -> SavedState:
    try:
        index = _index(path)
        if index["format"] != _FORMAT or index["event"] != int(path.name):
            raise WorkspaceError(f"{str(path)!r} is not a snapshot that this version reads")
        if nonce is None or index["nonce"] != nonce:
            raise WorkspaceError(f"the snapshot {str(path)!r} belongs to another history")
        for name, digest in index["files"].items():
            if name not in (_LEAST_SQUARES, _FOREST) or sha256_of_file(path / name) != digest:
                raise WorkspaceError(f"the snapshot {str(path)!r} is damaged: its file {name!r}")
        return _load(path, index, seed)
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise WorkspaceError(f"the snapshot {str(path)!r} is damaged: {error!r}") from error


def _load(path: Path, index: Mapping[str, Any], seed: int) -> SavedState:
    files, forest_index = index["files"], index["beside"]
    body = index["assessment"]
    assessment = None if body is None else Assessment.from_json(body)
    trained = TrainedModel().with_hyperparameters(hyperparameters_from(index["choice"]))
    if _LEAST_SQUARES in files:
        model = load(path / _LEAST_SQUARES)
        if not isinstance(model, RLSClassifier):
            raise WorkspaceError(f"the snapshot {str(path)!r} holds another kind of model")
        trained = TrainedModel.from_estimator(model, trained.hyperparameters)
    forest = load(path / _FOREST) if _FOREST in files else None
    if forest is not None and not isinstance(forest, NCMForestClassifier):
        raise WorkspaceError(f"the snapshot {str(path)!r} holds another kind of forest")
    background = None
    if forest_index is not None:
        background = BackgroundForest.from_json(forest_index, seed, forest)
    split_at = {int(class_id): int(event) for class_id, event in index["split_at"]}
    return SavedState(index["event"], trained, assessment, background, split_at)
