"""Data sets of the experiments: generated classes, and published data sets to download.

Files are read by :mod:`evergrow.compare`; :func:`download` writes published data sets as the
``.npz`` files that it reads.
"""

from __future__ import annotations

import gzip
import os
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.compare import Dataset, load_dataset
from evergrow.foundation.errors import DatasetError
from evergrow.foundation.files import atomic_write

Array = npt.NDArray[Any]


def digits() -> Dataset:
    """Return scikit-learn's 1797 digits of 8 x 8 pixels, a quarter of each class for testing."""
    return load_dataset("digits")


def spirals(
    n_classes: int = 20, n_train: int = 500, n_test: int = 100, *, random_state: int = 0
) -> Dataset:
    """Generate the arms of a spiral in the plane, one arm per class.

    The radius is ``r = 2 (z + 3)`` with ``z`` standard normal; the angle of class ``c`` of ``C``
    is ``2 pi c / C + r / 2``, spread by a tenth of the distance between arms.

    Examples
    --------
    >>> from evergrow_papers.data import spirals
    >>> spirals(4, n_train=10).X_train.shape
    (40, 2)
    """
    rng = np.random.default_rng(random_state)
    labels = np.repeat(np.arange(n_classes), n_train + n_test)
    radius = 2 * (rng.standard_normal(len(labels)) + 3)
    arm = 2 * np.pi / n_classes
    angle = arm * labels + 0.5 * radius + arm / 10 * rng.standard_normal(len(labels))
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]).astype(np.float32)
    return _split("spirals", X, labels, n_train, n_test)


def mixture(
    n_classes: int = 20,
    n_features: int = 32,
    n_train: int = 50,
    n_test: int = 20,
    *,
    distance: float = 0.35,
    n_groups: int | None = None,
    random_state: int = 0,
) -> Dataset:
    """Generate overlapping Gaussian classes.

    ``distance`` is the standard deviation of the class centres along each feature, relative to the
    one within classes: smaller is harder. ``n_groups`` makes as many groups of similar classes,
    the coarse classes.

    Examples
    --------
    >>> from evergrow_papers.data import mixture
    >>> mixture(6, n_groups=2).parents
    {0: 0, 1: 0, 2: 0, 3: 1, 4: 1, 5: 1}
    """
    rng = np.random.default_rng(random_state)
    centres = distance * rng.standard_normal((n_classes, n_features))
    parents = None
    if n_groups is not None:
        group = np.arange(n_classes) * n_groups // n_classes
        # Half of the spread lies between groups, half within them.
        centres = (distance * rng.standard_normal((n_groups, n_features)))[group] + centres
        centres /= np.sqrt(2)
        parents = dict(enumerate(group.tolist()))
    labels = np.repeat(np.arange(n_classes), n_train + n_test)
    X = (rng.standard_normal((len(labels), n_features)) + centres[labels]).astype(np.float32)
    return _split("mixture", X, labels, n_train, n_test, parents)


def take_square_roots(data: Dataset) -> Dataset:
    """Square roots of counts, whose noise does not grow with the counts.

    Data that are no counts are unchanged.
    """
    if min(data.X_train.min(), data.X_test.min()) < 0:
        return data
    train, test = (np.sqrt(X.astype(np.float32)) for X in (data.X_train, data.X_test))
    return replace(data, X_train=train, X_test=test)


def _split(
    name: str,
    X: Array,
    y: Array,
    n_train: int,
    n_test: int,
    parents: Mapping[Any, Any] | None = None,
) -> Dataset:
    """Take the first samples of each class for training."""
    train = np.arange(len(y)) % (n_train + n_test) < n_train
    return Dataset(name, X[train], y[train], X[~train], y[~train], parents)


# --- Published data sets


@dataclass(frozen=True)
class Published:
    """A data set to download: its address, the hashes of its files, and how to read them."""

    url: str
    files: Mapping[str, str]
    read: Callable[[Mapping[str, Path]], dict[str, Array]]


