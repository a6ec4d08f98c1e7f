"""Random numbers that samples keep, whenever and in whatever company they are asked for.

Those of the lowest numbers are a uniform choice of all samples that ever came, and nobody needs to
count these.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

__all__ = ["priorities"]


def priorities(key: str, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Random numbers of 63 bits by the numbers of samples, others for every key.

    >>> priorities("seed 0", np.array([7, 8])).tolist() == [
    ...     int(priorities("seed 0", np.array([number]))[0]) for number in (7, 8)
    ... ]
    True
    """
    digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
    # SplitMix64, which is made for consecutive numbers.
    bits = np.uint64(int.from_bytes(digest, "little")) + (
        numbers.astype(np.uint64) + np.uint64(1)
    ) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits = bits ^ (bits >> np.uint64(31))
    return (bits >> np.uint64(1)).astype(np.int64)
