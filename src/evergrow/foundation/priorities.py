"""Random priorities of samples, a function of the sample alone.

The samples with the lowest priorities are a uniform sample of all that were ever seen, without a
count of them.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt


def priorities(key: str, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return a random 63-bit integer for each sample number; every key gives other ones.

    >>> priorities("seed 0", np.array([7, 8])).tolist() == [
    ...     int(priorities("seed 0", np.array([number]))[0]) for number in (7, 8)
    ... ]
    True
    """
    digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
    # SplitMix64, which is designed for consecutive inputs.
    bits = np.uint64(int.from_bytes(digest, "little")) + (
        numbers.astype(np.uint64) + np.uint64(1)
    ) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits = bits ^ (bits >> np.uint64(31))
    return (bits >> np.uint64(1)).astype(np.int64)
