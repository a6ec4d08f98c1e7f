"""The picture that the demo draws."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from PIL import Image
from sklearn.metrics import confusion_matrix

from evergrow.vision import leaf_patches, word_map

# Colours that people with any colour vision tell apart (Okabe and Ito).
BLUE, GREEN, ORANGE, RED = "#0072b2", "#009e73", "#e69f00", "#d55e00"
STYLE: dict[Any, Any] = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "font.size": 9,
    "legend.frameon": False,
}
# The thing whose words are shown.
SPOKEN_FOR = "mushroom"


def draw_figure(
    path: Path, network: Any, words: Any, test: Any, stranger: tuple[Path, str]
) -> None:
    """Samples with their answers, accuracy while growing, confusion, and what words see."""
    paths, labels = list(test.paths), np.asarray(test.labels)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(11, 7.6), dpi=110, layout="constrained")
        top, bottom = figure.subfigures(2, 1, height_ratios=(0.9, 1))
        _draw_samples(top, network.model, paths, labels, stranger)
        left, middle, right = bottom.subfigures(1, 3, width_ratios=(1, 1, 1))
        _draw_accuracy(left.add_subplot(), network, words)
        _draw_confusion(middle.add_subplot(), network.model, paths, labels)
        _draw_words(right, words.at_once.features_, paths, labels)
        figure.savefig(path)


def _draw_samples(
    figure: Any, model: Any, paths: list[Path], labels: Any, stranger: tuple[Path, str]
) -> None:
    things = [thing for thing in model.classes_.tolist() if thing != stranger[1]]
    shown = [(paths[int(np.argmax(labels == thing))], thing) for thing in things] + [stranger]
    answers = model.answer([path for path, _ in shown], k=1)
    figure.suptitle(
        "One test picture of each class, and the answer", x=0.01, ha="left", weight="bold", size=10
    )
    every = figure.subplots(2, -(-len(shown) // 2)).ravel()
    for axes in every:
        axes.axis("off")
    for axes, (path, thing), answer, share in zip(
        every, shown, answers.labels, answers.top_probabilities[:, 0], strict=False
    ):
        axes.imshow(Image.open(path))
        right = answer == thing
        said = f"{answer}, {100 * share:.0f} %" if right else f"{answer}, but it is a {thing}"
        note = ", taught by 3" if thing == stranger[1] else ""
        axes.set_title(
            said + note, color=GREEN if right else RED, size=9, weight="normal", loc="center"
        )


def _draw_accuracy(axes: Any, network: Any, words: Any) -> None:
    for story, colour, name in ((network, BLUE, "network"), (words, ORANGE, "visual words")):
        axes.plot(
            story.n_classes, story.grown, color=colour, marker="o", label=f"{name}, one at a time"
        )
        axes.plot(
            story.n_classes,
            story.retrained,
            color=colour,
            linestyle=":",
            marker="s",
            markerfacecolor="white",
            label=f"{name}, all at once",
        )
    axes.set(xlabel="classes", ylim=(0, 103), xticks=network.n_classes)
    axes.set_title("Accuracy over all classes so far, %")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower left", fontsize=8)


def _draw_confusion(axes: Any, model: Any, paths: list[Path], labels: Any) -> None:
    names = model.classes_.tolist()
    counts = confusion_matrix(labels, model.predict(paths), labels=names)
    asked = counts.sum(axis=1) > 0
    axes.imshow(counts[asked], cmap="Blues", vmin=0, vmax=counts.max() * 1.2, aspect="auto")
    for (row, column), count in np.ndenumerate(counts[asked]):
        if count:
            shade = "white" if count > counts.max() / 2 else "black"
            axes.text(column, row, str(count), ha="center", va="center", color=shade, size=8)
    axes.set_xticks(range(len(names)), names, rotation=60, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(int(asked.sum())), np.array(names)[asked])
    axes.tick_params(length=0)
    axes.set_title(f"Answers: {np.trace(counts)} of {counts.sum()} right")


def _draw_words(figure: Any, bag: Any, paths: list[Path], labels: Any) -> None:
    """Where words speak for a class, and the patches of the word that speaks for it most."""
    mine = [path for path, label in zip(paths, labels, strict=True) if label == SPOKEN_FOR]
    maps = [word_map(path, bag, None, SPOKEN_FOR) for path in mine]
    clearest = int(np.argmax([np.nanmax(found) - np.nanmin(found) for found in maps]))
    above, below = figure.subfigures(2, 1, height_ratios=(1, 1.25))
    above.suptitle(f"Where words say “{SPOKEN_FOR}”", x=0.02, ha="left", weight="bold", size=10)
    left, right = above.subplots(1, 2)
    left.imshow(Image.open(mine[clearest]))
    shown = right.imshow(maps[clearest], cmap="viridis")
    above.colorbar(shown, ax=right, fraction=0.04, label="posterior")
    patches, _ = leaf_patches(mine, bag, None, 0, _telling_word(bag, mine), n=18, n_per_image=3)
    below.suptitle("Patches of one word of one tree", x=0.02, ha="left", weight="bold", size=10)
    every = below.subplots(3, 6).ravel()
    for axes, patch in zip(every, patches, strict=False):
        axes.imshow(patch)
    for axes in (left, right, *every):
        axes.axis("off")


def _telling_word(bag: Any, paths: list[Path]) -> int:
    """The word of the first tree that is both frequent in these pictures and typical of them."""
    forest = bag.codebook_
    column = forest.classes_.tolist().index(SPOKEN_FOR)
    n_words = int(forest.words_per_tree_[0])
    found = forest.transform(bag.features_.transform(paths).values)[:, 0]
    # Squared, as words of the background are frequent everywhere.
    telling = np.bincount(found, minlength=n_words) * forest.word_shares_[:n_words, column] ** 2
    return int(np.argmax(telling))
