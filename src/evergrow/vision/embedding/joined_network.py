"""Several networks as one: their blocks of features next to each other."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.vision.embedding.networks import Features, Network, start, unit_length


@dataclass(frozen=True)
class PreparedImages:
    """One image, prepared for each of several networks."""

    inputs: tuple[Any, ...]

    @property
    def nbytes(self) -> int:
        """Memory that it takes."""
        return sum(one.nbytes for one in self.inputs)


class JoinedNetwork:
    """Networks that see the same images; every block is scaled to length one.

    An image is decoded once, large enough for all of them. Blocks are named after their network,
    such as "efficientnet-lite1/head".
    """

    def __init__(self, networks: Mapping[str, Network]) -> None:
        self._networks = tuple(networks.values())
        self.blocks = {
            f"{name}/{block}": width
            for name, network in networks.items()
            for block, width in network.blocks.items()
        }
        self.n_features = sum(self.blocks.values())
        self.key = _join_keys([network.key for network in self._networks])
        sides = [network.min_side for network in self._networks]
        known = [side for side in sides if side is not None]
        self.min_side = max(known) if len(known) == len(sides) else None
        self.fixed_size = all(network.fixed_size for network in self._networks)

    def prepare(self, image: npt.NDArray[np.uint8]) -> PreparedImages:
        """Prepare one image for every network."""
        return PreparedImages(tuple(network.prepare(image) for network in self._networks))

    def run(self, prepared: Sequence[Any]) -> Features:
        """Compute the vectors of a batch, one network after the other."""
        return self.start(prepared)()

    def start(self, prepared: Sequence[Any]) -> Callable[[], Features]:
        """Begin to compute the vectors of a batch; the result of the call waits for them."""
        inputs = zip(*(one.inputs for one in prepared), strict=True)
        pairs = zip(self._networks, inputs, strict=True)
        pending = [(network, start(network, batch)) for network, batch in pairs]

        def finish() -> Features:
            vectors = []
            for network, wait in pending:
                found = wait()
                # With several blocks, the network has scaled them.
                vectors.append(unit_length(found) if len(network.blocks) == 1 else found)
            return np.hstack(vectors)

        return finish


def _join_keys(keys: Sequence[str | None]) -> str | None:
    if None in keys:
        return None
    return hashlib.sha256(json.dumps(["joined", *keys]).encode()).hexdigest()
