"""Where published data sets can be had, and what their files must be."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PUBLISHED", "PublishedFile"]


@dataclass(frozen=True)
class PublishedFile:
    """A file, the addresses where it lies, its length and its SHA-256."""

    name: str
    urls: tuple[str, ...]
    n_bytes: int
    sha256: str


_MNIST = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
_CIFAR = ("https://www.cs.toronto.edu/~kriz/",)


def _file(homes: tuple[str, ...], name: str, n_bytes: int, sha256: str) -> PublishedFile:
    return PublishedFile(name, tuple(home + name for home in homes), n_bytes, sha256)


# Of CIFAR the binary versions, which are no pickles.
PUBLISHED: dict[str, tuple[PublishedFile, ...]] = {
    "cifar10": (
        _file(
            _CIFAR,
            "cifar-10-binary.tar.gz",
            170_052_171,
            "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        ),
    ),
    "cifar100": (
        _file(
            _CIFAR,
            "cifar-100-binary.tar.gz",
            168_513_733,
            "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
        ),
    ),
    "mnist": (
        _file(
            _MNIST,
            "train-images-idx3-ubyte.gz",
            9_912_422,
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        ),
        _file(
            _MNIST,
            "train-labels-idx1-ubyte.gz",
            28_881,
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        ),
        _file(
            _MNIST,
            "t10k-images-idx3-ubyte.gz",
            1_648_877,
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        ),
        _file(
            _MNIST,
            "t10k-labels-idx1-ubyte.gz",
            4_542,
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
    ),
}
