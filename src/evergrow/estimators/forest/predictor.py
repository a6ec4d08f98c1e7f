"""What all forests have in common: predicting, inspecting, saving."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from scipy.sparse import issparse

from evergrow.estimators.classifier.predictor import ScoringClassifier
from evergrow.estimators.forest.explanation import Explanation, explain_row
from evergrow.estimators.forest.value.fitted import FittedForest
from evergrow.estimators.forest.value.serialization import forest_from_file, forest_to_file
from evergrow.foundation.errors import ModelFileError
from evergrow.foundation.params import check_parameters
from evergrow.foundation.turns import turn_of_file
from evergrow.storage.files import write_model
from evergrow.storage.modelfile import Build


class ForestPredictor(ScoringClassifier):
    """A fitted forest as an estimator; subclasses add parameters and a way to fit."""

    # Name of what proposes splits, in the core's table.
    _proposer: ClassVar[str]

    n_jobs: int | None
    _fitted: FittedForest

    @property
    def nbytes(self) -> int:
        """Bytes the trees hold: nodes, centroids, class counts and training row numbers.

        The training samples they refer to are not counted: 4 bytes per sample and feature, the
        features rounded up to a multiple of 16.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(5, min_samples_leaf=1, random_state=0)
        >>> forest.fit([[0], [1], [8], [9]], [0, 0, 1, 1]).nbytes < 2000
        True
        """
        return int(self._learnt("nbytes").forest.nbytes)

    @property
    def stored_ids_(self) -> npt.NDArray[np.int64]:
        """Ids of all samples that the forest keeps; :meth:`forget` takes them.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(5, min_samples_leaf=1, random_state=0)
        >>> forest.fit([[0], [1], [8], [9]], [0, 0, 1, 1]).forget(samples=[2]).stored_ids_.tolist()
        [0, 1, 3]
        """
        fitted: FittedForest = self._learnt("stored_ids_")
        return fitted.stored_ids

    def _checked(self, X: npt.ArrayLike) -> tuple[FittedForest, npt.NDArray[Any], int]:
        reader, X = self._checked_query(X)
        return reader._fitted, X, effective_n_jobs(self.n_jobs)

    def predict_proba(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Class probabilities: the mean class frequencies of the leaves (Eq. 4).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features as in :meth:`fit`.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            One column per class, in the order of ``classes_``.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(5, min_samples_leaf=1, random_state=0)
        >>> forest.fit([[0], [1], [8], [9]], [0, 0, 1, 1]).predict_proba([[9]])
        array([[0., 1.]])
        """
        fitted, X, n_threads = self._checked(X)
        return fitted.probabilities(X, n_threads)

    def _score_blocks(self, X: npt.NDArray[Any]) -> Iterator[tuple[slice, npt.NDArray[np.float64]]]:
        fitted: FittedForest = self._fitted
        return fitted.probability_blocks(X, effective_n_jobs(self.n_jobs))

    def apply(self, X: npt.ArrayLike) -> npt.NDArray[np.int32]:
        """Leaf that each sample reaches in each tree.

        Returns
        -------
        leaves : ndarray of shape (n_samples, n_estimators)
            Node numbers, counted per tree.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(3, min_samples_leaf=1, random_state=0)
        >>> forest.fit([[0], [1], [8], [9]], [0, 0, 1, 1]).apply([[0], [9]]).shape
        (2, 3)
        """
        fitted, X, n_threads = self._checked(X)
        return fitted.leaves(X, n_threads)

    def comparisons(self, X: npt.ArrayLike) -> float:
        """Mean number of distances computed per tree and sample, the papers' measure of cost.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(3, min_samples_leaf=1, random_state=0)
        >>> forest.fit([[0], [1], [8], [9]], [0, 0, 1, 1]).comparisons([[0], [9]])
        2.0
        """
        fitted, X, n_threads = self._checked(X)
        n_descents = int(X.shape[0]) * len(fitted.forest)
        return fitted.comparisons(X, n_threads) / n_descents

    def explain(self, x: npt.ArrayLike) -> Explanation:
        """Follow one sample through every tree.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (1, n_features)
            One sample.

        Returns
        -------
        explanation : Explanation
            Per tree the path and the class counts of the leaf. A step of the path says what the
            node looked at: the classes whose means it compared with, which was nearest and how
            far; the feature and its threshold; or the distance from the plane. ``print`` shows
            it as text.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(1, min_samples_leaf=1, random_state=0)
        >>> print(forest.fit([[0], [1], [8], [9]], ["a", "a", "b", "b"]).explain([7]))
        tree 0
        node 0: nearest of 2 means is 'b' at 0.372, goes left
        leaf 1: 'b': 2
        """
        if hasattr(x, "to_frame"):  # a row of a DataFrame
            x = x.to_frame().T.infer_objects()
        elif not hasattr(x, "columns") and not issparse(x):
            x = np.atleast_2d(np.asarray(x))
        fitted, X, _ = self._checked(x)
        if X.shape[0] != 1:
            raise ValueError(f"explain takes one sample, got {X.shape[0]}")
        row = np.ascontiguousarray(X[0], dtype=np.float64)
        return explain_row(fitted, row)

    def save(self, path: str | os.PathLike[str], *, inference_only: bool = False) -> None:
        """Write the model to a file that :func:`evergrow.load` reads.

        The file is written aside, synced and renamed: whatever happens, the old or the new one
        is there whole.

        Parameters
        ----------
        path : path
            File to write; an existing one is replaced.
        inference_only : bool, default=False
            Leave out the training samples that predicting does not need. The file is smaller and
            predicts the same, but the model cannot be updated after loading.

        Examples
        --------
        >>> import evergrow, tempfile, os
        >>> forest = evergrow.NCMForestClassifier(3, min_samples_leaf=1, random_state=0)
        >>> forest = forest.fit([[0], [1], [8], [9]], [0, 0, 1, 1])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "model.evergrow")
        ...     forest.save(path)
        ...     evergrow.load(path).predict([[9]])
        array([1])
        """
        samples = self._learnt("model to save").forest.samples
        # Rows in a file are read while they are written, and must not change meanwhile.
        with turn_of_file(samples.path):
            write_model(path, *self._to_file(inference_only=inference_only))

    def _to_file(
        self, *, inference_only: bool = False
    ) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Header and arrays of a model file, or of a part of another model's file."""
        reader = self._checked_to_save()
        return forest_to_file(reader, reader._fitted, inference_only=inference_only)

    @classmethod
    def _from_file(
        cls,
        header: dict[str, Any],
        tensors: dict[str, npt.NDArray[Any]],
        build: Build,  # noqa: ARG003
    ) -> Self:
        fitted, parameters, names = forest_from_file(header, tensors)
        if fitted.proposer != cls._proposer:
            raise ModelFileError(
                f"the file says it holds a {cls.__name__} but its trees were grown by another"
            )
        check_parameters({**cls().get_params(), **parameters}, cls._rules)
        forest = cls(**parameters)
        forest._become(fitted, names)
        return forest
