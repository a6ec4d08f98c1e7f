"""Data sets of image files as data sets of features."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from evergrow.foundation.arrays import Array
from evergrow.foundation.errors import DatasetError
from evergrow.research.datasets.dataset import Dataset
from evergrow.research.datasets.formats.samples import check_tested

if TYPE_CHECKING:
    from evergrow.vision.embedding import Embedder


def is_image_dataset(data: Dataset) -> bool:
    """Whether the samples are paths of image files."""
    return data.X_train.ndim == 1 and data.X_train.dtype.kind == "U"


def embed_images(
    data: Dataset, *, embedder: Embedder | None = None, on_error: str = "raise"
) -> Dataset:
    """Replace the paths of images by vectors of a network; its cache keeps them.

    Parameters
    ----------
    data : Dataset
        A folder of images, as :func:`load_dataset` returns it.
    embedder : Embedder, default=None
        Computes the vectors; None for the default network.
    on_error : {"raise", "skip"}, default="raise"
        Stop at an image that cannot be read, or skip it and warn.

    Returns
    -------
    data : Dataset
        The same samples as features; the hash is that of the features, which depend on the network.
    """
    if embedder is None:
        from evergrow.vision.embedding import Embedder

        embedder = Embedder()
    # One call, so that one progress bar shows how long everything takes.
    paths: Array = np.concatenate([data.X_train, data.X_test])
    found = embedder.extract(paths.tolist(), on_error=on_error)
    if not len(found.kept):
        raise DatasetError(f"no image of {data.name!r} can be read")
    train = found.kept < len(data.X_train)
    labels: Array = np.concatenate([data.y_train, data.y_test])[found.kept]
    check_tested(labels[train], labels[~train], repr(data.name))
    return replace(
        data,
        X_train=found.features[train],
        y_train=labels[train],
        X_test=found.features[~train],
        y_test=labels[~train],
        sha256="",
    )
