"""A data set for experiments: training and test samples, with a hash of their source."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evergrow.foundation.arrays import Array
from evergrow.foundation.errors import InvalidInputError


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
    parent_names : mapping from label to str, default=None
        Names of the coarse classes, if their labels are numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow.research import Dataset
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
    parent_names: Mapping[Any, str] | None = None

    def __post_init__(self) -> None:
        for part in ("train", "test"):
            X, y = getattr(self, f"X_{part}"), getattr(self, f"y_{part}")
            if len(X) != len(y):
                raise InvalidInputError(
                    f"{self.name!r} has {len(X)} {part} samples and {len(y)} labels for them; "
                    "every sample needs one label"
                )
        if not self.sha256:
            arrays = (self.X_train, self.y_train, self.X_test, self.y_test)
            object.__setattr__(self, "sha256", digest_of_arrays(arrays))

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
            raise InvalidInputError(f"{self.name!r} has no classes {unknown[:5]}")
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
        >>> from evergrow.research import mixture
        >>> data = mixture(3, n_train=100).long_tailed(100.0)
        >>> sorted(np.bincount(data.y_train).tolist())
        [1, 10, 100]
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

    def transformed(self, transformer: Any, *, name: str | None = None) -> Dataset:
        """Return the same samples with transformed features; the hash stays that of the files.

        Parameters
        ----------
        transformer : estimator with ``fit`` and ``transform``
            A clone is fitted on the training samples only. For paths of images, for example an
            :class:`~evergrow.Embedder`.
        name : str, default=None
            Name in tables; None keeps the name.

        Examples
        --------
        >>> from sklearn.preprocessing import StandardScaler
        >>> from evergrow.research import digits
        >>> scaled = digits().transformed(StandardScaler())
        >>> float(scaled.X_train.mean().round(3))
        0.0
        """
        from sklearn.base import clone

        fitted = clone(transformer).fit(self.X_train, self.y_train)
        X_train, X_test = (
            _as_matrix(fitted.transform(X), len(X)) for X in (self.X_train, self.X_test)
        )
        name = self.name if name is None else name
        return replace(self, name=name, X_train=X_train, X_test=X_test)

    def _select(self, train: Array, test: Array) -> Dataset:
        return replace(
            self,
            X_train=self.X_train[train],
            y_train=self.y_train[train],
            X_test=self.X_test[test],
            y_test=self.y_test[test],
        )


def _as_matrix(values: Any, n_samples: int) -> Array:
    dense = values.toarray() if hasattr(values, "toarray") else values
    matrix = np.asarray(dense, np.float32)
    if matrix.ndim != 2 or len(matrix) != n_samples:
        raise InvalidInputError(
            f"the transformer must return one row of features for each of {n_samples} samples, "
            f"got shape {matrix.shape}"
        )
    return matrix


def _first(y: Array, n: int) -> Array:
    rows = [np.flatnonzero(y == label)[:n] for label in np.unique(y)]
    return np.sort(np.concatenate(rows))


def digest_of_arrays(arrays: Iterable[Array]) -> str:
    """Return the SHA-256 of the types, shapes and values of arrays."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}:{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
