"""Data sets: features in files, shards, folders of photographs, and scikit-learn's digits."""

from __future__ import annotations

import hashlib
import math
import os
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import (
    DatasetError,
    DatasetWarning,
    InvalidInputError,
    ShardError,
    warn_user,
)
from evergrow.foundation.files import open_regular
from evergrow.foundation.formatting import display_name, format_count, list_names
from evergrow.foundation.params import Fraction, Integer, Nothing, check_parameters
from evergrow.storage.shards.importers.npy_stream import NpyStream
from evergrow.storage.shards.importers.source import report_damage
from evergrow.storage.shards.manifest import MANIFEST

if TYPE_CHECKING:
    from evergrow.vision.embedding import Embedder

Array = npt.NDArray[Any]

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
        known = {*self.y_train.tolist(), *self.y_test.tolist()}
        unknown = [label for label in wanted.tolist() if label not in known]
        if unknown:
            raise InvalidInputError(f"{self.name!r} has no classes {unknown[:_MAX_NAMED]}")
        return self._select(np.isin(self.y_train, wanted), np.isin(self.y_test, wanted))

    def per_class(self, n_train: int, n_test: int | None = None) -> Dataset:
        """Return the first samples of each class; the hash stays that of the whole."""
        if min(n_train, 1 if n_test is None else n_test) < 1:
            raise InvalidInputError(
                f"at least one sample of each class is needed, got {n_train, n_test}"
            )

        def first(y: Array, n: int) -> Array:
            return np.sort(np.concatenate([np.flatnonzero(y == k)[:n] for k in np.unique(y)]))

        n_tested = len(self.y_test) if n_test is None else n_test
        return self._select(first(self.y_train, n_train), first(self.y_test, n_tested))

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
    check_parameters(
        {"test_share": test_share, "random_state": random_state, "max_bytes": max_bytes},
        {
            "test_share": [Fraction(), Nothing()],
            "random_state": [Integer(0, 2**32 - 1)],
            "max_bytes": [Integer(1)],
        },
    )
    if test_share == 1.0:
        raise InvalidInputError("test_share must be below 1, because training needs samples")
    path, what = Path(source), display_name(source)
    is_folder = path.is_dir() and source != "digits"
    if labels is not None and (is_folder or path.suffix.lower() != ".npy"):
        raise InvalidInputError(f"labels cannot be used: {what} has its own")
    try:
        found = _read_digits() if source == "digits" else _read(path, labels, max_bytes)
    except ShardError as error:
        raise DatasetError(str(error)) from error
    if len(found.parts) == 1:
        share = _DEFAULT_SHARE if test_share is None else test_share
        parts = _split(*found.parts[0], share, random_state)
    elif test_share is None:
        parts = found.parts
    else:
        raise InvalidInputError(
            f"test_share cannot be used: {what} is already split into training and test samples"
        )
    (X_train, y_train), (X_test, y_test) = parts
    _check_tested(y_train, y_test, what)
    name = path.resolve().name if is_folder else path.stem
    return Dataset(
        name, X_train, y_train, X_test, y_test, found.parents, found.sha256, found.class_names
    )


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
class _Found:
    """What a source holds: samples with labels, in two parts if it is split."""

    parts: list[tuple[Array, Array]]
    sha256: str
    parents: Mapping[Any, Any] | None = None
    class_names: Mapping[Any, str] | None = None


def _read(path: Path, labels: str | os.PathLike[str] | None, max_bytes: int) -> _Found:
    if path.is_dir():
        is_shards = (path / MANIFEST).exists()
        return _read_shards(path, max_bytes) if is_shards else _list_images(path)
    if path.suffix.lower() == ".npz":
        return _read_npz(path, max_bytes)
    if path.suffix.lower() == ".npy":
        return _read_npy(path, labels, max_bytes)
    what = display_name(path)
    if path.exists():
        raise DatasetError(f"{what} is not an .npz file, .npy file or folder")
    raise FileNotFoundError(
        f"no such file or folder: {what}; the only data set with a name is 'digits'"
    )


