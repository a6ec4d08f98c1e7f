"""Compare learners on one stream, with checkpoints, and write the results."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import math
import os
import platform
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from evergrow.compare.data import Dataset
from evergrow.compare.learners import ComparedLearner, known_learners
from evergrow.compare.measurement import COLUMNS, Result, Standing, measure, shorten
from evergrow.compare.page import render_page
from evergrow.compare.recommendation import Advice, recommend, remarks_on
from evergrow.compare.setup import Facts, Setup, make_setups
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.extras import __version__, install_command
from evergrow.foundation.files import atomic_write
from evergrow.foundation.params import Integer, Number, Rule, Satisfies, check_parameters
from evergrow.foundation.progress import progress_bar

# Of the record and of the checkpoints.
FORMAT_VERSION = 1
_PACKAGES = ("numpy", "scipy", "scikit-learn", "river", "opencv-python-headless", "onnxruntime")
_RULES: dict[str, list[Rule]] = {
    "repetitions": [Integer(1)],
    "time_limit": [
        Satisfies(
            "a number of seconds above 0",
            lambda limit: limit == math.inf or Number(0.0, open_low=True).admits(limit),
        )
    ],
    "n_jobs": [
        Satisfies(
            "a number of threads, or -1 for one per processor",
            lambda n: Integer(-(2**31)).admits(n) and n != 0,
        )
    ],
}


@dataclass(frozen=True, eq=False)
class Comparison:
    """The result of :func:`compare`."""

    name: str
    facts: Facts
    standings: tuple[Standing, ...]
    """The learners on all data."""
    on_sample: tuple[Standing, ...]
    """The learners on a subsample: slow ones, and some others as references."""
    sample_facts: Facts | None
    advice: tuple[Advice, ...]
    remarks: tuple[str, ...]
    record: Mapping[str, Any]
    """Versions, settings and hashes, as in ``comparison.json``."""

    @property
    def measured_anything(self) -> bool:
        """Whether any learner was measured, even partially."""
        return any(each.results for each in (*self.standings, *self.on_sample))


def compare(
    data: Dataset,
    folder: str | os.PathLike[str] = "comparison",
    *,
    learners: Iterable[ComparedLearner] | None = None,
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
    learners : iterable of ComparedLearner, default=None
        Learners to compare, from ``evergrow.compare.learners.choose``; None compares all.
    initial : int, default=None
        Number of classes in the first batch. None is a tenth, and at least 2, or 1 if there are
        only 2.
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
        How classes arrive: several at a time, one at a time, or several at a time with old and new
        classes mixed and of unequal sizes.
    n_jobs : int, default=-1
        Number of threads; it changes times but not accuracies.
    verbose : int, default=0
        Show a progress bar if positive.

    Examples
    --------
    >>> import tempfile
    >>> from evergrow.compare import compare, load_dataset
    >>> from evergrow.compare.learners import choose
    >>> chosen = choose(only=["lda", "class-means"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = compare(load_dataset("digits"), folder, learners=chosen)
    >>> found.advice[0].choice.learner.name
    'lda'
    """
    check_parameters(
        {"repetitions": repetitions, "time_limit": time_limit, "n_jobs": n_jobs}, _RULES
    )
    target = check_folder(folder)
    chosen = known_learners() if learners is None else tuple(learners)
    if not chosen:
        raise InvalidInputError("learners must name at least one learner")
    whole, sample = make_setups(
        data,
        initial=initial,
        chunk=chunk,
        seed=seed,
        quick=quick,
        protocol=protocol,
    )
    main = [each for each in chosen if each.family != "river"]
    # Our own learners are measured on the subsample only as references for slow ones.
    has_slow = len(main) < len(chosen)
    sampled = [each for each in chosen if each.on_sample] if has_slow else []
    tasks = [*((each, whole) for each in main), *((each, sample) for each in sampled)]
    fixed = {"protocol": protocol, "quick": quick, "n_jobs": n_jobs, "version": __version__}
    runs = target / ".runs"
    if fresh:
        shutil.rmtree(runs, ignore_errors=True)
    runs.mkdir(exist_ok=True)
    standings: list[Standing] = []
    with progress_bar("Comparing learners", len(tasks), verbose) as show:
        for learner, setup in tasks:
            if show is not None:
                show(len(standings))
            standings.append(_standing(learner, setup, runs, fixed, repetitions, time_limit))
    on_all, on_sample = standings[: len(main)], standings[len(main) :]
    facts = Facts.of(whole.data)
    found = Comparison(
        name=data.name,
        facts=facts,
        standings=_ranked(on_all),
        on_sample=_ranked(on_sample),
        sample_facts=Facts.of(sample.data) if sampled else None,
        advice=tuple(recommend(on_all)),
        remarks=tuple(remarks_on(facts, on_all, has_updates=len(whole.points) > 1)),
        record={
            "format": FORMAT_VERSION,
            "data": {"name": data.name, "sha256": data.sha256},
            "stream": {
                "protocol": protocol,
                "initial": whole.stream.initial,
                "chunk": whole.stream.chunk,
                "n_classes": whole.points[-1],
                "repetitions": repetitions,
                "points": list(whole.points),
                "checkpoints": list(whole.checkpoints),
            },
            "seed": seed,
            "quick": quick,
            "time_limit": time_limit,
            "n_jobs": n_jobs,
            **_environment(),
        },
    )
    _write(target, found)
    return found


