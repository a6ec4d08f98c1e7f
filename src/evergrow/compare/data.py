"""Data sets: features in files, shards, folders of photographs, and scikit-learn's digits."""

from __future__ import annotations

import hashlib
import math
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from evergrow.foundation.arrays import Array
from evergrow.foundation.errors import (
    DatasetError,
    DatasetWarning,
    InvalidInputError,
    ShardError,
    warn_user,
)
from evergrow.foundation.formatting import format_count, list_names
from evergrow.foundation.naming import display_name
from evergrow.foundation.params import Fraction, Integer, Nothing, check_parameters
from evergrow.foundation.regular_files import open_regular
from evergrow.storage.shards.importers.npy_stream import NpyStream
from evergrow.storage.shards.importers.source import report_damage
from evergrow.storage.shards.manifest import MANIFEST

if TYPE_CHECKING:
    from evergrow.vision.embedding import Embedder
    from evergrow.vision.images import LabelledImages

_PARTS = ("train", "test")
_SPLIT = ("X_train", "y_train", "X_test", "y_test")
_WHOLE = ("X", "y", "split")
_OF_CLASSES = ("fine_to_coarse", "class_names")
_DEFAULT_SHARE = 0.25
# Enough for the features of a million photographs.
_MAX_BYTES = 8 << 30
# Values become float32, which may need more memory than the file.
_FLOAT_BYTES = 4
# Number of classes that a message names.
_MAX_NAMED = 5


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training and test samples with their labels.

    Parameters
    ----------
    name : str
        Name in tables.
    X_train : ndarray of shape (n_train, n_features)
        Training samples. For folders of images, an array of shape (n_train,) with file paths.
    y_train : ndarray of shape (n_train,)
        Labels of the training samples.
    X_test : ndarray of shape (n_test, n_features)
        Test samples.
    y_test : ndarray of shape (n_test,)
        Labels of the test samples.
    parents : mapping from label to label, default=None
        The coarse class of every fine class, if the data have both.
    sha256 : str, default=""
        Hash of the files, by which results identify their data. Empty computes that of the arrays.
    class_names : mapping from label to str, default=None
        Names of the classes, if their labels are numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow.compare import Dataset
    >>> X, y = np.eye(4, dtype=np.float32), np.array(["a", "a", "b", "b"])
    >>> Dataset("letters", X, y, X, y).of_classes(["b"]).y_train.tolist()
    ['b', 'b']
    """

    name: str
    X_train: Array
    y_train: Array
    X_test: Array
    y_test: Array
    parents: Mapping[Any, Any] | None = None
    sha256: str = ""
    class_names: Mapping[Any, str] | None = None

    def __post_init__(self) -> None:
        for part in _PARTS:
            X, y = getattr(self, f"X_{part}"), getattr(self, f"y_{part}")
            if len(X) != len(y):
                raise InvalidInputError(
                    f"{self.name!r} has {len(X)} {part} samples and {len(y)} labels for them; "
                    "every sample needs one label"
                )
        if not self.sha256:
            digest = hashlib.sha256()
            for array in (self.X_train, self.y_train, self.X_test, self.y_test):
                digest.update(f"{array.dtype.str}:{array.shape}".encode())
                digest.update(np.ascontiguousarray(array).tobytes())
            object.__setattr__(self, "sha256", digest.hexdigest())

    @property
    def classes(self) -> Array:
        """The classes of the training samples, sorted."""
        return np.unique(self.y_train)

    def of_classes(self, classes: Iterable[Any]) -> Dataset:
        """Return the samples of some classes only; the hash stays that of the whole."""
        wanted = np.asarray([*classes])
        known = set(self.y_train.tolist()) | set(self.y_test.tolist())
        unknown = [label for label in wanted.tolist() if label not in known]
        if unknown:
            raise InvalidInputError(f"{self.name!r} has no classes {unknown[:_MAX_NAMED]}")
        return self._select(
            np.flatnonzero(np.isin(self.y_train, wanted)),
            np.flatnonzero(np.isin(self.y_test, wanted)),
        )

    def per_class(self, n_train: int, n_test: int | None = None) -> Dataset:
        """Return the first samples of each class; the hash stays that of the whole."""
        if min(n_train, 1 if n_test is None else n_test) < 1:
            raise InvalidInputError(
                f"at least one sample of each class is needed, got {n_train, n_test}"
            )
        test = np.arange(len(self.y_test)) if n_test is None else _first(self.y_test, n_test)
        return self._select(_first(self.y_train, n_train), test)

    def long_tailed(self, imbalance: float, *, random_state: int = 0) -> Dataset:
        """Return fewer training samples, so that classes have unequal sizes.

        Parameters
        ----------
        imbalance : float
            How many times as many of its samples the first class keeps as the last one, in a random
            order of classes; the shares between them fall geometrically. Every class keeps at least
            one sample.
        random_state : int, default=0
            Seed of the order of the classes and of the choice of samples.

        Examples
        --------
        >>> import numpy as np
        >>> from evergrow.compare import load_dataset
        >>> sizes = np.bincount(load_dataset("digits").long_tailed(10.0).y_train)
        >>> int(sizes.min()), int(sizes.max())
        (14, 136)
        """
        if not imbalance >= 1:
            raise InvalidInputError(f"imbalance must be a number of at least 1, got {imbalance!r}")
        rng = np.random.default_rng(random_state)
        classes = rng.permutation(self.classes)
        kept = []
        for label, share in zip(classes, np.geomspace(1, 1 / imbalance, len(classes)), strict=True):
            rows = rng.permutation(np.flatnonzero(self.y_train == label))
            kept.append(rows[: max(1, round(share * len(rows)))])
        return self._select(np.sort(np.concatenate(kept)), np.arange(len(self.y_test)))

    def _select(self, train: Array, test: Array) -> Dataset:
        return replace(
            self,
            X_train=self.X_train[train],
            y_train=self.y_train[train],
            X_test=self.X_test[test],
            y_test=self.y_test[test],
        )


def _first(y: Array, n: int) -> Array:
    rows = [np.flatnonzero(y == label)[:n] for label in np.unique(y)]
    return np.sort(np.concatenate(rows))


def load_dataset(
    source: str | os.PathLike[str],
    *,
    labels: str | os.PathLike[str] | None = None,
    test_share: float | None = None,
    random_state: int = 0,
    max_bytes: int = _MAX_BYTES,
) -> Dataset:
    """Load a data set from a file or folder.

    Files are not trusted: no pickle is run, and memory is limited.

    Parameters
    ----------
    source : str or path
        One of these:

        - ``"digits"``, as text: scikit-learn's 1797 digits of 8 x 8 pixels;
        - an ``.npz`` file with ``X_train``, ``y_train``, ``X_test`` and ``y_test``, or with ``X``,
          ``y`` and optionally ``split`` ("train" or "test" for each sample);
        - an ``.npy`` file of features, with ``labels``;
        - a folder of shards with labels, which is read into memory;
        - a folder of images with one folder per class, or with folders ``train`` and ``test`` that
          have such folders.
    labels : path, default=None
        The ``.npy`` file of labels of an ``.npy`` file of features.
    test_share : float, default=None
        Share of each class for testing if the data are not split; None is a quarter. A class with a
        single sample stays in training, with a warning.
    random_state : int, default=0
        Random seed of the split.
    max_bytes : int, default=8 GiB
        Memory limit for arrays read from files.

    Returns
    -------
    data : Dataset
        Samples are float32 rows (images in arrays are flattened), or image paths; labels are int64
        or strings. ``class_names`` and ``fine_to_coarse`` in the file, with one entry per label,
        are the names of the classes and the ``parents``.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> from evergrow.compare import load_dataset
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "pets.npz")
    ...     np.savez(file, X=np.eye(8), y=["cat"] * 4 + ["dog"] * 4)
    ...     data = load_dataset(file)
    >>> data.name, data.y_train.tolist(), data.y_test.tolist()
    ('pets', ['cat', 'cat', 'cat', 'dog', 'dog', 'dog'], ['cat', 'dog'])
    """
    division = _Division(test_share, random_state)
    check_parameters({"max_bytes": max_bytes}, {"max_bytes": [Integer(1)]})
    path, what = Path(source), display_name(source)
    is_pair = path.suffix.lower() == ".npy" and not path.is_dir()
    if labels is not None and not is_pair:
        raise InvalidInputError(f"labels cannot be used: {what} has its own")
    if source == "digits":
        found = _digits()
    elif path.is_dir():
        is_shards = (path / MANIFEST).exists()
        found = _read_shards(path, division, max_bytes) if is_shards else _list(path, division)
    elif path.suffix.lower() == ".npz":
        found = _read_npz(path, division, max_bytes)
    elif is_pair:
        if labels is None:
            raise DatasetError(
                f"{what} has no labels: labels must name the .npy file with the labels"
            )
        found = _read_npy(path, Path(labels), division, max_bytes)
    elif path.exists():
        raise DatasetError(f"{what} is not an .npz file, .npy file or folder")
    else:
        raise FileNotFoundError(
            f"no such file or folder: {what}; the only data set with a name is 'digits'"
        )
    _check_tested(found.y_train, found.y_test, what)
    return found


def is_image_dataset(data: Dataset) -> bool:
    """Whether the samples are paths of image files."""
    return data.X_train.ndim == 1 and data.X_train.dtype.kind == "U"


def embed_images(data: Dataset, embedder: Embedder, *, on_error: str = "raise") -> Dataset:
    """Replace the paths of images by vectors of a network, and the hash by that of the vectors.

    Images that cannot be read are an error, or left out with a warning if ``on_error`` is "skip".
    """
    # One call, so that one progress bar shows how long everything takes.
    paths: Array = np.concatenate([data.X_train, data.X_test])
    found = embedder.extract(paths.tolist(), on_error=on_error)
    if not len(found.kept):
        raise DatasetError(f"no image of {data.name!r} can be read")
    train = found.kept < len(data.X_train)
    labels: Array = np.concatenate([data.y_train, data.y_test])[found.kept]
    _check_tested(labels[train], labels[~train], repr(data.name))
    X = found.features
    return Dataset(data.name, X[train], labels[train], X[~train], labels[~train])


@dataclass(frozen=True)
class _Division:
    """How samples that are not split yet are divided into those for training and for testing."""

    test_share: float | None
    random_state: int

    def __post_init__(self) -> None:
        check_parameters(
            vars(self),
            {
                "test_share": [Fraction(), Nothing()],
                "random_state": [Integer(0, 2**32 - 1)],
            },
        )
        if self.test_share == 1.0:
            raise InvalidInputError("test_share must be below 1, because training needs samples")

    def refuse(self, what: str) -> None:
        """Raise ``InvalidInputError`` if a share is given for data that are split."""
        if self.test_share is not None:
            raise InvalidInputError(
                f"test_share cannot be used: {what} is already split into training and test samples"
            )

    def split(self, y: Array) -> tuple[Array, Array]:
        """Split rows, with the same share of each class, and keep their order.

        A class with two samples has one for testing; a single sample is for training.
        """
        share = _DEFAULT_SHARE if self.test_share is None else self.test_share
        # RandomState gives the same numbers in every version of NumPy.
        rng = np.random.RandomState(self.random_state)
        tested = np.zeros(len(y), bool)
        labels, codes = np.unique(y, return_inverse=True)
        starts = np.cumsum(np.bincount(codes, minlength=len(labels)))[:-1]
        for rows in np.split(np.argsort(codes, kind="stable"), starts):
            n_test = min(max(1, round(share * len(rows))), len(rows) - 1)
            tested[rng.permutation(rows)[:n_test]] = True
        return np.flatnonzero(~tested), np.flatnonzero(tested)


# --- Features in files


def _digits() -> Dataset:
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    X, y = load_digits(return_X_y=True)
    parts = train_test_split(X.astype(np.float32), y, random_state=0, stratify=y)
    X_train, X_test, y_train, y_test = parts
    return Dataset("digits", X_train, y_train, X_test, y_test)


def _read_npz(path: Path, division: _Division, max_bytes: int) -> Dataset:
    what = display_name(path)
    with _open(path) as file:
        digest = _digest(file)
        arrays, others = _read_archive(file, what, max_bytes)
    parts, whole = ([name for name in names if name in arrays] for names in (_SPLIT, _WHOLE))
    if parts and whole:
        raise DatasetError(
            f"{what} holds both {', '.join(whole)} and {', '.join(parts)}: it must hold either "
            f"{', '.join(_SPLIT)}, or X, y and optionally split"
        )
    missing = [name for name in (_SPLIT if parts else _WHOLE[:2]) if name not in arrays]
    if missing:
        raise DatasetError(
            f"{what} lacks {', '.join(missing)}: it must hold the arrays {', '.join(_SPLIT)}, or "
            f"X, y and optionally split; it holds {list_names([*arrays, *others])}"
        )
    if parts or "split" in arrays:
        division.refuse(what)

    def named(X: str, y: str) -> tuple[Array, Array]:
        return _samples(arrays[X], arrays[y], (f"{X!r} in {what}", f"{y!r} in {what}"))

    if parts:
        X_train, y_train = named("X_train", "y_train")
        X_test, y_test = named("X_test", "y_test")
        if X_train.shape[1] != X_test.shape[1]:
            raise DatasetError(
                f"in {what} training samples have {X_train.shape[1]} features and test samples "
                f"{X_test.shape[1]}: the numbers must be equal"
            )
        if y_train.dtype.kind != y_test.dtype.kind:
            raise DatasetError(f"in {what} y_train and y_test must be both numbers or both strings")
    else:
        X, y = named("X", "y")
        train, test = _given_split(arrays, y, what) if "split" in arrays else division.split(y)
        X_train, y_train, X_test, y_test = X[train], y[train], X[test], y[test]
    parents, names = (_by_label(arrays, name, np.unique(y_train), what) for name in _OF_CLASSES)
    return Dataset(path.stem, X_train, y_train, X_test, y_test, parents, digest, names)


def _read_npy(path: Path, labels: Path, division: _Division, max_bytes: int) -> Dataset:
    what = (display_name(path), display_name(labels))
    with _open(path) as file, _open(labels) as other:
        digest = hashlib.sha256((_digest(file) + _digest(other)).encode()).hexdigest()
        X, left = _read_array(file, what[0], max_bytes)
        y, _ = _read_array(other, what[1], left)
    X, y = _samples(X, y, what)
    train, test = division.split(y)
    return Dataset(path.stem, X[train], y[train], X[test], y[test], sha256=digest)


def _open(path: Path) -> BinaryIO:
    """Open a regular file to read; an error that names it for anything else."""
    try:
        return open_regular(path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise type(error)(f"cannot read {display_name(path)}: {reason}") from error
    except InvalidInputError as error:
        raise DatasetError(f"cannot read {display_name(path)}: {error}") from error


def _digest(file: BinaryIO) -> str:
    """Return the SHA-256 of a file, and go back to its beginning."""
    digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
    file.seek(0)
    return digest


@contextmanager
def _report_damage(what: str) -> Iterator[None]:
    try:
        with report_damage(what):
            yield
    except ShardError as error:
        raise DatasetError(str(error)) from error


def _read_archive(file: BinaryIO, what: str, left: int) -> tuple[dict[str, Array], list[str]]:
    """Return the arrays that belong to a data set, and the names of the others."""
    with _report_damage(what):
        archive = zipfile.ZipFile(file)
    with archive:
        members = [(one.filename.removesuffix(".npy"), one) for one in archive.infolist()]
        if len(dict(members)) < len(members):
            raise DatasetError(f"{what} holds an array twice")
        arrays = {}
        for name, member in members:
            if name in (*_SPLIT, *_WHOLE, *_OF_CLASSES):
                with _report_damage(f"{name!r} in {what}"):
                    content = archive.open(member)
                with content:
                    arrays[name], left = _read_array(content, f"{name!r} in {what}", left)
    return arrays, [name for name, _ in members if name not in arrays]


def _read_array(file: IO[bytes], what: str, left: int) -> tuple[Array, int]:
    """Return an array, and how much memory is left for others."""
    with _report_damage(what):
        stream = NpyStream(file, what)
    left = _take(math.prod(stream.shape) * max(stream.dtype.itemsize, _FLOAT_BYTES), left, what)
    with _report_damage(what):
        return stream.whole(), left


def _take(needed: int, left: int, what: str) -> int:
    """Return how much memory is left after some bytes are taken."""
    if needed > left:
        raise DatasetError(
            f"{what} needs {needed} bytes of memory, but only {left} are left: increase max_bytes "
            "if the size is right"
        )
    return left - needed


# --- Folders


def _read_shards(path: Path, division: _Division, max_bytes: int) -> Dataset:
    """Read the labelled rows of a folder of shards into memory."""
    # The import takes a while, and other data sets do not need it.
    from evergrow.storage.shards import open_shards

    shards, what = open_shards(path), display_name(path)
    if shards.manifest.is_ragged:
        raise DatasetError(
            f"{what} has images of several rows each; a sample must be one row, so turn each image "
            "into one vector first"
        )
    labels = shards.labels
    rows = np.flatnonzero(labels.codes >= 0)
    if not len(rows):
        raise DatasetError(f"{what} has no row with a label: write shards with labels")
    if labels.n_unlabelled:
        warn_user(
            f"{what} has {labels.n_unlabelled} of {len(labels)} rows without a label, which are "
            "left out",
            DatasetWarning,
        )
    _take(_FLOAT_BYTES * len(rows) * shards.shape[1], max_bytes, what)
    X, y = _as_rows(shards[rows], what), _as_labels(labels.classes[labels.codes[rows]], what)
    train, test = division.split(y)
    name = path.resolve().name
    return Dataset(name, X[train], y[train], X[test], y[test], sha256=shards.digest)


def _list(path: Path, division: _Division) -> Dataset:
    """List the images of one folder per class, perhaps inside folders train and test."""
    # The import takes seconds, and other data sets do not need it.
    from evergrow.vision.images import find_labelled
    from evergrow.vision.images.walk import list_entries

    if all((path / part).is_dir() for part in _PARTS):
        division.refuse(display_name(path))
        folders = [each for each in list_entries(path) if each.is_dir(follow_symlinks=False)]
        others = sorted(each.name for each in folders if each.name not in _PARTS)
        if others:
            warn_user(
                f"{display_name(path)} has the folders train and test; other folders are not "
                f"read: {', '.join(map(display_name, others[:_MAX_NAMED]))}",
                DatasetWarning,
            )
        (X_train, y_train), (X_test, y_test) = (
            _listed(find_labelled(path / part)) for part in _PARTS
        )
    else:
        X, y = _listed(find_labelled(path))
        train, test = division.split(y)
        X_train, y_train, X_test, y_test = X[train], y[train], X[test], y[test]
    digest = hashlib.sha256()
    for image in sorted([*X_train.tolist(), *X_test.tolist()]):
        with _open(Path(image)) as file:
            inside = os.fsencode(Path(image).relative_to(path).as_posix())
            digest.update(_digest(file).encode() + b"  " + inside + b"\n")
    name = path.resolve().name
    return Dataset(name, X_train, y_train, X_test, y_test, sha256=digest.hexdigest())


def _listed(found: LabelledImages) -> tuple[Array, Array]:
    from evergrow.vision.images.results import warn_about

    warn_about(found.problems, stacklevel=5)
    return np.array([os.fspath(path) for path in found.paths]), found.labels


# --- Checks and conversions of arrays; ``what`` names them in errors


def _samples(X: Array, y: Array, names: tuple[str, str]) -> tuple[Array, Array]:
    """Convert samples and labels, of which there must be one for each."""
    labels, rows = _as_labels(y, names[1]), _as_rows(X, names[0])
    if len(rows) != len(labels):
        raise DatasetError(
            f"{names[0]} has {len(rows)} samples and {names[1]} has {len(labels)} labels: there "
            "must be one label per sample"
        )
    return rows, labels


def _as_rows(values: Array, what: str) -> npt.NDArray[np.float32]:
    """Convert samples to float32 rows and flatten images."""
    if values.dtype.kind not in "biuf":
        raise DatasetError(f"{what} must hold numbers, got values of type {values.dtype}")
    if values.ndim < 2:
        raise DatasetError(
            f"{what} must have a row of features or an image per sample, got shape {values.shape}"
        )
    if not values.size:
        raise DatasetError(f"{what} is empty: its shape is {values.shape}")
    # Values too large for float32 become infinite and are refused.
    with np.errstate(over="ignore"):
        rows = np.ascontiguousarray(values.reshape(len(values), -1), np.float32)
    bad = np.argwhere(~np.isfinite(rows))
    if len(bad):
        row, column = bad[0].tolist()
        given = "NaN" if np.isnan(rows[row, column]) else "a value that is not a finite float32"
        raise DatasetError(
            f"{what} has {given} in row {row}, feature {column} (counted from 0): every feature "
            "must be a finite number; remove the row or fill in the value"
        )
    return rows


def _as_labels(values: Array, what: str) -> Array:
    """Convert labels to int64 or text."""
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise DatasetError(f"{what} must hold one label per sample, got shape {values.shape}")
    if values.dtype.kind == "S":
        try:
            values = np.char.decode(values, "utf-8")
        except UnicodeDecodeError as error:
            raise DatasetError(f"{what} holds bytes that are not UTF-8 text: {error}") from error
    if values.dtype.kind == "U":
        _refuse_first(np.char.strip(values) == "", values, what, "of at least one letter")
        return values
    if values.dtype.kind not in "biuf":
        raise DatasetError(f"{what} must hold whole numbers or strings, got {values.dtype}")
    whole = np.isfinite(values) & (values == np.floor(values)) & (values < 2**63)
    _refuse_first(~whole, values, what, "whole numbers or strings")
    return values.astype(np.int64)


def _refuse_first(wrong: Array, values: Array, what: str, allowed: str) -> None:
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DatasetError(
            f"{what} has an invalid label in row {row} (counted from 0): labels must be {allowed}, "
            f"got {values[row].item()!r}"
        )


def _given_split(arrays: Mapping[str, Array], y: Array, what: str) -> tuple[Array, Array]:
    given = _as_labels(arrays["split"], f"'split' in {what}")
    if len(given) != len(y):
        raise DatasetError(f"'split' in {what} has {len(given)} entries for {len(y)} samples")
    unknown = sorted({str(one) for one in np.unique(given).tolist()} - set(_PARTS))
    if unknown:
        raise DatasetError(
            f"'split' in {what} must be 'train' or 'test' for each sample, "
            f"got {unknown[:_MAX_NAMED]}"
        )
    train, test = (np.flatnonzero(given == part) for part in _PARTS)
    return train, test


def _by_label(
    arrays: Mapping[str, Array], key: str, classes: Array, what: str
) -> dict[Any, Any] | None:
    """Return the entry of each class in an array that is indexed by label, if there is one."""
    # Labels that are text are names already.
    if key not in arrays or classes.dtype.kind == "U":
        return None
    values = _as_labels(arrays[key], f"{key!r} in {what}")
    if not (classes.min(initial=0) >= 0 and classes.max(initial=0) < len(values)):
        raise DatasetError(
            f"{key!r} in {what} has {len(values)} entries, but labels go from {classes.min()} to "
            f"{classes.max()}: there must be one entry for each label from 0"
        )
    return {int(label): values[label].item() for label in classes}


def _check_tested(y_train: Array, y_test: Array, what: str) -> None:
    """Warn about classes without test samples; raise for classes without training samples."""
    for part, y in (("training", y_train), ("testing", y_test)):
        if not len(y):
            raise DatasetError(f"{what} has no samples for {part}")
    unknown = np.setdiff1d(y_test, y_train).tolist()
    if unknown:
        raise DatasetError(
            f"{what} has test samples of {format_count(len(unknown), 'class')} without training "
            f"samples: {list_names(unknown, _MAX_NAMED)}"
        )
    untested = np.setdiff1d(y_train, y_test).tolist()
    if untested:
        warn_user(
            f"{what} has {format_count(len(untested), 'class')} without test samples (perhaps a "
            "single sample), which are learnt but never tested: "
            f"{list_names(untested, _MAX_NAMED)}",
            DatasetWarning,
        )
