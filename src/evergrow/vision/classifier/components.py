"""Features and learners by name, and the rules for custom ones."""

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


@dataclass(frozen=True)
class ComponentOptions:
    """Parameters that features and learners created by name get from the classifier."""

    n_jobs: int | None
    seed: int
    verbose: int

    def apply_to(self, estimator: Any) -> Any:
        """Set threads and progress bars, which do not affect the predictions of an estimator."""
        current = estimator.get_params(deep=False)
        wanted = {"n_jobs": self.n_jobs, "verbose": self.verbose}
        changed = {name: new for name, new in wanted.items() if current.get(name, new) != new}
        return estimator.set_params(**changed) if changed else estimator


def _make_embedder(options: ComponentOptions) -> Any:
    from evergrow.vision.embedding import Embedder

    return Embedder(n_jobs=options.n_jobs, verbose=options.verbose)


def _make_bag(descriptor: str, options: ComponentOptions) -> Any:
    from evergrow.vision.descriptors import LocalFeatures
    from evergrow.vision.words import BagOfWords, ERCForest

    return BagOfWords(
        # The words are never updated, so the training descriptors are not needed again.
        ERCForest(keep_descriptors=False, n_jobs=options.n_jobs, random_state=options.seed),
        features=LocalFeatures(descriptor, random_state=options.seed, n_jobs=options.n_jobs),
        n_jobs=options.n_jobs,
        random_state=options.seed,
        verbose=options.verbose,
    )


def _make_rls(options: ComponentOptions) -> Any:
    return RLSClassifier(random_state=options.seed, verbose=options.verbose)


def _make_forest(options: ComponentOptions) -> Any:
    # Folders of photographs have tens of images per class, not thousands.
    return NCMForestClassifier(
        min_samples_leaf=2,
        n_jobs=options.n_jobs,
        random_state=options.seed,
        verbose=options.verbose,
    )


FEATURES: dict[str, Callable[[ComponentOptions], Any]] = {
    "embed": _make_embedder,
    **{name: partial(_make_bag, name) for name in ("haar", "hsl", "sift")},
}
LEARNERS: dict[str, Callable[[ComponentOptions], Any]] = {"forest": _make_forest, "rls": _make_rls}


@dataclass(frozen=True)
class IsFeatures:
    """A transformer or a function of images."""

    def admits(self, value: object) -> bool:
        """Tell whether the value follows the rule."""
        if isinstance(value, (type, str)):
            return False
        return callable(value) or (hasattr(value, "fit") and hasattr(value, "transform"))

    def __str__(self) -> str:
        """Say what is allowed."""
        return "a transformer or a function of images"


@dataclass(frozen=True)
class IsLearner:
    """A classifier of Evergrow that can be updated."""

    def admits(self, value: object) -> bool:
        """Tell whether the value follows the rule."""
        if not isinstance(value, GrowingClassifier) or not hasattr(value, "partial_fit"):
            return False
        return bool(get_tags(value).target_tags.single_output)

    def __str__(self) -> str:
        """Say what is allowed."""
        return "a classifier of Evergrow with partial_fit and a single label per example"


def make_features(features: Any, options: ComponentOptions) -> Any:
    """Create an unfitted transformer of images."""
    if isinstance(features, str):
        return FEATURES[features](options)
    if not hasattr(features, "transform"):
        from evergrow.vision.embedding import Embedder

        return Embedder(features, n_jobs=options.n_jobs, verbose=options.verbose)
    return clone(features)


def make_learner(learner: Any, options: ComponentOptions) -> Any:
    """Create an unfitted classifier."""
    return LEARNERS[learner](options) if isinstance(learner, str) else clone(learner)
