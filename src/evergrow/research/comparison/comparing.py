"""The whole comparison: everybody through the stream, results kept, pages written."""

from __future__ import annotations

import numbers
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evergrow.foundation.params import Integer
from evergrow.foundation.progress import progress_bar
from evergrow.foundation.version import __version__
from evergrow.research.comparison.contender import Contender
from evergrow.research.comparison.contenders import CONTENDERS
from evergrow.research.comparison.measuring import measure
from evergrow.research.comparison.plan import Facts, Plan, make_plan
from evergrow.research.comparison.recommending import (
    Advice,
    recommend,
    remarks_on,
    remarks_on_stopped,
)
from evergrow.research.comparison.result import Result, Standing
from evergrow.research.comparison.wording import shortened
from evergrow.research.datasets import Dataset
from evergrow.research.experiments.environment import describe_environment
from evergrow.research.experiments.run_cache import RunCache
from evergrow.research.experiments.runner import check_folder

__all__ = ["Comparison", "compare"]

_NO_UPDATES = (
    "All classes came in the first batch and nothing was left to update: nothing is said of the "
    "time of updates, and of what is forgotten."
)


@dataclass(frozen=True, eq=False)
class Comparison:
    """What a comparison gave."""

    name: str
    facts: Facts
    standings: tuple[Standing, ...]
    """Learners that were shown all data."""
    on_sample: tuple[Standing, ...]
    """Learners on a subsample: slow ones, and some of ours beside them."""
    sample_facts: Facts | None
    advice: tuple[Advice, ...]
    remarks: tuple[str, ...]
    record: Mapping[str, Any]

    @property
    def measured_anything(self) -> bool:
        """Whether any learner was measured, if not to the end."""
        return any(each.results for each in (*self.standings, *self.on_sample))


def compare(
    data: Dataset,
    folder: str | os.PathLike[str] = "comparison",
    *,
    contenders: Iterable[Contender] = CONTENDERS,
    initial: int | None = None,
    chunk: int | None = None,
    seed: int = 0,
    repetitions: int = 1,
    quick: bool = False,
    time_limit: float = 120.0,
    fresh: bool = False,
    n_jobs: int = -1,
    verbose: int = 0,
) -> Comparison:
    """Take learners through one class-incremental stream and say which to take.

    Every finished learner is kept in ``folder``: after an interruption the same call goes on with
    the next. Writes ``comparison.html``, ``comparison.csv`` and ``comparison.json`` there.

    Parameters
    ----------
    data : Dataset
        Features and labels to learn and to test.
    folder : path, default="comparison"
        Where to write; it is made if it is not there.
    contenders : iterable of Contender
        Who takes part, as :func:`choose` gives them; all by default.
    initial, chunk : int, default=None
        Classes of the first batch and of every later one; None for a tenth of them and for about
        ten updates.
    seed : int, default=0
        Seed of the order of the classes and of the learners.
    repetitions : int, default=1
        Orders of the classes. More tell better what is chance.
    quick : bool, default=False
        Some classes and examples only, to see in a minute what a comparison looks like.
    time_limit : float, default=120
        Seconds for each learner and order; it is shown no further batch after that, and training
        anew is not begun when it would take longer.
    fresh : bool, default=False
        Measure again what is kept from before.
    n_jobs : int, default=-1
        Threads; accuracies do not depend on it, times do.
    verbose : int, default=0
        Above 0 shows how far it is.

    Examples
    --------
    >>> import tempfile
    >>> from evergrow.research import choose, compare, digits
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = compare(digits(), folder, contenders=choose(only=["lda", "class-means"]))
    >>> found.advice[0].choice.contender.name
    'lda'
    """
    from evergrow.research.comparison.writing import write

    _check(time_limit, n_jobs)
    target = check_folder(folder)
    chosen = tuple(contenders)
    if not chosen:
        raise ValueError("contenders must name at least one learner")
    plan = make_plan(
        data, initial=initial, chunk=chunk, seed=seed, repetitions=repetitions, quick=quick
    )
    kept = RunCache(target / ".runs" / "comparison.jsonl")
    if fresh:
        kept.clear()
    bench = _Bench(kept, n_jobs, time_limit, quick)
    # Our own learners stand beside the slow ones only if there are any.
    sampled = [each for each in chosen if each.on_sample]
    sampled = sampled if any(each.family == "river" for each in sampled) else []
    main = [each for each in chosen if each.family != "river"]
    with progress_bar("comparing", len(main) + len(sampled), verbose) as show:
        standings = bench.standings(main, plan, show, 0)
        on_sample = bench.standings(sampled, plan.sample or plan, show, len(main))
    facts = Facts.of(plan.data)
    found = Comparison(
        name=data.name,
        facts=facts,
        standings=_ranked(standings),
        on_sample=_ranked(on_sample),
        sample_facts=Facts.of(plan.sample.data) if sampled and plan.sample else None,
        advice=tuple(recommend(standings)),
        remarks=(
            *(() if plan.has_updates else (_NO_UPDATES,)),
            *remarks_on(facts),
            *remarks_on_stopped(standings),
        ),
        record=_record(data, plan, seed, quick, time_limit, n_jobs),
    )
    write(target, found)
    return found


