"""Compare learners on one stream, with checkpoints, and write the results."""

from __future__ import annotations

import numbers
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.extras import install_command
from evergrow.foundation.params import Integer
from evergrow.foundation.progress import progress_bar
from evergrow.foundation.version import __version__
from evergrow.research.comparison.formats import shortened
from evergrow.research.comparison.learners import LEARNERS, ComparedLearner
from evergrow.research.comparison.measurement import measure
from evergrow.research.comparison.recommendation import (
    Advice,
    recommend,
    remarks_on,
    remarks_on_stopped,
)
from evergrow.research.comparison.result import Result, Standing
from evergrow.research.comparison.setup import ComparisonSetup, Facts, make_setup
from evergrow.research.datasets import Dataset
from evergrow.research.experiments.environment import describe_environment
from evergrow.research.experiments.run_cache import RunCache
from evergrow.research.experiments.runner import check_folder

_NO_UPDATES = (
    "All classes came in the first batch, so there were no updates: update times and forgetting "
    "were not measured."
)


@dataclass(frozen=True, eq=False)
class Comparison:
    """The result of :func:`compare`.

    Attributes
    ----------
    name : str
        Name of the data set.
    facts : Facts
        Statistics of the data set.
    standings : tuple of Standing
        The learners on all data.
    on_sample : tuple of Standing
        The learners on a subsample: slow ones, and some others as references.
    sample_facts : Facts or None
        Statistics of the subsample, if there is one.
    advice : tuple of Advice
        The recommendations.
    remarks : tuple of str
        Remarks on the data and on the learners.
    record : mapping
        Versions, settings and hashes, as in ``comparison.json``.
    """

    name: str
    facts: Facts
    standings: tuple[Standing, ...]
    on_sample: tuple[Standing, ...]
    sample_facts: Facts | None
    advice: tuple[Advice, ...]
    remarks: tuple[str, ...]
    record: Mapping[str, Any]

    @property
    def measured_anything(self) -> bool:
        """Whether any learner was measured, even partially."""
        return any(each.results for each in (*self.standings, *self.on_sample))


def compare(
    data: Dataset,
    folder: str | os.PathLike[str] = "comparison",
    *,
    learners: Iterable[ComparedLearner] = LEARNERS,
    initial: int | None = None,
    chunk: int | None = None,
    seed: int = 0,
    repetitions: int = 1,
    quick: bool = False,
    time_limit: float = 120.0,
    fresh: bool = False,
    protocol: str = "batches",
    n_jobs: int = -1,
    verbose: int = 0,
) -> Comparison:
    """Compare learners on one class-incremental stream and recommend one.

    Finished learners are cached in ``folder``: after an interruption, the same call resumes with
    the next learner. Writes ``comparison.html``, ``comparison.csv`` and ``comparison.json`` there.

    Parameters
    ----------
    data : Dataset
        Training and test samples with labels.
    folder : path, default="comparison"
        Output folder; it is created if necessary.
    learners : iterable of ComparedLearner
        Learners to compare, for example from :func:`choose`; all by default.
    initial : int, default=None
        Number of classes in the first batch. None is a tenth of the classes.
    chunk : int, default=None
        Number of classes in every later batch. None makes about ten updates.
    seed : int, default=0
        Random seed of the class order and of the learners.
    repetitions : int, default=1
        Number of class orders. More orders show better which differences are chance.
    quick : bool, default=False
        Use only some classes and examples, for a first look within a minute.
    time_limit : float, default=120
        Seconds per learner and order. After that a learner gets no further batch, and a
        retraining that would take longer is not started.
    fresh : bool, default=False
        Ignore cached results and measure again.
    protocol : {"batches", "single", "blurry"}, default="batches"
        How classes arrive, as in :func:`make_setup`.
    n_jobs : int, default=-1
        Number of threads; it changes times but not accuracies.
    verbose : int, default=0
        Show a progress bar if positive.

    Examples
    --------
    >>> import tempfile
    >>> from evergrow.research import choose, compare, digits
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = compare(digits(), folder, learners=choose(only=["lda", "class-means"]))
    >>> found.advice[0].choice.learner.name
    'lda'
    """
    from evergrow.research.comparison.files import write

    _check(time_limit, n_jobs)
    target = check_folder(folder)
    chosen = tuple(learners)
    if not chosen:
        raise InvalidInputError("learners must name at least one learner")
    setup = make_setup(
        data,
        initial=initial,
        chunk=chunk,
        seed=seed,
        repetitions=repetitions,
        quick=quick,
        protocol=protocol,
    )
    cache = RunCache(target / ".runs" / "comparison.jsonl")
    if fresh:
        cache.clear()
    runner = _Runner(cache, n_jobs, time_limit, quick)
    main, sampled = _divide(chosen)
    with progress_bar("Comparing learners", len(main) + len(sampled), verbose) as show:
        standings = runner.standings(main, setup, show, 0)
        on_sample = runner.standings(sampled, setup.sample or setup, show, len(main))
    facts = Facts.of(setup.data)
    found = Comparison(
        name=data.name,
        facts=facts,
        standings=_ranked(standings),
        on_sample=_ranked(on_sample),
        sample_facts=Facts.of(setup.sample.data) if sampled and setup.sample else None,
        advice=tuple(recommend(standings)),
        remarks=tuple(_remarks(setup, facts, standings)),
        record=_record(data, setup, seed, quick, time_limit, n_jobs),
    )
    write(target, found)
    return found


