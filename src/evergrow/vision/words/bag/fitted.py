"""What a bag of words has learnt, and how it counts the words of images."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sized
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from evergrow.foundation.engine import Arrays
from evergrow.foundation.errors import BadImage, InvalidInputError
from evergrow.foundation.params import Choice
from evergrow.foundation.progress import progress_bar
from evergrow.storage.models.codec import Array, Fields, Model
from evergrow.vision.descriptors.describer import description_job
from evergrow.vision.descriptors.local_features import IS_LOCAL_FEATURES
from evergrow.vision.images.parameters import instance_of
from evergrow.vision.images.parts import ImagePart, problem_arrays
from evergrow.vision.images.results import warn_about
from evergrow.vision.words.bag.pooling import POOLINGS, Thresholds, mutual_information_thresholds
from evergrow.vision.words.codebooks.counts import (
    coding_copy,
    count_words,
    counts_from_arrays,
    counts_to_arrays,
    stack_counts,
)
from evergrow.vision.words.codebooks.vocabulary import Vocabulary

IS_CODEBOOK = instance_of(Vocabulary, "a codebook such as ERCForest() or KMeansCodebook()")


@dataclass(frozen=True, eq=False)
class CountedImages:
    """Word counts of the images that could be read, their indices, and the problems."""

    counts: sparse.csr_array
    kept: npt.NDArray[np.int64]
    problems: tuple[BadImage, ...]


@dataclass(frozen=True, eq=False)
class FittedBag:
    """A fitted codebook, the local features, and the pooling, as one immutable value."""

    codebook: Any
    features: Any
    pooling: str
    thresholds: Thresholds | None = None

    _stored: ClassVar[Fields] = {
        "codebook": Model(IS_CODEBOOK),
        "features": Model(IS_LOCAL_FEATURES, optional=True),
        "pooling": [Choice(tuple(POOLINGS))],
        "thresholds": Array(np.int32, (None,), 1, optional=True),
    }

    def check_stored(self) -> None:
        """Raise a ``ValueError`` if the parts do not suit each other."""
        n_values = self.codebook.n_features_in_
        if self.features is not None and self.features.n_features_out_ != n_values:
            raise InvalidInputError(
                f"its descriptors have {self.features.n_features_out_} values, its codebook takes "
                f"{n_values}"
            )
        n_wanted = self.codebook.n_words_ if POOLINGS[self.pooling].learns else None
        if n_wanted != (None if self.thresholds is None else len(self.thresholds)):
            raise InvalidInputError("its thresholds do not suit its words")

    def with_thresholds(self, counts: sparse.csr_array, codes: npt.NDArray[np.int32]) -> FittedBag:
        """Add the thresholds with the most information about the classes."""
        thresholds = mutual_information_thresholds(counts, codes)
        thresholds.setflags(write=False)
        return replace(self, thresholds=thresholds)

    def pool(self, counts: sparse.csr_array) -> sparse.csr_array:
        """Turn counts into the vectors of images."""
        return POOLINGS[self.pooling].pool(counts, self.thresholds)

    def count(
        self, images: Iterable[Any], *, n_jobs: int | None, verbose: int, on_error: str = "raise"
    ) -> CountedImages:
        """Count the words of each image; the result has no rows if there is no image."""
        total = operator.length_hint(images)
        if self.features is None:
            counts = self._count(images, total, n_jobs, verbose)
            return CountedImages(counts, np.arange(counts.shape[0]), ())
        found = self._count_job(images, on_error, verbose)
        if found is None:
            kept: list[int] = []
            problems: list[BadImage] = []
            readable = self._describe(images, on_error, kept, problems)
            counts = self._count(readable, total, n_jobs, verbose)
            found = CountedImages(counts, np.array(kept, dtype=np.int64), tuple(problems))
        warn_about(found.problems)
        return found

    def _describe(
        self, images: Iterable[Any], on_error: str, kept: list[int], problems: list[BadImage]
    ) -> Iterator[npt.NDArray[Any]]:
        """Yield the descriptors of readable images; append to ``kept`` and ``problems``."""
        for index, rows in self.features.iterate(images, on_error=on_error):
            if isinstance(rows, BadImage):
                problems.append(rows)
            else:
                kept.append(index)
                yield rows

    def _count(
        self, images: Iterable[Any], total: int, n_jobs: int | None, verbose: int
    ) -> sparse.csr_array:
        if not isinstance(images, Sized) or not len(images):
            # Whether an iterator is empty is only known after taking its first item.
            every = iter(images)
            first = next(every, None)
            if first is None:
                return sparse.csr_array((0, self.codebook.n_words_), dtype=np.int32)
            images = chain([first], every)
        with progress_bar("coding images", total, verbose) as finished:
            return count_words(self.codebook, images, n_jobs=n_jobs, finished=finished)

    def _count_job(
        self, images: Iterable[Any], on_error: str, verbose: int
    ) -> CountedImages | None:
        """Count words part by part on the engine; None if it is done in this process.

        Tasks describe images and count their words, so that only counts are sent back.
        """
        found = description_job(self.features, images)
        if found is None:
            return None
        job, features = found
        counts, kept, problems = [], [], list[BadImage]()
        shared = (features, coding_copy(self.codebook))
        options: dict[str, Any] = {"on_error": on_error, "verbose": verbose}
        for part, arrays, bad in job.run(count_part, shared, "coding images", **options):
            counts.append(counts_from_arrays(arrays, self.codebook.n_words_))
            kept.append(part.first + arrays["kept"])
            problems += bad
        return CountedImages(stack_counts(counts), np.concatenate(kept), tuple(problems))


def count_part(part: ImagePart, features: Any, codebook: Any) -> Arrays:
    """Task: the word counts of one part."""
    kept: list[int] = []
    problems: list[BadImage] = []
    described = []
    # Always "skip": which bad image is the first of the job is not known here.
    for index, rows in features.iterate(part.sources, on_error="skip"):
        if isinstance(rows, BadImage):
            problems.append(rows)
        else:
            kept.append(index)
            described.append(rows)
    counts = counts_to_arrays(codebook, described)
    return {**counts, "kept": np.array(kept, dtype=np.int64), **problem_arrays(problems)}
