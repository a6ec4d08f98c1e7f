"""Answers from a model that never changes: one value per change of the workspace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from evergrow.estimators.forest import NCMForestClassifier
from evergrow.estimators.novelty.measures import NearestMeans
from evergrow.foundation.params import Choice as OneOf
from evergrow.foundation.params import Integer, check_parameters
from evergrow.workspace.errors import ConflictError
from evergrow.workspace.model.fine_classes import FineModel
from evergrow.workspace.model.least_squares import Learnt
from evergrow.workspace.model.novelty import Limits
from evergrow.workspace.records import Answer

__all__ = ["Snapshot"]

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# Bytes of scores held at once.
_SCORE_BYTES = 64 << 20
_TOP = 5


@dataclass(frozen=True, eq=False)
class Snapshot:
    """All that answers need, as of one event; shared by any number of threads.

    Attributes
    ----------
    event : int
        The last one it knows of.
    n_features : int or None
        Length of an embedding; None before the first example.
    class_ids : ndarray of shape (n_classes,)
        Classes that have examples, in the order they were learnt.
    names : mapping
        Names of classes by id, coarse and fine.
    weights, offsets : ndarray of shape (n_classes, n_features) and (n_classes,)
        Of the scores, recoded.
    temperature : float
        What scores are divided by.
    learnt : Learnt
        Where the class means come from, which tell the unknown.
    limits : Limits or None
        How strange is too strange; None as long as too few examples can tell.
    splits : mapping
        From a split class to what tells its fine classes apart.
    forest : NCMForestClassifier or None
        The forest beside, if there is one that has learnt.
    """

    event: int
    n_features: int | None
    class_ids: Ids
    names: Mapping[int, str]
    weights: Floats
    offsets: Floats
    temperature: float
    learnt: Learnt
    limits: Limits | None
    splits: Mapping[int, FineModel] = field(default_factory=dict)
    forest: NCMForestClassifier | None = None

    @classmethod
    def of(
        cls,
        event: int,
        learnt: Learnt,
        names: Mapping[int, str],
        *,
        n_features: int | None = None,
        limits: Limits | None = None,
        splits: Mapping[int, FineModel] | None = None,
        forest: NCMForestClassifier | None = None,
    ) -> Snapshot:
        """What was learnt, as it is now."""
        temperature = learnt.choice.temperature
        if not learnt.n_examples:
            nothing = np.zeros((0, n_features or 0))
            return cls(
                event,
                n_features,
                learnt.class_ids,
                names,
                nothing,
                np.zeros(0),
                temperature,
                learnt,
                None,
            )
        weights, offsets = learnt.scoring()
        return cls(
            event,
            weights.shape[1],
            learnt.class_ids,
            names,
            weights,
            offsets,
            temperature,
            learnt,
            limits,
            splits or {},
            forest,
        )

    @cached_property
    def _means(self) -> NearestMeans:
        """Class means as directions, made when first asked for: not every change is."""
        return NearestMeans.of(self.learnt.plain_moments.without_empty())

    def scores(self, X: npt.ArrayLike) -> Floats:
        """Scores of the classes of ``class_ids``, one row per embedding."""
        rows = self._checked(X)
        scores: Floats = rows @ self.weights.T + self.offsets
        return scores

    def novelty(self, X: npt.ArrayLike) -> Floats | None:
        """How strange each embedding is; None as long as too few examples can tell."""
        return self._novelty(self._checked(X))

    def predict(self, X: npt.ArrayLike, *, model: str = "rls", top: int = _TOP) -> list[Answer]:
        """Say of each embedding what it is, how surely, and whether it is anything known.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Embeddings.
        model : {"rls", "forest"}, default="rls"
            What answers: least squares, which has learnt every example, or the forest beside it,
            where there is one.
        top : int, default=5
            How many classes, best first, to list with their probabilities.

        Returns
        -------
        answers : list of Answer
            One per embedding.
        """
        check_parameters(
            {"model": model, "top": top},
            {"model": [OneOf(tuple(_MODELS))], "top": [Integer(1)]},
        )
        rows = self._checked(X)
        answers: list[Answer] = []
        step = max(1, _SCORE_BYTES // (8 * len(self.class_ids)))
        for first in range(0, len(rows), step):
            block = rows[first : first + step]
            answers += self._answers(block, *_MODELS[model](self, block), top)
        return answers

    def _answers(
        self, rows: Floats, class_ids: Ids, probabilities: Floats, top: int
    ) -> list[Answer]:
        places = best_columns(probabilities, top)
        best = class_ids[places]
        values = np.take_along_axis(probabilities, places, axis=1)
        novelty = self._novelty(rows)
        level = np.inf if self.limits is None else self.limits.level
        fine = self._fine(rows, best[:, 0], top)
        answers = []
        for i, (ids, shares) in enumerate(zip(best.tolist(), values.tolist(), strict=True)):
            listed = tuple((self.names[k], p) for k, p in zip(ids, shares, strict=True))
            strange = None if novelty is None else float(novelty[i])
            known = strange is None or not strange > level
            # What is none of the classes is no kind of one either.
            fine_name, fine_top = fine.get(i, (None, ())) if known else (None, ())
            answers.append(
                Answer(
                    label=listed[0][0],
                    probability=listed[0][1],
                    known=known,
                    novelty=strange,
                    fine=fine_name,
                    fine_probability=fine_top[0][1] if fine_top else None,
                    top=listed,
                    fine_top=fine_top,
                )
            )
        return answers

    def _novelty(self, rows: Floats) -> Floats | None:
        if self.limits is None:
            return None
        columns, cosines = self._means.best(rows)
        usual, spreads = self.limits.for_classes(self.class_ids[columns])
        novelty: Floats = (usual - cosines) / spreads
        return novelty

    def _fine(
        self, rows: Floats, best: Ids, top: int
    ) -> dict[int, tuple[str | None, tuple[tuple[str, float], ...]]]:
        """Fine answers of the rows whose best class is split, by the number of the row."""
        found = {}
        for class_id in set(best.tolist()) & self.splits.keys():
            model = self.splits[class_id]
            mine = np.flatnonzero(best == class_id)
            probabilities = model.probabilities(rows[mine])
            places = best_columns(probabilities, top)
            for i, columns, shares in zip(mine.tolist(), places, probabilities, strict=True):
                listed = tuple(
                    (self.names[int(model.fine_ids[k])], float(shares[k])) for k in columns
                )
                sure = listed[0][1] >= model.threshold
                found[i] = (listed[0][0] if sure else None, listed)
        return found

    def _checked(self, X: npt.ArrayLike) -> Floats:
        """Embeddings as a matrix of 64-bit numbers; an error that says what is wrong with them."""
        if not len(self.class_ids):
            raise ConflictError("nothing was taught yet: teach an example first")
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.n_features:
            raise ValueError(
                f"embeddings must be rows of {self.n_features} numbers, got an array of shape "
                f"{rows.shape}"
            )
        if not np.isfinite(rows).all():
            raise ValueError("embeddings must be finite, got one with NaN or infinity")
        return rows


def best_columns(values: Floats, top: int) -> npt.NDArray[np.int64]:
    """Columns of the largest values of each row, largest first; of equals the lower first.

    >>> best_columns(np.array([[0.1, 0.4, 0.1, 0.4]]), 3)
    array([[1, 3, 0]])
    """
    n_columns = values.shape[1]
    if top >= n_columns or n_columns <= 64:
        return np.argsort(-values, axis=1, kind="stable")[:, :top]
    # Of equals at the border any may be among these; probabilities of many classes hardly are.
    some = np.sort(np.argpartition(-values, top - 1, axis=1)[:, :top], axis=1)
    order = np.argsort(-np.take_along_axis(values, some, axis=1), axis=1, kind="stable")
    return np.take_along_axis(some, order, axis=1)


def _by_least_squares(snapshot: Snapshot, rows: Floats) -> tuple[Ids, Floats]:
    logits = (rows @ snapshot.weights.T + snapshot.offsets) / snapshot.temperature
    probabilities: Floats = softmax(logits, axis=1)
    return snapshot.class_ids, probabilities


def _by_forest(snapshot: Snapshot, rows: Floats) -> tuple[Ids, Floats]:
    forest = snapshot.forest
    if forest is None:
        raise ConflictError(
            "there is no forest to ask: the workspace has none, or it has not learnt yet"
        )
    class_ids: Ids = forest.classes_
    probabilities: Floats = forest.predict_proba(rows)
    # It may know classes that went since it learnt last.
    left = np.isin(class_ids, snapshot.class_ids)
    if not left.any():
        raise ConflictError("the forest has not learnt any of the classes there are now")
    probabilities, class_ids = probabilities[:, left], class_ids[left]
    totals = probabilities.sum(axis=1, keepdims=True)
    even = np.full_like(probabilities, 1.0 / len(class_ids))
    return class_ids, np.divide(probabilities, totals, out=even, where=totals > 0)


_MODELS: dict[str, Callable[[Snapshot, Floats], tuple[Ids, Floats]]] = {
    "rls": _by_least_squares,
    "forest": _by_forest,
}
