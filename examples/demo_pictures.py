"""Teach pictures that code has drawn, one more class at a time, and show what was learnt.

Run it with ``make demo`` or ``python examples/demo_pictures.py``; it needs
the extras ``plot`` and ``vision`` and downloads nothing. It writes ``demo_pictures/``,
``demo_pictures.evergrow`` and ``demo_pictures.png`` into the folder it is run in.
"""

from __future__ import annotations

import shutil
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from demo_figure import draw_figure
from pictures import THINGS, write_parts
from sklearn.base import clone

import evergrow
from evergrow import Embedder, ERCForest, ImageClassifier, RejectingClassifier, RLSClassifier
from evergrow.vision import BagOfWords, LocalFeatures, RandomPatches, find_labelled

FOLDER = Path("demo_pictures")
MODEL = Path("demo_pictures.evergrow")
PICTURE = Path("demo_pictures.png")
FIRST, MORE, TEST, RARE = (FOLDER / name for name in ("first", "more", "test", "rare"))
*COMMON, STRANGER = THINGS
N_FIRST, N_TRAIN, N_EACH, N_FEW = 5, 25, 40, 3


@dataclass
class Story:
    """What happened while a model grew."""

    model: ImageClassifier
    at_once: Any = None
    n_classes: list[int] = field(default_factory=list)
    grown: list[float] = field(default_factory=list)
    retrained: list[float] = field(default_factory=list)


def pictures_of(folder: Path, things: list[str]) -> tuple[list[Path], list[str]]:
    """The files of some things and their classes."""
    found = [(path, thing) for thing in things for path in sorted((folder / thing).glob("*.jpg"))]
    return [path for path, _ in found], [thing for _, thing in found]


def draw_all() -> None:
    """Write all pictures; those of an earlier run are the same and are written again."""
    # Vectors that an earlier run kept would make the times of this one look too good.
    shutil.rmtree(FOLDER / "cache", ignore_errors=True)
    paths = write_parts(FOLDER)
    print(f"Drew {len(paths)} pictures of {len(THINGS)} things into {FOLDER}/")


def step(story: Story, seen: list[str]) -> None:
    """Compare the grown model with one that is retrained on all classes so far."""
    asked = pictures_of(TEST, seen)
    first, more = pictures_of(FIRST, seen), pictures_of(MORE, seen)
    story.at_once = clone(story.model).fit(first[0] + more[0], first[1] + more[1])
    story.n_classes.append(len(seen))
    story.grown.append(100 * story.model.score(*asked))
    story.retrained.append(100 * story.at_once.score(*asked))
    report, retrained = story.model.report_, story.at_once.report_
    print(
        f"  {len(seen)} classes, + {seen[-1]:<9} accuracy {story.grown[-1]:5.1f} %, "
        f"retrained {story.retrained[-1]:5.1f} %;  features {report.seconds_features:4.2f} s, "
        f"learning {report.seconds_learning:4.2f} s, retrained {retrained.seconds_learning:4.2f} s"
    )


def grow(model: ImageClassifier) -> Story:
    """Begin with five classes and add the others one at a time."""
    story = Story(model.fit(FIRST))
    step(story, COMMON[:N_FIRST])
    columns = model.classes_.tolist()
    for n in range(N_FIRST, len(COMMON)):
        model.partial_fit(*pictures_of(MORE, COMMON[n : n + 1]))
        step(story, COMMON[: n + 1])
    kept = model.classes_[:N_FIRST].tolist() == columns
    print(f"  old classes keep their columns, new ones follow: {kept}")
    return story


def notice_the_unknown(embedder: Embedder) -> None:
    """Ask about a thing that was never shown."""
    learner = RejectingClassifier(RLSClassifier(random_state=0), random_state=0)
    model = ImageClassifier(embedder, learner, random_state=0).fit(FIRST).partial_fit(MORE)
    strange, _ = pictures_of(RARE, [STRANGER])
    known, _ = pictures_of(TEST, COMMON)
    noticed, alarms = (100 * np.mean(model.predict(x) == "unknown") for x in (strange, known))
    print(f'No {STRANGER} shown yet. A model that may say "unknown" says so')
    print(f"  to {noticed:.0f} % of the {STRANGER}s and to {alarms:.0f} % of what it knows")


def teach_from_few(model: ImageClassifier) -> None:
    """Teach a thing from three pictures."""
    paths, labels = pictures_of(RARE, [STRANGER])
    before = model.score(*pictures_of(TEST, COMMON))
    model.partial_fit(paths[:N_FEW], labels[:N_FEW])
    found, after = model.score(paths[N_FEW:], labels[N_FEW:]), model.score(TEST)
    print(f"Taught {N_FEW} pictures of an {STRANGER}, {N_TRAIN} of each other thing:")
    print(f"  {100 * found:.0f} % of the other {len(paths) - N_FEW} {STRANGER}s are known;")
    print(f"  the old classes went from {100 * before:.1f} % to {100 * after:.1f} %")


