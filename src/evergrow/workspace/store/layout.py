"""The files in the folder of a workspace, and the manifest that describes it."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from evergrow.foundation.errors import InvalidInputError, WorkspaceError
from evergrow.foundation.extras import __version__
from evergrow.foundation.files import atomic_write, open_regular
from evergrow.foundation.params import Flag, Integer, Nothing, Number, Rule, check_parameters
from evergrow.workspace.records import WorkspaceFormatError

# Format of the folder and its database; no other is read.
FORMAT = 1
# Files of embeddings are allocated in full: longer embeddings would make them huge.
MOST_FEATURES = 1 << 16

_RULES: dict[str, list[Rule]] = {
    "n_features": [Nothing(), Integer(1, MOST_FEATURES)],
    "n_features_given": [Flag()],
    "embedded_by": [Integer(0)],
    "rows_per_shard": [Integer(1, 1 << 20)],
    "seed": [Integer(0, 2**32 - 1)],
    "false_alarms": [Number(0.0, 0.5, open_low=True)],
    "max_classes": [Integer(1, 1_000_000)],
    "forest": [Flag()],
}


class Layout:
    """Paths of all files and sub-folders of a workspace."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        # Written last, so that its presence makes the folder a workspace.
        self.manifest = self.folder / "workspace.json"
        # Names the process that may write, which has locked the folder.
        self.lock = self.folder / "lock"
        self.database = self.folder / "examples.sqlite"
        self.embeddings = self.folder / "embeddings"
        # Image files by hash, and their thumbnails, which can be made again.
        self.images = self.folder / "images"
        self.thumbnails = self.folder / "thumbnails"
        # The embedder; only in workspaces that take images.
        self.features = self.folder / "features.evergrow"
        # Snapshots of the model.
        self.models = self.folder / "models"
        # Hashes of the tokens of the service.
        self.tokens = self.folder / "tokens.json"
        # Files of the same names, while pictures are embedded again.
        self.staging = self.folder / "re-embedding"


@dataclass(frozen=True)
class Manifest:
    """Settings of a workspace.

    They are fixed when it is created, except that the first example may fix ``n_features``, and
    what describes the embedder changes when the pictures are embedded again.

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
    blocks : tuple of (str, int)
        Names and widths of the blocks of an embedding; empty if the workspace takes embeddings.
    embedded_by : int
        The event that embedded all pictures again; 0 if there is none.
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
    blocks: tuple[tuple[str, int], ...]
    embedded_by: int
    rows_per_shard: int
    seed: int
    false_alarms: float
    max_classes: int
    forest: bool

    def check(self) -> None:
        """Raise an ``InvalidInputError`` for a value that is not allowed."""
        check_parameters({name: getattr(self, name) for name in _RULES}, _RULES)
        if self.blocks and sum(width for _, width in self.blocks) != self.n_features:
            raise InvalidInputError(
                f"the widths of the blocks {self.blocks} do not add up to {self.n_features}"
            )

    @property
    def block_widths(self) -> tuple[int, ...]:
        """Widths of the blocks among which the model chooses; empty with fewer than two."""
        return tuple(width for _, width in self.blocks) if len(self.blocks) > 1 else ()

    def with_n_features(self, n_features: int | None) -> Manifest:
        """A copy with this length of embeddings."""
        return replace(self, n_features=n_features)


def new_id() -> str:
    """A random id for a new workspace."""
    return secrets.token_hex(16)


def is_workspace(folder: Path) -> bool:
    """Tell whether a folder is a workspace, of any version.

    Parameters
    ----------
    folder : Path
        The folder.

    Returns
    -------
    found : bool
        True if the folder is a workspace.
    """
    return Layout(folder).manifest.is_file()


def no_workspace(layout: Layout) -> WorkspaceError:
    """The error about a folder that has no manifest, or does not exist."""
    folder = repr(str(layout.folder))
    if not layout.folder.exists():
        return WorkspaceError(
            f"the folder {folder} does not exist; create a workspace with 'evergrow init'"
        )
    return WorkspaceError(
        f"{folder} is not a workspace: it has no {layout.manifest.name}; create one with "
        "'evergrow init'"
    )


def write_manifest(layout: Layout, manifest: Manifest) -> None:
    """Write the manifest atomically."""
    with atomic_write(layout.manifest, private=True) as file:
        file.write((json.dumps(asdict(manifest), indent=2, sort_keys=True) + "\n").encode())


def read_manifest(layout: Layout) -> Manifest:
    """The manifest of a workspace, with every value checked."""
    try:
        with open_regular(layout.manifest, follow_links=False) as file:
            content = json.loads(file.read())
    except FileNotFoundError as error:
        raise no_workspace(layout) from error
    except NotADirectoryError as error:
        raise WorkspaceError(
            f"{str(layout.folder)!r} is not a workspace but a file; 'evergrow add', 'forget' and "
            "'info' take model files"
        ) from error
    except (ValueError, RecursionError) as error:
        raise _damaged(layout, str(error)) from error
    if not isinstance(content, dict):
        raise _damaged(layout, "it is not a JSON object")
    version = content.get("format")
    if type(version) is not int:
        raise _damaged(layout, "it has no valid format number")
    require_format(f"the workspace {str(layout.folder)!r}", version, FORMAT)
    return _manifest_of(layout, content)


def require_format(what: str, found: object, expected: int) -> None:
    """Raise a ``WorkspaceFormatError`` unless a part of a workspace has the format that is read."""
    if found != expected:
        raise WorkspaceFormatError(
            f"{what} has format {repr(found)[:40]}, and Evergrow {__version__} reads format "
            f"{expected}: open it with the version of Evergrow that wrote it"
        )


def _manifest_of(layout: Layout, values: Mapping[str, Any]) -> Manifest:
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
    blocks = values["blocks"]
    if not isinstance(blocks, list) or not all(_is_block(block) for block in blocks):
        raise _damaged(layout, "its blocks are not pairs of a name and a width")
    manifest = Manifest(**{**values, "blocks": tuple((name, width) for name, width in blocks)})
    try:
        manifest.check()
    except InvalidInputError as error:
        raise _damaged(layout, str(error)) from error
    return manifest


def _is_block(block: object) -> bool:
    return (
        isinstance(block, list)
        and [type(part) for part in block] == [str, int]
        and 0 < block[1] <= MOST_FEATURES
    )


def _damaged(layout: Layout, why: str) -> WorkspaceError:
    return WorkspaceError(f"{str(layout.manifest)!r} is damaged: {why}; restore it from a backup")
