"""Images described and their words counted group by group, wherever an engine runs its tasks.

Counts travel, and the descriptors they were counted from do not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from evergrow.foundation.engine import Arrays
from evergrow.foundation.errors import BadImage
from evergrow.vision.descriptors.groups import describing_groups
from evergrow.vision.images.groups import ImageGroup, bad_arrays, done_in_order
from evergrow.vision.words.counting import (
    counts_as_arrays,
    counts_from_arrays,
    reader_of,
    stacked_counts,
)

__all__ = ["CountedImages", "count_by_groups", "count_group"]

# Counts of those that can be read, their places, and the others.
CountedImages = tuple[sparse.csr_array, npt.NDArray[np.int64], tuple[BadImage, ...]]


def count_by_groups(
    features: Any, codebook: Any, images: Iterable[Any], *, on_error: str, verbose: int
) -> CountedImages | None:
    """Counts of words of each image; None where they are better counted here."""
    elsewhere = describing_groups(features, images)
    if elsewhere is None:
        return None
    engine, groups, seeded, sources = elsewhere
    values = (seeded, reader_of(codebook))
    parts, kept, problems = [], [], list[BadImage]()
    options: dict[str, Any] = {"on_error": on_error, "verbose": verbose}
    for group, found, bad in done_in_order(
        engine, count_group, groups, values, sources, what="coding images", **options
    ):
        parts.append(counts_from_arrays(found, codebook.n_words_))
        kept.append(group.first + found["kept"])
        problems += bad
    return stacked_counts(parts), np.concatenate(kept), tuple(problems)


def count_group(group: ImageGroup, features: Any, codebook: Any) -> Arrays:
    """Counts of the words of some images."""
    kept: list[int] = []
    problems: list[BadImage] = []
    described = []
    for index, rows in features.iterate(group.sources, on_error="skip"):
        if isinstance(rows, BadImage):
            problems.append(rows)
        else:
            kept.append(index)
            described.append(rows)
    counts = counts_as_arrays(codebook, described)
    return {**counts, "kept": np.array(kept, dtype=np.int64), **bad_arrays(problems)}
