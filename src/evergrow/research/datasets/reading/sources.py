"""One function for all data sets."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evergrow.foundation.errors import DatasetError
from evergrow.foundation.naming import name_of
from evergrow.research.datasets.built_in import digits, mixture, spirals
from evergrow.research.datasets.dataset import Dataset
from evergrow.research.datasets.reading.cifar import read_cifar10, read_cifar100
from evergrow.research.datasets.reading.dividing import check_tested
from evergrow.research.datasets.reading.features import read_features
from evergrow.research.datasets.reading.folders import read_image_folder
from evergrow.research.datasets.reading.idx import read_mnist
from evergrow.research.datasets.reading.opening import Expected, checked_digest

__all__ = ["load_dataset"]


@dataclass(frozen=True)
class _BuiltIn:
    """Data that need no file."""

    make: Callable[..., Dataset]

    @property
    def options(self) -> list[str]:
        return list(inspect.signature(self.make).parameters)

    def load(self, source: str, path: Path | None, sha256: Expected, given: Any) -> Dataset:
        if path is not None:
            raise ValueError(f"path has no use: {source!r} needs no file")
        found = self.make(**given)
        checked_digest({source: found.sha256}, sha256)
        return found


@dataclass(frozen=True)
class _Files:
    """Data that are read from a file or a folder."""

    read: Callable[..., Dataset]

    @property
    def options(self) -> list[str]:
        return [name for name in inspect.signature(self.read).parameters if name not in _OWN]

    def load(self, source: str, path: Path | None, sha256: Expected, given: Any) -> Dataset:
        if path is None:
            raise ValueError(f"{source!r} is read from files: path must say where they lie")
        return self.read(path, sha256=sha256, **given)


_OWN = ("path", "sha256")
_SOURCES: dict[str, _BuiltIn | _Files] = {
    "cifar10": _Files(read_cifar10),
    "cifar100": _Files(read_cifar100),
    "digits": _BuiltIn(digits),
    "features": _Files(read_features),
    "images": _Files(read_image_folder),
    "mixture": _BuiltIn(mixture),
    "mnist": _Files(read_mnist),
    "spirals": _BuiltIn(spirals),
}
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

    Files are read as if a stranger had made them: no pickle is run, sizes are checked before memory
    is set aside, and nothing is unpacked to disk.

    Parameters
    ----------
    source : str or path
        What to load. By name:

        - ``"digits"``, ``"spirals"``, ``"mixture"``: built in, see :func:`digits`,
          :func:`spirals`, :func:`mixture` for their options.
        - ``"mnist"``: the four IDX files in the folder ``path``, compressed or not; also
          other data in their format.
        - ``"cifar10"``, ``"cifar100"``: ``path`` is the archive as distributed, the folder in it,
          or a folder that holds one of these; of the binary or the python version.
        - ``"features"``, ``"images"``: what is read of a path without a name.

        Or a path: an ``.npz`` file with the arrays ``X_train``, ``y_train``, ``X_test`` and
        ``y_test``, or ``X`` and ``y`` and if need be ``split`` ("train" or "test" of each sample);
        an ``.npy`` file of features with ``labels`` in another; or a folder of images that holds
        one folder per class, or such in folders called ``train`` and ``test``. A folder called as
        one of the names above is given as a :class:`~pathlib.Path`.
    path : path, default=None
        Where the files of a named data set lie.
    name : str, default=None
        What tables call the data set; None takes the name of the source or of the file.
    sha256 : str or mapping of str to str, default=None
        Expected hash; another one is an error. Of several files it is the hash of the list that
        ``sha256sum`` writes of them, in the order of their names; or give a mapping from names of
        files to hashes. ``Dataset.sha256`` says what to put here.
    **options
        What the source takes beside:

        - labels : path, the ``.npy`` file of labels of an ``.npy`` file of features.
        - test_share : float, default 0.25, how much of each class to hold out for testing where
          the data do not say. A class with a single sample stays in training, with a warning.
        - random_state : int, which samples are held out, or which data are generated.
        - max_bytes : int, default 8 GiB, most memory that arrays read from files may take.
        - verbose : int, for folders of images, shows a progress bar when positive.

    Returns
    -------
    data : Dataset
        Samples are float32 rows, images flattened as they are (0 to 255), or paths of images;
        labels are int64 or strings. ``class_names`` holds names of classes that are numbers,
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
    key, where = _resolved(source, path)
    reader = _SOURCES[key]
    unknown = sorted(set(options) - set(reader.options))
    if unknown:
        raise TypeError(
            f"{key!r} takes no option {unknown[0]!r}; it takes "
            f"{', '.join(sorted(reader.options)) or 'none'}"
        )
    found = reader.load(key, where, sha256, options)
    check_tested(found.y_train, found.y_test, name_of(key if where is None else where))
    return found if name is None else replace(found, name=name)


def _resolved(
    source: str | os.PathLike[str], path: str | os.PathLike[str] | None
) -> tuple[str, Path | None]:
    """The kind of data, and where they lie."""
    if isinstance(source, str) and source in _SOURCES:
        return source, None if path is None else Path(path)
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(f"source must be a name or a path, got {type(source).__name__}")
    if path is not None:
        raise ValueError(
            f"with path, source must be one of {sorted(_SOURCES)}, got {name_of(source)}"
        )
    where = Path(source)
    if where.is_dir():
        return "images", where
    if where.suffix.lower() in _FEATURE_SUFFIXES:
        return "features", where
    if not where.exists():
        raise FileNotFoundError(
            f"there is no file or folder {name_of(source)}, and data sets with a name are "
            f"{sorted(_SOURCES)}"
        )
    raise DatasetError(
        f"{name_of(source)} is no .npz or .npy file and no folder; files of a named data set are "
        f"given as path, and the name, one of {sorted(_SOURCES)}, as source"
    )
