"""Recommend learners, with reasons computed from the measurements."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from evergrow.compare.measurement import Standing, difference, duration, percent, size
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
    best = _best(growing, "class_mean")
    points = f"{_final(best)} at the end"
    if not math.isnan(best["newest"]):
        points += f", {percent(best['newest'])} on the newest ones"
    update = "" if math.isnan(best["seconds_per_update"]) else f"{_update(best)}, "
    advice = [Advice("Highest accuracy", best, f"{points}; {update}{size(best['bytes'])}.")]
    timed = [each for each in growing if not math.isnan(each["seconds_per_update"])]
    if timed:
        advice = [_in_general(timed, best), *advice, _fast_updates(timed, best)]
    useful = [each for each in growing if _is_useful(each, best)]
    small = min(useful, key=lambda each: (each["bytes"], _speed(each)))
    reason = f"{size(small['bytes'])} to store, with {_final(small)}: {_compare(small, best)}."
    advice.append(Advice("Little memory", small, reason))
    tested = [each for each in growing if not math.isnan(each["newest"])]
    if tested:
        newest = _best(tested, "newest")
        reason = (
            f"{percent(newest['newest'])} mean class accuracy on the newest classes, "
            f"{percent(newest['class_mean'])} on all: {_compare(newest, best)}."
        )
        advice.append(Advice("The newest classes", newest, reason))
    retrained = [s for s in standings if s.learner.way == "retrained" and s.beats_chance]
    if retrained:
        advice.append(_retraining(max(retrained, key=lambda each: each["class_mean"]), best))
    return advice


def group_by_choice(advice: Iterable[Advice]) -> list[tuple[Standing | None, list[Advice]]]:
    """Join advice that recommends the same learner, in the order of the first need of each."""
    groups: dict[int, tuple[Standing | None, list[Advice]]] = {}
    for each in advice:
        groups.setdefault(id(each.choice), (each.choice, []))[1].append(each)
    return list(groups.values())


def _best(standings: Iterable[Standing], name: str) -> Standing:
    """Return the standing with the highest value, and of equal ones the fastest."""
    return min(standings, key=lambda each: (-each[name], _speed(each)))


def _speed(standing: Standing) -> float:
    seconds = standing["seconds_per_update"]
    return math.inf if math.isnan(seconds) else seconds


def _is_useful(standing: Standing, best: Standing) -> bool:
    return standing["class_mean"] >= _USEFUL_SHARE * best["class_mean"]


def _in_general(timed: Sequence[Standing], best: Standing) -> Advice:
    """Recommend the fastest learner whose difference to the best one may be chance."""
    apart = {id(each): difference(best, each) for each in timed if each is not best}
    level = [
        each
        for each in timed
        if each is best or (apart[id(each)][0] <= apart[id(each)][1] and _is_useful(each, best))
    ]
    choice = min(level, key=_speed)
    reason = f"{_final(choice)} at the end, {_update(choice)}"
    if choice is best:
        reason += f": {_compare(choice, best)}."
    elif _points(apart[id(choice)][0]) == _points(0.0):
        reason += f": as accurate as {best.learner.title}, which takes {_update(best)}."
    else:
        gap, noise = map(_points, apart[id(choice)])
        reason += (
            f". The most accurate, {best.learner.title}, has {gap} more, which may be chance (up "
            f"to {noise}), for {_update(best)}."
        )
    return Advice("In general", choice, reason)


def _fast_updates(timed: Sequence[Standing], best: Standing) -> Advice:
    limit = duration(_FAST_SECONDS)
    fast = [each for each in timed if each["seconds_per_update"] <= _FAST_SECONDS]
    choice = _best(fast, "class_mean") if fast else None
    reason = (
        f"No learner updates within {limit} on these data; fewer features or smaller batches may "
        "help."
    )
    if choice:
        reason = f"{_final(choice)}, {_update(choice)}: {_compare(choice, best)}."
    return Advice(f"Updates within {limit}", choice, reason)


def _retraining(peer: Standing, best: Standing) -> Advice:
    """Say whether a user who can retrain on all examples should."""
    need = "Retraining, for example every night"
    gap, noise = difference(peer, best)
    summary = (
        f"{peer.learner.title} has {percent(peer['class_mean'])} "
        f"({duration(peer['last_seconds'])} for the last training, {size(peer['bytes'])} to store)"
    )
    relation = _relation(gap, best)
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
    return f"{percent(standing['class_mean'])} mean class accuracy"


def _update(standing: Standing) -> str:
    return f"{duration(standing['seconds_per_update'])} per update"


def _relation(gap: float, best: Standing) -> str:
    """Say how a learner compares with the best one, given the difference of their accuracies."""
    if _points(abs(gap)) == _points(0.0):
        return f"as accurate as {best.learner.title}"
    return f"{_points(abs(gap))} {'above' if gap > 0 else 'below'} {best.learner.title}"


def _compare(choice: Standing, best: Standing) -> str:
    if choice is best:
        return "no incremental learner is more accurate"
    return _relation(choice["class_mean"] - best["class_mean"], best)


def remarks_on(facts: Facts, standings: Sequence[Standing], *, has_updates: bool) -> Iterator[str]:
    """Yield remarks on the stream, on the data, and on learners that were stopped."""
    if not has_updates:
        yield (
            "All classes came in the first batch, so there were no updates: update times and "
            "forgetting were not measured."
        )
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
    yield from _remarks_on_stopped(standings)


def _some_of(number: int, facts: Facts) -> str:
    return f"{number} of {facts.n_classes} classes {'has' if number == 1 else 'have'}"


def _remarks_on_stopped(standings: Sequence[Standing]) -> Iterator[str]:
    """Name learners that were ahead when time ran out: more time may change the advice."""
    growing = [each for each in standings if each.finished and each.learner.way == "grows"]
    if not growing:
        return
    best = max(growing, key=lambda each: each["class_mean"])
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
