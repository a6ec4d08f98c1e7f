"""The folder of a workspace: what lies where, and the manifest that says what it is."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from evergrow.foundation.atomic import written_whole
from evergrow.foundation.errors import WorkspaceError
from evergrow.foundation.params import Flag, Integer, Nothing, Number, Rule, check_parameters
from evergrow.workspace.errors import NewerWorkspaceError

__all__ = [
    "FORMAT",
    "MOST_FEATURES",
    "Layout",
    "Manifest",
    "is_workspace",
    "manifest_of",
    "new_id",
    "read_manifest",
    "read_values",
    "write_manifest",
]

# Of folders that this version writes; migrations lead to it from all earlier ones.
FORMAT = 3
# A file of embeddings is allocated whole: longer ones would make it huge.
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
    """Where everything lies within the folder of a workspace."""

    folder: Path

    @property
    def manifest(self) -> Path:
        """What the workspace is; written last, so that its presence makes a folder a workspace."""
        return self.folder / "workspace.json"

    @property
    def lock(self) -> Path:
        """Locked by the one process that may write."""
        return self.folder / "lock"

    @property
    def database(self) -> Path:
        """Examples, classes and events."""
        return self.folder / "examples.sqlite"

    @property
    def embeddings(self) -> Path:
        """Folder of the shards."""
        return self.folder / "embeddings"

    @property
    def images(self) -> Path:
        """Folder of image files by hash."""
        return self.folder / "images"

    @property
    def thumbnails(self) -> Path:
        """Folder of small pictures, which can be made again."""
        return self.folder / "thumbnails"

    @property
    def features(self) -> Path:
        """The embedder, where images are taken."""
        return self.folder / "features.evergrow"

    @property
    def models(self) -> Path:
        """Folder of the model's snapshots."""
        return self.folder / "models"

    @property
    def tokens(self) -> Path:
        """Who may use the service."""
        return self.folder / "tokens.json"


@dataclass(frozen=True)
class Manifest:
    """What a workspace is; all but ``n_features`` stays as it was made.

    Attributes
    ----------
    format : int
        Version of the folder's format.
    id : str
        Tells this workspace from all others, wherever it is copied.
    created : str
        When, in UTC.
    features : str or None
        Name of what makes embeddings of images; None where embeddings are sent.
    features_sha256 : str or None
        Of the file that holds it.
    n_features : int or None
        Length of an embedding; None as long as none was taught.
    n_features_given : bool
        Whether it was fixed when the workspace was made, rather than by the first example.
    rows_per_shard : int
        Embeddings in each file of them.
    seed : int
        Of all that is drawn at random.
    false_alarms : float
        Share of known things that may be called unknown.
    max_classes : int
        Classes there may be at a time.
    forest : bool
        Whether a forest learns beside.
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
        """Raise a ``ValueError`` for a value that cannot be."""
        check_parameters({name: getattr(self, name) for name in _RULES}, _RULES)

    def with_n_features(self, n_features: int | None) -> Manifest:
        """The manifest once the length of embeddings is known, or as long as it is not."""
        return replace(self, n_features=n_features)


def new_id() -> str:
    """An id that no other workspace has."""
    return secrets.token_hex(16)


def is_workspace(folder: Path) -> bool:
    """Whether a folder is a workspace, of whatever version."""
    return Layout(folder).manifest.is_file()


def write_manifest(layout: Layout, manifest: Manifest) -> None:
    """Write the manifest whole."""
    with written_whole(layout.manifest) as file:
        file.write((json.dumps(asdict(manifest), indent=2, sort_keys=True) + "\n").encode())


def read_values(layout: Layout) -> dict[str, Any]:
    """What the manifest of a workspace says, of this version or an earlier one, unchecked."""
    try:
        content = json.loads(layout.manifest.read_bytes())
    except FileNotFoundError as error:
        raise WorkspaceError(
            f"{str(layout.folder)!r} is no workspace: it has no {layout.manifest.name}; "
            "'evergrow init' makes one"
        ) from error
    except (ValueError, RecursionError) as error:
        raise _damaged(layout, str(error)) from error
    if not isinstance(content, dict):
        raise _damaged(layout, "it holds no object")
    version = content.get("format")
    if type(version) is not int or version < 1:
        raise _damaged(layout, "it names no format")
    if version > FORMAT:
        raise NewerWorkspaceError(
            f"the workspace {str(layout.folder)!r} has format {version}, made by a newer version "
            f"of Evergrow; this one reads up to {FORMAT}: update Evergrow"
        )
    return content


def read_manifest(layout: Layout) -> Manifest:
    """The manifest of a workspace of this version, every value checked."""
    return manifest_of(layout, read_values(layout))


def manifest_of(layout: Layout, values: Mapping[str, Any]) -> Manifest:
    """The manifest of this version that has these values."""
    names = {field.name for field in fields(Manifest)}
    if set(values) != names:
        lacking, unknown = sorted(names - set(values)), sorted(set(values) - names)
        raise _damaged(layout, f"it lacks {lacking} and has the unknown {unknown}")
    texts = [values["id"], values["created"]]
    maybe_texts = [values["features"], values["features_sha256"]]
    if not all(type(text) is str for text in texts):
        raise _damaged(layout, "its id or its time is no text")
    if not all(text is None or type(text) is str for text in maybe_texts):
        raise _damaged(layout, "its features are no text")
    manifest = Manifest(**values)
    try:
        manifest.check()
    except ValueError as error:
        raise _damaged(layout, str(error)) from error
    return manifest


def _damaged(layout: Layout, why: str) -> WorkspaceError:
    return WorkspaceError(
        f"{str(layout.manifest)!r} is damaged: {why}; put the one of a backup in its place"
    )
