"""How often guessed fine labels are right, how often a model thinks so, and what comes of them."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.measure import THREADS, show_table
from benchmarks.subcategory.bench import Bench, Setting, percent
from benchmarks.subcategory.data import TwoLevels
from evergrow.experiments import Table
from evergrow.experiments.cvpr2015.levels import draw
from evergrow.experiments.cvpr2015.trials import Values
from evergrow.subcategory import GUESSERS, guess_fine

__all__ = ["forests_after_guessing", "guess_and_check", "how_often_right"]

SHARES = (0.1, 0.2, 0.5)
# Accuracy in percent of a forest after guessing in these ways, sec. 5.2.1 of Ristin 2015.
PRINTED = {"forest": 14.02, "nn-unconstrained": 14.23, "nn-discard": 17.03, "nn": 17.52}


def guess_and_check(data: TwoLevels, way: str, share: float, seed: int) -> Values:
    """Guess all missing labels of a draw, and look how many are right."""
    shown = draw(data, seed, share, 0.5)
    start = time.perf_counter()
    found = guess_fine(
        shown.X,
        shown.coarse,
        shown.labels[:, 1],
        data.parents,
        guesser=way,
        n_jobs=THREADS,
        random_state=seed,
    )
    seconds = time.perf_counter() - start
    right = found.fine[found.guessed] == shown.fine[found.guessed]
    return {
        "right": float(np.mean(right)),
        "estimated": found.report.rate,
        "standard error": found.report.standard_error,
        "guessed": float(found.guessed.sum() / (~shown.known).sum()),
        "s": seconds,
    }


def how_often_right(bench: Bench, data: TwoLevels) -> None:
    """Every way of guessing: the true rate beside the one that the model estimates."""
    rows = []
    for share in SHARES:
        for way in GUESSERS:
            found = Table(_kept(bench, data, way, share, seed) for seed in bench.seeds)
            rows.append(
                (
                    f"{way}, {share:.0%} fine",
                    percent(found, "right"),
                    f"{percent(found, 'estimated')} (se {100 * found.mean('standard error'):.2f})",
                    f"{100 * found.mean('guessed'):.1f}",
                    found.mean("s"),
                )
            )
    columns = ["", "right, %", "estimated, %", "guessed, %", "s, with estimate"]
    show_table(f"guesses: {data.name}, half coarse", columns, rows)


def _kept(bench: Bench, data: TwoLevels, way: str, share: float, seed: int) -> Values:
    key = {"data": data.name, "guesses": way, "fine": share, "seed": seed}
    return bench.results.of(key, lambda: guess_and_check(data, way, share, seed))


def forests_after_guessing(bench: Bench, data: TwoLevels) -> None:
    """Forests on labels guessed in each way, as in sec. 5.2.1 of Ristin 2015."""
    for share in (0.1, 0.5):
        found = {
            way: bench.summary(data, Setting("nn", share, parameters={"guess": way}))
            for way in GUESSERS
        }
        fine_only = bench.summary(data, Setting("fine-only", share))
        rows = [("no guesses: fine-only", percent(fine_only), "")]
        for way, summary in found.items():
            rows.append((way, percent(summary), str(PRINTED.get(way, ""))))
        title = f"forests on guesses: {data.name}, {share:.0%} fine"
        show_table(title, ["", "accuracy, %", "paper, 50 % fine"], rows)
