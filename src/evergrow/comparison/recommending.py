"""A plain recommendation, with reasons that are computed from what was measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evergrow.comparison.plan import Facts
from evergrow.comparison.result import Standing, difference
from evergrow.comparison.wording import duration, percent, points, size

__all__ = [
    "FAST_SECONDS",
    "NEEDS",
    "Advice",
    "Need",
    "recommend",
    "remarks_on",
    "remarks_on_stopped",
]

FAST_SECONDS = 0.1
# A small model is of no use if it knows much less.
_USEFUL_SHARE = 0.9
_FEW_EXAMPLES, _MANY_CLASSES, _UNEVEN_SCALES = 20, 1000, 30


@dataclass(frozen=True)
class Advice:
    """What to take for one need, and why; no choice if nothing that was measured fits."""

    need: str
    choice: Standing | None
    reason: str


@dataclass(frozen=True)
class Need:
    """What somebody may want, and how to find who serves it best among learners that grow."""

    title: str
    fits: Callable[[Standing, Standing], bool]
    """Whether a learner comes into question, beside the most accurate one."""
    cost: Callable[[Standing], float]
    """What is least of the best one."""
    reason: Callable[[Standing, Standing], str]
    """A sentence on the choice, beside the most accurate one."""
    unmet: str
    """What is said when no learner fits."""


def _level(standing: Standing, best: Standing) -> bool:
    """Whether a learner is as accurate as the best, as far as chance lets one tell."""
    if standing is best:
        return True
    gap, noise = difference(best, standing)
    return gap <= noise


def _general_reason(choice: Standing, best: Standing) -> str:
    said = (
        f"{percent(choice.accuracy)} right over all classes in the end, "
        f"{duration(choice.seconds)} per update"
    )
    if choice is best:
        return f"{said}: the most accurate of those that learn in place."
    gap, noise = difference(best, choice)
    return (
        f"{said}. The most accurate, {best.contender.title}, has {points(gap)} more, which may be "
        f"chance (up to {points(noise)} is), for {duration(best.seconds)} per update."
    )


def _beside_best(choice: Standing, best: Standing) -> str:
    if choice is best:
        return "the most accurate of all that learn in place"
    return f"{points(best.accuracy - choice.accuracy)} below {best.contender.title}"


NEEDS: tuple[Need, ...] = (
    Need(
        "In general",
        _level,
        lambda standing: standing.seconds,
        _general_reason,
        "No learner that takes new classes in place came to the end.",
    ),
    Need(
        "The last point of accuracy",
        lambda standing, best: standing is best,
        lambda standing: -standing.accuracy,
        lambda choice, _: (
            f"{percent(choice.accuracy)} right in the end, {percent(choice.newest)} on the newest "
            f"classes; {duration(choice.seconds)} per update, {size(choice.n_bytes)}."
        ),
        "No learner that takes new classes in place came to the end.",
    ),
    Need(
        f"Updates within {duration(FAST_SECONDS)}",
        lambda standing, _: standing.seconds <= FAST_SECONDS,
        lambda standing: -standing.accuracy,
        lambda choice, best: (
            f"{percent(choice.accuracy)} right with {duration(choice.seconds)} per update: "
            f"{_beside_best(choice, best)}."
        ),
        f"No learner updates within {duration(FAST_SECONDS)} on these data; "
        "fewer features or smaller batches would help.",
    ),
    Need(
        "Little memory",
        lambda standing, best: standing.accuracy >= _USEFUL_SHARE * best.accuracy,
        lambda standing: standing.n_bytes,
        lambda choice, best: (
            f"{size(choice.n_bytes)} hold all it needs to learn on, with "
            f"{percent(choice.accuracy)} right: {_beside_best(choice, best)}."
        ),
        "No learner that takes new classes in place came to the end.",
    ),
    Need(
        "The newest classes",
        lambda standing, _: not math.isnan(standing.newest),
        lambda standing: -standing.newest,
        lambda choice, best: (
            f"{percent(choice.newest)} right on the classes that came last, "
            f"{percent(choice.accuracy)} on all: {_beside_best(choice, best)}."
        ),
        "There are no test samples of the newest classes.",
    ),
)


def recommend(standings: Sequence[Standing]) -> list[Advice]:
    """What to take for each need, and whether training anew would be better.

    Only learners that came to the end and were shown all data are recommended.
    """
    finished = [each for each in standings if each.finished]
    growing = [each for each in finished if each.contender.way == "grows"]
    retrained = [each for each in finished if each.contender.way == "retrained"]
    if not growing:
        return [Advice(NEEDS[0].title, None, NEEDS[0].unmet)]
    best = max(growing, key=lambda standing: standing.accuracy)
    advice = [_served(need, growing, best) for need in NEEDS]
    if retrained:
        advice.append(_nightly(max(retrained, key=lambda standing: standing.accuracy), best))
    return advice


def _served(need: Need, growing: Sequence[Standing], best: Standing) -> Advice:
    fitting = [standing for standing in growing if need.fits(standing, best)]
    if not fitting:
        return Advice(need.title, None, need.unmet)
    choice = min(fitting, key=need.cost)
    return Advice(need.title, choice, need.reason(choice, best))


def _nightly(peer: Standing, best: Standing) -> Advice:
    """Whether somebody who can train anew from all examples should."""
    gap, noise = difference(peer, best)
    cost = f"{duration(peer.last_seconds)} for the last training, {size(peer.n_bytes)} to keep"
    said = f"{peer.contender.title} has {percent(peer.accuracy)} ({cost})"
    if gap > noise:
        return Advice(
            "Training anew, as every night",
            peer,
            f"{said}: {points(gap)} more than {best.contender.title}, beyond the "
            f"{points(noise)} that chance may make.",
        )
    relation = (
        f"{points(-gap)} less than {best.contender.title}"
        if gap <= 0
        else f"{points(gap)} more than {best.contender.title}, which may be chance "
        f"(up to {points(noise)} is)"
    )
    return Advice(
        "Training anew, as every night",
        best,
        f"It gains nothing here. Of those that were trained anew {said} at best, {relation}.",
    )


# What the data themselves ask for: when, and what is then said.
_REMARKS: tuple[tuple[Callable[[Facts], bool], Callable[[Facts], str]], ...] = (
    (
        lambda facts: facts.examples_per_class < _FEW_EXAMPLES,
        lambda facts: (
            f"Half of the classes have at most {facts.examples_per_class:g} training examples. "
            "With so few, class means and least squares are safer than forests; a forest may gain "
            "from min_samples_leaf=1."
        ),
    ),
    (
        lambda facts: facts.n_classes >= _MANY_CLASSES,
        lambda facts: (
            f"There are {facts.n_classes} classes. Learners that train one model per class, "
            "such as LinearSVC, slow down with each of them."
        ),
    ),
    (
        lambda facts: facts.scale_ratio > _UNEVEN_SCALES,
        lambda facts: (
            f"One feature varies {facts.scale_ratio:.0f} times as much as the middle one. Class "
            "means and neighbours hear little else: scale the features, or take streaming LDA."
        ),
    ),
    (
        lambda facts: facts.n_single > 0,
        lambda facts: (
            f"{facts.n_single} of {facts.n_classes} classes have a single training example."
        ),
    ),
    (
        lambda facts: facts.n_untested > 0,
        lambda facts: (
            f"{facts.n_untested} of {facts.n_classes} classes have no test samples: nothing is "
            "known of how well they are learnt."
        ),
    ),
)


def remarks_on_stopped(standings: Sequence[Standing]) -> list[str]:
    """Who was ahead when time was up: with more of it the recommendation might be another."""
    growing = [each for each in standings if each.finished and each.contender.way == "grows"]
    if not growing:
        return []
    best = max(growing, key=lambda standing: standing.accuracy)
    reached = dict(best.curve)
    said = []
    for standing in standings:
        if standing.finished or not standing.curve:
            continue
        n_classes, accuracy = standing.curve[-1]
        if accuracy > reached.get(n_classes, math.inf):
            said.append(
                f"{standing.contender.title} had {percent(accuracy)} at {n_classes} classes when "
                f"its time was up, {best.contender.title} {percent(reached[n_classes])}: more time "
                "may change the recommendation."
            )
    return said


def remarks_on(facts: Facts) -> list[str]:
    """What is to be said of the data themselves.

    Examples
    --------
    >>> from evergrow.comparison import Facts, remarks_on
    >>> remarks_on(Facts(100, 50, 8, 10, 10.0, 0, 0, 1.5))[0][:55]
    'Half of the classes have at most 10 training examples. '
    """
    return [say(facts) for applies, say in _REMARKS if applies(facts)]