def _split(X: Array, y: Array, share: float, random_state: int) -> list[tuple[Array, Array]]:
    """Split samples, with the same share of each class, and keep their order.

    A class with two samples has one for testing; a single sample is for training.
    """
    # RandomState gives the same numbers in every version of NumPy.
    rng = np.random.RandomState(random_state)
    tested = np.zeros(len(y), bool)
    _, counts = np.unique(y, return_counts=True)
    for rows in np.split(np.argsort(y, kind="stable"), np.cumsum(counts)[:-1]):
        n_test = min(max(1, round(share * len(rows))), len(rows) - 1)
        tested[rng.permutation(rows)[:n_test]] = True
    return [(X[~tested], y[~tested]), (X[tested], y[tested])]


# --- Features in files


def _read_digits() -> _Found:
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    X, y = load_digits(return_X_y=True)
    parts = train_test_split(X.astype(np.float32), y, random_state=0, stratify=y)
    X_train, X_test, y_train, y_test = parts
    return _Found([(X_train, y_train), (X_test, y_test)], sha256="")


def _read_npz(path: Path, left: int) -> _Found:
    what = display_name(path)
    arrays = {}
    with _open(path) as file:
        digest = _digest(file)
        with report_damage(what):
            archive = zipfile.ZipFile(file)
        members = {one.filename.removesuffix(".npy"): one for one in archive.infolist()}
        if len(members) < len(archive.infolist()):
            raise DatasetError(f"{what} holds an array twice")
        for name, member in members.items():
            if name in (*_SPLIT, *_WHOLE, *_OF_CLASSES):
                where = f"{name!r} in {what}"
                with report_damage(where), archive.open(member) as content:
                    arrays[name], left = _read_array(content, where, left)
    given, whole = ([name for name in names if name in arrays] for names in (_SPLIT, _WHOLE))
    if given and whole:
        raise DatasetError(
            f"{what} holds both {', '.join(whole)} and {', '.join(given)}: it must hold either "
            f"{', '.join(_SPLIT)}, or X, y and optionally split"
        )
    missing = [name for name in (_SPLIT if given else _WHOLE[:2]) if name not in arrays]
    if missing:
        raise DatasetError(
            f"{what} lacks {', '.join(missing)}: it must hold the arrays {', '.join(_SPLIT)}, or "
            f"X, y and optionally split; it holds {list_names(members)}"
        )
    names = [("X_train", "y_train"), ("X_test", "y_test")] if given else [("X", "y")]
    parts = [
        _samples(arrays[X], arrays[y], f"{X!r} in {what}", f"{y!r} in {what}") for X, y in names
    ]
    if given:
        (X_train, y_train), (X_test, y_test) = parts
        if X_train.shape[1] != X_test.shape[1]:
            raise DatasetError(
                f"in {what} training samples have {X_train.shape[1]} features and test samples "
                f"{X_test.shape[1]}: the numbers must be equal"
            )
        if y_train.dtype.kind != y_test.dtype.kind:
            raise DatasetError(f"in {what} y_train and y_test must be both numbers or both strings")
    elif "split" in arrays:
        parts = _follow_split(*parts[0], arrays["split"], f"'split' in {what}")
    classes = np.unique(parts[0][1])
    parents, class_names = (_by_label(arrays, name, classes, what) for name in _OF_CLASSES)
    return _Found(parts, digest, parents, class_names)


def _read_npy(path: Path, labels: str | os.PathLike[str] | None, left: int) -> _Found:
    what, beside = display_name(path), display_name(labels)
    if labels is None:
        raise DatasetError(f"{what} has no labels: labels must name the .npy file with the labels")
    with _open(path) as file, _open(Path(labels)) as other:
        digest = hashlib.sha256((_digest(file) + _digest(other)).encode()).hexdigest()
        X, left = _read_array(file, what, left)
        y, _ = _read_array(other, beside, left)
    return _Found([_samples(X, y, what, beside)], digest)


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


def _read_array(file: IO[bytes], what: str, left: int) -> tuple[Array, int]:
    """Return an array, and how much memory is left for others."""
    stream = NpyStream(file, what)
    left = _take(math.prod(stream.shape) * max(stream.dtype.itemsize, _FLOAT_BYTES), left, what)
    with report_damage(what):
        return stream.whole(), left


def _take(needed: int, left: int, what: str) -> int:
    """Return how much memory is left after some bytes are taken."""
    if needed > left:
        raise ShardError(
            f"{what} needs {needed} bytes of memory, but only {left} are left: increase max_bytes "
            "if the size is right"
        )
    return left - needed


