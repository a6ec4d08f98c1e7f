"""Which images an image classifier has learnt, as short hashes of their content."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs

from evergrow.foundation.errors import ImageError, InvalidInputError
from evergrow.storage.models.codec import Array, Fields
from evergrow.vision.images.prefetch import prefetch
from evergrow.vision.images.sources import DEFAULT_LIMITS, read_content

Codes = npt.NDArray[np.int32]

# The first bytes of a SHA-256. Two different images share them with a probability of 1 in 2**64 if
# there are four billion images.
N_BYTES = 16


def hash_images(sources: Sequence[Any], n_jobs: int | None) -> list[bytes | None]:
    """The hash of the content of each image; files are read once more for it.

    None for arrays and Pillow images, which have no encoded content, and for images that cannot be
    read, which are reported when they are decoded.
    """
    return list(prefetch(_hash_image, sources, effective_n_jobs(n_jobs)))


def _hash_image(source: object) -> bytes | None:
    try:
        content = read_content(source, DEFAULT_LIMITS)
    except ImageError:
        return None
    return hashlib.sha256(content).digest()[:N_BYTES] if isinstance(content, bytes) else None


@dataclass(frozen=True)
class KnownImages:
    """Which of some images are new, and which are known.

    Attributes
    ----------
    new : list of int
        Indices of images that are not known.
    n_same : int
        Number of images that their class has already.
    elsewhere : list of (int, int)
        Images that are known in another class only: index and column of that class.
    """

    new: list[int]
    n_same: int
    elsewhere: list[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class Fingerprints:
    """Hashes of images with the columns of their classes: different pairs, sorted.

    An image takes 20 bytes, in memory and in a model file.
    """

    digests: npt.NDArray[np.uint8]
    codes: Codes

    _stored: ClassVar[Fields] = {
        "digests": Array(np.uint8, ("images", N_BYTES)),
        "codes": Array(np.int32, ("images",), 0, "classes"),
    }

    @classmethod
    def of(cls, digests: Sequence[bytes | None], codes: Codes) -> Fingerprints:
        """Those of the images that have a hash."""
        having = [place for place, digest in enumerate(digests) if digest is not None]
        joined = b"".join(digest for digest in digests if digest is not None)
        rows = np.frombuffer(joined, dtype=np.uint8).reshape(-1, N_BYTES)
        return _sorted(rows, codes[having].astype(np.int32))

    def extend(self, digests: Sequence[bytes | None], codes: Codes) -> Fingerprints:
        """Add images."""
        new = Fingerprints.of(digests, codes)
        return _sorted(
            np.concatenate([self.digests, new.digests]), np.concatenate([self.codes, new.codes])
        )

    def relabel(self, columns: list[int]) -> Fingerprints:
        """Class ``k`` becomes class ``columns[k]``; -1 removes it."""
        codes = np.array(columns, dtype=np.int32)[self.codes]
        return _sorted(self.digests[codes >= 0], codes[codes >= 0])

    def find_known(self, digests: Sequence[bytes | None], codes: Codes) -> KnownImages:
        """Tell new images from those that were learnt before."""
        classes_of = self._classes_of({digest for digest in digests if digest is not None})
        new, n_same, elsewhere = [], 0, []
        for place, (digest, code) in enumerate(zip(digests, codes.tolist(), strict=True)):
            classes = None if digest is None else classes_of.get(digest)
            if classes is None:
                new.append(place)
            elif code in classes:
                n_same += 1
            else:
                elsewhere.append((place, min(classes)))
        return KnownImages(new, n_same, elsewhere)

    def count_known(self, digests: Sequence[bytes | None]) -> int:
        """The number of images that were learnt before, in whatever class."""
        known = self._classes_of({digest for digest in digests if digest is not None})
        return sum(digest in known for digest in digests)

    def _classes_of(self, digests: set[bytes]) -> dict[bytes, set[int]]:
        """The classes of those images that are known."""
        wanted = np.frombuffer(b"".join(sorted(digests)), dtype=">u8").reshape(-1, 2)
        # Comparing half of a hash leaves out nearly all others.
        likely = np.isin(_words(self.digests)[:, 0], wanted[:, 0])
        found: dict[bytes, set[int]] = {}
        pairs = zip(self.digests[likely], self.codes[likely].tolist(), strict=True)
        for digest, code in pairs:
            found.setdefault(digest.tobytes(), set()).add(code)
        return found

    def check_stored(self) -> None:
        """Raise a ``ValueError`` unless they are sorted and different."""
        found = _sorted(self.digests, self.codes)
        same = np.array_equal(found.digests, self.digests)
        if not same or not np.array_equal(found.codes, self.codes):
            raise InvalidInputError("its known images are not sorted or not different")


def _words(digests: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """Each hash as two numbers in the order of its bytes."""
    return np.ascontiguousarray(digests).view(">u8").reshape(-1, 2).astype(np.uint64)


def _sorted(digests: npt.NDArray[np.uint8], codes: Codes) -> Fingerprints:
    words = _words(digests)
    order = np.lexsort((codes, words[:, 1], words[:, 0]))
    words, codes = words[order], codes[order]
    first = np.ones(len(codes), dtype=bool)
    first[1:] = (words[1:] != words[:-1]).any(axis=1) | (codes[1:] != codes[:-1])
    return Fingerprints(np.ascontiguousarray(digests[order][first]), codes[first])


NO_FINGERPRINTS = Fingerprints.of([], np.zeros(0, dtype=np.int32))
