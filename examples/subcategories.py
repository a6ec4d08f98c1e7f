"""How few fine labels are enough: drawn pictures of ten things in three broad classes.

``python examples/subcategories.py picture.svg`` draws, learns and plots; it needs
the extras ``plot`` and ``vision``, downloads nothing and takes about two minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from pictures import THINGS, draw_picture

from evergrow import Embedder, NCMForestClassifier, SubcategoryForestClassifier

# Where one would look for them: nothing that the pictures show.
PLACES = {
    "garden": ("tree", "flower", "mushroom"),
    "sea": ("fish", "boat", "star"),
    "home": ("house", "cup", "umbrella", "balloon"),
}
N_EACH, N_TRAIN = 100, 60
N_TOLD = (1, 2, 3, 6, 12, 30)
SEEDS = range(5)
# Few classes: many subsets at a node would hold all there are, and all trees would be one.
TREES: dict[str, Any] = {"min_samples_leaf": 3, "n_jobs": -1}

# Colours that people with any colour vision tell apart (Okabe and Ito).
LINES = {
    "all fine-labelled": ("black", "--"),
    "ridge-h": ("#0072b2", "-"),
    "nn-h": ("#009e73", "-"),
    "hierarchical": ("#e69f00", "-"),
    "fine-only": ("#d55e00", "-"),
}
STYLE: dict[Any, Any] = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 9,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "evergrow",
}


def drawn_features() -> tuple[Any, Any, Any]:
    """Features, place and thing of every picture, the pictures of a thing together."""
    place_of = {thing: place for place, things in PLACES.items() for thing in things}
    images = [draw_picture(thing, seed) for thing in THINGS for seed in range(N_EACH)]
    things = np.repeat(list(THINGS), N_EACH)
    places = np.array([place_of[thing] for thing in things])
    return Embedder(cache=False, n_jobs=-1).transform(images), places, things


def accuracies(X: Any, places: Any, things: Any, n_told: int, seed: int) -> dict[str, float]:
    """Accuracy of each method when the thing is told of some pictures of each, else the place.

    Half of the training pictures never get a fine label.
    """
    random = np.random.default_rng(seed)
    number = np.concatenate([random.permutation(N_EACH) for _ in THINGS])
    told, untold = number < n_told, (number >= N_TRAIN // 2) & (number < N_TRAIN)
    rows = random.permutation(np.flatnonzero(told | untold))
    labels = np.column_stack([places, np.where(told, things, None)])[rows]
    test = number >= N_TRAIN
    found = {}
    for method in LINES:
        if method == "all fine-labelled":
            forest: Any = NCMForestClassifier(random_state=seed, **TREES)
            forest.fit(X[rows], things[rows])
        else:
            forest = SubcategoryForestClassifier(method=method, random_state=seed, **TREES)
            forest.fit(X[rows], labels)
        found[method] = 100 * float(np.mean(forest.predict(X[test]) == things[test]))
    return found


def draw_curves(path: Path, runs: dict[int, list[dict[str, float]]]) -> None:
    """Accuracy over the number of fine labels, mean and deviation over seeds."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(5.4, 3.6), layout="constrained")
        axes = figure.add_subplot()
        x = [100 * n / N_TRAIN for n in runs]
        for method, (colour, line) in LINES.items():
            every = np.array([[run[method] for run in found] for found in runs.values()])
            axes.errorbar(
                x,
                every.mean(axis=1),
                every.std(axis=1, ddof=1),
                color=colour,
                linestyle=line,
                marker="o",
                markersize=4,
                label=method,
            )
        axes.set_xscale("log")
        axes.set_xticks(x, [f"{value:.0f}" for value in x])
        axes.minorticks_off()
        axes.set(xlabel="fine-labelled, % of the pictures", ylabel="accuracy on things, %")
        axes.legend(loc="lower right")
        figure.savefig(path, metadata={"Date": None})


def main() -> int:
    """Draw, learn, print and plot."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "subcategories.svg")
    X, places, things = drawn_features()
    runs: dict[int, list[dict[str, float]]] = {}
    print("told of each  " + "  ".join(f"{method:>17}" for method in LINES))
    for n_told in N_TOLD:
        runs[n_told] = [accuracies(X, places, things, n_told, seed) for seed in SEEDS]
        means = [np.mean([run[method] for run in runs[n_told]]) for method in LINES]
        print(f"{n_told:12}  " + "  ".join(f"{mean:16.1f}%" for mean in means), flush=True)
    draw_curves(path, runs)
    print(f"Wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
