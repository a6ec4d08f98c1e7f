"""From images to a matrix, whatever the transformer, and with a word about those left out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from evergrow.foundation.errors import BadImage, ImageError
from evergrow.foundation.labels import ClassList, check_label_types
from evergrow.vision.images import Extraction, find_labelled, iterate_images
from evergrow.vision.images.ahead import MOST_BYTES, in_groups
from evergrow.vision.images.finding import raise_first
from evergrow.vision.images.many import check_sources, warn_of
from evergrow.vision.images.sources import DEFAULT_LIMITS, content_of

__all__ = [
    "LabelledSources",
    "check_some",
    "extract",
    "fit_and_extract",
    "labelled_sources",
    "listed",
]

# Most images that are in memory at a time for transformers that take all of theirs at once.
_BLOCK = 64

# Images, their labels, and what was not taken.
LabelledSources = tuple[list[Any], npt.NDArray[Any], tuple[BadImage, ...]]


@dataclass(frozen=True)
class _Unreadable:
    """Stands for an open file that could not be read, and says so whenever it is read again."""

    error: ImageError

    def read(self, _: int) -> bytes:
        raise self.error


def listed(images: Any) -> list[Any]:
    """Images as a list; an error for a single one and for none.

    Open files become their content: some features read every image more than once.
    """
    check_sources(images)
    sources = [_read_once(source) for source in images]
    if not sources:
        raise ValueError("there must be at least one image")
    return sources


def _read_once(source: Any) -> Any:
    paths_and_pixels = (str, bytes, os.PathLike, np.ndarray)
    if isinstance(source, paths_and_pixels) or not callable(getattr(source, "read", None)):
        return source
    try:
        return content_of(source, DEFAULT_LIMITS)
    except ImageError as error:
        # Whether that is an error is decided where images are read.
        return _Unreadable(error)


def labelled_sources(
    images: Any, y: npt.ArrayLike | None, on_error: str, known: ClassList | None = None
) -> LabelledSources:
    """Images and labels: those given, or those of a folder with one folder per class.

    Names of folders become labels of the kind of the known classes.
    """
    if y is None:
        if not isinstance(images, (str, os.PathLike)):
            raise ValueError(
                "images without labels must be a folder that holds one folder per class"
            )
        found = find_labelled(images)
        if on_error == "raise":
            raise_first(found.unreadable)
        warn_of(found.problems)
        names: npt.NDArray[Any] = found.labels
        labels = names if known is None else known.from_text(names.tolist())
        return list(found.paths), labels, found.problems
    check_label_types(y)
    sources, labels = listed(images), np.asarray(y)
    if labels.ndim != 1 or len(labels) != len(sources):
        raise ValueError(
            f"y must hold one label per image, {len(sources)}; got the shape {labels.shape}"
        )
    return sources, labels, ()


def fit_and_extract(
    features: Any, sources: list[Any], labels: npt.NDArray[Any], on_error: str
) -> Extraction:
    """Let a transformer learn from images, and transform them."""
    if on_error == "raise" or not get_tags(features).requires_fit:
        return extract(features.fit(sources, labels), sources, on_error)
    # One bad image would end the learning of a vocabulary: they are found before.
    read = iterate_images(sources, on_error="skip", n_jobs=getattr(features, "n_jobs", None))
    problems = tuple(image for _, image in read if isinstance(image, BadImage))
    bad = {problem.index for problem in problems}
    good = np.array([i for i in range(len(sources)) if i not in bad], dtype=np.int64)
    warn_of(problems)
    check_some(good, sources)
    fine = [sources[i] for i in good]
    found = extract(features.fit(fine, labels[good]), fine, "raise")
    return Extraction(found.features, good[found.kept], problems)


def extract(features: Any, sources: list[Any], on_error: str) -> Extraction:
    """Transform images with a fitted transformer; perhaps none of them can be read."""
    found = _extracted(features, sources, on_error)
    if not len(found.kept):
        return found
    matrix = found.features
    # Learners keep sums over dense rows.
    dense = matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix)
    if dense.ndim != 2 or len(dense) != len(found.kept):
        raise ValueError(
            f"{type(features).__name__} must give a row per image, {len(found.kept)}; "
            f"got the shape {dense.shape}"
        )
    return Extraction(dense, found.kept, found.problems)


def _extracted(features: Any, sources: list[Any], on_error: str) -> Extraction:
    if isinstance(features, Pipeline) and len(features.steps) > 1:
        first = _extracted(features[0], sources, on_error)
        if not len(first.kept):
            return first
        return Extraction(features[1:].transform(first.features), first.kept, first.problems)
    if hasattr(features, "extract"):
        found: Extraction = features.extract(sources, on_error=on_error)
        return found
    return _read_and_transformed(features, sources, on_error)


def _read_and_transformed(features: Any, sources: list[Any], on_error: str) -> Extraction:
    parts: list[Any] = []
    kept: list[int] = []
    problems: list[BadImage] = []
    read = iterate_images(sources, on_error=on_error)
    for group in in_groups(read, _n_bytes, most_items=_BLOCK, most_bytes=MOST_BYTES):
        problems += [image for _, image in group if isinstance(image, BadImage)]
        good = [(index, image) for index, image in group if not isinstance(image, BadImage)]
        kept += [index for index, _ in good]
        if good:
            parts.append(features.transform([image for _, image in good]))
    warn_of(problems)
    return Extraction(_stacked(parts), np.array(kept, dtype=np.int64), tuple(problems))


def _n_bytes(read: tuple[int, npt.NDArray[np.uint8] | BadImage]) -> int:
    return 0 if isinstance(read[1], BadImage) else read[1].nbytes


def _stacked(parts: Sequence[Any]) -> Any:
    if any(sparse.issparse(part) for part in parts):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts) if parts else np.zeros((0, 0))


def check_some(kept: npt.NDArray[np.int64], sources: list[Any]) -> None:
    """Raise a ``ValueError`` if nothing is left to learn from."""
    if not len(kept):
        raise ValueError(f"none of the {len(sources)} images could be read")