def download(
    name: str,
    folder: str | os.PathLike[str],
    *,
    verbose: int = 0,
    published: Mapping[str, Published] | None = None,
) -> Path:
    """Download a published data set, and write it as ``folder/name.npz``.

    The files are fetched into ``folder/name`` and checked by their SHA-256. Files that are there
    already are not fetched again.
    """
    import pooch

    data = (PUBLISHED if published is None else published)[name]
    target = Path(folder)
    paths = {
        file: Path(
            pooch.retrieve(
                data.url + file,
                known_hash=f"sha256:{digest}",
                fname=file,
                path=target / name,
                progressbar=verbose > 0,
            )
        )
        for file, digest in data.files.items()
    }
    try:
        arrays: dict[str, Any] = data.read(paths)
    except (KeyError, OSError, ValueError, tarfile.TarError) as error:
        raise DatasetError(f"the files of {name} are damaged: {error}") from error
    path = target / f"{name}.npz"
    with atomic_write(path) as file:
        np.savez_compressed(file, **arrays)
    return path


def _read_mnist(paths: Mapping[str, Path]) -> dict[str, Array]:
    """Read IDX files: a header of big-endian sizes, then bytes."""
    found: dict[str, Array] = {}
    for (name, path), n_dimensions in zip(paths.items(), (3, 1, 3, 1), strict=True):
        content = gzip.decompress(path.read_bytes())
        shape = np.frombuffer(content, ">u4", n_dimensions, offset=4).astype(int)
        values = np.frombuffer(content, np.uint8, offset=4 + 4 * n_dimensions).reshape(shape)
        part = "train" if name.startswith("train") else "test"
        if n_dimensions == 1:
            found[f"y_{part}"] = values.astype(np.int64)
        else:
            found[f"X_{part}"] = values.reshape(len(values), -1)
    return found


def _read_cifar(paths: Mapping[str, Path]) -> dict[str, Array]:
    """Read the binary version: records of one or two labels, the coarse one first, and pixels."""
    (path,) = paths.values()
    n_labels = 2 if "100" in path.name else 1
    parts: dict[str, list[Array]] = {"train": [], "test": []}
    with tarfile.open(path) as archive:
        for member in sorted(archive, key=lambda each: each.name):
            file = archive.extractfile(member) if member.name.endswith(".bin") else None
            if file is not None:
                records = np.frombuffer(file.read(), np.uint8).reshape(-1, n_labels + 3072)
                parts["test" if "test" in Path(member.name).stem else "train"].append(records)
    rows = {part: np.concatenate(found) for part, found in parts.items()}
    found: dict[str, Array] = {f"X_{part}": records[:, n_labels:] for part, records in rows.items()}
    for part, records in rows.items():
        found[f"y_{part}"] = records[:, n_labels - 1].astype(np.int64)
    if n_labels == 2:
        fine, where = np.unique(rows["train"][:, 1], return_index=True)
        coarse = np.zeros(int(fine.max()) + 1, dtype=np.int64)
        coarse[fine] = rows["train"][where, 0]
        found["fine_to_coarse"] = coarse
    return found


_CIFAR = "https://www.cs.toronto.edu/~kriz/"
PUBLISHED: Mapping[str, Published] = {
    "cifar10": Published(
        _CIFAR,
        {
            "cifar-10-binary.tar.gz": (
                "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
            )
        },
        _read_cifar,
    ),
    "cifar100": Published(
        _CIFAR,
        {
            "cifar-100-binary.tar.gz": (
                "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"
            )
        },
        _read_cifar,
    ),
    "mnist": Published(
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
        {
            "train-images-idx3-ubyte.gz": (
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"
            ),
            "train-labels-idx1-ubyte.gz": (
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"
            ),
            "t10k-images-idx3-ubyte.gz": (
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"
            ),
            "t10k-labels-idx1-ubyte.gz": (
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"
            ),
        },
        _read_mnist,
    ),
}