def check_folder(folder: str | os.PathLike[str]) -> Path:
    """Create a folder, or raise an error, before any work, if it cannot be written to."""
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=target):
            pass
    except OSError as error:
        raise OSError(f"cannot write to the folder {str(folder)!r}: {error.strerror}") from error
    return target


def _ranked(standings: Sequence[Standing]) -> tuple[Standing, ...]:
    """Sort by class mean, with unfinished learners last."""
    return tuple(
        sorted(standings, key=lambda s: (not s.finished, -s["class_mean"] if s.finished else 0))
    )


def _standing(
    learner: ComparedLearner,
    setup: Setup,
    runs: Path,
    fixed: Mapping[str, Any],
    repetitions: int,
    time_limit: float,
) -> Standing:
    """Return all results of a learner, or the reason why there are none."""
    problem = ""
    if not learner.is_installed:
        command = install_command("integrations", learner.module)
        problem = f"{learner.module} is not installed: {command}"
    elif fixed["quick"] and not learner.in_quick:
        problem = "left out of a quick run"
    if problem:
        return Standing(learner, (), setup.checkpoints, problem)
    results = []
    for repetition in range(repetitions):
        setting = {
            "learner": learner.name,
            "code": learner.code,
            "data": setup.data.sha256,
            "n_train": len(setup.data.y_train),
            "classes": setup.points[-1],
            "points": setup.stream_for(learner, repetition).measure_at,
            "chunk": setup.stream.chunk,
            "seed": setup.stream.random_state,
            "repetition": repetition,
            **fixed,
        }
        key = hashlib.sha256(json.dumps(setting).encode()).hexdigest()
        path = runs / f"{learner.name}-{key[:20]}.json"
        result = _read_checkpoint(path)
        # A learner that was stopped is measured again if there is more time.
        if not result or (result.stopped_at is not None and result.time_limit < time_limit):
            try:
                result = measure(
                    learner, setup, repetition, n_jobs=fixed["n_jobs"], time_limit=time_limit
                )
            # Learners of other packages may raise anything on a user's data.
            except Exception as error:  # noqa: BLE001
                problem = f"failed: {_describe(error)}"
                return Standing(learner, (), setup.checkpoints, problem)
            _write_checkpoint(path, setting, result)
        results.append(result)
    return Standing(learner, tuple(results), setup.checkpoints)


def _describe(error: Exception) -> str:
    """Return an error in one line, with its type, without which most messages are unclear."""
    kind = "" if str(error) and isinstance(error, ValueError) else type(error).__name__
    return shorten(": ".join(filter(None, (kind, str(error)))), 300)


def _read_checkpoint(path: Path) -> Result | None:
    """Return a cached result, or None if there is none or it is damaged."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        found = record["format"]
        if found == FORMAT_VERSION:
            return Result.from_json(record["result"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    raise InvalidInputError(
        f"{str(path)!r} has a result of format {found!r}, and this version reads format "
        f"{FORMAT_VERSION}: name another folder, or measure again with fresh"
    )


def _write_checkpoint(path: Path, setting: Mapping[str, Any], result: Result) -> None:
    record = {"format": FORMAT_VERSION, "setting": setting, "result": asdict(result)}
    with atomic_write(path) as file:
        file.write(json.dumps(record).encode())


# --- Files


def _write(folder: Path, found: Comparison) -> None:
    """Write the page, the table and the record, each atomically."""
    record = {
        **found.record,
        "facts": vars(found.facts),
        "sample": None if found.sample_facts is None else vars(found.sample_facts),
        "advice": [
            {
                "need": advice.need,
                "learner": None if advice.choice is None else advice.choice.learner.name,
                "reason": advice.reason,
            }
            for advice in found.advice
        ],
        "remarks": list(found.remarks),
        "learners": [_as_json(each) for each in found.standings],
        "on_sample": [_as_json(each) for each in found.on_sample],
    }
    files = {
        "comparison.html": render_page(found),
        "comparison.csv": _as_csv(found),
        "comparison.json": json.dumps(_plain(record), indent=2, allow_nan=False) + "\n",
    }
    for name, content in files.items():
        with atomic_write(folder / name) as file:
            file.write(content.encode())


def _as_csv(found: Comparison) -> str:
    written = io.StringIO()
    rows = csv.writer(written, lineterminator="\n")
    rows.writerow(["learner", "title", "shown", *(column.name for column in COLUMNS), "said"])
    for shown, standings in (("all", found.standings), ("subsample", found.on_sample)):
        for each in standings:
            texts = [
                value if isinstance(value, str) else f"{value:.6g}".replace("nan", "")
                for value in (column.value(each) for column in COLUMNS)
            ]
            rows.writerow([each.learner.name, each.learner.title, shown, *texts, each.notes])
    return written.getvalue()


def _as_json(standing: Standing) -> dict[str, Any]:
    return {
        "learner": standing.learner.name,
        "title": standing.learner.title,
        "package": standing.learner.module.partition(".")[0],
        "code": standing.learner.code,
        **{column.name: column.value(standing) for column in COLUMNS},
        "said": standing.notes,
        "results": [asdict(result) for result in standing.results],
    }


def _plain(value: Any) -> Any:
    """Replace NaN and infinity, which JSON does not have, by null."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _environment() -> dict[str, Any]:
    """Versions, processor and number of cores, but not the machine's name or a path."""
    versions = {"evergrow": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            versions[name] = version(name)
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "versions": versions,
        "processor": models[0] if models else platform.processor() or platform.machine(),
        "n_cores": cores or 1,
    }