# --- Folders


def _read_shards(path: Path, max_bytes: int) -> _Found:
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
    return _Found(
        [_samples(shards[rows], labels.classes[labels.codes[rows]], what, what)], shards.digest
    )


def _list_images(path: Path) -> _Found:
    """List the images of one folder per class, perhaps inside folders train and test."""
    # The import takes seconds, and other data sets do not need it.
    from evergrow.vision.images import find_labelled
    from evergrow.vision.images.results import warn_about
    from evergrow.vision.images.walk import list_entries

    folders = [path]
    if all((path / part).is_dir() for part in _PARTS):
        folders = [path / part for part in _PARTS]
        entries = [each for each in list_entries(path) if each.is_dir(follow_symlinks=False)]
        others = sorted({each.name for each in entries} - {*_PARTS})
        if others:
            warn_user(
                f"{display_name(path)} has the folders train and test; other folders are not "
                f"read: {', '.join(map(display_name, others[:_MAX_NAMED]))}",
                DatasetWarning,
            )
    digest, parts = hashlib.sha256(), []
    for folder in folders:
        found = find_labelled(folder)
        warn_about(found.problems, stacklevel=5)
        parts.append((np.array([os.fspath(image) for image in found.paths]), found.labels))
    for image in sorted(np.concatenate([paths for paths, _ in parts]).tolist()):
        with _open(Path(image)) as file:
            inside = os.fsencode(Path(image).relative_to(path).as_posix())
            digest.update(_digest(file).encode() + b"  " + inside + b"\n")
    return _Found(parts, digest.hexdigest())


# --- Checks and conversions of arrays; ``what`` names them in errors


def _samples(X: Array, y: Array, what: str, beside: str) -> tuple[Array, Array]:
    """Convert samples to float32 rows, and labels, of which there must be one for each."""
    labels = _as_labels(y, beside)
    if X.dtype.kind not in "biuf":
        raise DatasetError(f"{what} must hold numbers, got values of type {X.dtype}")
    if X.ndim < 2:
        raise DatasetError(
            f"{what} must have a row of features or an image per sample, got shape {X.shape}"
        )
    if not X.size:
        raise DatasetError(f"{what} is empty: its shape is {X.shape}")
    # Values too large for float32 become infinite and are refused.
    with np.errstate(over="ignore"):
        rows = np.ascontiguousarray(X.reshape(len(X), -1), np.float32)
    bad = np.argwhere(~np.isfinite(rows))
    if len(bad):
        row, column = bad[0].tolist()
        given = "NaN" if np.isnan(rows[row, column]) else "a value that is not a finite float32"
        raise DatasetError(
            f"{what} has {given} in row {row}, feature {column} (counted from 0): every feature "
            "must be a finite number; remove the row or fill in the value"
        )
    if len(rows) != len(labels):
        raise DatasetError(
            f"{what} has {len(rows)} samples and {beside} has {len(labels)} labels: there must be "
            "one label per sample"
        )
    return rows, labels


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
        wrong, allowed = np.char.strip(values) == "", "of at least one letter"
    elif values.dtype.kind in "biuf":
        whole = np.isfinite(values) & (values == np.floor(values)) & (values < 2**63)
        wrong, allowed = ~whole, "whole numbers or strings"
    else:
        raise DatasetError(f"{what} must hold whole numbers or strings, got {values.dtype}")
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DatasetError(
            f"{what} has an invalid label in row {row} (counted from 0): labels must be {allowed}, "
            f"got {values[row].item()!r}"
        )
    return values if values.dtype.kind == "U" else values.astype(np.int64)


def _follow_split(X: Array, y: Array, split: Array, what: str) -> list[tuple[Array, Array]]:
    given = _as_labels(split, what)
    if len(given) != len(y):
        raise DatasetError(f"{what} has {len(given)} entries for {len(y)} samples")
    unknown = sorted({str(one) for one in given.tolist()} - {*_PARTS})
    if unknown:
        raise DatasetError(
            f"{what} must be 'train' or 'test' for each sample, got {unknown[:_MAX_NAMED]}"
        )
    return [(X[given == part], y[given == part]) for part in _PARTS]


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
