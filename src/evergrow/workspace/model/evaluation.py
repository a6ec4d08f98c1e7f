"""How well a workspace knows its classes, from each example left out in turn.

Nothing is held out: least squares says in closed form what it would have answered without an
example. The same answers choose penalty and recoding, say how often each class is recognised and
what it is mistaken for, which labels look wrong, and how strange an unknown thing must look.
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
from evergrow.workspace.events import Block
from evergrow.workspace.model.assessment import FEWEST, Assessment, Doubt, Recognised
from evergrow.workspace.model.least_squares import Choice, Learnt, with_constant
from evergrow.workspace.model.novelty import Limits, measured_false_alarms

__all__ = ["SAMPLE", "assess", "is_due"]

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# Examples that are left out in turn, and those of them that numbers are chosen by: the second is
# done once for each penalty tried. Two thousand examples tell accuracies apart by two percent.
SAMPLE = 8000
_CHOOSING = 1000
# Examples whose scores are held at once.
_BLOCK = 500
# Doubtful labels that are remembered: nobody looks at more before the next assessment.
_MOST_DOUBTS = 200
# Pairs of classes whose confusion is remembered, the most frequent ones.
_MOST_PAIRS = 2000


@dataclass(frozen=True, eq=False)
class _Sample:
    """Some learnt examples in the columns of sums that have no empty class."""

    ids: Ids
    rows: npt.NDArray[np.float32]
    codes: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, rows: slice | npt.NDArray[np.int64]) -> _Sample:
        """Some of them."""
        return _Sample(self.ids[rows], self.rows[rows], self.codes[rows])

    def blocks(self) -> Iterator[_Sample]:
        """All of them, a few at a time."""
        for first in range(0, len(self), _BLOCK):
            yield self.part(slice(first, first + _BLOCK))

    @property
    def batch(self) -> Batch:
        """As features with the constant one."""
        return Batch(with_constant(self.rows), self.codes, np.ones(len(self)))

    @property
    def plain_batch(self) -> Batch:
        """As features without it."""
        return Batch(self.rows.astype(np.float64), self.codes, np.ones(len(self)))


@dataclass(frozen=True, eq=False)
class _LeftOut:
    """What was said of each example without it: class, how surely, and whether it could be said."""

    predicted: npt.NDArray[np.int64]
    probabilities: Floats
    usable: npt.NDArray[np.bool_]


def assess(
    learnt: Learnt, sample: Block, *, event: int, false_alarms: float, seed: int
) -> Assessment | None:
    """Assess what was learnt by some of the examples it was learnt from.

    Parameters
    ----------
    learnt : Learnt
        Sums over all examples.
    sample : Block
        A uniform sample of them, with the classes they were learnt with.
    event : int
        The last one that the sums know of.
    false_alarms : float
        Share of the known examples that may be called unknown.
    seed : int
        Of the choices among the sample.

    Returns
    -------
    assessment : Assessment or None
        None if nothing was learnt.
    """
    if learnt.fitted is None or not len(sample):
        return None
    # One thread: whoever predicts meanwhile needs the others.
    with one_blas_thread():
        moments = learnt.fitted.moments.without_empty()
        class_ids = learnt.class_ids
        places = {class_id: k for k, class_id in enumerate(class_ids.tolist())}
        codes = np.array([places[c] for c in sample.class_ids.tolist()], dtype=np.int32)
        examples = _Sample(sample.ids, sample.rows, codes)
        choice = _choose(moments, examples, seed)
        left_out = _leave_out(moments, examples, learnt.choose(choice).ridge, choice)
        nearest = _nearest(learnt.plain_moments.without_empty(), examples)
        n_classes = len(class_ids)
        return Assessment(
            event=event,
            choice=choice,
            limits=Limits.of(class_ids, *nearest, false_alarms),
            measured_false_alarms=measured_false_alarms(*nearest, n_classes, false_alarms, seed),
            class_counts=learnt.class_counts,
            recognised=_recognised(class_ids, examples, left_out),
            mistakes=_mistakes(class_ids, examples, left_out),
            doubts=_doubts(class_ids, examples, left_out),
        )


def is_due(last: Assessment | None, class_counts: Mapping[int, int]) -> bool:
    """Whether so much came or went since the last assessment that it should be made again.

    That is when the examples, or those of any class, have doubled or halved, or the classes are
    others; of a class with a single example nothing can be told, so that it waits for its second.
    """
    if last is None:
        return bool(class_counts)
    then, now = _told_of(last.class_counts), _told_of(class_counts)
    if then.keys() != now.keys():
        return True
    pairs = [(sum(class_counts.values()), sum(last.class_counts.values()))]
    pairs += [(now[class_id], then[class_id]) for class_id in then]
    return any(after >= 2 * before or 2 * after <= before for after, before in pairs)


def _told_of(class_counts: Mapping[int, int]) -> dict[int, int]:
    return {class_id: n for class_id, n in class_counts.items() if n >= FEWEST}


def _choose(moments: Moments, examples: _Sample, seed: int) -> Choice:
    """Penalty, recoding and temperature; those to begin with where too few examples can tell."""
    order = np.random.default_rng(seed).permutation(len(examples))[:_CHOOSING]
    few = examples.part(np.sort(order))
    stream = LeaveOneOut.of(few.batch, moments)
    if are_enough(np.bincount(few.codes, minlength=moments.n_classes)):
        chosen = select(stream, None, Ridge, SelectionRequest(None, None))
        if chosen is not None:
            return Choice(chosen.penalty, chosen.recoding, chosen.temperature)
    start = Choice()
    if moments.n_classes == 1 or not (stream.n_others > 0).any():
        return start
    # A handful of examples cannot choose between models, but tells how sure one may be.
    ridge = Ridge(default_penalty(moments, Ridge(1.0)))
    return replace(start, temperature=fit_temperature(stream, ridge, start.recoding))


def _leave_out(moments: Moments, examples: _Sample, ridge: Ridge, choice: Choice) -> _LeftOut:
    """Answers to each example by what was learnt from all the others."""
    predicted, probabilities, usable = [], [], []
    factor = LeaveOneOut.of(examples.part(slice(0)).batch, moments).factor(ridge)
    for block in examples.blocks():
        stream = LeaveOneOut.of(block.batch, moments)
        logits = stream.normalised(stream.scores_by(factor), choice.recoding)
        # The only example of the only class leaves no answer at all.
        nothing_left = np.isinf(logits).all(axis=1, keepdims=True)
        shares = softmax(np.where(nothing_left, 0.0, logits) / choice.temperature, axis=1)
        predicted.append(shares.argmax(axis=1))
        probabilities.append(shares.max(axis=1))
        # The only example of its class cannot be recognised without it, whatever was learnt; and
        # where there is one class nothing can be mistaken for another.
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
        (true, said, n)
        for (true, said), n in zip(named.tolist(), counts[most].tolist(), strict=True)
    )


def _doubts(class_ids: Ids, examples: _Sample, left_out: _LeftOut) -> tuple[Doubt, ...]:
    """Examples that all the others say are of another class, the surest first."""
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
