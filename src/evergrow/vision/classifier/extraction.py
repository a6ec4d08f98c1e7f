"""From images to a feature matrix with any transformer, and the images that were left out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from evergrow.foundation.errors import BadImage, ImageError, InvalidInputError, InvalidTypeError
from evergrow.foundation.formatting import display_name
from evergrow.foundation.labels import ClassList, check_label_types
from evergrow.vision.images import Extraction, LabelledImages, find_labelled, iterate_images
from evergrow.vision.images.folders import raise_unreadable, search_images
from evergrow.vision.images.labelled.finder import Split
from evergrow.vision.images.labelled.labelled_images import warn_doubt
from evergrow.vision.images.prefetch import MAX_GROUP_BYTES, group_by_size
from evergrow.vision.images.reader import check_sources, find_bad_images
from evergrow.vision.images.results import warn_about
from evergrow.vision.images.sources import DEFAULT_LIMITS, read_content_once

# Maximum number of images in memory for transformers that take decoded images.
_MAX_GROUP = 64

# Images, their labels, and the files that were skipped.
LabelledSources = tuple[list[Any], npt.NDArray[Any], tuple[BadImage, ...]]


def list_sources(images: Any) -> list[Any]:
    """Images as a list, those of a folder included; an error for a single image or none.

    Open files are replaced by their content, because some features read an image more than once.
    """
    if isinstance(images, LabelledImages):
        return list(images.sources)
    if isinstance(images, (str, os.PathLike)) and os.path.isdir(images):
        found = search_images(images)
        raise_unreadable(found.unreadable)
        warn_about(found.ignored)
        return list(found.paths)
    if isinstance(images, (str, os.PathLike)):
        raise InvalidTypeError(
            f"images must be a folder or a list of sources, got one {type(images).__name__}: put "
            f"it into a list; folder not found: {display_name(images)}"
        )
    check_sources(images)
    sources = [_read_open_file(source) for source in images]
    if not sources:
        raise InvalidInputError("there must be at least one image")
    return sources


def _read_open_file(source: Any) -> Any:
    paths_and_pixels = (str, bytes, os.PathLike, np.ndarray)
    if isinstance(source, paths_and_pixels) or not callable(getattr(source, "read", None)):
        return source
    return read_content_once(source, DEFAULT_LIMITS)


def labelled_sources(
    images: Any,
    y: npt.ArrayLike | None,
    on_error: str,
    known: ClassList | None = None,
    *,
    split: Split = "train",
) -> LabelledSources:
    """Images and labels: those given, or those of a source such as a folder per class.

    Names of classes are converted to the type of the known classes.
    """
    if y is None:
        found = images
        if not isinstance(images, LabelledImages):
            if not isinstance(images, (str, os.PathLike)):
                raise InvalidInputError(
                    "images without labels must be a folder with one subfolder per class, or "
                    "another source that find_labelled reads"
                )
            found = find_labelled(images, split=split)
            warn_doubt(found)
        if on_error == "raise" and found.unreadable:
            raise_unreadable([*found.unreadable, *find_bad_images(found.sources)])
        warn_about(found.problems)
        names: npt.NDArray[Any] = found.labels
        labels = names if known is None else known.from_text(names.tolist())
        return list(found.sources), labels, found.problems
    check_label_types(y)
    sources, labels = list_sources(images), np.asarray(y)
    if labels.ndim != 1 or len(labels) != len(sources):
        raise InvalidInputError(
            f"y must have one label per image, {len(sources)}; got the shape {labels.shape}"
        )
    return sources, labels, ()


def fit_and_extract(
    features: Any, sources: list[Any], labels: npt.NDArray[Any], on_error: str
) -> Extraction:
    """Fit a transformer to images, and transform them."""
    if on_error == "raise" or not get_tags(features).requires_fit:
        with _naming_all_bad(features, sources, on_error):
            features = features.fit(sources, labels)
        return extract(features, sources, on_error)
    # A bad image would make fitting fail, so bad images are found first.
    read = iterate_images(sources, on_error="skip", n_jobs=getattr(features, "n_jobs", None))
    problems = tuple(image for _, image in read if isinstance(image, BadImage))
    bad = {problem.index for problem in problems}
    good = np.array([i for i in range(len(sources)) if i not in bad], dtype=np.int64)
    warn_about(problems)
    check_not_empty(good, sources)
    readable = [sources[i] for i in good]
    found = extract(features.fit(readable, labels[good]), readable, "raise")
    return Extraction(found.features, good[found.kept], problems)


def extract(features: Any, sources: list[Any], on_error: str) -> Extraction:
    """Transform images with a fitted transformer; the result may be empty.

    If images cannot be read and ``on_error`` is "raise", the error names all of them.
    """
    with _naming_all_bad(features, sources, on_error):
        found = _extract(features, sources, on_error)
    if not len(found.kept):
        return found
    matrix = found.features
    # Learners take dense rows.
    dense = matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix)
    if dense.ndim != 2 or len(dense) != len(found.kept):
        raise InvalidInputError(
            f"{type(features).__name__} must return one row per image, {len(found.kept)}; "
            f"got the shape {dense.shape}"
        )
    return Extraction(dense, found.kept, found.problems)


@contextmanager
def _naming_all_bad(features: Any, sources: list[Any], on_error: str) -> Iterator[None]:
    """Turn the error about the first bad image into one that names all of them."""
    try:
        yield
    except ImageError as error:
        if on_error != "raise":
            raise
        # The others are decoded, which is fast, but no features are computed.
        bad = find_bad_images(sources, getattr(features, "n_jobs", None))
        if all(one.source != error.source for one in bad):
            # The features have stricter limits, or the file is readable again.
            bad.insert(0, BadImage(None, error.source, error.reason))
        if len(bad) == 1:
            raise
        raise ImageError.of(bad) from error


def _extract(features: Any, sources: list[Any], on_error: str) -> Extraction:
    if isinstance(features, Pipeline) and len(features.steps) > 1:
        if features[0] in ("passthrough", None):
            return _extract(features[1:], sources, on_error)
        first = _extract(features[0], sources, on_error)
        if not len(first.kept):
            return first
        return Extraction(features[1:].transform(first.features), first.kept, first.problems)
    if hasattr(features, "extract"):
        return cast("Extraction", features.extract(sources, on_error=on_error))
    return _read_and_transform(features, sources, on_error)


def _read_and_transform(features: Any, sources: list[Any], on_error: str) -> Extraction:
    matrices: list[Any] = []
    kept: list[int] = []
    problems: list[BadImage] = []
    read = iterate_images(sources, on_error=on_error)
    for group in group_by_size(read, _n_bytes, max_items=_MAX_GROUP, max_bytes=MAX_GROUP_BYTES):
        problems += [image for _, image in group if isinstance(image, BadImage)]
        good = [(index, image) for index, image in group if not isinstance(image, BadImage)]
        kept += [index for index, _ in good]
        if good:
            matrices.append(features.transform([image for _, image in good]))
    warn_about(problems)
    return Extraction(_stack(matrices), np.array(kept, dtype=np.int64), tuple(problems))


def _n_bytes(read: tuple[int, npt.NDArray[np.uint8] | BadImage]) -> int:
    return 0 if isinstance(read[1], BadImage) else read[1].nbytes


def _stack(matrices: Sequence[Any]) -> Any:
    if any(sparse.issparse(matrix) for matrix in matrices):
        return sparse.vstack(matrices, format="csr")
    return np.concatenate(matrices) if matrices else np.zeros((0, 0))


def check_not_empty(kept: npt.NDArray[np.int64], sources: list[Any]) -> None:
    """Raise a ``ValueError`` if no image could be read."""
    if not len(kept):
        raise InvalidInputError(f"none of the {len(sources)} images could be read")
