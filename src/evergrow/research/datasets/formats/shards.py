"""Folders of shards, one row per sample."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from evergrow.foundation.errors import DatasetError, DatasetWarning, warn_user
from evergrow.foundation.naming import display_name
from evergrow.research.datasets.dataset import Dataset
from evergrow.research.datasets.formats.files import MAX_BYTES, Budget, Expected, checked_digest
from evergrow.research.datasets.formats.samples import as_labels, as_rows, check_split, split


def read_shards(
    path: Path,
    *,
    test_share: float | None = None,
    random_state: int = 0,
    max_bytes: int = MAX_BYTES,
    sha256: Expected = None,
) -> Dataset:
    """Read the labelled rows of a folder of shards into memory."""
    check_split(test_share, random_state)
    # The import takes a while, and other data sets do not need it.
    from evergrow.storage.shards import open_shards

    shards = open_shards(path)
    what = display_name(path)
    if shards.manifest.is_ragged:
        raise DatasetError(
            f"{what} has images of several rows each; a sample must be one row, so turn each image "
            "into one vector first"
        )
    labels = shards.labels
    rows = np.flatnonzero(labels.codes >= 0)
    if not len(rows):
        raise DatasetError(f"{what} has no row with a label: write shards with labels")
    if labels.n_unlabelled:
        warn_user(
            f"{what} has {labels.n_unlabelled} of {len(labels)} rows without a label, which are "
            "left out",
            DatasetWarning,
        )
    Budget.of(max_bytes).take(4 * len(rows) * shards.shape[1], what)
    X, y = as_rows(shards[rows], what), as_labels(labels.classes[labels.codes[rows]], what)
    train, test = split(y, test_share, random_state)
    digest = checked_digest({path.name: shards.digest}, sha256)
    return Dataset(path.resolve().name, X[train], y[train], X[test], y[test], sha256=digest)
