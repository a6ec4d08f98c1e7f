"""``load_dataset``: one function for all data sets."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from evergrow.foundation.errors import DatasetError, InvalidInputError, InvalidTypeError
from evergrow.foundation.naming import display_name
from evergrow.research.datasets.built_in import digits, mixture, spirals
from evergrow.research.datasets.dataset import Dataset
from evergrow.research.datasets.formats.cifar import read_cifar10, read_cifar100
from evergrow.research.datasets.formats.features import read_features
from evergrow.research.datasets.formats.files import checked_digest
from evergrow.research.datasets.formats.idx import read_mnist
from evergrow.research.datasets.formats.image_folders import read_image_folder
from evergrow.research.datasets.formats.samples import check_tested
from evergrow.research.datasets.formats.shards import read_shards
from evergrow.storage.shards.manifest import MANIFEST

# Generated data sets, which need no file, and readers of files.
_BUILT_IN: dict[str, Callable[..., Dataset]] = {
    "digits": digits,
    "mixture": mixture,
    "spirals": spirals,
}
_READERS: dict[str, Callable[..., Dataset]] = {
    "cifar10": read_cifar10,
    "cifar100": read_cifar100,
    "features": read_features,
    "images": read_image_folder,
    "mnist": read_mnist,
    "shards": read_shards,
}
_SOURCES = {**_BUILT_IN, **_READERS}
# Options of readers that have parameters of their own.
_OWN = ("path", "sha256")
_FEATURE_SUFFIXES = (".npy", ".npz")


def load_dataset(
    source: str | os.PathLike[str],
    *,
    path: str | os.PathLike[str] | None = None,
    name: str | None = None,
    sha256: str | Mapping[str, str] | None = None,
    **options: Any,
) -> Dataset:
    """Load a data set by its name, or from a file or folder.

    Files are not trusted: no pickle is run, sizes are checked before memory is allocated, and
    nothing is unpacked to disk.

    Parameters
    ----------
    source : str or path
        What to load. By name:

        - ``"digits"``, ``"spirals"``, ``"mixture"``: built in, see :func:`digits`,
          :func:`spirals`, :func:`mixture` for their options.
        - ``"mnist"``: the four IDX files in the folder ``path``, compressed or not; also
          other data in this format.
        - ``"cifar10"``, ``"cifar100"``: ``path`` is the archive as distributed, the folder in it,
          or a folder that holds one of these; of the binary or the python version.
        - ``"features"``, ``"images"``, ``"shards"``: the same as a path without a name.

        Or a path:

        - an ``.npz`` file with ``X_train``, ``y_train``, ``X_test`` and ``y_test``, or with ``X``,
          ``y`` and optionally ``split`` ("train" or "test" for each sample);
        - an ``.npy`` file of features, with the option ``labels``;
        - a folder of shards with labels, which is read into memory;
        - a folder of images with one folder per class, or with folders ``train`` and ``test`` that
          have such folders.

        Pass a :class:`~pathlib.Path` for a folder with one of the names above.
    path : path, default=None
        File or folder of a named data set.
    name : str, default=None
        Name of the data set in tables. None uses the name of the source or file.
    sha256 : str or mapping of str to str, default=None
        Expected hash. For several files it is the hash of the list that ``sha256sum`` prints for
        them, sorted by name, or a mapping from file names to hashes. ``Dataset.sha256`` has the
        value to put here.
    **options
        More options, depending on the source:

        - labels : path, the ``.npy`` file of labels of an ``.npy`` file of features.
        - test_share : float, default 0.25, the share of each class for testing if the data are
          not split. A class with a single sample stays in training, with a warning.
        - random_state : int, the random seed of the split or of the generated data.
        - max_bytes : int, default 8 GiB, the memory limit for arrays read from files.
        - verbose : int, for image folders; shows a progress bar if positive.

    Returns
    -------
    data : Dataset
        Samples are float32 rows (images are flattened, with values 0 to 255), or image paths;
        labels are int64 or strings. ``class_names`` has the names of numbered classes,
        ``parents`` coarse classes, from ``fine_to_coarse`` (one entry per label) or
        ``y_coarse_train`` in the file.

    Examples
    --------
    >>> from evergrow.research import load_dataset
    >>> data = load_dataset("digits")
    >>> data.name, data.X_train.shape, len(data.classes)
    ('digits', (1347, 64), 10)

    Your own features:

    >>> import numpy as np, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "pets.npz")
    ...     np.savez(file, X=np.eye(8), y=["cat"] * 4 + ["dog"] * 4)
    ...     data = load_dataset(file)
    >>> data.name, data.y_train.tolist(), data.y_test.tolist()
    ('pets', ['cat', 'cat', 'cat', 'dog', 'dog', 'dog'], ['cat', 'dog'])
    """
    key, where = _resolve(source, path)
    allowed = {*inspect.signature(_SOURCES[key]).parameters} - {*_OWN}
    unknown = sorted(set(options) - allowed)
    if unknown:
        raise InvalidTypeError(
            f"{key!r} has no option {unknown[0]!r}; its options are "
            f"{', '.join(sorted(allowed)) or 'none'}"
        )
    if key in _BUILT_IN:
        if where is not None:
            raise InvalidInputError(f"path cannot be used: {key!r} needs no file")
        found = _BUILT_IN[key](**options)
        checked_digest({key: found.sha256}, sha256)
    elif where is None:
        raise InvalidInputError(f"{key!r} is read from files: path must name their folder or file")
    else:
        found = _READERS[key](where, sha256=sha256, **options)
    check_tested(found.y_train, found.y_test, display_name(key if where is None else where))
    return found if name is None else replace(found, name=name)


def _resolve(
    source: str | os.PathLike[str], path: str | os.PathLike[str] | None
) -> tuple[str, Path | None]:
    """Return the key of the source and the path."""
    if isinstance(source, str) and source in _SOURCES:
        return source, None if path is None else Path(path)
    if not isinstance(source, (str, os.PathLike)):
        raise InvalidTypeError(f"source must be a name or a path, got {type(source).__name__}")
    if path is not None:
        raise InvalidInputError(
            f"with path, source must be one of {sorted(_SOURCES)}, got {display_name(source)}"
        )
    where = Path(source)
    if where.is_dir():
        return "shards" if (where / MANIFEST).exists() else "images", where
    if where.suffix.lower() in _FEATURE_SUFFIXES:
        return "features", where
    if not where.exists():
        raise FileNotFoundError(
            f"no such file, folder or data set: {display_name(source)}; the named data sets are "
            f"{sorted(_SOURCES)}"
        )
    raise DatasetError(
        f"{display_name(source)} is not an .npz file, .npy file or folder; pass the files of a "
        f"named data set as path, and its name, one of {sorted(_SOURCES)}, as source"
    )
