"""Recommend learners, with reasons computed from the measurements."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from evergrow.compare.results import Standing, difference, duration, percent, size
from evergrow.compare.setup import Facts
from evergrow.foundation.formatting import format_count

_FAST_SECONDS = 0.1
# A much less accurate learner is never recommended, even if the difference is not significant.
_USEFUL_SHARE = 0.9
_FEW_EXAMPLES, _MANY_CLASSES, _UNEVEN_SCALES = 20, 1000, 30
# Ratio of the largest to the median class above which a remark is made.
_UNEVEN_CLASSES = 5


@dataclass(frozen=True)
class Advice:
    """The recommended learner for one need; None if no measured learner fits."""

    need: str
    choice: Standing | None
    reason: str


def recommend(standings: Sequence[Standing]) -> list[Advice]:
    """Recommend a learner for each need, and say whether retraining would be better.

    Only learners that finished on all data and are better than a constant prediction are
    recommended. Needs that could not be measured are skipped, such as fast updates if there were
    none.
    """
    ended = [each for each in standings if each.finished and each.learner.way == "grows"]
    growing = [each for each in ended if each.beats_chance]
    if not growing:
        reason = "No incremental learner finished."
        if not standings:
            reason = (
                "Only learners on a subsample were measured, which does not show how learners do "
                "on all data: nothing is recommended."
            )
        elif ended:
            reason = (
                "No incremental learner is better than a constant prediction: nothing is "
                "recommended."
            )
        return [Advice("In general", None, reason)]
    # Of equally accurate ones the fastest.
    best = _least(growing, lambda each: -each.class_mean)
    timed = [each for each in growing if not math.isnan(each.seconds)]
    advice = []
    if timed:
        equal = [each for each in timed if _may_equal(each, best)]
        choice = _least(equal, lambda each: each.seconds)
        advice.append(Advice("In general", choice, _general_reason(choice, best)))
    advice.append(Advice("Highest accuracy", best, _with_costs(best)))
    if timed:
        advice.append(_fast_updates(timed, best))
    useful = [each for each in growing if _is_useful(each, best)]
    small = _least(useful, lambda each: each.n_bytes)
    reason = f"{size(small.n_bytes)} to store, with {_final(small)}: {_compare(small, best)}."
    advice.append(Advice("Little memory", small, reason))
    tested = [each for each in growing if not math.isnan(each.newest)]
    if tested:
        newest = _least(tested, lambda each: -each.newest)
        reason = (
            f"{percent(newest.newest)} mean class accuracy on the newest classes, "
            f"{percent(newest.class_mean)} on all: {_compare(newest, best)}."
        )
        advice.append(Advice("The newest classes", newest, reason))
    retrained = [s for s in standings if s.learner.way == "retrained" and s.beats_chance]
    if retrained:
        advice.append(_retraining(max(retrained, key=lambda each: each.class_mean), best))
    return advice


def group_by_choice(advice: Iterable[Advice]) -> list[tuple[Standing | None, list[Advice]]]:
    """Join advice that recommends the same learner, in the order of the first need of each."""
    groups: dict[int, tuple[Standing | None, list[Advice]]] = {}
    for each in advice:
        groups.setdefault(id(each.choice), (each.choice, []))[1].append(each)
    return list(groups.values())


def _least(standings: Iterable[Standing], cost: Callable[[Standing], float]) -> Standing:
    """Return the standing of the lowest cost, and of equal ones the fastest."""

    def speed(standing: Standing) -> float:
        return math.inf if math.isnan(standing.seconds) else standing.seconds

    return min(standings, key=lambda each: (cost(each), speed(each)))


def _is_useful(standing: Standing, best: Standing) -> bool:
    return standing.class_mean >= _USEFUL_SHARE * best.class_mean


def _may_equal(standing: Standing, best: Standing) -> bool:
    """Return whether the difference to the best learner may be chance."""
    if standing is best:
        return True
    gap, noise = difference(best, standing)
    return gap <= noise and _is_useful(standing, best)


def _fast_updates(timed: Sequence[Standing], best: Standing) -> Advice:
    need = f"Updates within {duration(_FAST_SECONDS)}"
    fast = [each for each in timed if each.seconds <= _FAST_SECONDS]
    if not fast:
        reason = (
            f"No learner updates within {duration(_FAST_SECONDS)} on these data; fewer features or "
            "smaller batches may help."
        )
        return Advice(need, None, reason)
    choice = _least(fast, lambda each: -each.class_mean)
    update = f"{duration(choice.seconds)} per update"
    return Advice(need, choice, f"{_final(choice)}, {update}: {_compare(choice, best)}.")


def _retraining(peer: Standing, best: Standing) -> Advice:
    """Say whether a user who can retrain on all examples should."""
    need = "Retraining, for example every night"
    gap, noise = difference(peer, best)
    last = duration(peer.value("last_seconds"))
    summary = (
        f"{peer.learner.title} has {percent(peer.class_mean)} ({last} for the last training, "
        f"{size(peer.n_bytes)} to store)"
    )
    relation = _relation(gap, best.learner.title)
    if gap > noise:
        chance = f"more than the {_points(noise)} that may be chance"
        return Advice(need, peer, f"{summary}: {relation}, {chance}.")
    if gap > 0 and _points(gap) != _points(0.0):
        relation += f", which may be chance (up to {_points(noise)})"
    reason = (
        f"Retraining shows no significant gain. The best retrained learner is {relation}: "
        f"{summary}."
    )
    return Advice(need, best, reason)


def _points(share: float) -> str:
    return f"{100 * share:.1f} points"


def _final(standing: Standing) -> str:
    return f"{percent(standing.class_mean)} mean class accuracy"


def _relation(gap: float, name: str) -> str:
    """Say how a learner compares with a named one, given the difference of their accuracies.

    >>> [_relation(gap, "LDA") for gap in (0.0123, -0.01, -0.0001)]
    ['1.2 points above LDA', '1.0 points below LDA', 'as accurate as LDA']
    """
    if _points(abs(gap)) == _points(0.0):
        return f"as accurate as {name}"
    return f"{_points(abs(gap))} {'above' if gap > 0 else 'below'} {name}"


def _compare(choice: Standing, best: Standing) -> str:
    if choice is best:
        return "no incremental learner is more accurate"
    return _relation(choice.class_mean - best.class_mean, best.learner.title)


def _general_reason(choice: Standing, best: Standing) -> str:
    summary = f"{_final(choice)} at the end, {duration(choice.seconds)} per update"
    if choice is best:
        return f"{summary}: {_compare(choice, best)}."
    gap, noise = difference(best, choice)
    cost = f"{duration(best.seconds)} per update"
    if _points(gap) == _points(0.0):
        return f"{summary}: as accurate as {best.learner.title}, which takes {cost}."
    return (
        f"{summary}. The most accurate, {best.learner.title}, has {_points(gap)} more, which may "
        f"be chance (up to {_points(noise)}), for {cost}."
    )


def _with_costs(choice: Standing) -> str:
    """Say what was measured of accuracy, newest classes, time and memory."""
    newest = "" if math.isnan(choice.newest) else f", {percent(choice.newest)} on the newest ones"
    update = "" if math.isnan(choice.seconds) else f"{duration(choice.seconds)} per update, "
    return f"{_final(choice)} at the end{newest}; {update}{size(choice.n_bytes)}."


def remarks_on_stopped(standings: Sequence[Standing]) -> Iterator[str]:
    """Name learners that were ahead when time ran out: more time may change the advice."""
    growing = [each for each in standings if each.finished and each.learner.way == "grows"]
    if not growing:
        return
    best = max(growing, key=lambda standing: standing.class_mean)
    reached = dict(best.curve)
    for standing in standings:
        if standing.finished or not standing.curve:
            continue
        n_classes, share = standing.curve[-1]
        if share > reached.get(n_classes, math.inf):
            yield (
                f"{standing.learner.title} had {percent(share)} at "
                f"{format_count(n_classes, 'class')} when time ran out, "
                f"{best.learner.title} {percent(reached[n_classes])}: more time may change the "
                "recommendation."
            )


def remarks_on(facts: Facts) -> Iterator[str]:
    """Yield remarks on the data themselves."""
    if facts.examples_per_class < _FEW_EXAMPLES:
        yield (
            "Half of the classes have at most "
            f"{format_count(facts.examples_per_class, 'training example')}. With so few, class "
            "means and least squares are safer than forests."
        )
    if facts.largest_class >= _UNEVEN_CLASSES * facts.examples_per_class:
        yield (
            f"The largest class has {format_count(facts.largest_class, 'training example')}, the "
            f"median class {facts.examples_per_class:g}. Learners are compared by the mean class "
            "accuracy, because large classes alone can make the accuracy over samples high."
        )
    if facts.n_classes >= _MANY_CLASSES:
        yield (
            f"There are {facts.n_classes} classes. Learners that train one model per class, such "
            "as LinearSVC, become slower with each class."
        )
    if facts.scale_ratio > _UNEVEN_SCALES:
        yield (
            f"One feature varies {facts.scale_ratio:.0f} times as much as the median one. It "
            "dominates class means and neighbours: scale the features, or use streaming LDA."
        )
    if facts.n_single:
        yield f"{_some_of(facts.n_single, facts)} a single training example."
    if facts.n_untested:
        them = "it" if facts.n_untested == 1 else "them"
        yield (
            f"{_some_of(facts.n_untested, facts)} no test samples, so the accuracy on {them} is "
            "unknown."
        )


def _some_of(number: int, facts: Facts) -> str:
    return f"{number} of {facts.n_classes} classes {'has' if number == 1 else 'have'}"
