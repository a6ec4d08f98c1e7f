"""Predict at all levels with a fitted forest, and save it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Literal, NamedTuple, Self, cast

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from sklearn.utils.validation import _check_sample_weight, check_consistent_length

from evergrow.estimators.classifier.learner import translate_errors
from evergrow.estimators.classifier.predictor import fill_rows
from evergrow.estimators.forest.predictor import TreePredictor
from evergrow.estimators.subcategory.fitted import FittedSubcategories
from evergrow.estimators.subcategory.labels import true_columns
from evergrow.estimators.subcategory.methods import Method, method_of
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.params import (
    Choice,
    Integer,
    Nothing,
    Number,
    Rule,
    check_parameters,
)

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[Any]

_BACK_OFF: dict[str, list[Rule]] = {"back_off": [Nothing(), Number(0.0, 1.0)]}
_LEVEL: dict[str, list[Rule]] = {"level": [Choice(("fine", "coarse")), Integer(0)]}

Level = Literal["fine", "coarse"] | int


class _TwoLevels(NamedTuple):
    coarse: Labels
    fine: Labels
    is_fine: npt.NDArray[np.bool_]


class LevelAnswers(_TwoLevels):
    """Predictions at all levels; a tuple of ``coarse``, ``fine`` and ``is_fine``.

    Attributes
    ----------
    coarse : ndarray of shape (n_samples,)
        The coarse class that the fine class belongs to, if the fine class is confident enough;
        otherwise the most probable coarse class. With more than two levels, ``levels[0]``.
    fine : ndarray of shape (n_samples,)
        The most probable class of ``classes_``.
    is_fine : ndarray of shape (n_samples,)
        Whether the fine class is confident enough.
    levels : list of ndarray of shape (n_samples,)
        The predicted class on each level, from coarse to fine. A class without finer ones is
        repeated on the levels below it.
    level : ndarray of shape (n_samples,)
        The finest level that is confident enough; 0 is the coarsest.

    Examples
    --------
    >>> from evergrow import SubcategoryForestClassifier
    >>> X = [[0], [1], [4], [5], [18], [19]]
    >>> Y = [[0, 0], [0, 1], [0, 0], [0, 1], [1, 2], [1, 2]]
    >>> forest = SubcategoryForestClassifier(20, min_samples_leaf=2, random_state=0).fit(X, Y)
    >>> coarse, fine, is_fine = forest.predict_levels([[0], [19]], back_off=0.8)
    >>> coarse, is_fine
    (array([0, 1]), array([False,  True]))
    """

    levels: list[Labels]
    level: npt.NDArray[np.intp]

    def __new__(
        cls,
        coarse: Labels,
        fine: Labels,
        is_fine: npt.NDArray[np.bool_],
        levels: list[Labels] | None = None,
        level: npt.NDArray[np.intp] | None = None,
    ) -> Self:
        """Keep the answers; without ``levels`` there are two."""
        answers = super().__new__(cls, coarse, fine, is_fine)
        answers.levels = [coarse, fine] if levels is None else levels
        answers.level = np.asarray(is_fine, dtype=np.intp) if level is None else level
        return answers

    def __repr__(self) -> str:
        if len(self.levels) <= 2:
            return super().__repr__()
        return f"{type(self).__name__}(levels={self.levels!r}, level={self.level!r})"


class SubcategoryPredictor(TreePredictor):
    """A fitted forest as an estimator; :class:`SubcategoryForestClassifier` adds training."""

    method: str | Method
    _fitted: FittedSubcategories
    _kind = FittedSubcategories

    @property
    def coarse_classes_(self) -> Labels:
        """The coarse classes, in the order of the columns of their probabilities."""
        return self._value("coarse_classes_").tree.coarse_classes

    @property
    def hierarchy_(self) -> dict[Any, Any]:
        """Class above each class that is not on the top level."""
        return dict(self._value("hierarchy_").tree.hierarchy)

    @property
    def level_classes_(self) -> list[Labels]:
        """The classes of each level, in the order of the columns of their probabilities."""
        tree = self._value("level_classes_").tree
        return [tree.level_names(level) for level in range(tree.n_levels)]

    def _value(self, wanted: str) -> FittedSubcategories:
        """The fitted value; an error names what is wanted if there is none."""
        return cast(FittedSubcategories, self._require_fitted(wanted))

    def _score_blocks(self, X: npt.NDArray[Any]) -> Iterator[tuple[slice, Floats]]:
        check_parameters({"method": self.method}, {"method": self._rules["method"]})
        n_threads = effective_n_jobs(self.n_jobs)
        blocks = self._placed(X).probability_blocks(X, n_threads, method_of(self.method)._smoothing)
        return cast("Iterator[tuple[slice, Floats]]", blocks)

    def predict_proba(self, X: npt.ArrayLike, *, level: Level = "fine") -> Floats:
        """Predict class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.
        level : {"fine", "coarse"} or int, default="fine"
            ``"fine"`` for the probabilities of ``classes_``, ``"coarse"`` for those of
            ``coarse_classes_``, which are sums over the fine classes. With more levels, a number
            from 0 (the coarsest) gives those of ``level_classes_[level]``.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            One column per class.

        Examples
        --------
        >>> from evergrow import SubcategoryForestClassifier
        >>> X = [[0], [1], [4], [5], [18], [19]]
        >>> Y = [["a", "a1"], ["a", "a1"], ["a", "a2"], ["a", "a2"], ["b", "b1"], ["b", "b1"]]
        >>> forest = SubcategoryForestClassifier(5, min_samples_leaf=1, random_state=0).fit(X, Y)
        >>> forest.predict_proba([[5]], level="coarse").round(2)
        array([[1., 0.]])
        """
        check_parameters({"level": level}, _LEVEL)
        reader, X = self._checked_query(X)
        number = _level_number(level, reader._fitted)
        blocks = reader._score_blocks(X)
        sums = partial(reader._fitted.level_sums, level=number)
        return cast(Floats, fill_rows(X, blocks, sums))

    def predict(
        self, X: npt.ArrayLike, *, back_off: float | None = None, level: Level = "fine"
    ) -> Labels:
        """Predict the class of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.
        back_off : float, default=None
            Predict the coarse class if the probability of the fine class is lower than this. None
            always predicts a fine class. Raise it if a wrong fine class is worse than a coarse one.
            With more levels, the finest class with at least this probability is predicted.
        level : {"fine", "coarse"} or int, default="fine"
            Level to predict, as in :meth:`predict_proba`. With `back_off`, the finest level that
            may be predicted.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Classes of the requested level, with `back_off` also of coarser levels. An array of
            objects if strings and numbers are mixed.

        Examples
        --------
        >>> from evergrow import SubcategoryForestClassifier
        >>> X = [[0], [1], [4], [5], [18], [19]]
        >>> Y = [["a", "a1"], ["a", "a2"], ["a", "a1"], ["a", "a2"], ["b", "b1"], ["b", "b1"]]
        >>> forest = SubcategoryForestClassifier(20, min_samples_leaf=2, random_state=0).fit(X, Y)
        >>> forest.predict([[0], [19]], back_off=0.8)
        array(['a', 'b1'], dtype='<U2')
        """
        check_parameters({"level": level}, _LEVEL)
        if back_off is None and level == "fine":
            return super().predict(X)
        reader, X = self._checked_query(X)
        fitted = reader._fitted
        number = _level_number(level, fitted)
        if back_off is None:
            blocks = (fitted.level_sums(block, number) for _, block in reader._score_blocks(X))
            best = np.concatenate([block.argmax(axis=1) for block in blocks])
            return cast(Labels, fitted.tree.level_names(number)[best])
        check_parameters({"back_off": back_off}, _BACK_OFF)
        tree = fitted.tree
        tree.check_clear(tree.names, "the prediction would be ambiguous: use predict_levels")
        parts = [_back_off(fitted, block, number, back_off) for _, block in reader._score_blocks(X)]
        return tree.named(np.arange(len(tree), dtype=np.int32))[np.concatenate(parts)]

    def predict_levels(self, X: npt.ArrayLike, *, back_off: float | None = None) -> LevelAnswers:
        """Predict the classes on all levels, and how fine a prediction is confident enough.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.
        back_off : float, default=None
            Lowest probability at which a class below the coarsest level is confident enough. With
            None, every fine class is.

        Returns
        -------
        answers : LevelAnswers
            The arrays ``coarse``, ``fine`` and ``is_fine``. With more than two levels, ``levels``
            has an array for each level, and ``level`` the finest level that is confident enough.

        Examples
        --------
        >>> from evergrow import SubcategoryForestClassifier
        >>> X = [[0], [1], [4], [5], [18], [19]]
        >>> Y = [[0, 0], [0, 1], [0, 0], [0, 1], [1, 2], [1, 2]]
        >>> forest = SubcategoryForestClassifier(20, min_samples_leaf=2, random_state=0).fit(X, Y)
        >>> forest.predict_levels([[0], [19]], back_off=0.8)
        LevelAnswers(coarse=array([0, 1]), fine=array([0, 2]), is_fine=array([False,  True]))
        """
        reader, X = self._checked_query(X)
        tree = reader._fitted.tree
        check_parameters({"back_off": back_off}, _BACK_OFF)
        blocks = reader._score_blocks(X)
        parts = [_level_places(reader._fitted, block, back_off or 0.0) for _, block in blocks]
        places, level = (np.concatenate(part) for part in zip(*parts, strict=True))
        levels = [tree.level_names(k)[own] for k, own in enumerate(places.T)]
        return LevelAnswers(levels[0], levels[-1], level == len(levels) - 1, levels, level)

    def predict_coarse(self, X: npt.ArrayLike) -> Labels:
        """Predict the coarse class of each sample; the same as ``predict(X, level="coarse")``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The most probable coarse class, which need not be that of the most probable fine class.

        Examples
        --------
        >>> from evergrow import SubcategoryForestClassifier
        >>> X = [[0], [1], [4], [5], [18], [19]]
        >>> Y = [["a", "a1"], ["a", "a1"], ["a", "a2"], ["a", "a2"], ["b", "b1"], ["b", "b1"]]
        >>> forest = SubcategoryForestClassifier(5, min_samples_leaf=1, random_state=0).fit(X, Y)
        >>> forest.predict_coarse([[3], [19]])
        array(['a', 'b'], dtype='<U1')
        """
        return self.predict(X, level="coarse")

    def score(self, X: npt.ArrayLike, y: Any, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return the accuracy on the finest classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.
        y : array-like of shape (n_samples, n_levels), (n_samples, 1) or (n_samples,)
            Coarse and fine labels as in :meth:`fit`, or only the finest ones. Samples without a
            label on the finest level are left out.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each sample.

        Returns
        -------
        accuracy : float
            Share of the samples that are predicted correctly, from 0 to 1.

        Examples
        --------
        >>> from evergrow import SubcategoryForestClassifier
        >>> X = [[0], [1], [4], [5], [18], [19]]
        >>> Y = [["a", "a1"], ["a", "a1"], ["a", "a2"], ["a", "a2"], ["b", "b1"], ["b", "b1"]]
        >>> forest = SubcategoryForestClassifier(5, min_samples_leaf=1, random_state=0).fit(X, Y)
        >>> forest.score([[0], [5], [9]], [["a", "a1"], ["a", "a2"], ["a", None]])
        1.0
        """
        reader, X = self._checked_query(X)
        with translate_errors():
            check_consistent_length(X, y, sample_weight)
            weights = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        truth, is_known = true_columns(y, reader._fitted.tree)
        found = np.concatenate([block.argmax(axis=1) for _, block in reader._score_blocks(X)])
        weights = weights[is_known]
        if not weights.any():
            raise InvalidInputError(
                "sample_weight must be positive for some samples with a finest class"
            )
        return float(np.average((found == truth)[is_known], weights=weights))

    def guesses(self) -> tuple[npt.NDArray[np.int64], Labels]:
        """Return the stored samples whose fine label is a guess.

        Show them to a person and confirm or correct them with :meth:`refine`.

        Returns
        -------
        ids : ndarray of shape (n_guesses,)
            Ids of the samples.
        fine_labels : ndarray of shape (n_guesses,)
            The guess for each.

        Examples
        --------
        >>> from evergrow import SubcategoryForestClassifier
        >>> X = [[0], [1], [4], [5], [6], [19]]
        >>> Y = [["a", "a1"], ["a", "a1"], ["a", "a2"], ["a", "a2"], ["a", None], ["b", None]]
        >>> forest = SubcategoryForestClassifier(5, min_samples_leaf=1, random_state=0).fit(X, Y)
        >>> ids, fine_labels = forest.guesses()
        >>> ids.tolist(), fine_labels.tolist()
        ([4], ['a2'])
        """
        return self._value("guesses").guesses()

    def _stored_value(self, inference_only: bool) -> FittedSubcategories:
        fitted = self._fitted
        has_rows = fitted.forest.has_training_rows and not inference_only
        return fitted if has_rows else fitted.predicting()