def _check(time_limit: object, n_jobs: object) -> None:
    is_number = isinstance(time_limit, numbers.Real) and not isinstance(time_limit, bool)
    if not is_number or not time_limit > 0:  # type: ignore[operator]
        raise InvalidInputError(
            f"time_limit must be a number of seconds above 0, got {time_limit!r}"
        )
    if not Integer(-sys.maxsize).admits(n_jobs) or n_jobs == 0:
        raise InvalidInputError(
            f"n_jobs must be a number of threads, or -1 for one per processor, got {n_jobs!r}"
        )


def _divide(
    learners: Sequence[ComparedLearner],
) -> tuple[list[ComparedLearner], list[ComparedLearner]]:
    """Learners that are measured on all data, and those that are measured on a subsample."""
    main = [each for each in learners if each.family != "river"]
    sampled = [each for each in learners if each.on_sample]
    # Our own learners are measured on the subsample only as references for slow ones.
    return main, sampled if any(each.family == "river" for each in sampled) else []


def _remarks(setup: ComparisonSetup, facts: Facts, standings: Sequence[Standing]) -> Iterator[str]:
    if not setup.has_updates:
        yield _NO_UPDATES
    yield from remarks_on(facts)
    yield from remarks_on_stopped(standings)


class _FailedError(Exception):
    """A learner could not be measured; the comparison continues without it."""


@dataclass(frozen=True)
class _Runner:
    """Measures learners without a cached result."""

    cache: RunCache
    n_jobs: int
    time_limit: float
    quick: bool

    def standings(
        self,
        learners: Sequence[ComparedLearner],
        setup: ComparisonSetup,
        show: Callable[[int], None] | None,
        done: int,
    ) -> list[Standing]:
        found = []
        for place, learner in enumerate(learners):
            if show is not None:
                show(done + place)
            found.append(self._standing(learner, setup))
        return found

    def _standing(self, learner: ComparedLearner, setup: ComparisonSetup) -> Standing:
        missing = learner.missing_package()
        if missing:
            problem = f"{missing} is not installed: {install_command('experiments')}"
            return Standing(learner, (), setup.checkpoints, problem)
        if self.quick and not learner.in_quick:
            return Standing(learner, (), setup.checkpoints, "left out of a quick run")
        try:
            repetitions = range(setup.stream.repetitions)
            results = tuple(self._result(learner, setup, each) for each in repetitions)
        except _FailedError as error:
            return Standing(learner, (), setup.checkpoints, f"failed: {error}")
        return Standing(learner, results, setup.checkpoints)

    def _result(self, learner: ComparedLearner, setup: ComparisonSetup, repetition: int) -> Result:
        key = {
            "learner": learner.name,
            "code": learner.factory.code,
            "data": setup.data.sha256,
            "n_train": len(setup.data.y_train),
            "classes": setup.n_classes,
            "points": setup.stream_for(learner).measure_at,
            "chunk": setup.stream.chunk,
            "protocol": setup.protocol,
            "seed": setup.stream.random_state,
            "repetition": repetition,
            "quick": self.quick,
            "n_jobs": self.n_jobs,
            "version": __version__,
        }
        cached = self.cache.get(key)
        known = _load(cached.rows if cached else None, setup)
        # A learner that was stopped is measured again if there is more time.
        if known and (known.stopped_at is None or known.time_limit >= self.time_limit):
            return known
        try:
            result = measure(
                learner, setup, repetition, n_jobs=self.n_jobs, time_limit=self.time_limit
            )
        # Learners of other packages may raise anything on a user's data.
        except Exception as error:
            raise _FailedError(_error_message(error)) from error
        self.cache.add(key, [result.to_json()])
        return result


def _load(rows: Sequence[Mapping[str, Any]] | None, setup: ComparisonSetup) -> Result | None:
    """Return a cached result, or None if it is missing, damaged or of other data."""
    if not rows:
        return None
    try:
        found = Result.from_json(rows[0])
    except ValueError:
        return None
    if found.stopped_at is None and [len(each) for each in found.answers] != setup.test_counts:
        return None
    return found


def _error_message(error: Exception) -> str:
    """Return an error in one line, with its type, without which most messages are unclear."""
    message = " ".join(str(error).split())
    kind = "" if message and isinstance(error, ValueError) else type(error).__name__
    return shortened(": ".join(filter(None, (kind, message))), 300)


def _ranked(standings: Sequence[Standing]) -> tuple[Standing, ...]:
    """Sort by class mean, with unfinished learners last."""
    return tuple(
        sorted(standings, key=lambda s: (not s.finished, -s.class_mean if s.finished else 0))
    )


def _record(
    data: Dataset, setup: ComparisonSetup, seed: int, quick: bool, time_limit: float, n_jobs: int
) -> dict[str, Any]:
    stream = setup.stream
    return {
        "data": {"name": data.name, "sha256": data.sha256},
        "stream": {
            "protocol": setup.protocol,
            "initial": stream.initial,
            "chunk": stream.chunk,
            "n_classes": setup.n_classes,
            "repetitions": stream.repetitions,
            "points": list(setup.points),
            "checkpoints": list(setup.checkpoints),
        },
        "seed": seed,
        "quick": quick,
        "time_limit": time_limit,
        "n_jobs": n_jobs,
        **describe_environment(),
    }
