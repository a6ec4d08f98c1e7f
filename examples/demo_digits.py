"""Teach handwritten digits, one more class and one more picture at a time, and draw a tree.

Run it with ``make demo`` or ``python examples/demo_digits.py``; it needs ``evergrow[plot]``.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import evergrow
from evergrow import NCMForestClassifier, RejectingClassifier, RLSClassifier

N_TREES = 50
PICTURE = Path("demo_digits.svg")
MODEL = Path("demo_digits.evergrow")
LEFT, RIGHT = "#c8781e", "#2a6fb0"

Array = npt.NDArray[Any]


def train(name: str, model: Any, data: tuple[Array, ...]) -> float:
    """Fit, score and print one line."""
    X_train, X_test, y_train, y_test = data
    start = time.perf_counter()
    model.fit(X_train, y_train)
    seconds = time.perf_counter() - start
    accuracy = float(model.score(X_test, y_test))
    print(f"  {name:<34} accuracy {100 * accuracy:5.1f} %   trained in {1000 * seconds:6.1f} ms")
    return accuracy


def accuracy_over_trees(model: Any, data: tuple[Array, ...]) -> list[tuple[int, float]]:
    """Test accuracy for growing numbers of trees."""
    X_train, X_test, y_train, y_test = data
    curve = []
    for n in (1, 2, 3, 5, 8, 12, 20, 30, 50):
        model.set_params(n_estimators=n).fit(X_train, y_train)
        curve.append((n, 100 * model.score(X_test, y_test)))
    return curve


def draw_node(axes: Any, forest: NCMForestClassifier, node: int, title: str) -> None:
    """Show the class means a node compares with, framed in the colour of the side they lead to."""
    core = forest._fitted.forest
    tree = core.tree_arrays(0)
    begin, size = tree["centroid_begin"][node], tree["centroid_size"][node]
    n_rows = tree["row_size"][node]
    axes.set_title(f"{title}: {n_rows} digits", fontsize=9)
    axes.axis("off")
    for place in range(size):
        centroid = forest._fitted.centroid(0, node, place).reshape(8, 8)
        inset = axes.inset_axes((place / 4 + 0.01, 0.05, 0.23, 0.9))
        inset.imshow(centroid, cmap="gray_r")
        inset.set_xticks([])
        inset.set_yticks([])
        colour = RIGHT if tree["side"][begin + place] else LEFT
        for spine in inset.spines.values():
            spine.set(color=colour, linewidth=3)
        label = forest.classes_[tree["centroid_class"][begin + place]]
        inset.set_xlabel(f"mean of {label}", fontsize=7, color=colour)


def draw(forest: NCMForestClassifier, curves: dict[str, list[tuple[int, float]]]) -> None:
    """Draw the first splits of the first tree and accuracy over trees."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    left = int(forest._fitted.forest.tree_arrays(0)["left"][0])
    figure = plt.figure(figsize=(10, 4.6), layout="constrained")
    grid = figure.add_gridspec(2, 4)
    draw_node(figure.add_subplot(grid[0, 1:3]), forest, 0, "root")
    draw_node(figure.add_subplot(grid[1, 0:2]), forest, left, "left child")
    draw_node(figure.add_subplot(grid[1, 2:4]), forest, left + 1, "right child")
    note = figure.add_subplot(grid[0, 0])
    note.axis("off")
    note.text(0, 0.9, "A tree's first splits", fontsize=11, weight="bold", va="top")
    note.text(0, 0.7, "A digit goes where the\nnearest class mean goes:", fontsize=9, va="top")
    note.text(0, 0.36, "left", fontsize=10, weight="bold", color=LEFT, va="top")
    note.text(0, 0.2, "right", fontsize=10, weight="bold", color=RIGHT, va="top")
    accuracy = figure.add_subplot(grid[0, 3])
    for name, curve in curves.items():
        trees, percent = zip(*curve, strict=True)
        colour = {"NCMForest": "#3a7d44"}.get(name, "#888888")
        accuracy.plot(trees, percent, marker="o", markersize=3, label=name, color=colour)
    accuracy.set_xscale("log")
    accuracy.set_xticks([1, 3, 10, 50], ["1", "3", "10", "50"])
    accuracy.tick_params(labelsize=7)
    accuracy.set_xlabel("trees", fontsize=8)
    accuracy.set_title("accuracy, %", fontsize=9)
    accuracy.grid(alpha=0.3)
    accuracy.legend(fontsize=7, loc="lower right")
    figure.savefig(PICTURE)


