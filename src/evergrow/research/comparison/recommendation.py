"""Recommend learners, with reasons computed from the measurements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evergrow.foundation.formatting import format_count
from evergrow.research.comparison.formats import (
    compared_with,
    duration,
    percent,
    points,
    size,
)
from evergrow.research.comparison.result import Standing, difference
from evergrow.research.comparison.setup import Facts

FAST_SECONDS = 0.1
# A much less accurate learner is never recommended, even if the difference is not significant.
_USEFUL_SHARE = 0.9
_FEW_EXAMPLES, _MANY_CLASSES, _UNEVEN_SCALES = 20, 1000, 30
# Ratio of the largest to the median class above which a remark is made.
_UNEVEN_CLASSES = 5


@dataclass(frozen=True)
class Advice:
    """The recommended learner for one need.

    Attributes
    ----------
    need : str
        What the user needs, such as fast updates.
    choice : Standing or None
        The recommended learner; None if no measured learner fits.
    reason : str
        Why it is recommended.
    """

    need: str
    choice: Standing | None
    reason: str


@dataclass(frozen=True)
class Need:
    """A need of a user, and how to find the incremental learner that serves it best."""

    title: str
    requires: Callable[[Standing], float]
    """A value that must have been measured; otherwise this need is skipped."""
    fits: Callable[[Standing, Standing], bool]
    """Whether a learner qualifies, given the most accurate one."""
    cost: Callable[[Standing], float]
    """The learner with the lowest cost is recommended."""
    reason: Callable[[Standing, Standing], str]
    """Explains the choice, given the most accurate learner."""
    unmet: str = ""
    """The reason given when no learner fits; the most accurate one fits all other needs."""


def _useful(standing: Standing, best: Standing) -> bool:
    return standing.class_mean >= _USEFUL_SHARE * best.class_mean


def _equal_to_best(standing: Standing, best: Standing) -> bool:
    """Return whether the difference to the best learner may be chance."""
    if standing is best:
        return True
    gap, noise = difference(best, standing)
    return gap <= noise and _useful(standing, best)


def _general_reason(choice: Standing, best: Standing) -> str:
    summary = (
        f"{percent(choice.class_mean)} mean class accuracy at the end, "
        f"{duration(choice.seconds)} per update"
    )
    if choice is best:
        return f"{summary}: no incremental learner is more accurate."
    gap, noise = difference(best, choice)
    if points(gap) == points(0.0):
        return (
            f"{summary}: as accurate as {best.learner.title}, which takes "
            f"{duration(best.seconds)} per update."
        )
    return (
        f"{summary}. The most accurate, {best.learner.title}, has {points(gap)} more, which may be "
        f"chance (up to {points(noise)}), for {duration(best.seconds)} per update."
    )


def _compared_with_best(choice: Standing, best: Standing) -> str:
    if choice is best:
        return "no incremental learner is more accurate"
    return compared_with(choice.class_mean - best.class_mean, best.learner.title)


NEEDS: tuple[Need, ...] = (
    Need(
        "In general",
        lambda standing: standing.seconds,
        _equal_to_best,
        lambda standing: standing.seconds,
        _general_reason,
    ),
    Need(
        "Highest accuracy",
        lambda standing: standing.class_mean,
        lambda standing, best: standing is best,
        lambda standing: -standing.class_mean,
        lambda choice, _: _with_costs(choice),
    ),
    Need(
        f"Updates within {duration(FAST_SECONDS)}",
        lambda standing: standing.seconds,
        lambda standing, _: standing.seconds <= FAST_SECONDS,
        lambda standing: -standing.class_mean,
        lambda choice, best: (
            f"{percent(choice.class_mean)} mean class accuracy, {duration(choice.seconds)} per "
            f"update: "
            f"{_compared_with_best(choice, best)}."
        ),
        f"No learner updates within {duration(FAST_SECONDS)} on these data; "
        "fewer features or smaller batches may help.",
    ),
    Need(
        "Little memory",
        lambda standing: standing.n_bytes,
        _useful,
        lambda standing: standing.n_bytes,
        lambda choice, best: (
            f"{size(choice.n_bytes)} to store, with "
            f"{percent(choice.class_mean)} mean class accuracy: "
            f"{_compared_with_best(choice, best)}."
        ),
    ),
    Need(
        "The newest classes",
        lambda standing: standing.newest,
        lambda standing, _: not math.isnan(standing.newest),
        lambda standing: -standing.newest,
        lambda choice, best: (
            f"{percent(choice.newest)} mean class accuracy on the newest classes, "
            f"{percent(choice.class_mean)} on all: {_compared_with_best(choice, best)}."
        ),
    ),
)


def _with_costs(choice: Standing) -> str:
    """Say what was measured of accuracy, newest classes, time and memory."""
    summary = f"{percent(choice.class_mean)} mean class accuracy at the end"
    newest = "" if math.isnan(choice.newest) else f", {percent(choice.newest)} on the newest ones"
    update = "" if math.isnan(choice.seconds) else f"{duration(choice.seconds)} per update, "
    return f"{summary}{newest}; {update}{size(choice.n_bytes)}."


# Why nothing is recommended.
_ON_SAMPLE_ONLY = (
    "Only learners on a subsample were measured, which does not show how learners do on all data: "
    "nothing is recommended."
)
_NONE_FINISHED = "No incremental learner finished."
_NONE_LEARNT = (
    "No incremental learner is better than a constant prediction: nothing is recommended."
)


def recommend(standings: Sequence[Standing]) -> list[Advice]:
    """Recommend a learner for each need, and say whether retraining would be better.

    Only learners that finished on all data and are better than a constant prediction are
    recommended. Needs that could not be measured are skipped, such as fast updates if there were
    none.

    Parameters
    ----------
    standings : sequence of Standing
        The results of all learners.

    Returns
    -------
    advice : list of Advice
        One recommendation per need.
    """
    ended = [each for each in standings if each.finished and each.learner.way == "grows"]
    growing = [each for each in ended if each.beats_chance]
    if not growing:
        known = _NONE_LEARNT if ended else _NONE_FINISHED
        return [Advice(NEEDS[0].title, None, known if standings else _ON_SAMPLE_ONLY)]
    # Of equally accurate ones the fastest.
    best = min(growing, key=lambda standing: (-standing.class_mean, _speed(standing)))
    advice = [
        _best_for(need, growing, best)
        for need in NEEDS
        if not all(math.isnan(need.requires(each)) for each in growing)
    ]
    retrained = [
        each
        for each in standings
        if each.learner.way == "retrained" and each.finished and each.beats_chance
    ]
    if retrained:
        advice.append(_retraining(max(retrained, key=lambda standing: standing.class_mean), best))
    return advice


def group_by_choice(advice: Sequence[Advice]) -> list[tuple[Standing | None, list[Advice]]]:
    """Join advice that recommends the same learner, in the order of the first need of each."""
    groups: list[tuple[Standing | None, list[Advice]]] = []
    for each in advice:
        known = next((group for choice, group in groups if choice is each.choice), None)
        if known is None:
            groups.append((each.choice, [each]))
        else:
            known.append(each)
    return groups


def _best_for(need: Need, growing: Sequence[Standing], best: Standing) -> Advice:
    fitting = [
        standing
        for standing in growing
        if need.fits(standing, best) and not math.isnan(need.cost(standing))
    ]
    if not fitting:
        return Advice(need.title, None, need.unmet)
    choice = min(fitting, key=lambda standing: (need.cost(standing), _speed(standing)))
    return Advice(need.title, choice, need.reason(choice, best))


def _speed(standing: Standing) -> float:
    """Seconds per update, to order equal learners; those without updates come last."""
    return math.inf if math.isnan(standing.seconds) else standing.seconds


def _retraining(peer: Standing, best: Standing) -> Advice:
    """Say whether a user who can retrain on all examples should."""
    gap, noise = difference(peer, best)
    cost = f"{duration(peer.last_seconds)} for the last training, {size(peer.n_bytes)} to store"
    summary = f"{peer.learner.title} has {percent(peer.class_mean)} ({cost})"
    relation = compared_with(gap, best.learner.title)
    if gap > noise:
        return Advice(
            "Retraining, for example every night",
            peer,
            f"{summary}: {relation}, more than the {points(noise)} that may be chance.",
        )
    if gap > 0 and points(gap) != points(0.0):
        relation += f", which may be chance (up to {points(noise)})"
    return Advice(
        "Retraining, for example every night",
        best,
        f"Retraining shows no significant gain. The best retrained learner is {relation}: "
        f"{summary}.",
    )


def _some_of(number: int, facts: Facts) -> str:
    return f"{number} of {facts.n_classes} classes {'has' if number == 1 else 'have'}"


# Remarks on the data: a condition and the text.
_REMARKS: tuple[tuple[Callable[[Facts], bool], Callable[[Facts], str]], ...] = (
    (
        lambda facts: facts.examples_per_class < _FEW_EXAMPLES,
        lambda facts: (
            "Half of the classes have at most "
            f"{format_count(facts.examples_per_class, 'training example')}. With so few, class "
            "means and least squares are safer than forests."
        ),
    ),
    (
        lambda facts: facts.largest_class >= _UNEVEN_CLASSES * facts.examples_per_class,
        lambda facts: (
            f"The largest class has {format_count(facts.largest_class, 'training example')}, the "
            f"median class {facts.examples_per_class:g}. Learners are compared by the mean class "
            "accuracy, because large classes alone can make the accuracy over samples high."
        ),
    ),
    (
        lambda facts: facts.n_classes >= _MANY_CLASSES,
        lambda facts: (
            f"There are {facts.n_classes} classes. Learners that train one model per class, "
            "such as LinearSVC, become slower with each class."
        ),
    ),
    (
        lambda facts: facts.scale_ratio > _UNEVEN_SCALES,
        lambda facts: (
            f"One feature varies {facts.scale_ratio:.0f} times as much as the median one. It "
            "dominates class means and neighbours: scale the features, or use streaming LDA."
        ),
    ),
    (
        lambda facts: facts.n_single > 0,
        lambda facts: f"{_some_of(facts.n_single, facts)} a single training example.",
    ),
    (
        lambda facts: facts.n_untested > 0,
        lambda facts: (
            f"{_some_of(facts.n_untested, facts)} no test samples, so the accuracy on "
            f"{'it' if facts.n_untested == 1 else 'them'} is unknown."
        ),
    ),
)


def remarks_on_stopped(standings: Sequence[Standing]) -> list[str]:
    """Name learners that were ahead when time ran out: more time may change the advice."""
    growing = [each for each in standings if each.finished and each.learner.way == "grows"]
    if not growing:
        return []
    best = max(growing, key=lambda standing: standing.class_mean)
    reached = dict(best.curve)
    remarks = []
    for standing in standings:
        if standing.finished or not standing.curve:
            continue
        n_classes, share = standing.curve[-1]
        if share > reached.get(n_classes, math.inf):
            remarks.append(
                f"{standing.learner.title} had {percent(share)} at "
                f"{format_count(n_classes, 'class')} when time ran out, "
                f"{best.learner.title} {percent(reached[n_classes])}: more time may change the "
                "recommendation."
            )
    return remarks


def remarks_on(facts: Facts) -> list[str]:
    """Return remarks on the data themselves.

    Examples
    --------
    >>> from evergrow.research import Facts, remarks_on
    >>> remarks_on(Facts(100, 50, 8, 10, 10.0, 10, 0, 0, 1.5))[0][:55]
    'Half of the classes have at most 10 training examples. '
    """
    return [say(facts) for applies, say in _REMARKS if applies(facts)]
