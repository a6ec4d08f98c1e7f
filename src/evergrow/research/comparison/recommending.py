"""A plain recommendation, with reasons that are computed from what was measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evergrow.research.comparison.plan import Facts
from evergrow.research.comparison.result import Standing, difference
from evergrow.research.comparison.wording import beside, duration, percent, points, several, size

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
# Who knows much less is of no use, however small or fast, and even if few classes cannot prove it.
_USEFUL_SHARE = 0.9
_FEW_EXAMPLES, _MANY_CLASSES, _UNEVEN_SCALES = 20, 1000, 30
# The largest class has so many times the examples of the middle one before it is remarked.
_UNEVEN_CLASSES = 5


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
    about: Callable[[Standing], float]
    """What must have been measured, or nothing is said of this need."""
    fits: Callable[[Standing, Standing], bool]
    """Whether a learner comes into question, beside the most accurate one."""
    cost: Callable[[Standing], float]
    """What is least of the best one."""
    reason: Callable[[Standing, Standing], str]
    """A sentence on the choice, beside the most accurate one."""
    unmet: str = ""
    """What is said when no learner fits; the most accurate one fits every other need."""


def _useful(standing: Standing, best: Standing) -> bool:
    return standing.class_mean >= _USEFUL_SHARE * best.class_mean


def _level(standing: Standing, best: Standing) -> bool:
    """Whether a learner is as accurate as the best, as far as chance lets one tell."""
    if standing is best:
        return True
    gap, noise = difference(best, standing)
    return gap <= noise and _useful(standing, best)


def _general_reason(choice: Standing, best: Standing) -> str:
    said = (
        f"{percent(choice.class_mean)} right in the mean of the classes in the end, "
        f"{duration(choice.seconds)} per update"
    )
    if choice is best:
        return f"{said}: the most accurate of those that learn in place."
    gap, noise = difference(best, choice)
    if points(gap) == points(0.0):
        return (
            f"{said}: as accurate as {best.contender.title}, which takes "
            f"{duration(best.seconds)} per update."
        )
    return (
        f"{said}. The most accurate, {best.contender.title}, has {points(gap)} more, which may be "
        f"chance (up to {points(noise)} is), for {duration(best.seconds)} per update."
    )


def _beside_best(choice: Standing, best: Standing) -> str:
    if choice is best:
        return "the most accurate of all that learn in place"
    return beside(choice.class_mean - best.class_mean, best.contender.title)


NEEDS: tuple[Need, ...] = (
    Need(
        "In general",
        lambda standing: standing.seconds,
        _level,
        lambda standing: standing.seconds,
        _general_reason,
    ),
    Need(
        "The last point of accuracy",
        lambda standing: standing.class_mean,
        lambda standing, best: standing is best,
        lambda standing: -standing.class_mean,
        lambda choice, _: _costs(
            f"{percent(choice.class_mean)} right in the mean of the classes in the end", choice
        ),
    ),
    Need(
        f"Updates within {duration(FAST_SECONDS)}",
        lambda standing: standing.seconds,
        lambda standing, _: standing.seconds <= FAST_SECONDS,
        lambda standing: -standing.class_mean,
        lambda choice, best: (
            f"{percent(choice.class_mean)} right with {duration(choice.seconds)} per update: "
            f"{_beside_best(choice, best)}."
        ),
        f"No learner updates within {duration(FAST_SECONDS)} on these data; "
        "fewer features or smaller batches would help.",
    ),
    Need(
        "Little memory",
        lambda standing: standing.n_bytes,
        _useful,
        lambda standing: standing.n_bytes,
        lambda choice, best: (
            f"{size(choice.n_bytes)} hold all it needs to learn on, with "
            f"{percent(choice.class_mean)} right: {_beside_best(choice, best)}."
        ),
    ),
    Need(
        "The newest classes",
        lambda standing: standing.newest,
        lambda standing, _: not math.isnan(standing.newest),
        lambda standing: -standing.newest,
        lambda choice, best: (
            f"{percent(choice.newest)} right on the classes that came last, "
            f"{percent(choice.class_mean)} in the mean of all: {_beside_best(choice, best)}."
        ),
    ),
)


def _costs(said: str, choice: Standing) -> str:
    """A sentence with what is known of newest classes, time and memory."""
    newest = "" if math.isnan(choice.newest) else f", {percent(choice.newest)} on the newest ones"
    update = "" if math.isnan(choice.seconds) else f"{duration(choice.seconds)} per update, "
    return f"{said}{newest}; {update}{size(choice.n_bytes)}."


# Why nothing is recommended: the first that is so.
_ON_SAMPLE_ONLY = (
    "Only learners on a subsample of the data were measured, which says too little of all of them: "
    "nothing is recommended."
)
_NONE_FINISHED = "No learner that takes new classes in place came to the end."
_NONE_LEARNT = (
    "No learner that takes new classes in place is better than one that always gives the same "
    "answer: nothing is recommended."
)


def recommend(standings: Sequence[Standing]) -> list[Advice]:
    """What to take for each need, and whether training anew would be better.

    Only learners that came to the end, were shown all data and are better than always giving the
    same answer are recommended. Of needs nothing of which was measured, as the time of updates
    where nothing came after the first batch, nothing is said.
    """
    ended = [each for each in standings if each.finished and each.contender.way == "grows"]
    growing = [each for each in ended if each.knows_something]
    if not growing:
        known = _NONE_LEARNT if ended else _NONE_FINISHED
        return [Advice(NEEDS[0].title, None, known if standings else _ON_SAMPLE_ONLY)]
    best = max(growing, key=lambda standing: standing.class_mean)
    advice = [
        _served(need, growing, best)
        for need in NEEDS
        if not all(math.isnan(need.about(each)) for each in growing)
    ]
    retrained = [
        each
        for each in standings
        if each.contender.way == "retrained" and each.finished and each.knows_something
    ]
    if retrained:
        advice.append(_nightly(max(retrained, key=lambda standing: standing.class_mean), best))
    return advice


def _served(need: Need, growing: Sequence[Standing], best: Standing) -> Advice:
    fitting = [
        standing
        for standing in growing
        if need.fits(standing, best) and not math.isnan(need.cost(standing))
    ]
    if not fitting:
        return Advice(need.title, None, need.unmet)
    choice = min(fitting, key=need.cost)
    return Advice(need.title, choice, need.reason(choice, best))


def _nightly(peer: Standing, best: Standing) -> Advice:
    """Whether somebody who can train anew from all examples should."""
    gap, noise = difference(peer, best)
    cost = f"{duration(peer.last_seconds)} for the last training, {size(peer.n_bytes)} to keep"
    said = f"{peer.contender.title} has {percent(peer.class_mean)} ({cost})"
    relation = beside(gap, best.contender.title)
    if gap > noise:
        return Advice(
            "Training anew, as every night",
            peer,
            f"{said}: {relation}, beyond the {points(noise)} that chance may make.",
        )
    if gap > 0 and points(gap) != points(0.0):
        relation += f", which may be chance (up to {points(noise)} is)"
    return Advice(
        "Training anew, as every night",
        best,
        f"Nothing is seen to be gained by it. Of those that were trained anew {said} at best, "
        f"{relation}.",
    )


def _some_of(number: int, facts: Facts) -> str:
    return f"{number} of {facts.n_classes} classes {'has' if number == 1 else 'have'}"


# What the data themselves ask for: when, and what is then said.
_REMARKS: tuple[tuple[Callable[[Facts], bool], Callable[[Facts], str]], ...] = (
    (
        lambda facts: facts.examples_per_class < _FEW_EXAMPLES,
        lambda facts: (
            "Half of the classes have at most "
            f"{several(facts.examples_per_class, 'training example')}. With so few, class means "
            "and least squares are safer than forests; a forest may gain from min_samples_leaf=1."
        ),
    ),
    (
        lambda facts: facts.largest_class >= _UNEVEN_CLASSES * facts.examples_per_class,
        lambda facts: (
            f"The largest class has {several(facts.largest_class, 'training example')}, the middle "
            f"one {facts.examples_per_class:g}. Learners are compared by the mean over classes, as "
            "the accuracy over samples may be high for the large classes' sake alone."
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
        lambda facts: f"{_some_of(facts.n_single, facts)} a single training example.",
    ),
    (
        lambda facts: facts.n_untested > 0,
        lambda facts: (
            f"{_some_of(facts.n_untested, facts)} no test samples: nothing is known of how well "
            f"{'it is' if facts.n_untested == 1 else 'they are'} learnt."
        ),
    ),
)


def remarks_on_stopped(standings: Sequence[Standing]) -> list[str]:
    """Who was ahead when time was up: with more of it the recommendation might be another."""
    growing = [each for each in standings if each.finished and each.contender.way == "grows"]
    if not growing:
        return []
    best = max(growing, key=lambda standing: standing.class_mean)
    reached = dict(best.curve)
    said = []
    for standing in standings:
        if standing.finished or not standing.curve:
            continue
        n_classes, share = standing.curve[-1]
        if share > reached.get(n_classes, math.inf):
            said.append(
                f"{standing.contender.title} had {percent(share)} at "
                f"{several(n_classes, 'class')} when its time was up, "
                f"{best.contender.title} {percent(reached[n_classes])}: more time may change the "
                "recommendation."
            )
    return said


def remarks_on(facts: Facts) -> list[str]:
    """What is to be said of the data themselves.

    Examples
    --------
    >>> from evergrow.research import Facts, remarks_on
    >>> remarks_on(Facts(100, 50, 8, 10, 10.0, 10, 0, 0, 1.5))[0][:55]
    'Half of the classes have at most 10 training examples. '
    """
    return [say(facts) for applies, say in _REMARKS if applies(facts)]