def with_shifts(X: Array, y: Array) -> tuple[Array, Array]:
    """The pictures, and each moved by a pixel in eight directions."""
    pictures = X.reshape(-1, 8, 8)
    moved = [np.roll(pictures, (i, j), axis=(1, 2)) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    return np.concatenate(moved).reshape(-1, 64), np.tile(y, 9)


def grow_class_by_class(forest: NCMForestClassifier, data: tuple[Array, ...]) -> None:
    """Begin with five digits, show one more at a time, and train anew beside it each time."""
    X_train, X_test, y_train, y_test = data
    X_train, y_train = with_shifts(X_train, y_train)
    first = y_train < 5
    forest.fit(X_train[first], y_train[first])
    print(f"One digit more at a time, {len(y_train)} shifted pictures, updated / trained anew:")
    for digit in range(5, 10):
        new, seen, asked = y_train == digit, y_train <= digit, y_test <= digit
        start = time.perf_counter()
        forest.partial_fit(X_train[new], y_train[new])
        middle = time.perf_counter()
        anew = clone(forest).fit(X_train[seen], y_train[seen])
        end = time.perf_counter()
        grown, full = (f.score(X_test[asked], y_test[asked]) for f in (forest, anew))
        print(
            f"  {digit + 1:2} digits: accuracy {100 * grown:5.1f} / {100 * full:5.1f} %,   "
            f"time {1000 * (middle - start):5.1f} / {1000 * (end - middle):5.1f} ms"
        )
    forest.forget(classes=[9])
    print(f"Asked to forget the nines, it knows {forest.classes_.tolist()}")


def teach_one_by_one(data: tuple[Array, ...]) -> None:
    """Show nine digits, then single pictures of the tenth, and ask after each few."""
    X_train, X_test, y_train, y_test = data
    new, asked = np.flatnonzero(y_train == 8), y_test == 8
    known = y_train != 8
    model = RLSClassifier(random_state=0).fit(X_train[known], y_train[known])
    watched = RejectingClassifier(RLSClassifier(random_state=0), random_state=0)
    watched.fit(X_train[known], y_train[known])
    share = (watched.predict(X_test[asked]) == -1).mean()
    print(f"Least squares, no 8 shown yet: {100 * share:.0f} % of the eights are called unknown")
    print("Single pictures of an 8, one at a time:")
    taught = 0
    for count in (1, 3, 10, 30):
        start = time.perf_counter()
        for i in new[taught:count]:
            model.partial_fit(X_train[i : i + 1], y_train[i : i + 1])
            model.predict(X_train[i : i + 1])
        seconds = (time.perf_counter() - start) / (count - taught)
        taught = count
        on_new, on_all = model.score(X_test[asked], y_test[asked]), model.score(X_test, y_test)
        print(
            f"  {count:2} shown: {100 * on_new:5.1f} % of the eights right, "
            f"{100 * on_all:5.1f} % of all digits, {1000 * seconds:4.1f} ms per picture"
        )


def main() -> int:
    """Train, compare, grow, forget, teach, save, load, explain and draw."""
    X, y = load_digits(return_X_y=True)
    data = tuple(train_test_split(X, y, test_size=0.4, random_state=0, stratify=y))
    n_train, n_test = len(data[0]), len(data[1])
    print(f"Handwritten digits: {n_train} to train on, {n_test} to test, {N_TREES} trees")
    train("scikit-learn RandomForest", RandomForestClassifier(N_TREES, random_state=0), data)
    train("NCMForest, defaults", NCMForestClassifier(N_TREES, random_state=0), data)
    # Few samples per class: let leaves hold one. Pixels share a scale: leave them unscaled.
    settings = {"min_samples_leaf": 1, "standardize": False, "random_state": 0}
    forest = NCMForestClassifier(N_TREES, **settings)
    train("NCMForest, small-data settings", forest, data)

    # With few classes leaves that grow, and a tenth of the trees grown again each time, suffice.
    grow_class_by_class(clone(forest).set_params(update="igt", refresh=0.1), data)

    teach_one_by_one(data)

    forest.save(MODEL)
    again = evergrow.load(MODEL)
    same = np.array_equal(again.predict_proba(data[1]), forest.predict_proba(data[1]))
    size = MODEL.stat().st_size / 1e6
    print(f"Saved to {MODEL} ({size:.1f} MB), loaded, predicts the same: {same}")
    print("How the first tree read the first test digit:")
    print("  " + str(forest.explain(data[1][0]).trees[0]).replace("\n", "\n  "))

    curves = {
        "NCMForest": accuracy_over_trees(NCMForestClassifier(**settings), data),
        "RandomForest": accuracy_over_trees(RandomForestClassifier(random_state=0), data),
    }
    draw(forest, curves)
    print(f"Wrote {PICTURE}: the tree's first splits, and accuracy over trees")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