def teach_each_from_few(embedder: Embedder) -> None:
    """Let each thing in turn be the new one of three pictures, and measure what the others lose."""
    parts = {thing: FIRST if thing in COMMON[:N_FIRST] else MORE for thing in COMMON}
    train = {thing: pictures_of(parts.get(thing, RARE), [thing])[0][:N_TRAIN] for thing in THINGS}
    test = {thing: pictures_of(TEST if thing in COMMON else RARE, [thing])[0] for thing in THINGS}
    test[STRANGER] = test[STRANGER][N_TRAIN:]
    found, lost = [], []
    for new in THINGS:
        others = [thing for thing in THINGS if thing != new]
        images = [path for thing in others for path in train[thing]]
        asked = [path for thing in others for path in test[thing]]
        truth = np.repeat(others, N_EACH - N_TRAIN)
        model = ImageClassifier(embedder, random_state=0).fit(images, np.repeat(others, N_TRAIN))
        before = model.score(asked, truth)
        model.partial_fit(train[new][:N_FEW], [new] * N_FEW)
        found.append(100 * model.score(test[new], [new] * len(test[new])))
        lost.append(100 * (before - model.score(asked, truth)))
    print(f"Each of the {len(THINGS)} things in turn taught last, from {N_FEW} pictures:")
    print(
        f"  {np.mean(found):.0f} % of its other pictures are known; the {len(others)} others lose"
    )
    print(f"  {np.mean(lost):.1f} points of accuracy on average, {max(lost):.1f} at most")


def forget_and_keep(model: ImageClassifier, gone: str) -> bool:
    """Save, load and compare; then let the loaded one forget a class."""
    model.save(MODEL)
    again = evergrow.load(MODEL)
    images, _ = pictures_of(TEST, COMMON)
    same = np.array_equal(again.predict(images), model.predict(images))
    # Weights that followed updates and weights solved again on loading differ by rounding.
    apart = np.abs(again.predict_proba(images) - model.predict_proba(images)).max()
    size = MODEL.stat().st_size / 1e6
    print(f"Saved to {MODEL} ({size:.1f} MB), loaded, same answers: {same}")
    print(f"  probabilities differ by {apart:.0e} at most")
    start = time.perf_counter()
    again.forget(classes=[gone])
    seconds = time.perf_counter() - start
    left = [thing for thing in COMMON if thing != gone]
    print(f"Forgot {gone} in {seconds:.2f} s; it knows {', '.join(again.classes_.tolist())}")
    print(f"  accuracy on the others {100 * again.score(*pictures_of(TEST, left)):.1f} %")
    return same


def words_of_pictures() -> BagOfWords:
    """Visual words for small pictures of large things: few patches, some of them large."""
    patches = RandomPatches(500, max_size=0.6)
    return BagOfWords(
        ERCForest(n_words=200, keep_descriptors=False, n_jobs=-1, random_state=0),
        features=LocalFeatures("haar", patches=patches, n_jobs=-1),
        pooling="sqrt",
        n_jobs=-1,
        random_state=0,
    )


def votes_alone(bag: BagOfWords) -> None:
    """Let the trees of a vocabulary vote, without the learner behind them."""
    images, labels = pictures_of(TEST, COMMON)
    votes = bag.codebook_.predict(bag.features_.transform(images))
    share = np.mean(votes == np.array(labels))
    print(f"  votes of its {len(bag.codebook_.words_per_tree_)} trees alone: {100 * share:.1f} %")


def main() -> int:
    """Draw, teach, notice, forget, keep and compare."""
    start = time.perf_counter()
    draw_all()
    print("Features of a network, least squares behind them, one class more at a time:")
    embedder: Any = Embedder(cache=FOLDER / "cache", n_jobs=-1)
    network = grow(ImageClassifier(embedder, random_state=0))
    notice_the_unknown(embedder)
    teach_from_few(network.model)
    teach_each_from_few(embedder)
    same = forget_and_keep(network.model, "star")
    print("The same with visual words: an ERC forest over Haar wavelets of patches, no network:")
    words = grow(ImageClassifier(words_of_pictures(), random_state=0))
    votes_alone(words.at_once.features_)
    test = find_labelled(TEST)
    stranger = pictures_of(RARE, [STRANGER])[0][-1]
    draw_figure(PICTURE, network, words, test, (stranger, STRANGER))
    print(f"Wrote {PICTURE}, after {time.perf_counter() - start:.0f} s in all")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
