"""Coarse and fine classes: time of regularised forests, of refining, and answers that back off.

Accuracies of the methods are in ``evergrow experiment cvpr2015``.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

from benchmarks.data import Array
from benchmarks.measure import THREADS, Figure, report, show_table
from evergrow.research import ExperimentContext
from evergrow.research.papers.cvpr2015.data import SOURCES
from evergrow.research.papers.cvpr2015.evaluation import evaluate
from evergrow.research.papers.cvpr2015.learners import LEARNERS
from evergrow.research.papers.cvpr2015.levels import MISSING, Draw, TwoLevels, draw

# Points above the plain forest, share of its comparisons, and times its time to fit.
BARS = {"features": (0.5, 0.8, 3.0), "birds": (0.0, 1.0, None)}
REGULARISED: dict[str, tuple[str, dict[str, Any]]] = {
    "NCM forest": ("plain", {}),
    "regularised NCM forest": ("regularised", {}),
    **{
        f"regularised, scored on {n or 'all'} samples": ("regularised", {"max_scoring_samples": n})
        for n in (1024, 4096, None)
    },
}
THRESHOLDS = (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def regularised(quick: bool) -> None:
    """Fit time, comparisons and accuracy of regularised forests next to the plain one."""
    context, n_trees = ExperimentContext(SOURCES, quick), 5 if quick else 50
    for source in _sources(context):
        data = TwoLevels.of(context.dataset(source))
        runs: dict[str, list[dict[str, float]]] = {name: [] for name in REGULARISED}
        for seed in range(2 if quick else 3):
            shown = draw(data, seed, 1.0, 0.0)
            # In turns, so that a busy spell of the machine hits all.
            for name, (contender, changed) in REGULARISED.items():
                found = evaluate(
                    contender,
                    shown,
                    data,
                    n_trees=n_trees,
                    seed=seed,
                    n_jobs=THREADS,
                    parameters=changed,
                )
                runs[name].append(found)
        rows = [
            (
                name,
                f"{100 * _mean(each, 'accuracy'):.2f} ± {100 * _spread(each, 'accuracy'):.2f}",
                _mean(each, "comparisons"),
                statistics.median(run["seconds"] for run in each),
            )
            for name, each in runs.items()
        ]
        show_table(
            f"regularised: {data.name}, all labels fine",
            ["", "accuracy, %", "comparisons", "fit s"],
            rows,
        )
        plain, ours = (runs[name] for name in [*REGULARISED][:2])
        points, share, times = BARS[source]
        gained = 100 * (_mean(ours, "accuracy") - _mean(plain, "accuracy"))
        saved = float(rows[1][2]) / float(rows[0][2])
        figures = [
            Figure("regularised: points above plain", gained, points),
            Figure("regularised: comparisons / plain", saved, share, "at most"),
            Figure("regularised: fit time / plain", rows[1][3] / rows[0][3], times, "at most"),
        ]
        bars_hold = not quick and not context.is_built_in(source)
        report("subcategory", data.name, figures, bars=bars_hold)


def refine(quick: bool) -> None:
    """Tell all fine labels of one coarse class to a running model, and to a new one."""
    context, n_trees = ExperimentContext(SOURCES, quick), 5 if quick else 50
    data = TwoLevels.of(context.dataset("features"))
    coarse, n_children = np.unique(data.parents, return_counts=True)
    chosen = np.random.default_rng(0).permutation(coarse[n_children > 1])[: 2 if quick else 6]
    found = np.mean(
        [
            refined_and_refitted(data, int(divided), seed, n_trees)
            for seed in range(1 if quick else 3)
            for divided in chosen
        ],
        axis=0,
    )
    title = f"{data.name}, one coarse class divided, {len(chosen)} classes"
    columns = ["", "fine, of that class, %", "coarse, all classes, %", "s"]
    rows = [
        (name, *each) for name, each in zip(("refined", "refitted"), found.tolist(), strict=True)
    ]
    show_table(f"refine: {title}", columns, rows)
    accuracy, _, seconds = (found[0] / found[1]).tolist()
    figures = [
        Figure("refined / refitted: accuracy on that class", accuracy, 0.97),
        Figure("refine / fit again: time", seconds, 0.1, "at most"),
    ]
    report("subcategory", title, figures, bars=not quick and not context.is_built_in("features"))


def refined_and_refitted(data: TwoLevels, divided: int, seed: int, n_trees: int) -> Array:
    """Percent right of both on the fine and on the coarse classes, and seconds, a row each."""
    shown = draw(data, seed, 1.0, 0.0)
    mine = shown.coarse == divided
    refined = _hierarchical(shown, mine & False, seed, n_trees)
    start = time.perf_counter()
    refined.refine(refined.sample_ids_[mine], shown.fine[mine])
    middle = time.perf_counter()
    refitted = _hierarchical(shown, mine, seed, n_trees)
    times = middle - start, time.perf_counter() - middle
    asked = data.coarse_test == divided
    rows = []
    for model, seconds in zip((refined, refitted), times, strict=True):
        fine = model.predict(data.X_test[asked]) == data.fine_test[asked]
        coarse = model.predict_coarse(data.X_test) == data.coarse_test
        rows.append((100 * fine.mean(), 100 * coarse.mean(), seconds))
    return np.array(rows)


def _hierarchical(shown: Draw, known: Array, seed: int, n_trees: int) -> Any:
    labels = np.column_stack([shown.coarse, np.where(known, shown.fine, MISSING)])
    model = LEARNERS["hierarchical"].make(n_trees, seed, THREADS)
    return model.fit(shown.X, labels)


def back_off(quick: bool) -> None:
    """Right answers, and answers that name a fine class, over thresholds of ``back_off``."""
    context, columns = ExperimentContext(SOURCES, quick), {}
    for source in _sources(context):
        data = TwoLevels.of(context.dataset(source))
        for share in (0.1, 0.5):
            shown = draw(data, 0, share, 0.5)
            model = LEARNERS["ridge-h"].make(5 if quick else 50, 0, THREADS)
            model.fit(shown.X, shown.labels)
            given = [answers(model, data, threshold) for threshold in THRESHOLDS]
            columns[f"{source}, {share:.0%} fine"] = [
                f"{100 * right:.1f} / {100 * fine:.1f}" for right, fine in given
            ]
    rows = [*zip(THRESHOLDS, *columns.values(), strict=True)]
    show_table("back off: right / fine answers, %", ["threshold", *columns], rows)


def answers(model: Any, data: TwoLevels, threshold: float) -> tuple[float, float]:
    """Share of answers that are right, and share of them that name a fine class."""
    given = model.predict(data.X_test, back_off=threshold)
    right = (given == data.fine_test) | (given == data.coarse_test)
    return float(right.mean()), float(np.isin(given, data.fine).mean())


def _sources(context: ExperimentContext) -> list[str]:
    """Built-in data are the same under every name: one name is enough."""
    return [name for name in BARS if not context.is_built_in(name)] or [*BARS][:1]


def _mean(runs: list[dict[str, float]], name: str) -> float:
    return float(np.mean([run[name] for run in runs]))


def _spread(runs: list[dict[str, float]], name: str) -> float:
    return float(np.std([run[name] for run in runs], ddof=1))
