"""Assesses the model by leave-one-out.

There is no holdout: least squares has a closed form for the prediction without an example. The same
predictions select penalty, recoding and blocks of features, measure the accuracy and confusion of
each class, find labels that look wrong, and calibrate the novelty limits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from evergrow.estimators.curation.wrong_labels import judge_labels
from evergrow.estimators.linear.equations import Ridge
from evergrow.estimators.linear.leave_one_out import LeftOutExamples
from evergrow.estimators.linear.ridge import RotatedRidge, Solved
from evergrow.estimators.linear.selection import (
    SelectionRequest,
    are_enough,
    default_penalty,
    fit_temperature,
    select,
)
from evergrow.estimators.linear.solver import factorise
from evergrow.estimators.novelty.calibration import MIN_HELD_OUT, Calibration
from evergrow.estimators.novelty.linear_scores import default_shrinkage
from evergrow.estimators.novelty.scores import BestScores, Rehearsal, SummedScores
from evergrow.estimators.sums.moments import Batch, Moments
from evergrow.foundation.threads import one_blas_thread
from evergrow.workspace.events import ExampleBlock
from evergrow.workspace.model.assessment import (
    MIN_EXAMPLES,
    Assessment,
    Doubt,
    Mistaken,
    NoveltyLimits,
    Recognised,
)
from evergrow.workspace.model.least_squares import Hyperparameters, TrainedModel, with_constant

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
# Pairs of confused classes to store, the most frequent ones; and examples of each.
_MOST_PAIRS = 2000
_MOST_MISTAKEN = 100
# An assessment is repeated when this share of the examples of a class has changed.
_DUE_SHARE = 0.2
# Or when this share of the classes came or went.
_DUE_CLASSES = 0.05


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

    def with_features(self, places: npt.NDArray[np.int64] | slice) -> _Sample:
        """The same examples with some of their features."""
        return replace(self, rows=self.rows[:, places])

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
    """Assess a model by leaving out some of its own examples in turn; None without examples.

    The sample is a uniform one of the examples in the sums, and ``event`` the newest event in them.
    """
    if trained.fitted is None or not len(sample):
        return None
    # One thread, to leave the others to predictions.
    with one_blas_thread():
        moments = trained.fitted.moments.without_empty()
        class_ids = trained.class_ids
        places = {class_id: k for k, class_id in enumerate(class_ids.tolist())}
        codes = np.array([places[c] for c in sample.class_ids.tolist()], dtype=np.int32)
        # By class, so that near-duplicates are in the same block and left out together.
        order = np.argsort(codes, kind="stable")
        examples = _Sample(sample.ids[order], sample.rows[order], codes[order])
        chosen = _select(moments, examples, trained.blocks, seed)
        # The model in use has other hyperparameters.
        model = trained.with_hyperparameters(chosen)
        shrinkage = default_shrinkage(model.used_moments)
        chosen = replace(chosen, novelty_penalty=shrinkage or None)
        model = trained.with_hyperparameters(chosen)
        ridge = model.ridge
        if ridge.columns is not None:
            moments = moments.with_features(ridge.places(moments.n_features))
        used = examples.with_features(model.used_features)
        solved = LeftOutExamples.of(used.part(slice(0)).batch, moments).solve(ridge)
        left_out = _leave_out(moments, used, solved, ridge, chosen)
        summed = model.summed_scores(
            factorise(moments.gram, replace(model.novelty_ridge, columns=None))
        )
        rehearsal = summed.rehearse(examples.plain_batch)
        n_own = moments.class_examples[examples.codes]
        others = examples.part(np.flatnonzero(n_own > 1))
        n_own = n_own[n_own > 1]
        nearest = _nearest(summed, examples)
        n_classes = len(class_ids)
        rejected = _rejected(nearest, n_classes, false_alarms, seed, rehearsal)
        limits = NoveltyLimits.of(class_ids, nearest, n_own, false_alarms, rehearsal)
        return Assessment(
            event=event,
            hyperparameters=replace(chosen, novelty_penalty=None) if limits is None else chosen,
            limits=limits,
            measured_false_alarms=None if rejected is None else float(rejected.mean()),
            class_counts=trained.class_counts,
            recognised=_recognised(class_ids, examples, left_out),
            mistakes=_mistakes(class_ids, examples, left_out),
            doubts=_doubts(class_ids, used, moments, seed),
            unknown=None if rejected is None else _count_classes(class_ids, others, rejected),
            mistaken=_mistaken(
                [
                    *_taken_for_others(class_ids, examples, left_out),
                    *_taken_for_unknown(class_ids, others, rejected),
                ]
            ),
        )


def is_due(last: Assessment | None, class_counts: Mapping[int, int]) -> bool:
    """Whether the examples changed so much since the last assessment that it should be repeated.

    It is due when the number of examples, in total or of any class, has changed by a fifth, so that
    a few wrong examples in a small class are noticed; and when the set of the classes that are
    measured changed. Classes with a single example are not measured, but until the next assessment
    only the cosine tells known from unknown things: it is due when a twentieth of the classes, at
    least one, came or went. So a stream of such classes does not make every change due where
    assessing takes long.
    """
    if last is None:
        return bool(class_counts)
    n_changed = len(last.class_counts.keys() ^ class_counts.keys())
    if n_changed and n_changed >= _DUE_CLASSES * len(last.class_counts):
        return True
    then, now = _assessable(last.class_counts), _assessable(class_counts)
    if then.keys() != now.keys():
        return True
    pairs = [(sum(class_counts.values()), sum(last.class_counts.values()))]
    pairs += [(now[class_id], then[class_id]) for class_id in then]
    return any(abs(after - before) >= _DUE_SHARE * before > 0 for after, before in pairs)


def _assessable(class_counts: Mapping[int, int]) -> dict[int, int]:
    return {class_id: n for class_id, n in class_counts.items() if n >= MIN_EXAMPLES}


def _select(
    moments: Moments, examples: _Sample, blocks: tuple[int, ...], seed: int
) -> Hyperparameters:
    """Select blocks, penalty, recoding and temperature; the defaults with too few examples."""
    order = np.random.default_rng(seed).permutation(len(examples))[:_SELECTION_SAMPLE]
    few = examples.part(np.sort(order))
    stream = LeftOutExamples.of(few.batch, moments)
    start, request = Hyperparameters(), SelectionRequest(None, None, blocks=blocks)
    if are_enough(stream, "leave-one-out"):
        chosen = select(stream, None, Ridge, request)
        if chosen is not None:
            used = chosen.blocks or start.used_blocks
            return Hyperparameters(
                chosen.penalty, chosen.recoding, chosen.temperature, used, chosen.by_means
            )
    if moments.n_classes == 1 or not (stream.n_others > 0).any():
        return start
    # A handful of examples cannot select a model, but can calibrate the temperature.
    ridge = Ridge(1.0, columns=request.columns(start.used_blocks))
    stream = stream.with_features(ridge.places(moments.n_features))
    ridge = Ridge(default_penalty(stream.everything, Ridge(1.0)))
    return replace(start, temperature=fit_temperature(stream, ridge, start.recoding))


def _leave_out(
    moments: Moments, examples: _Sample, solved: Solved, ridge: Ridge, chosen: Hyperparameters
) -> _LeftOut:
    """Predict each example by the model of all the others."""
    predicted, probabilities, usable = [], [], []
    for block in examples.blocks():
        stream = LeftOutExamples.of(block.batch, moments)
        logits = stream.normalised(stream.scores_by(solved, ridge), chosen.recoding)
        # Without the only example of the only class there is no prediction.
        nothing_left = np.isinf(logits).all(axis=1, keepdims=True)
        shares = softmax(np.where(nothing_left, 0.0, logits) / chosen.temperature, axis=1)
        predicted.append(shares.argmax(axis=1))
        probabilities.append(shares.max(axis=1))
        # The only example of its class can never be recognised without it, and with a single class
        # there is nothing to confuse it with.
        usable.append((stream.n_others > 0) & (moments.n_classes > 1))
    return _LeftOut(*(np.concatenate(parts) for parts in (predicted, probabilities, usable)))


def _nearest(summed: SummedScores, examples: _Sample) -> BestScores:
    """The nearest class mean of each example left out in turn, and its scores.

    The only examples of their classes are skipped.
    """
    found: list[BestScores] = []
    for block in examples.blocks():
        batch = block.plain_batch
        usable = summed.moments.class_examples[batch.codes] > 1
        found.append(summed.left_out(batch.at(usable)))
    return BestScores(
        np.concatenate([block.columns for block in found]),
        np.concatenate([block.scores for block in found]),
        np.concatenate([block.others for block in found]),
    )


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


def _count_classes(
    class_ids: Ids, examples: _Sample, chosen: npt.NDArray[np.bool_]
) -> dict[int, int]:
    codes, counts = np.unique(examples.codes[chosen], return_counts=True)
    return dict(zip(class_ids[codes].tolist(), counts.tolist(), strict=True))


def _mistaken(found: list[Mistaken]) -> tuple[Mistaken, ...]:
    """Some of each pair of classes, those that were confused most often."""
    pairs = Counter((one.class_id, one.predicted) for one in found)
    kept = {pair for pair, _ in pairs.most_common(_MOST_PAIRS)}
    n_kept: Counter[tuple[int, int | None]] = Counter()
    chosen = []
    for one in found:
        pair = (one.class_id, one.predicted)
        if pair in kept and n_kept[pair] < _MOST_MISTAKEN:
            n_kept[pair] += 1
            chosen.append(one)
    return tuple(chosen)


def _taken_for_others(class_ids: Ids, examples: _Sample, left_out: _LeftOut) -> Iterator[Mistaken]:
    wrong = np.flatnonzero(left_out.usable & (left_out.predicted != examples.codes))
    for i in wrong.tolist():
        true, predicted = examples.codes[i], left_out.predicted[i]
        yield Mistaken(int(examples.ids[i]), int(class_ids[true]), int(class_ids[predicted]))


def _taken_for_unknown(
    class_ids: Ids, examples: _Sample, rejected: npt.NDArray[np.bool_] | None
) -> Iterator[Mistaken]:
    found = [] if rejected is None else np.flatnonzero(rejected).tolist()
    for i in found:
        yield Mistaken(int(examples.ids[i]), int(class_ids[examples.codes[i]]), None)


def _doubts(class_ids: Ids, examples: _Sample, moments: Moments, seed: int) -> tuple[Doubt, ...]:
    """Labels for which the other examples suggest another class, the most suspicious first."""
    ridge = RotatedRidge.of_moments(moments)
    _, found = judge_labels(ridge, examples.rows, examples.codes, seed, in_folds=False)
    contradicted = found.ranking[found.is_contradicted[found.ranking]]
    return tuple(
        Doubt(
            int(examples.ids[i]),
            int(class_ids[examples.codes[i]]),
            int(class_ids[found.suggestion[i]]),
            float(found.certainty[i]),
        )
        for i in contradicted[:_MOST_DOUBTS].tolist()
    )


def _rejected(
    found: BestScores,
    n_classes: int,
    false_alarms: float,
    seed: int,
    rehearsal: Rehearsal | None,
) -> npt.NDArray[np.bool_] | None:
    """Which known examples would be called unknown, by two-fold cross-validation.

    None if there are too few examples.
    """
    n_found = len(found.scores)
    if n_found < 2 * MIN_HELD_OUT:
        return None
    order = np.random.default_rng(seed).permutation(n_found)
    halves = (order[: n_found // 2], order[n_found // 2 :])
    rejected = np.zeros(n_found, dtype=np.bool_)
    for here, there in (halves, halves[::-1]):
        ones = np.ones(len(here))
        calibration = Calibration.of(found.at(here), ones, n_classes, rehearsal=rehearsal)
        novelty = calibration.novelty(found.at(there))
        rejected[there] = novelty > calibration.level(false_alarms)
    return rejected
