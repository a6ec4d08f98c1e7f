"""Assesses the model by leave-one-out.

There is no holdout: least squares has a closed form for the prediction without an example. The same
predictions select penalty and recoding, measure the accuracy and confusion of each class, find
labels that look wrong, and calibrate the novelty limits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from evergrow.estimators.linear.leave_one_out import LeaveOneOut
from evergrow.estimators.linear.selection import (
    SelectionRequest,
    are_enough,
    default_penalty,
    fit_temperature,
    select,
)
from evergrow.estimators.linear.solver import Ridge
from evergrow.estimators.novelty.measures import MEASURES
from evergrow.estimators.sums.moments import Batch, Moments
from evergrow.foundation.threads import one_blas_thread
from evergrow.workspace.events import ExampleBlock
from evergrow.workspace.model.assessment import MIN_EXAMPLES, Assessment, Doubt, Recognised
from evergrow.workspace.model.least_squares import Hyperparameters, TrainedModel, with_constant
from evergrow.workspace.model.novelty import NoveltyLimits, measured_false_alarms

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# Examples that are left out in turn, and how many of them select hyperparameters, which is repeated
# for each penalty. Two thousand examples measure an accuracy within two percent.
SAMPLE = 8000
_SELECTION_SAMPLE = 1000
# Examples whose scores are in memory at once.
_BLOCK = 500
# Doubtful labels to store: more than anyone reviews before the next assessment.
_MOST_DOUBTS = 200
# Pairs of confused classes to store, the most frequent ones.
_MOST_PAIRS = 2000


@dataclass(frozen=True, eq=False)
class _Sample:
    """Examples with their columns in sums without empty classes."""

    ids: Ids
    rows: npt.NDArray[np.float32]
    codes: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, rows: slice | npt.NDArray[np.int64]) -> _Sample:
        """Some of the examples."""
        return _Sample(self.ids[rows], self.rows[rows], self.codes[rows])

    def blocks(self) -> Iterator[_Sample]:
        """All examples, in blocks."""
        for first in range(0, len(self), _BLOCK):
            yield self.part(slice(first, first + _BLOCK))

    @property
    def batch(self) -> Batch:
        """The features with the constant one."""
        return Batch(with_constant(self.rows), self.codes, np.ones(len(self)))

    @property
    def plain_batch(self) -> Batch:
        """The features without the constant one."""
        return Batch(self.rows.astype(np.float64), self.codes, np.ones(len(self)))


@dataclass(frozen=True, eq=False)
class _LeftOut:
    """Predictions for each example by the others: class, probability, and whether usable."""

    predicted: npt.NDArray[np.int64]
    probabilities: Floats
    usable: npt.NDArray[np.bool_]


def assess(
    trained: TrainedModel, sample: ExampleBlock, *, event: int, false_alarms: float, seed: int
) -> Assessment | None:
    """Assess a model by leaving out some of its own examples in turn.

    Parameters
    ----------
    trained : TrainedModel
        Sums over all examples.
    sample : ExampleBlock
        A uniform sample of them, with the classes that are in the sums.
    event : int
        The newest event in the sums.
    false_alarms : float
        Share of the known examples that may be called unknown.
    seed : int
        Seed of the selection within the sample.

    Returns
    -------
    assessment : Assessment or None
        None if there are no examples.
    """
    if trained.fitted is None or not len(sample):
        return None
    # One thread, to leave the others to predictions.
    with one_blas_thread():
        moments = trained.fitted.moments.without_empty()
        class_ids = trained.class_ids
        places = {class_id: k for k, class_id in enumerate(class_ids.tolist())}
        codes = np.array([places[c] for c in sample.class_ids.tolist()], dtype=np.int32)
        examples = _Sample(sample.ids, sample.rows, codes)
        chosen = _select(moments, examples, seed)
        ridge = trained.with_hyperparameters(chosen).ridge
        left_out = _leave_out(moments, examples, ridge, chosen)
        nearest = _nearest(trained.plain_moments.without_empty(), examples)
        n_classes = len(class_ids)
        return Assessment(
            event=event,
            hyperparameters=chosen,
            limits=NoveltyLimits.of(class_ids, *nearest, false_alarms),
            measured_false_alarms=measured_false_alarms(*nearest, n_classes, false_alarms, seed),
            class_counts=trained.class_counts,
            recognised=_recognised(class_ids, examples, left_out),
            mistakes=_mistakes(class_ids, examples, left_out),
            doubts=_doubts(class_ids, examples, left_out),
        )


def is_due(last: Assessment | None, class_counts: Mapping[int, int]) -> bool:
    """Whether the examples changed so much since the last assessment that it should be repeated.

    It is due when the number of examples, in total or of any class, has doubled or halved, or when
    the set of classes changed. Classes with a single example cannot be assessed and do not count.
    """
    if last is None:
        return bool(class_counts)
    then, now = _assessable(last.class_counts), _assessable(class_counts)
    if then.keys() != now.keys():
        return True
    pairs = [(sum(class_counts.values()), sum(last.class_counts.values()))]
    pairs += [(now[class_id], then[class_id]) for class_id in then]
    return any(after >= 2 * before or 2 * after <= before for after, before in pairs)


def _assessable(class_counts: Mapping[int, int]) -> dict[int, int]:
    return {class_id: n for class_id, n in class_counts.items() if n >= MIN_EXAMPLES}


def _select(moments: Moments, examples: _Sample, seed: int) -> Hyperparameters:
    """Select penalty, recoding and temperature; the defaults with too few examples."""
    order = np.random.default_rng(seed).permutation(len(examples))[:_SELECTION_SAMPLE]
    few = examples.part(np.sort(order))
    stream = LeaveOneOut.of(few.batch, moments)
    if are_enough(np.bincount(few.codes, minlength=moments.n_classes)):
        chosen = select(stream, None, Ridge, SelectionRequest(None, None))
        if chosen is not None:
            return Hyperparameters(chosen.penalty, chosen.recoding, chosen.temperature)
    start = Hyperparameters()
    if moments.n_classes == 1 or not (stream.n_others > 0).any():
        return start
    # A handful of examples cannot select a model, but can calibrate the temperature.
    ridge = Ridge(default_penalty(moments, Ridge(1.0)))
    return replace(start, temperature=fit_temperature(stream, ridge, start.recoding))


def _leave_out(
    moments: Moments, examples: _Sample, ridge: Ridge, chosen: Hyperparameters
) -> _LeftOut:
    """Predict each example by the model of all the others."""
    predicted, probabilities, usable = [], [], []
    factor = LeaveOneOut.of(examples.part(slice(0)).batch, moments).factor(ridge)
    for block in examples.blocks():
        stream = LeaveOneOut.of(block.batch, moments)
        logits = stream.normalised(stream.scores_by(factor), chosen.recoding)
        # Without the only example of the only class there is no prediction.
        nothing_left = np.isinf(logits).all(axis=1, keepdims=True)
        shares = softmax(np.where(nothing_left, 0.0, logits) / chosen.temperature, axis=1)
        predicted.append(shares.argmax(axis=1))
        probabilities.append(shares.max(axis=1))
        # The only example of its class can never be recognised without it, and with a single class
        # there is nothing to confuse it with.
        usable.append((stream.n_others > 0) & (moments.n_classes > 1))
    return _LeftOut(*(np.concatenate(parts) for parts in (predicted, probabilities, usable)))


def _nearest(moments: Moments, examples: _Sample) -> tuple[Ids, Floats]:
    """The nearest class mean of each example left out in turn, and the cosine to it."""
    columns, scores = [], []
    for block in examples.blocks():
        (best, cosines), usable = MEASURES["cosine"].best_held_out(None, moments, block.plain_batch)
        columns.append(best[usable])
        scores.append(cosines[usable])
    return np.concatenate(columns), np.concatenate(scores)


def _recognised(class_ids: Ids, examples: _Sample, left_out: _LeftOut) -> dict[int, Recognised]:
    usable = left_out.usable
    codes, predicted = examples.codes[usable], left_out.predicted[usable]
    n = np.bincount(codes, minlength=len(class_ids))
    right = np.bincount(codes[codes == predicted], minlength=len(class_ids))
    found = {}
    for k in np.flatnonzero(n).tolist():
        others = predicted[(codes == k) & (predicted != k)]
        names, counts = np.unique(others, return_counts=True)
        most = int(counts.argmax()) if len(counts) else None
        found[int(class_ids[k])] = Recognised(
            int(n[k]),
            int(right[k]),
            None if most is None else int(class_ids[names[most]]),
            0 if most is None else int(counts[most]),
        )
    return found


def _mistakes(
    class_ids: Ids, examples: _Sample, left_out: _LeftOut
) -> tuple[tuple[int, int, int], ...]:
    wrong = left_out.usable & (left_out.predicted != examples.codes)
    pairs = np.column_stack([examples.codes[wrong], left_out.predicted[wrong]])
    found, counts = np.unique(pairs, axis=0, return_counts=True)
    most = np.sort(np.argsort(-counts, kind="stable")[:_MOST_PAIRS])
    named = class_ids[found[most]]
    return tuple(
        (true, predicted, n)
        for (true, predicted), n in zip(named.tolist(), counts[most].tolist(), strict=True)
    )


def _doubts(class_ids: Ids, examples: _Sample, left_out: _LeftOut) -> tuple[Doubt, ...]:
    """Examples predicted as another class by all the others, the most certain first."""
    wrong = np.flatnonzero(left_out.usable & (left_out.predicted != examples.codes))
    order = np.argsort(-left_out.probabilities[wrong], kind="stable")[:_MOST_DOUBTS]
    return tuple(
        Doubt(
            int(examples.ids[i]),
            int(class_ids[examples.codes[i]]),
            int(class_ids[left_out.predicted[i]]),
            float(left_out.probabilities[i]),
        )
        for i in wrong[order].tolist()
    )