def _level_number(level: Level, fitted: FittedSubcategories) -> int:
    """The number of a level, from 0 on the top."""
    n_levels = fitted.tree.n_levels
    if isinstance(level, str):
        return {"coarse": 0, "fine": n_levels - 1}[level]
    if level >= n_levels:
        raise InvalidInputError(
            f"level must be below {n_levels}, the number of levels of the classes, got {level}"
        )
    return int(level)


def _back_off(
    fitted: FittedSubcategories, fine: Floats, finest: int, back_off: float
) -> npt.NDArray[np.int32]:
    """The best class on the finest level on which it is as probable as ``back_off``."""
    tree = fitted.tree
    found = np.full(len(fine), -1, dtype=np.int32)
    for level in range(finest, -1, -1):
        sums = fitted.level_sums(fine, level)
        best = sums.argmax(axis=1)
        enough = sums[np.arange(len(sums)), best] >= (back_off if level else 0.0)
        found = np.where((found < 0) & enough, tree.level_ids(level)[best], found)
    return found


def _level_places(
    fitted: FittedSubcategories, fine: Floats, back_off: float
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Places of the classes on each level, and the finest level that is sure enough."""
    tree, rows = fitted.tree, np.arange(len(fine))
    places = np.zeros((len(fine), tree.n_levels), dtype=np.intp)
    answered = np.full(len(fine), -1, dtype=np.intp)
    found = np.zeros(len(fine), dtype=np.int32)
    for level in range(tree.n_levels - 1, -1, -1):
        sums, ids = fitted.level_sums(fine, level), tree.level_ids(level)
        best = sums.argmax(axis=1)
        enough = (answered < 0) & (sums[rows, best] >= (back_off if level else 0.0))
        found[enough], answered[enough] = ids[best[enough]], level
        # The class itself, or the one above it on this level.
        own = tree.paths[found, np.minimum(tree.depths[found], level)]
        order = np.argsort(ids)
        above = order[np.searchsorted(ids, own, sorter=order).clip(max=len(ids) - 1)]
        places[:, level] = np.where(answered < 0, best, above)
    return places, answered
