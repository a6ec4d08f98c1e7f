"""From image files to new examples: read ahead in threads, embedded in batches.

The command line and :meth:`evergrow.workspace.Workspace.teach_images` use this path from an image
file to its vector and thumbnail; the service decodes in separate processes with the same functions.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from joblib import effective_n_jobs

from evergrow.foundation.errors import BadImage, BadImageWarning, ImageError, WorkspaceError
from evergrow.foundation.formatting import display_name
from evergrow.foundation.params import check_parameters
from evergrow.vision.embedding import Embedder
from evergrow.vision.images import LabelledImages, find_labelled
from evergrow.vision.images.decoder import decode_image
from evergrow.vision.images.folders import raise_unreadable, search_images
from evergrow.vision.images.labelled.labelled_images import warn_doubt
from evergrow.vision.images.parameters import JOBS, ON_ERROR
from evergrow.vision.images.prefetch import group_by_size, prefetch
from evergrow.vision.images.results import warn_about
from evergrow.vision.images.sources import DEFAULT_LIMITS, StoredImage, read_content
from evergrow.vision.images.thumbnails import THUMBNAIL_SIDE, make_thumbnail
from evergrow.workspace.names import normalise_name
from evergrow.workspace.records import NewExample, Picture, Request
from evergrow.workspace.store.store import Store

StrPath = str | os.PathLike[str]

# Taught in one transaction: small enough that an interruption loses little and memory stays low,
# large enough to keep all processors busy.
_MOST_IMAGES = 64
_MOST_BYTES = 64 << 20


@dataclass(frozen=True)
class LabelledImage:
    """An image file, or its content, with its class and fine class."""

    source: Path | StoredImage | bytes
    label: str
    fine: str | None
    # What to call content without a file in problems.
    title: str = ""

    @property
    def name(self) -> str:
        """The image in messages."""
        return self.title or display_name(self.source)


@dataclass(frozen=True)
class ImageBatch:
    """Some new examples, and the images of the batch that could not be read."""

    examples: list[NewExample]
    problems: list[BadImage]


def find_labelled_paths(
    images: StrPath | Iterable[StrPath] | LabelledImages,
    label: str | None,
    fine: str | None,
    fine_folders: bool,
    on_error: str,
) -> list[LabelledImage]:
    """The images with their labels; all names are checked before the slow work starts."""
    check_parameters({"on_error": on_error}, {"on_error": ON_ERROR})
    if label is not None:
        if isinstance(images, LabelledImages):
            raise WorkspaceError("images with labels of their own take no label")
        if fine_folders:
            raise WorkspaceError("fine_folders needs a folder per class: leave out the label")
        name = normalise_name(label)
        fine_name = None if fine is None else normalise_name(fine, "fine")
        files = search_images(images)
        _report([*files.unreadable, *files.ignored], files.unreadable, on_error)
        return [LabelledImage(path, name, fine_name) for path in files.paths]
    if fine is not None:
        raise WorkspaceError("fine names all images of one class: give the label too")
    found = images
    if not isinstance(found, LabelledImages):
        if not isinstance(images, (str, os.PathLike)):
            raise WorkspaceError("a list of images needs a label; a folder per class needs none")
        found = find_labelled(images)
        if not fine_folders:
            warn_doubt(found)
    _report(found.problems, found.unreadable, on_error)
    fine_names = _fine_names(found) if fine_folders else [None] * len(found.sources)
    return [
        LabelledImage(source, normalise_name(one), finer)
        for source, one, finer in zip(found.sources, found.labels.tolist(), fine_names, strict=True)
    ]


def read_batches(
    store: Store,
    labelled: Sequence[LabelledImage],
    on_error: str,
    n_jobs: int | None,
    request: Request,
    move: bool,
) -> Iterator[ImageBatch]:
    """Read and embed images, one batch after the other.

    With ``on_error="raise"`` an ``ImageError`` names all images that cannot be read; it is raised
    in place of the batch with the first of them, and the batches before it are complete.
    """
    check_parameters({"n_jobs": n_jobs}, {"n_jobs": JOBS})
    if store.embedder is None:
        raise WorkspaceError(
            f"{str(store.layout.folder)!r} takes embeddings, not images: teach embeddings, or "
            "create a workspace with an embedder"
        )
    embedder = store.embedder.set_params(n_jobs=n_jobs, verbose=0)
    return (
        replace(
            batch, examples=[replace(one, request=request, move=move) for one in batch.examples]
        )
        for batch in _batches(embedder, labelled, on_error)
    )


def _batches(
    embedder: Embedder, labelled: Sequence[LabelledImage], on_error: str
) -> Iterator[ImageBatch]:
    ahead = prefetch(_read, labelled, effective_n_jobs(embedder.n_jobs))
    groups = group_by_size(ahead, _n_bytes, max_items=_MOST_IMAGES, max_bytes=_MOST_BYTES)
    for group in groups:
        problems = [one for _, one in group if isinstance(one, BadImage)]
        read = [(one, picture) for one, picture in group if isinstance(picture, Picture)]
        examples, more = _embed(read, embedder)
        problems += more
        if problems and on_error == "raise":
            # The rest is decoded to name all bad images at once, but not embedded.
            problems += [one for rest in groups for _, one in rest if isinstance(one, BadImage)]
            raise ImageError.of(problems)
        yield ImageBatch(examples, problems)


def _report(problems: Sequence[BadImage], unreadable: Sequence[BadImage], on_error: str) -> None:
    if on_error == "raise":
        raise_unreadable(unreadable)
    warn_about(problems)


def _fine_names(found: LabelledImages) -> list[str | None]:
    """The fine class of each image, by a table or by its folder."""
    names = []
    tabled = found.fine or (None,) * len(found.sources)
    for source, by_table in zip(found.sources, tabled, strict=True):
        parts: tuple[str, ...] = ()
        if found.by_folder and isinstance(source, Path):
            parts = source.relative_to(found.root).parts
        # The class, the fine class, perhaps more folders, the file.
        name = by_table or (parts[1] if len(parts) > 2 else None)
        names.append(None if name is None else normalise_name(name, "fine"))
    return names


def _read(one: LabelledImage) -> tuple[LabelledImage, Picture | BadImage]:
    try:
        # The content of files and stored images is bytes.
        content = cast(bytes, read_content(one.source, DEFAULT_LIMITS))
        image = decode_image(content, DEFAULT_LIMITS, THUMBNAIL_SIDE)
    except ImageError as error:
        return one, BadImage(None, one.name, error.reason)
    except ValueError as error:
        return one, BadImage(None, one.name, str(error))
    # Made here, in threads, so that the gallery does not have to wait for it.
    thumbnail = make_thumbnail(image.pixels)
    return one, Picture(content, image.media_type, image.width, image.height, thumbnail)


def _n_bytes(read: tuple[LabelledImage, Picture | BadImage]) -> int:
    return len(read[1].content) if isinstance(read[1], Picture) else 0


def _embed(
    read: list[tuple[LabelledImage, Picture]], embedder: Embedder
) -> tuple[list[NewExample], list[BadImage]]:
    if not read:
        return [], []
    with warnings.catch_warnings():
        # The problems are reported by file name; this warning would name numbers of bytes.
        warnings.simplefilter("ignore", BadImageWarning)
        # The bytes that are stored are embedded, even if the file changes meanwhile.
        found = embedder.extract([picture.content for _, picture in read], on_error="skip")
    problems = [
        BadImage(None, read[problem.index or 0][0].name, problem.reason)
        for problem in found.problems
    ]
    chosen = [read[place] for place in found.kept.tolist()]
    examples = [
        NewExample(row, one.label, one.fine, picture)
        for row, (one, picture) in zip(found.features, chosen, strict=True)
    ]
    return examples, problems
