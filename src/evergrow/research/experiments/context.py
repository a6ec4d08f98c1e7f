"""What an experiment runs with: its data sets, the number of seeds, and its size."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from evergrow.foundation.errors import InvalidInputError
from evergrow.research.datasets import Dataset, load_dataset
from evergrow.research.experiments.experiment import Run, Source

DATA_VARIABLE = "EVERGROW_DATA"

Value = TypeVar("Value")


@dataclass
class ExperimentContext:
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
        missing = (self.sources[name] for name in self.names if self.is_built_in(name))
        return () if self.quick else tuple(s.file for s in missing if s.file is not None)

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

    @staticmethod
    def grid(**choices: Iterable[Any]) -> list[Run]:
        """Return one run per combination of choices; the last choice varies fastest.

        Examples
        --------
        >>> from evergrow.research import ExperimentContext
        >>> ExperimentContext.grid(data=["digits"], seed=range(2))
        [{'data': 'digits', 'seed': 0}, {'data': 'digits', 'seed': 1}]
        """
        return [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]

    def dataset(self, name: str) -> Dataset:
        """Return a data set by its name; it is read only once."""
        if name not in self._loaded:
            self._loaded[name] = self._read(self.sources[name])
        return self._loaded[name]

    def is_built_in(self, name: str) -> bool:
        """Tell whether a data set is the built-in one."""
        return self._path(self.sources[name]) is None

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
        if len(found.classes) < 2:
            raise InvalidInputError(
                f"{found.name!r} has {len(found.classes)} class; at least 2 are needed"
            )
        return found if source.prepare is None else source.prepare(found)


def time_call(work: Callable[..., Any], *arguments: Any) -> float:
    """Seconds that a call takes."""
    start = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - start
