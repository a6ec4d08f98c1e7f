"""Choose a learner for given images by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.formatting import format_count, format_percent
from evergrow.vision.classifier.components import (
    LEARNER_TITLES,
    ComponentOptions,
    chooses_blocks,
    make_features,
    make_learner,
)
from evergrow.vision.classifier.extraction import (
    check_not_empty,
    fit_and_extract,
    labelled_sources,
)

# The first of equally accurate learners is chosen.
_DEFAULT = "rls"
_CANDIDATES = (_DEFAULT, "means", "lda", "forest")
# Random features need many images, and minutes; with fewer they do not help.
_WITH_MANY = ("rls-random",)
_MANY_IMAGES = 1000
_N_FOLDS = 5


@dataclass(frozen=True)
class LearnerChoice:
    """The chosen learner, and the mean class accuracy of each candidate.

    ``accuracies`` is empty if there are too few images to compare learners.
    """

    name: str
    accuracies: dict[str, float]
    n_images: int

    @property
    def reason(self) -> str:
        """Say which learner was chosen, and why."""
        chosen = f"Chose {LEARNER_TITLES[self.name]!r} ('--learner {self.name}')"
        if not self.accuracies:
            return f"{chosen}: comparing learners needs two images of each of two classes."
        others = ", ".join(
            f"{LEARNER_TITLES[name]!r} {format_percent(share)}"
            for name, share in self.accuracies.items()
            if name != self.name
        )
        return (
            f"{chosen}: {format_percent(self.accuracies[self.name])} mean class accuracy in "
            f"{_N_FOLDS}-fold cross-validation on {format_count(self.n_images, 'image')} "
            f"({others})."
        )


def choose_learner(
    images: Any, features: Any, *, on_error: str, n_jobs: int | None, seed: int, verbose: int
) -> LearnerChoice:
    """Compare learners on images with labels, and choose the most accurate one.

    Parameters
    ----------
    images : path or LabelledImages
        A folder with one subfolder per class, or what :func:`find_labelled` found in one.
    features : {"auto", "embed", "sift", "hsl", "haar"} or transformer
        The features of :class:`ImageClassifier`. Blocks of features among which a learner does not
        choose are left out for it.
    on_error : {"raise", "skip"}
        What to do if an image cannot be read.
    n_jobs, seed, verbose
        As in :class:`ImageClassifier`.
    """
    options = ComponentOptions(n_jobs, seed, verbose)
    sources, labels, _ = labelled_sources(images, None, on_error)
    transformer = make_features(features, options, _DEFAULT)
    found = fit_and_extract(transformer, sources, labels, on_error)
    check_not_empty(found.kept, sources)
    y = labels[found.kept]
    folds = _assign_folds(y, seed)
    if len(np.unique(y[folds >= 0])) < 2:
        return LearnerChoice(_DEFAULT, {}, len(y))
    names = [*_CANDIDATES, *(_WITH_MANY if len(y) >= _MANY_IMAGES else ())]
    quiet = ComponentOptions(n_jobs, seed, 0)
    head = next(iter(getattr(transformer, "blocks_", {}).values()), None)
    accuracies = {}
    for name in names:
        uses_blocks = chooses_blocks(name, quiet)
        X = found.features if uses_blocks or head is None else found.features[:, :head]
        learner = make_learner(name, quiet, transformer if uses_blocks else None)
        accuracies[name] = _cross_validate(learner, X, y, folds)
    best = max(names, key=accuracies.__getitem__)
    return LearnerChoice(best, accuracies, len(y))


def _assign_folds(y: npt.NDArray[Any], seed: int) -> npt.NDArray[np.int64]:
    """The fold of each image; -1 for the only image of a class, which is never tested."""
    random = np.random.default_rng(seed)
    folds = np.full(len(y), -1)
    for label in np.unique(y):
        rows = random.permutation(np.flatnonzero(y == label))
        if len(rows) > 1:
            folds[rows] = np.arange(len(rows)) % _N_FOLDS
    return folds


def _cross_validate(
    learner: Any, X: npt.NDArray[Any], y: npt.NDArray[Any], folds: npt.NDArray[np.int64]
) -> float:
    """Mean class accuracy of images that the learner was not trained on."""
    right = np.zeros(len(y), dtype=bool)
    for fold in range(_N_FOLDS):
        tested = folds == fold
        if tested.any():
            learner.fit(X[~tested], y[~tested])
            right[tested] = learner.predict(X[tested]) == y[tested]
    tested = folds >= 0
    return float(np.mean([right[tested & (y == label)].mean() for label in np.unique(y[tested])]))
