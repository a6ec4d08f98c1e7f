"""What a bag of words has learnt, and how it counts."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sized
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from evergrow.foundation.errors import BadImage, ModelFileError
from evergrow.foundation.progress import progress_bar
from evergrow.storage.modelfile import Build, arrays_inside, check_array, check_saveable
from evergrow.vision.descriptors.describer import AnyLocalFeatures
from evergrow.vision.images.many import warn_of
from evergrow.vision.words.bag_groups import CountedImages, count_by_groups
from evergrow.vision.words.counting import count_words
from evergrow.vision.words.pooling import POOLINGS, Thresholds, mutual_information_thresholds
from evergrow.vision.words.vocabulary import Vocabulary

__all__ = ["FittedBag", "IsCodebook"]

Tensors = dict[str, npt.NDArray[Any]]

_CODEBOOK = "codebook."
_FEATURES = "features."


@dataclass(frozen=True)
class IsCodebook:
    """A codebook."""

    def admits(self, value: object) -> bool:
        """Tell whether the value follows the rule."""
        return isinstance(value, Vocabulary)

    def __str__(self) -> str:
        """Say what is allowed."""
        return "a codebook such as ERCForest() or KMeansCodebook()"


@dataclass(frozen=True, eq=False)
class FittedBag:
    """A fitted codebook, what describes images, and how counts become vectors."""

    codebook: Any
    features: Any
    pooling: str
    thresholds: Thresholds | None = None

    def with_thresholds(self, counts: sparse.csr_array, codes: npt.NDArray[np.int32]) -> FittedBag:
        """The same with thresholds that say most about the classes."""
        thresholds = mutual_information_thresholds(counts, codes)
        thresholds.setflags(write=False)
        return replace(self, thresholds=thresholds)

    def pooled(self, counts: sparse.csr_array) -> sparse.csr_array:
        """Vectors of images."""
        return POOLINGS[self.pooling].pool(counts, self.thresholds)

    def counts(
        self, images: Iterable[Any], *, n_jobs: int | None, verbose: int
    ) -> sparse.csr_array:
        """Counts of words of each image; no rows if there is none."""
        total = operator.length_hint(images)
        if self.features is None:
            return self._counted(images, total, n_jobs, verbose)
        options: dict[str, Any] = {"on_error": "raise", "verbose": verbose}
        elsewhere = count_by_groups(self.features, self.codebook, images, **options)
        if elsewhere is not None:
            return elsewhere[0]
        found = self.features.iterate(images, on_error="raise")
        return self._counted((one for _, one in found), total, n_jobs, verbose)

    def counts_of_readable(
        self, images: Iterable[Any], *, on_error: str, n_jobs: int | None, verbose: int
    ) -> CountedImages:
        """Counts of words of those images that can be read, their places, and the others."""
        options: dict[str, Any] = {"on_error": on_error, "verbose": verbose}
        elsewhere = count_by_groups(self.features, self.codebook, images, **options)
        if elsewhere is not None:
            warn_of(elsewhere[2])
            return elsewhere
        kept: list[int] = []
        problems: list[BadImage] = []

        def readable() -> Iterator[npt.NDArray[Any]]:
            for i, one in self.features.iterate(images, on_error=on_error):
                if isinstance(one, BadImage):
                    problems.append(one)
                else:
                    kept.append(i)
                    yield one

        counts = self._counted(readable(), operator.length_hint(images), n_jobs, verbose)
        warn_of(problems)
        return counts, np.array(kept, dtype=np.int64), tuple(problems)

    def _counted(
        self, images: Iterable[Any], total: int, n_jobs: int | None, verbose: int
    ) -> sparse.csr_array:
        if not isinstance(images, Sized) or not len(images):
            # Of what has no length only a look tells whether there is anything.
            every = iter(images)
            first = next(every, None)
            if first is None:
                return sparse.csr_array((0, self.codebook.n_words_), dtype=np.int32)
            images = chain([first], every)
        with progress_bar("coding images", total, verbose) as finished:
            return count_words(self.codebook, images, n_jobs=n_jobs, finished=finished)

    def to_file(self) -> tuple[dict[str, Any], Tensors]:
        """Entries of a header and arrays; those of codebook and features among them."""
        check_saveable(type(self.codebook))
        inner, arrays = self.codebook._to_file()
        tensors: Tensors = {_CODEBOOK + name: array for name, array in arrays.items()}
        header: dict[str, Any] = {"codebook": inner, "features": None, "pooling": self.pooling}
        if self.features is not None:
            check_saveable(type(self.features))
            header["features"], arrays = self.features._to_file()
            tensors |= {_FEATURES + name: array for name, array in arrays.items()}
        if self.thresholds is not None:
            tensors["thresholds"] = self.thresholds
        return header, tensors

    @classmethod
    def from_file(cls, header: dict[str, Any], tensors: Tensors, build: Build) -> FittedBag:
        """Rebuild from :meth:`to_file`; a ``ModelFileError`` if anything does not fit."""
        pooling = header.get("pooling")
        if not isinstance(pooling, str) or pooling not in POOLINGS:
            raise ModelFileError(f"the model file has an unknown pooling {pooling!r}")
        codebook = _read(header.get("codebook"), arrays_inside(tensors, _CODEBOOK), build)
        if not IsCodebook().admits(codebook):
            raise ModelFileError("the model inside the model file is no codebook")
        features = None
        if header.get("features") is not None:
            features = _read(header["features"], arrays_inside(tensors, _FEATURES), build)
            if not AnyLocalFeatures().admits(features):
                raise ModelFileError("what the model file has for features describes no patches")
            if features.n_features_out_ != codebook.n_features_in_:
                raise ModelFileError(
                    "the model file is inconsistent: its features describe patches by "
                    f"{features.n_features_out_} values, its codebook takes "
                    f"{codebook.n_features_in_}"
                )
        thresholds = None
        if POOLINGS[pooling].learns:
            found = tensors.get("thresholds")
            thresholds = check_array(found, "thresholds", np.int32, (codebook.n_words_,))
            if thresholds.min() < 1:
                raise ModelFileError("the model file is inconsistent: a threshold is below 1")
        return cls(codebook, features, pooling, thresholds)


def _read(header: Any, tensors: Tensors, build: Build) -> Any:
    if not isinstance(header, dict):
        raise ModelFileError("the model file lacks the model inside")
    return build(header, tensors)
