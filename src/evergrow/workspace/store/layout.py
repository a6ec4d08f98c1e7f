"""The files in the folder of a workspace, and the manifest that describes it."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from evergrow.foundation.atomic import atomic_write
from evergrow.foundation.errors import InvalidInputError, WorkspaceError
from evergrow.foundation.params import Flag, Integer, Nothing, Number, Rule, check_parameters
from evergrow.workspace.errors import NewerWorkspaceError

# Format that this version writes; migrations upgrade all earlier ones.
FORMAT = 3
# Files of embeddings are allocated in full: longer embeddings would make them huge.
MOST_FEATURES = 1 << 16

_RULES: dict[str, list[Rule]] = {
    "n_features": [Nothing(), Integer(1, MOST_FEATURES)],
    "n_features_given": [Flag()],
    "rows_per_shard": [Integer(1, 1 << 20)],
    "seed": [Integer(0, 2**32 - 1)],
    "false_alarms": [Number(0.0, 0.5, open_low=True)],
    "max_classes": [Integer(1, 1_000_000)],
    "forest": [Flag()],
}


@dataclass(frozen=True)
class Layout:
    """Paths of all files and sub-folders of a workspace."""

    folder: Path

    @property
    def manifest(self) -> Path:
        """The manifest; written last, so that its presence makes the folder a workspace."""
        return self.folder / "workspace.json"

    @property
    def lock(self) -> Path:
        """File locked by the one process that may write."""
        return self.folder / "lock"

    @property
    def database(self) -> Path:
        """Database of examples, classes and events."""
        return self.folder / "examples.sqlite"

    @property
    def embeddings(self) -> Path:
        """Folder of the embeddings."""
        return self.folder / "embeddings"

    @property
    def images(self) -> Path:
        """Folder of image files, named by hash."""
        return self.folder / "images"

    @property
    def thumbnails(self) -> Path:
        """Folder of thumbnails, which can be made again."""
        return self.folder / "thumbnails"

    @property
    def features(self) -> Path:
        """The embedder; only in workspaces that take images."""
        return self.folder / "features.evergrow"

    @property
    def models(self) -> Path:
        """Folder of model snapshots."""
        return self.folder / "models"

    @property
    def tokens(self) -> Path:
        """Hashes of the tokens of the service."""
        return self.folder / "tokens.json"


@dataclass(frozen=True)
class Manifest:
    """Settings of a workspace; all but ``n_features`` are fixed when it is created.

    Attributes
    ----------
    format : int
        Version of the folder's format.
    id : str
        Random id of the workspace; its copies share it.
    created : str
        Time of creation, in UTC.
    features : str or None
        Name of the embedder; None if the workspace takes embeddings, not images.
    features_sha256 : str or None
        SHA-256 of the embedder's file.
    n_features : int or None
        Length of an embedding; None before the first example.
    n_features_given : bool
        Whether the length was fixed on creation, rather than by the first example.
    rows_per_shard : int
        Embeddings per file.
    seed : int
        Seed of all random choices.
    false_alarms : float
        Share of known examples that may be called unknown.
    max_classes : int
        Most classes at a time.
    forest : bool
        Whether a forest is trained as well.
    """

    format: int
    id: str
    created: str
    features: str | None
    features_sha256: str | None
    n_features: int | None
    n_features_given: bool
    rows_per_shard: int
    seed: int
    false_alarms: float
    max_classes: int
    forest: bool

    def check(self) -> None:
        """Raise an ``InvalidInputError`` for a value that is not allowed."""
        check_parameters({name: getattr(self, name) for name in _RULES}, _RULES)

    def with_n_features(self, n_features: int | None) -> Manifest:
        """A copy with this length of embeddings."""
        return replace(self, n_features=n_features)


def new_id() -> str:
    """A random id for a new workspace."""
    return secrets.token_hex(16)


def is_workspace(folder: Path) -> bool:
    """Whether a folder is a workspace, of any version."""
    return Layout(folder).manifest.is_file()


def write_manifest(layout: Layout, manifest: Manifest) -> None:
    """Write the manifest atomically."""
    with atomic_write(layout.manifest) as file:
        file.write((json.dumps(asdict(manifest), indent=2, sort_keys=True) + "\n").encode())


def read_values(layout: Layout) -> dict[str, Any]:
    """The values in the manifest, of this format or an earlier one; only the format is checked."""
    try:
        content = json.loads(layout.manifest.read_bytes())
    except FileNotFoundError as error:
        raise WorkspaceError(
            f"{str(layout.folder)!r} is not a workspace: it has no {layout.manifest.name}; "
            "create one with 'evergrow init'"
        ) from error
    except (ValueError, RecursionError) as error:
        raise _damaged(layout, str(error)) from error
    if not isinstance(content, dict):
        raise _damaged(layout, "it is not a JSON object")
    version = content.get("format")
    if type(version) is not int or version < 1:
        raise _damaged(layout, "it has no valid format number")
    if version > FORMAT:
        raise NewerWorkspaceError(
            f"the workspace {str(layout.folder)!r} has format {version} of a newer version of "
            f"Evergrow; this version reads up to {FORMAT}: update Evergrow"
        )
    return content


def read_manifest(layout: Layout) -> Manifest:
    """The manifest of a workspace of the current format, with every value checked."""
    return manifest_of(layout, read_values(layout))


def manifest_of(layout: Layout, values: Mapping[str, Any]) -> Manifest:
    """The manifest with these values; a ``WorkspaceError`` if they are not valid."""
    names = {field.name for field in fields(Manifest)}
    if set(values) != names:
        lacking, unknown = sorted(names - set(values)), sorted(set(values) - names)
        raise _damaged(layout, f"missing fields {lacking}, unknown fields {unknown}")
    texts = [values["id"], values["created"]]
    maybe_texts = [values["features"], values["features_sha256"]]
    if not all(type(text) is str for text in texts):
        raise _damaged(layout, "its id or its creation time is not text")
    if not all(text is None or type(text) is str for text in maybe_texts):
        raise _damaged(layout, "its features are not text")
    manifest = Manifest(**values)
    try:
        manifest.check()
    except InvalidInputError as error:
        raise _damaged(layout, str(error)) from error
    return manifest


def _damaged(layout: Layout, why: str) -> WorkspaceError:
    return WorkspaceError(f"{str(layout.manifest)!r} is damaged: {why}; restore it from a backup")
