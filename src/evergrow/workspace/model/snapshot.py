"""The immutable snapshot of the model that predicts; each change publishes a new one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from evergrow.estimators.forest import NCMForestClassifier
from evergrow.estimators.novelty.calibration import exceeds
from evergrow.estimators.novelty.scores import SummedScores
from evergrow.foundation.errors import WorkspaceError
from evergrow.foundation.params import Choice as OneOf
from evergrow.foundation.params import Integer, check_parameters
from evergrow.workspace.model.assessment import NoveltyLimits
from evergrow.workspace.model.fine_classes import FineModel
from evergrow.workspace.model.least_squares import TrainedModel
from evergrow.workspace.records import Answer, ConflictError

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# Bytes of scores in memory at once.
_SCORE_BYTES = 64 << 20
_TOP = 5


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Everything that predictions need, as of one event; shared by any number of threads.

    Attributes
    ----------
    event : int
        The newest event that it covers.
    n_features : int or None
        Length of an embedding; None before the first example.
    class_ids : ndarray of shape (n_classes,)
        Classes that have examples, in the order of their columns.
    names : mapping
        Names of coarse and fine classes by id.
    weights, offsets : ndarray of shape (n_classes, n_features) and (n_classes,)
        Recoded weights of least squares.
    temperature : float
        Divisor of the scores in the softmax.
    trained : TrainedModel
        Source of the scores from which novelty is computed.
    limits : NoveltyLimits or None
        Calibration of the novelty; None with too few examples.
    splits : mapping
        From the id of a split class to the model of its fine classes.
    forest : NCMForestClassifier or None
        The forest, if there is one and it was trained.
    """

    event: int
    n_features: int | None
    class_ids: Ids
    names: Mapping[int, str]
    weights: Floats
    offsets: Floats
    temperature: float
    trained: TrainedModel
    limits: NoveltyLimits | None
    splits: Mapping[int, FineModel] = field(default_factory=dict)
    forest: NCMForestClassifier | None = None

    @classmethod
    def of(
        cls,
        event: int,
        trained: TrainedModel,
        names: Mapping[int, str],
        *,
        limits: NoveltyLimits | None = None,
        splits: Mapping[int, FineModel] | None = None,
        forest: NCMForestClassifier | None = None,
    ) -> Snapshot:
        """A snapshot of a trained model."""
        n_features, weights, offsets = None, np.zeros((0, 0)), np.zeros(0)
        if trained.n_examples:
            weights, offsets = trained.scoring()
            n_features = weights.shape[1]
        return cls(
            event,
            n_features,
            trained.class_ids,
            names,
            weights,
            offsets,
            trained.hyperparameters.temperature,
            trained,
            limits.valid_for(trained.class_ids) if limits and trained.n_examples else None,
            splits or {},
            forest,
        )

    @cached_property
    def _summed(self) -> SummedScores:
        """Scores of novelty, computed on first use: not every snapshot predicts."""
        needs_others = self.limits is not None and len(self.limits.known.scales) > 0
        return self.trained.summed_scores(cosine_only=not needs_others)

    def scores(self, X: npt.ArrayLike) -> Floats:
        """Scores of the classes of ``class_ids``, one row per embedding."""
        return self._scores(self._checked(X))

    def novelty(self, X: npt.ArrayLike) -> Floats | None:
        """Novelty of each embedding; None with too few examples to calibrate it."""
        return self._novelty(self._checked(X))

    def predict(self, X: npt.ArrayLike, *, model: str = "rls", top: int = _TOP) -> list[Answer]:
        """Predict each embedding, as :meth:`evergrow.workspace.Workspace.predict` says."""
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

    def _scores(self, rows: Floats) -> Floats:
        return rows @ self.weights.T + self.offsets

    def _answers(
        self, rows: Floats, class_ids: Ids, probabilities: Floats, top: int
    ) -> list[Answer]:
        places = best_columns(probabilities, top)
        best = class_ids[places]
        values = np.take_along_axis(probabilities, places, axis=1)
        novelty = self._novelty(rows)
        level = np.inf if self.limits is None else self.limits.level
        is_above = exceeds(np.zeros(len(rows)) if novelty is None else novelty, level)
        fine = self._fine(rows, best[:, 0], top)
        answers = []
        for i, (ids, shares) in enumerate(zip(best.tolist(), values.tolist(), strict=True)):
            listed = tuple((self.names[k], p) for k, p in zip(ids, shares, strict=True))
            strange = None if novelty is None else float(novelty[i])
            known = strange is None or not is_above[i]
            # An unknown thing has no fine class either.
            fine_name, fine_top = fine.get(i, (None, ())) if known else (None, ())
            answers.append(
                Answer(
                    label=listed[0][0] if known else None,
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
        found = self._summed.best(rows)
        return self.limits.novelty(self.class_ids[found.columns], found.scores, found.others)

    def _fine(
        self, rows: Floats, best: Ids, top: int
    ) -> dict[int, tuple[str | None, tuple[tuple[str, float], ...]]]:
        """Fine names of the rows whose best class is split, by row."""
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
        """Embeddings as a matrix of 64-bit numbers; an error if they are not valid."""
        if not len(self.class_ids):
            raise ConflictError("the workspace has no examples yet: teach one first")
        try:
            rows = np.asarray(X, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise WorkspaceError(
                f"embeddings must be rows of numbers: {error}; the embedder of a workspace makes "
                "them from images"
            ) from error
        if rows.ndim != 2 or rows.shape[1] != self.n_features:
            raise WorkspaceError(
                f"embeddings must be rows of {self.n_features} numbers, got an array of shape "
                f"{rows.shape}"
            )
        if not np.isfinite(rows).all():
            raise WorkspaceError("embeddings must be finite, got NaN or infinity")
        return rows


def best_columns(values: Floats, top: int) -> npt.NDArray[np.int64]:
    """Columns of the largest values of each row, largest first; ties by column.

    >>> best_columns(np.array([[0.1, 0.4, 0.1, 0.4]]), 3)
    array([[1, 3, 0]])
    """
    n_columns = values.shape[1]
    if top >= n_columns or n_columns <= 64:
        return np.argsort(-values, axis=1, kind="stable")[:, :top]
    # Ties at the border are broken arbitrarily; with many classes they hardly occur.
    some = np.sort(np.argpartition(-values, top - 1, axis=1)[:, :top], axis=1)
    order = np.argsort(-np.take_along_axis(values, some, axis=1), axis=1, kind="stable")
    return np.take_along_axis(some, order, axis=1)


def _predict_least_squares(snapshot: Snapshot, rows: Floats) -> tuple[Ids, Floats]:
    logits = snapshot._scores(rows) / snapshot.temperature
    return snapshot.class_ids, cast(Floats, softmax(logits, axis=1))


def _predict_forest(snapshot: Snapshot, rows: Floats) -> tuple[Ids, Floats]:
    forest = snapshot.forest
    if forest is None:
        raise ConflictError("the workspace has no forest, or its forest was not trained yet")
    class_ids: Ids = forest.classes_
    # It knows only the first block.
    probabilities: Floats = forest.predict_proba(rows[:, : forest.n_features_in_])
    # It may contain classes that were forgotten since its last training.
    left = np.isin(class_ids, snapshot.class_ids)
    if not left.any():
        raise ConflictError("the forest was not trained on any of the current classes yet")
    probabilities, class_ids = probabilities[:, left], class_ids[left]
    totals = probabilities.sum(axis=1, keepdims=True)
    even = np.full_like(probabilities, 1.0 / len(class_ids))
    return class_ids, np.divide(probabilities, totals, out=even, where=totals > 0)


_MODELS: dict[str, Callable[[Snapshot, Floats], tuple[Ids, Floats]]] = {
    "rls": _predict_least_squares,
    "forest": _predict_forest,
}
