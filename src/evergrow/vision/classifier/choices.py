"""Features and learners by name, and what else may stand in their place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from sklearn.base import clone
from sklearn.utils import get_tags

from evergrow.estimators.classifier.learner import GrowingClassifier
from evergrow.estimators.forest import NCMForestClassifier
from evergrow.estimators.linear import RLSClassifier

__all__ = [
    "FEATURES",
    "LEARNERS",
    "IsFeatures",
    "IsLearner",
    "Options",
    "new_features",
    "new_learner",
]


@dataclass(frozen=True)
class Options:
    """What is passed on to features and learners that are made by name."""

    n_jobs: int | None
    seed: int
    verbose: int

    def settle(self, estimator: Any) -> Any:
        """Give an estimator the threads and progress bars of now: neither changes its answers."""
        now = estimator.get_params(deep=False)
        wanted = {"n_jobs": self.n_jobs, "verbose": self.verbose}
        changed = {name: value for name, value in wanted.items() if now.get(name, value) != value}
        return estimator.set_params(**changed) if changed else estimator


def _embedder(options: Options) -> Any:
    from evergrow.vision.embedding import Embedder

    return Embedder(n_jobs=options.n_jobs, verbose=options.verbose)


def _words(descriptor: str, options: Options) -> Any:
    from evergrow.vision.descriptors import LocalFeatures
    from evergrow.vision.words import BagOfWords, ERCForest

    return BagOfWords(
        # Words stay those of the first images: no need to keep what they were learnt from.
        ERCForest(keep_descriptors=False, n_jobs=options.n_jobs, random_state=options.seed),
        features=LocalFeatures(descriptor, random_state=options.seed, n_jobs=options.n_jobs),
        n_jobs=options.n_jobs,
        random_state=options.seed,
        verbose=options.verbose,
    )


def _least_squares(options: Options) -> Any:
    return RLSClassifier(random_state=options.seed, verbose=options.verbose)


def _forest(options: Options) -> Any:
    # Folders of photographs hold tens of each class, not thousands.
    return NCMForestClassifier(
        min_samples_leaf=2,
        n_jobs=options.n_jobs,
        random_state=options.seed,
        verbose=options.verbose,
    )


FEATURES: dict[str, Callable[[Options], Any]] = {
    "embed": _embedder,
    **{name: partial(_words, name) for name in ("haar", "hsl", "sift")},
}
LEARNERS: dict[str, Callable[[Options], Any]] = {"forest": _forest, "rls": _least_squares}


@dataclass(frozen=True)
class IsFeatures:
    """A transformer of images, or a function of them."""

    def admits(self, value: object) -> bool:
        """Tell whether the value follows the rule."""
        if isinstance(value, (type, str)):
            return False
        return callable(value) or (hasattr(value, "fit") and hasattr(value, "transform"))

    def __str__(self) -> str:
        """Say what is allowed."""
        return "a transformer of images or a function of them"


@dataclass(frozen=True)
class IsLearner:
    """A classifier of Evergrow's that grows."""

    def admits(self, value: object) -> bool:
        """Tell whether the value follows the rule."""
        if not isinstance(value, GrowingClassifier) or not hasattr(value, "partial_fit"):
            return False
        return bool(get_tags(value).target_tags.single_output)

    def __str__(self) -> str:
        """Say what is allowed."""
        return "a growing classifier of Evergrow's that learns one label of each image"


def new_features(choice: Any, options: Options) -> Any:
    """A transformer of images that has learnt nothing yet."""
    if isinstance(choice, str):
        return FEATURES[choice](options)
    if not hasattr(choice, "transform"):
        from evergrow.vision.embedding import Embedder

        return Embedder(choice, n_jobs=options.n_jobs, verbose=options.verbose)
    return clone(choice)


def new_learner(choice: Any, options: Options) -> Any:
    """A classifier that has learnt nothing yet."""
    return LEARNERS[choice](options) if isinstance(choice, str) else clone(choice)