def _check(time_limit: object, n_jobs: object) -> None:
    number = isinstance(time_limit, numbers.Real) and not isinstance(time_limit, bool)
    if not number or not time_limit > 0:  # type: ignore[operator]
        raise ValueError(f"time_limit must be a number of seconds above 0, got {time_limit!r}")
    if not Integer(-sys.maxsize).admits(n_jobs) or n_jobs == 0:
        raise ValueError(
            f"n_jobs must be a number of threads, or -1 for one per processor, got {n_jobs!r}"
        )


class _FailedError(Exception):
    """A learner could not be measured; the others go on."""


@dataclass(frozen=True)
class _Bench:
    """Measures what is not kept from before."""

    kept: RunCache
    n_jobs: int
    time_limit: float
    quick: bool

    def standings(
        self,
        contenders: Sequence[Contender],
        plan: Plan,
        show: Callable[[int], None] | None,
        done: int,
    ) -> list[Standing]:
        found = []
        for place, contender in enumerate(contenders):
            if show is not None:
                show(done + place)
            found.append(self._standing(contender, plan))
        return found

    def _standing(self, contender: Contender, plan: Plan) -> Standing:
        missing = contender.missing()
        if missing:
            problem = f'{missing} is not installed: pip install "evergrow[experiments]"'
            return Standing(contender, (), plan.checkpoints, problem)
        if self.quick and not contender.in_quick:
            return Standing(contender, (), plan.checkpoints, "left out of a quick run")
        try:
            repetitions = range(plan.stream.repetitions)
            results = tuple(self._result(contender, plan, each) for each in repetitions)
        except _FailedError as error:
            return Standing(contender, (), plan.checkpoints, f"failed: {error}")
        return Standing(contender, results, plan.checkpoints)

    def _result(self, contender: Contender, plan: Plan, repetition: int) -> Result:
        setting = {
            "learner": contender.name,
            "code": contender.recipe.code,
            "data": plan.data.sha256,
            "n_train": len(plan.data.y_train),
            "classes": plan.n_classes,
            "points": plan.stream_for(contender).measure_at,
            "chunk": plan.stream.chunk,
            "seed": plan.stream.random_state,
            "repetition": repetition,
            "quick": self.quick,
            "n_jobs": self.n_jobs,
            "version": __version__,
        }
        known = _sound(self.kept.get(setting), plan)
        # One that was stopped gets its chance when there is more time.
        if known and (known.stopped_at is None or known.time_limit >= self.time_limit):
            return known
        try:
            result = measure(
                contender, plan, repetition, n_jobs=self.n_jobs, time_limit=self.time_limit
            )
        # Whatever somebody else's learner may raise on somebody's data.
        except Exception as error:
            raise _FailedError(_said_by(error)) from error
        self.kept.add(setting, [result.to_json()])
        return result


def _sound(rows: Sequence[Mapping[str, Any]] | None, plan: Plan) -> Result | None:
    """A result that is kept, or None if there is none that could have been measured here."""
    if not rows:
        return None
    try:
        found = Result.from_json(rows[0])
    except ValueError:
        return None
    if found.stopped_at is None and [len(each) for each in found.answers] != plan.test_counts:
        return None
    return found


def _said_by(error: Exception) -> str:
    """What went wrong in a line; of most errors the message says nothing without the kind."""
    message = " ".join(str(error).split())
    kind = "" if message and isinstance(error, ValueError) else type(error).__name__
    return shortened(": ".join(filter(None, (kind, message))), 300)


def _ranked(standings: Sequence[Standing]) -> tuple[Standing, ...]:
    """The most accurate first, those that did not come to the end last."""
    return tuple(
        sorted(standings, key=lambda s: (not s.finished, -s.class_mean if s.finished else 0))
    )


def _record(
    data: Dataset, plan: Plan, seed: int, quick: bool, time_limit: float, n_jobs: int
) -> dict[str, Any]:
    stream = plan.stream
    return {
        "data": {"name": data.name, "sha256": data.sha256},
        "stream": {
            "initial": stream.initial,
            "chunk": stream.chunk,
            "n_classes": plan.n_classes,
            "repetitions": stream.repetitions,
            "points": list(plan.points),
            "checkpoints": list(plan.checkpoints),
        },
        "seed": seed,
        "quick": quick,
        "time_limit": time_limit,
        "n_jobs": n_jobs,
        **describe_environment(),
    }
