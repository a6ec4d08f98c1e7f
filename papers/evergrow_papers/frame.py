"""An experiment as a value, and how it is run: data, runs, cache, stored tables, verdicts, page.

An :class:`Experiment` says what to measure: independent runs, and a function that measures one of
them and returns rows. What to show is data too: panels of a figure, and claims. :func:`run`
measures the runs that are not in the cache and writes the tables; :func:`render` reads them back.
Both judge the claims by the stored numbers and write figure, page and record.

To add an experiment, add a value to the module of its paper, and its notes to ``notes/PAPER.md``.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from joblib import effective_n_jobs

from evergrow.compare import Dataset, load_dataset
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.extras import __version__
from evergrow.foundation.files import atomic_write
from evergrow.foundation.formatting import format_count
from evergrow.foundation.progress import progress_bar
from evergrow_papers.claims import Claim, Finding, Words, judge
from evergrow_papers.figures import Drawing, draw_figure
from evergrow_papers.table import Row, Table

if TYPE_CHECKING:
    from evergrow_papers.page import Notes

DATA_VARIABLE = "EVERGROW_DATA"
FORMAT = 1
# Says, in a record, which file generated data stand in for.
STANDS_IN = "stands_in_for"
PACKAGES = ("numpy", "scipy", "scikit-learn", "river", "opencv-python-headless", "onnxruntime")

Run = Mapping[str, Any]
Value = TypeVar("Value")


@dataclass(frozen=True)
class Source:
    """Where a data set of an experiment comes from.

    A full run reads ``file`` in the folder ``EVERGROW_DATA`` if it exists, and applies
    ``prepare``. Otherwise, and in quick runs, ``built_in`` generates a data set. Data are tables of
    features unless the source has ``images``.
    """

    file: str | None
    built_in: Callable[[], Dataset]
    prepare: Callable[[Dataset], Dataset] | None = None
    images: bool = False


@dataclass(frozen=True)
class Experiment:
    """One table or figure of a paper, as an experiment that can be repeated.

    Attributes
    ----------
    name, title, shows : str
        Its name, such as "cvpr2014-fig5", the title of its page, and what it shows, in one line.
    runs : callable
        Lists all settings to measure, as independent mappings of plain values.
    measure : callable
        Measures one run and returns its rows.
    claims : mapping of str to Claim
        The claims of the paper, by a short name.
    figure : Drawing
        The panels of the figure, or a function that draws it.
    where, each : mapping, tuple of str
        Which rows all claims judge, and the columns that claims are judged apart by.
    keys : tuple of str
        Columns that identify a row.
    exact, timed, texts, drawn : tuple of str
        Columns that are the same when a run is repeated; columns of times; those of both that have
        texts instead of numbers; columns that only the figure needs and no file has, so that it
        cannot be drawn from stored results.
    sources : mapping of str to Source
        Data sets by the name that runs use; none if the experiment generates its data.
    published : tuple of Row
        Rows with the numbers that the paper prints.
    complete : callable, default=None
        Adds columns that need the rows of several runs, such as accuracy relative to a baseline.
    numbers : callable, default=None
        Returns a table of the measured numbers as Markdown, for the page.
    size : tuple of float
        Width and height of the figure in inches.
    """

    name: str
    title: str
    shows: str
    runs: Callable[[Context], Sequence[Run]]
    measure: Callable[[Context, Run], Sequence[Row]]
    claims: Mapping[str, Claim]
    figure: Drawing
    keys: tuple[str, ...]
    exact: tuple[str, ...]
    where: Row = field(default_factory=dict)
    each: tuple[str, ...] = ()
    timed: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    drawn: tuple[str, ...] = ()
    sources: Mapping[str, Source] = field(default_factory=dict)
    published: tuple[Row, ...] = ()
    complete: Callable[[Table], Table] | None = None
    numbers: Callable[[Table], str] | None = None
    size: tuple[float, float] = (9.0, 3.2)

    @property
    def files(self) -> dict[str, tuple[str, ...]]:
        """Its CSV files and their columns."""
        files = {f"{self.name}.csv": (*self.keys, *self.exact)}
        if self.timed:
            files[f"{self.name}-timings.csv"] = (*self.keys, *self.timed)
        return files


@dataclass(frozen=True)
class Paper:
    """One of the papers: its experiments, the words of its pages, and figures without numbers."""

    name: str
    citation: str
    experiments: Mapping[str, Experiment]
    words: Words = field(default_factory=Words)
    illustrations: Mapping[str, str] = field(default_factory=dict)


PAPERS = ("cvpr2014", "report", "icra2017", "nips2006", "cvpr2015", "guide")


@cache
def load_paper(name: str) -> Paper:
    """Import the module of a paper: its experiments, by name, in the order of the module."""
    module = import_module(f"evergrow_papers.{name}")
    return Paper(
        name,
        module.CITATION,
        {each.name: each for each in vars(module).values() if isinstance(each, Experiment)},
        getattr(module, "WORDS", Words()),
        getattr(module, "ILLUSTRATIONS", {}),
    )


def find_experiments(names: Iterable[str]) -> list[Experiment]:
    """Find experiments by name; a paper's name means all of its experiments, "all" every one."""
    found: dict[str, Experiment] = {}
    for name in names:
        papers = [load_paper(p) for p in PAPERS if name == "all" or name.partition("-")[0] == p]
        chosen = {
            key: each
            for paper in papers
            for key, each in paper.experiments.items()
            if name in ("all", paper.name, key)
        }
        if not chosen:
            raise InvalidInputError(_unknown(name, papers))
        found |= chosen
    return [*found.values()]


