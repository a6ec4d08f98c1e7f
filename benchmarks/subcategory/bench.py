"""Runs of contenders of the experiments, remembered, so that measures share them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.measure import THREADS
from evergrow.experiments import Table
from evergrow.experiments.cvpr2015.contenders import CONTENDERS
from evergrow.experiments.cvpr2015.levels import TwoLevels, draw
from evergrow.experiments.cvpr2015.trials import Values, attempt
from evergrow.experiments.kept import KeptRuns

__all__ = ["Bench", "Results", "Setting", "made", "percent"]


class Results:
    """Numbers by setting: in memory, and in a folder too if there is one.

    A setting that is there already is not measured again: delete the folder after a change of
    the code that is measured.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._kept = None if folder is None else KeptRuns(folder / "subcategory.jsonl")
        self._known: dict[str, Values] = {}

    def of(self, setting: Mapping[str, Any], measure: Callable[[], Values]) -> Values:
        """The numbers of a setting: those known, or measured now and printed."""
        key = json.dumps(dict(setting), sort_keys=True)
        if key not in self._known:
            kept = None if self._kept is None else self._kept.find(setting)
            self._known[key] = self._measured(setting, measure) if kept is None else kept[0]
        return self._known[key]

    def _measured(self, setting: Mapping[str, Any], measure: Callable[[], Values]) -> Values:
        values = measure()
        if self._kept is not None:
            self._kept.keep(setting, [values])
        # The first few numbers show how it goes; a curve has dozens.
        shown = ", ".join(f"{name} {value:.5g}" for name, value in [*values.items()][:6])
        print(f"{', '.join(f'{k} {v}' for k, v in setting.items())}: {shown}", flush=True)
        return values


@dataclass(frozen=True)
class Setting:
    """What is trained on what."""

    contender: str
    fine_share: float = 0.5
    coarse_share: float = 0.5
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Bench:
    """Where results are kept, and how large the runs are."""

    results: Results
    seeds: Sequence[int] = (0, 1, 2)
    n_trees: int = 50
    quick: bool = False

    def summary(self, data: TwoLevels, setting: Setting) -> Table:
        """Runs of a setting with every seed, a row each."""
        return Table(self.run(data, setting, seed) for seed in self.seeds)

    def run(self, data: TwoLevels, setting: Setting, seed: int) -> Values:
        """One run, or what it gave when it was made before."""
        key = {
            "data": data.name,
            "contender": setting.contender,
            "fine": setting.fine_share,
            "coarse": setting.coarse_share,
            "trees": self.n_trees,
            "seed": seed,
            **setting.parameters,
        }
        return self.results.of(key, lambda: self._attempt(data, setting, seed))

    def _attempt(self, data: TwoLevels, setting: Setting, seed: int) -> Values:
        return attempt(
            setting.contender,
            draw(data, seed, setting.fine_share, setting.coarse_share),
            data,
            n_trees=self.n_trees,
            seed=seed,
            n_jobs=THREADS,
            parameters=setting.parameters,
        )


def made(contender: str, n_trees: int, seed: int, **parameters: Any) -> Any:
    """A contender's estimator, not fitted yet, with the threads of benchmarks."""
    return CONTENDERS[contender].make(n_trees, seed, THREADS, **parameters)


def percent(table: Table, name: str = "accuracy") -> str:
    """Mean and deviation in percent, for a table."""
    return f"{100 * table.mean(name):.2f} ± {100 * table.deviation(name):.2f}"