def _unknown(name: str, papers: Sequence[Paper]) -> str:
    for paper in papers:
        if name in paper.illustrations:
            return f"{name} is {paper.illustrations[name]}: it has nothing to measure"
    known = [key for paper in PAPERS for key in load_paper(paper).experiments]
    near = get_close_matches(name, known, 3)
    hint = f"did you mean {' or '.join(near)}?" if near else "see evergrow experiment --list"
    return f"unknown experiment {name!r}: {hint}"


def paper_of(experiment: Experiment) -> Paper:
    """The paper of an experiment."""
    return load_paper(experiment.name.partition("-")[0])


@dataclass
class Context:
    """Data sets and sizes of one experiment.

    Parameters
    ----------
    sources : mapping of str to Source
        The data sets of the experiment.
    quick : bool, default=False
        Whether to make a small run on built-in data.
    data : path, default=None
        Your own data, which replace all sources. None uses the sources.
    n_seeds : int, default=None
        Number of seeds; None for the default of the experiment, mostly 5.
    n_jobs : int, default=-1
        Number of threads: -1 uses all processors. The results are the same for any number.
    """

    sources: Mapping[str, Source]
    quick: bool = False
    data: str | os.PathLike[str] | None = None
    n_seeds: int | None = None
    n_jobs: int = -1
    _loaded: dict[str, Dataset] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.data is not None and not self.sources:
            raise InvalidInputError("this experiment generates its own data: leave data=None")

    @property
    def missing_files(self) -> tuple[str, ...]:
        """Files that a full run would read, but which are missing and replaced by built-in data."""
        missing = filter(None, map(self.missing_file, self.names))
        return () if self.quick else tuple(missing)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the data sets that runs may use; only the first with your own data."""
        names = tuple(self.sources)
        return names if self.data is None else names[:1]

    def seeds(self, full: int = 5, quick: int = 1) -> range:
        """Return the seeds: `n_seeds` of them, or the given number if that is None."""
        return range(self.scaled(full, quick) if self.n_seeds is None else self.n_seeds)

    def scaled(self, full: Value, quick: Value) -> Value:
        """Return the first value in a full run, the second in a quick run."""
        return quick if self.quick else full

    def dataset(self, name: str) -> Dataset:
        """Return a data set by its name; it is read only once."""
        if name not in self._loaded:
            self._loaded[name] = self._read(self.sources[name])
        return self._loaded[name]

    def is_built_in(self, name: str) -> bool:
        """Tell whether a data set is the built-in one."""
        return self._path(self.sources[name]) is None

    def missing_file(self, name: str) -> str | None:
        """The file of a data set for which the built-in one stands in, if it does."""
        return self.sources[name].file if self.is_built_in(name) else None

    def _path(self, source: Source) -> Path | None:
        if self.data is not None:
            return Path(self.data)
        folder = os.environ.get(DATA_VARIABLE)
        if self.quick or not folder or source.file is None:
            return None
        if not Path(folder).is_dir():
            raise FileNotFoundError(f"{DATA_VARIABLE} names {folder!r}, which is not a folder")
        path = Path(folder) / source.file
        return path if path.exists() else None

    def _read(self, source: Source) -> Dataset:
        path = self._path(source)
        if path is None:
            return source.built_in()
        found = load_dataset(path)
        if found.X_train.ndim != 2 and not source.images:
            raise InvalidInputError(
                f"{found.name!r} is not a table of features: this experiment needs an .npz file "
                "with one row of numbers per sample"
            )
        if len(found.classes) < 2:
            raise InvalidInputError(
                f"{found.name!r} has {len(found.classes)} class; at least 2 are needed"
            )
        return found if source.prepare is None else source.prepare(found)


def grid(**choices: Iterable[Any]) -> list[Run]:
    """Return one run per combination of choices; the last choice varies fastest.

    Examples
    --------
    >>> from evergrow_papers.frame import grid
    >>> grid(data=["digits"], seed=range(2))
    [{'data': 'digits', 'seed': 0}, {'data': 'digits', 'seed': 1}]
    """
    return [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]


def time_call(work: Callable[..., Any], *arguments: Any) -> float:
    """Seconds that a call takes."""
    start = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - start


@dataclass(frozen=True)
class Outcome:
    """The table of an experiment, the verdicts on its claims, and how it was measured."""

    experiment: Experiment
    table: Table
    findings: Sequence[Finding]
    record: Mapping[str, Any]


def run(
    experiment: Experiment,
    folder: str | os.PathLike[str],
    context: Context,
    *,
    fresh: bool = False,
    n_workers: int = 1,
    verbose: int = 0,
) -> Outcome:
    """Measure an experiment and write its results.

    Every finished run is cached in ``folder``. After an interruption, the same call continues and
    writes the same tables. ``fresh`` ignores the cache, and replaces results of more seeds or of
    other data. ``n_workers`` processes measure runs at the same time; accuracies do not depend on
    it, but times do.
    """
    target = check_folder(folder)
    runs = list(experiment.runs(context))
    _check_replacing(experiment, target, context, runs, fresh=fresh)
    cached = RunCache(target / ".runs" / f"{experiment.name}.jsonl")
    if fresh:
        cached.clear()
    settings = [_setting(context, each) for each in runs]
    missing = [place for place, setting in enumerate(settings) if cached.get(setting) is None]
    with progress_bar(f"Measuring {experiment.name}", len(missing), verbose) as show:
        wanted = [runs[place] for place in missing]
        measuring = _measure_all(experiment, context, wanted, min(n_workers, len(missing)))
        for done, (place, measured) in enumerate(measuring if missing else (), 1):
            cached.add(settings[missing[place]], measured)
            if show is not None:
                show(done)
    found = [cached.get(setting) for setting in settings]
    table = Table(row for each in found if each is not None for row in each["rows"])
    if experiment.complete is not None:
        table = experiment.complete(table)
    record = _record(experiment, context, runs, [each for each in found if each is not None])
    texts = {name: table.to_csv(columns) for name, columns in experiment.files.items()}
    kept = _join(experiment, texts)
    for row, measured in zip(kept, table, strict=True):
        row.update({name: measured[name] for name in experiment.drawn if name in measured})
    record["n_rows"] = len(kept)
    return _write(target, experiment, kept, record, texts)


def render(experiment: Experiment, folder: str | os.PathLike[str]) -> Outcome:
    """Judge stored results again and write figure, page and record, without measuring.

    A figure that shows more than the tables hold, such as pictures, stays as it is.
    """
    target, table, record, texts = read(experiment, folder)
    figure = target / f"{experiment.name}.svg"
    if experiment.drawn and not figure.exists():
        raise FileNotFoundError(
            f"{str(figure)!r} does not exist, and cannot be drawn without measuring again"
        )
    return _write(
        check_folder(target), experiment, table, record, texts, draws=not experiment.drawn
    )


def _write(
    folder: Path,
    experiment: Experiment,
    table: Table,
    record: Mapping[str, Any],
    texts: Mapping[str, str],
    *,
    draws: bool = True,
) -> Outcome:
    from evergrow_papers.page import format_page, read_notes

    paper = paper_of(experiment)
    findings = judge(
        experiment.claims, table, paper.words, where=experiment.where, each=experiment.each
    )
    outcome = Outcome(experiment, table, findings, record)
    if draws:
        draw_figure(folder / f"{experiment.name}.svg", experiment, table, paper.words)
    notes: Notes = read_notes(paper.name, experiment.name)
    files = {
        **texts,
        f"{experiment.name}.md": format_page(outcome, paper, notes),
        f"{experiment.name}.json": _as_json(outcome),
    }
    for name, text in files.items():
        with atomic_write(folder / name) as file:
            file.write(text.encode())
    return outcome


def _as_json(outcome: Outcome) -> str:
    findings = [asdict(each) for each in outcome.findings]
    return json.dumps({**outcome.record, "findings": findings}, indent=2) + "\n"


def check_folder(folder: str | os.PathLike[str]) -> Path:
    """Create a folder, or raise an error, before any work, if it cannot be written to."""
    target = Path(folder)
    probe = target / ".evergrow-probe"
    try:
        target.mkdir(parents=True, exist_ok=True)
        probe.touch()
    except OSError as error:
        raise OSError(f"cannot write to the folder {str(folder)!r}: {error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)
    return target


def _check_replacing(
    experiment: Experiment, folder: Path, context: Context, runs: Sequence[Run], *, fresh: bool
) -> None:
    """Refuse to replace a full run, which may have taken an hour, by one that says less."""
    try:
        stored = read_record(experiment, folder)
    except FileNotFoundError:
        return
    except InvalidInputError as error:
        if context.quick:
            raise InvalidInputError(
                f"{error}; a quick run does not replace it: name another folder"
            ) from error
        return
    if stored["quick"] or (not context.quick and (fresh or stored["own_data"])):
        return
    names, seeds = ({run[key] for run in runs if key in run} for key in ("data", "seed"))
    real = {key: each["name"] for key, each in stored["data"].items() if STANDS_IN not in each}
    lost = [real[key] for key in real if key not in names or context.missing_file(key)]
    if context.quick:
        what = "a quick run"
    elif context.data is not None:
        what = "a run on your own data"
    elif lost:
        what = f"a run without the data {' and '.join(lost)}"
    elif len(seeds) < len(stored["seeds"]) and len(real) == len(stored["data"]):
        what = f"a run with {format_count(len(seeds), 'seed')}"
    else:
        return
    before = format_count(len(stored["seeds"]), "seed")
    raise InvalidInputError(
        f"{experiment.name}.json is from a full run with {before} that {what} would replace: name "
        f"another folder{'' if context.quick else ', or use --fresh'}"
    )


def estimate_seconds(
    experiment: Experiment, folder: str | os.PathLike[str], context: Context, n_workers: int = 1
) -> float | None:
    """Seconds that the missing runs will take, by the last results in the folder, if known."""
    cached = RunCache(Path(folder) / ".runs" / f"{experiment.name}.jsonl")
    runs = list(experiment.runs(context))
    n_missing = sum(cached.get(_setting(context, each)) is None for each in runs)
    if not n_missing:
        return 0.0
    try:
        record = read_record(experiment, folder)
        rounds = n_missing / min(n_workers, n_missing)
        return float(rounds * record["seconds"] / record["n_runs"])
    except (OSError, InvalidInputError, KeyError, ZeroDivisionError):
        return None


# --- Measuring


def _measure(experiment: Experiment, context: Context, run: Run, n_workers: int) -> dict[str, Any]:
    start = time.perf_counter()
    rows = [dict(row) for row in experiment.measure(context, run)]
    return {
        "rows": rows,
        "seconds": round(time.perf_counter() - start, 3),
        "n_workers": n_workers,
        "n_jobs": context.n_jobs,
        "environment": describe_environment(),
    }


def _measure_all(
    experiment: Experiment, context: Context, runs: Sequence[Run], n_workers: int
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Measure runs; yields places and results in the order in which they finish."""
    if n_workers <= 1:
        for place, run in enumerate(runs):
            yield place, _measure(experiment, context, run, 1)
        return
    n_jobs = max(1, effective_n_jobs(context.n_jobs) // n_workers)
    options = (context.quick, context.data, context.n_seeds, n_jobs)
    pool = ProcessPoolExecutor(
        n_workers,
        # Not forked: a forked process may wait for ever for a lock that a thread held.
        get_context("spawn"),
        initializer=_start_worker,
        initargs=(experiment.name, options, n_workers),
    )
    try:
        places = {pool.submit(_measure_in_worker, run): place for place, run in enumerate(runs)}
        for done in as_completed(places):
            yield places[done], done.result()
    finally:
        # After an interruption, runs that have begun are not waited for.
        processes = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()


_worker: list[tuple[Experiment, Context, int]] = []


def _start_worker(name: str, options: tuple[Any, ...], n_workers: int) -> None:
    """Prepare a worker; Ctrl-C is for the process that started it."""
    from threadpoolctl import threadpool_limits

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    threadpool_limits(options[-1])
    (experiment,) = find_experiments([name])
    _worker[:] = [(experiment, Context(experiment.sources, *options), n_workers)]


def _end_with_parent() -> None:
    """End the worker if the process that started it was killed: a run may take an hour."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _measure_in_worker(run: Run) -> dict[str, Any]:
    return _measure(*_worker[0][:2], run, _worker[0][2])


class RunCache:
    """A file with one line of JSON per finished run: its setting, its rows and how it was measured.

    A truncated line, as after a power failure, is ignored: its run is measured again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._runs: dict[str, dict[str, Any]] = {}
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        for line in text.splitlines():
            with contextlib.suppress(ValueError, KeyError, TypeError):
                self._keep(line)
        # The next run starts on a line of its own.
        self._start = "\n" if text and not text.endswith("\n") else ""

    def get(self, setting: Mapping[str, Any]) -> dict[str, Any] | None:
        """A finished run, or None if it is not in the cache."""
        return self._runs.get(json.dumps(setting, sort_keys=True))

    def add(self, setting: Mapping[str, Any], measured: Mapping[str, Any]) -> None:
        """Write a finished run to disk."""
        # NumPy scalars become Python numbers.
        line = json.dumps({"setting": setting, **measured}, default=lambda value: value.item())
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{self._start}{line}\n")
            file.flush()
            os.fsync(file.fileno())
        self._start = ""
        self._keep(line)

    def clear(self) -> None:
        """Remove every run."""
        self._runs.clear()
        self._start = ""
        self._path.unlink(missing_ok=True)

    def _keep(self, line: str) -> None:
        record = json.loads(line)
        known = {name: record[name] for name in ("seconds", "n_workers", "n_jobs", "environment")}
        rows = [dict(row) for row in record["rows"]]
        self._runs[json.dumps(record["setting"], sort_keys=True)] = {**known, "rows": rows}


def _setting(context: Context, run: Run) -> dict[str, Any]:
    """Everything that a run depends on: the key of the cache."""
    name = run.get("data")
    data = {} if name is None else {"sha256": context.dataset(name).sha256}
    return {**run, **data, "quick": context.quick, "version": __version__}


# --- Records and stored tables


def describe_environment() -> dict[str, Any]:
    """Versions, processor and number of cores, but not the machine's name or a path."""
    versions = {"evergrow": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            versions[name] = version(name)
    affinity = getattr(os, "sched_getaffinity", None)
    n_cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return {"versions": versions, "processor": _processor(), "n_cores": n_cores}


def _processor(table: Path = Path("/proc/cpuinfo")) -> str:
    try:
        lines = table.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def _record(
    experiment: Experiment,
    context: Context,
    runs: Sequence[Run],
    found: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """How an experiment was measured: sizes, data, versions, processors, seconds."""
    names = dict.fromkeys(run["data"] for run in runs if "data" in run)
    datasets = {name: context.dataset(name) for name in names}
    environments = [each["environment"] for each in found]
    versions: dict[str, dict[str, None]] = {}
    for environment in environments:
        for name, number in environment["versions"].items():
            versions.setdefault(name, {})[number] = None
    return {
        "experiment": experiment.name,
        "format": FORMAT,
        "quick": context.quick,
        "own_data": context.data is not None,
        "n_seeds": context.n_seeds,
        "seeds": sorted({run["seed"] for run in runs if "seed" in run}),
        "data": {
            name: {"name": data.name, "sha256": data.sha256}
            | ({STANDS_IN: file} if (file := context.missing_file(name)) else {})
            for name, data in datasets.items()
        },
        "versions": {name: " and ".join(numbers) for name, numbers in versions.items()},
        "processor": ", ".join(dict.fromkeys(each["processor"] for each in environments)),
        "n_cores": max((each["n_cores"] for each in environments), default=0),
        "n_runs": len(found),
        "seconds": round(sum(each["seconds"] for each in found), 1),
        "n_workers": max((each["n_workers"] for each in found), default=1),
        "n_jobs": max((each["n_jobs"] for each in found), default=1),
    }


def has_results(experiment: Experiment, folder: str | os.PathLike[str]) -> bool:
    """Whether any file of its results is in a folder."""
    names = (f"{experiment.name}.json", *experiment.files)
    return any((Path(folder) / name).exists() for name in names)


def read(
    experiment: Experiment, folder: str | os.PathLike[str]
) -> tuple[Path, Table, dict[str, Any], dict[str, str]]:
    """Read stored results: folder, table, record and CSV texts; they must be of the same run."""
    target = Path(folder)
    record = read_record(experiment, target)
    del record["findings"]
    texts = {name: _read_text(target, name) for name in experiment.files}
    table = _join(experiment, texts)
    for what, here, there in (
        ("rows", len(table), record["n_rows"]),
        ("seeds", sorted(table.values("seed")), record["seeds"]),
    ):
        if here != there:
            raise InvalidInputError(
                f"{experiment.name}.csv and {experiment.name}.json are of different runs, such as "
                f"a quick one and a full one: the {what} are {here} in the table and {there} in "
                "the record"
            )
    return target, table, record, texts


def _read_text(folder: Path, name: str) -> str:
    path = folder / name
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{str(path)!r} does not exist: measure the experiment first, without --render"
        ) from None
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{name} is damaged: it is not text") from error


def read_record(experiment: Experiment, folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the record of an experiment: how it was measured, and its findings."""
    name = f"{experiment.name}.json"
    text = _read_text(Path(folder), name)
    try:
        record = json.loads(text)
    except ValueError as error:
        raise InvalidInputError(f"{name} is damaged: {error}") from error
    if not isinstance(record, dict) or record.get("experiment") != experiment.name:
        raise InvalidInputError(f"{name} is not the record of {experiment.name}")
    if record.get("format") != FORMAT:
        raise InvalidInputError(
            f"{name} has format {record.get('format')!r}, and this version of Evergrow reads "
            f"format {FORMAT}: measure the experiment again"
        )
    _check_kind(record, _RECORD, f"{name} is damaged: ")
    return record


# What the values of a record must be: of one of these types, or lists or objects of such values.
_RECORD = {
    **dict.fromkeys(("quick", "own_data"), (bool,)),
    **dict.fromkeys(("n_rows", "n_jobs", "n_cores", "n_runs", "n_workers"), (int,)),
    "n_seeds": (int, type(None)),
    "seeds": [(int,)],
    "seconds": (float, int),
    "data": {"": {"name": (str,), "sha256": (str,), STANDS_IN: (str,)}},
    "versions": {"": (str,)},
    "processor": (str,),
    "findings": [{"claim": (str,), "group": (str,), "agrees": (bool, type(None))}],
}
_OPTIONAL = ("n_runs", "seconds", STANDS_IN)
_KINDS = {bool: "true or false", int: "an integer", float: "a number", str: "text"}
_KINDS |= {list: "a list", dict: "an object"}


def _check_kind(value: Any, kind: Any, where: str, name: str = "") -> None:
    """Raise an error, which begins with ``where``, if a value or one within it is of no kind."""
    types = kind if isinstance(kind, tuple) else (type(kind),)
    is_number = isinstance(value, int | float)
    if type(value) not in types or (is_number and not abs(value) <= sys.float_info.max):
        raise InvalidInputError(f"{where}{name} must be {_KINDS[types[0]]}")
    if isinstance(kind, list):
        for each in value:
            _check_kind(each, kind[0], where, f"each of {name}")
    if isinstance(kind, dict):
        kinds = dict.fromkeys(value, kind[""]) if "" in kind else kind
        missing = [key for key in kinds if key not in value and key not in _OPTIONAL]
        if missing:
            raise InvalidInputError(f"{where}{name or 'it'} lacks {', '.join(missing)}")
        for key in (each for each in kinds if each in value):
            _check_kind(value[key], kinds[key], where, f"{key} of {name}" if name else key)


def _join(experiment: Experiment, texts: Mapping[str, str]) -> Table:
    """The rows of all CSV files; those of the same place have the same keys."""
    rows: list[dict[str, Any]] = []
    for name, columns in experiment.files.items():
        found = _parse(experiment, name, texts[name], columns)
        if not rows:
            rows = found.rows
            continue
        keys = [[{k: row.get(k) for k in experiment.keys} for row in s] for s in (rows, found)]
        if keys[0] != keys[1]:
            raise InvalidInputError(
                f"{experiment.name}.csv and {name} are of different runs: their columns "
                f"{', '.join(experiment.keys)} differ"
            )
        rows = [{**row, **more} for row, more in zip(rows, found, strict=True)]
    return Table(rows)


def _parse(experiment: Experiment, name: str, text: str, columns: tuple[str, ...]) -> Table:
    heads = text.partition("\n")[0].split(",")
    missing = [column for column in columns if column not in heads]
    if missing:
        raise InvalidInputError(
            f"{name} lacks the column{'s' * (len(missing) > 1)} {', '.join(missing)}: measure "
            "the experiment again"
        )
    try:
        table = Table.from_csv(text)
    except (ValueError, csv.Error) as error:
        raise InvalidInputError(f"{name} is damaged: {error}") from error
    others = {*experiment.keys, *experiment.texts} - {"seed"}
    for column in (each for each in columns if each not in others):
        for value in table.values(column):
            kind = (int,) if column == "seed" else (float, int)
            _check_kind(value, kind, f"{name} is damaged: ", column)
    return table
