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
from evergrow.estimators.linear import RFF, ReLU, RLSClassifier
from evergrow.estimators.means import NCMClassifier
from evergrow.foundation.params import Satisfies


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


# The last stages of the default network; earlier ones hold little but edges and colours.
DEFAULT_STAGES = (5, 6, 7)


def _make_embedder(stages: tuple[int, ...], options: ComponentOptions) -> Any:
    from evergrow.vision.embedding import Embedder

    return Embedder(stages=stages, n_jobs=options.n_jobs, verbose=options.verbose)


def _make_bag(descriptor: str, options: ComponentOptions) -> Any:
    from evergrow.vision.descriptors import LocalFeatures
    from evergrow.vision.words.bag.bag_of_words import BagOfWords
    from evergrow.vision.words.erc.erc_forest import ERCForest

    return BagOfWords(
        # The words are never updated, so the training descriptors are not needed again.
        ERCForest(keep_descriptors=False, n_jobs=options.n_jobs, random_state=options.seed),
        features=LocalFeatures(descriptor, random_state=options.seed, n_jobs=options.n_jobs),
        n_jobs=options.n_jobs,
        random_state=options.seed,
        verbose=options.verbose,
    )


def _make_rls(options: ComponentOptions) -> Any:
    return RLSClassifier(random_state=options.seed)


def _make_random_rls(options: ComponentOptions) -> Any:
    return RLSClassifier(features="auto", random_state=options.seed)


def _make_means(_: ComponentOptions) -> Any:
    return NCMClassifier()


def _make_lda(_: ComponentOptions) -> Any:
    return NCMClassifier(metric="mahalanobis")


def _make_forest(options: ComponentOptions) -> Any:
    # Folders of photographs have tens of images per class, not thousands.
    return NCMForestClassifier(
        min_samples_leaf=2,
        n_jobs=options.n_jobs,
        random_state=options.seed,
        verbose=options.verbose,
    )


FEATURES: dict[str, Callable[[ComponentOptions], Any]] = {
    "auto": partial(_make_embedder, DEFAULT_STAGES),
    "embed": partial(_make_embedder, ()),
    **{name: partial(_make_bag, name) for name in ("haar", "hsl", "sift")},
}
LEARNERS: dict[str, Callable[[ComponentOptions], Any]] = {
    "rls": _make_rls,
    "rls-random": _make_random_rls,
    "means": _make_means,
    "lda": _make_lda,
    "forest": _make_forest,
}
LEARNER_TITLES = {
    "rls": "least squares",
    "rls-random": "least squares on random features",
    "means": "class means",
    "lda": "streaming LDA",
    "forest": "forest of class means",
}


def _is_features(value: object) -> bool:
    if isinstance(value, (type, str)):
        return False
    return callable(value) or (hasattr(value, "fit") and hasattr(value, "transform"))


def _is_learner(value: object) -> bool:
    if not isinstance(value, GrowingClassifier) or not hasattr(value, "partial_fit"):
        return False
    return bool(get_tags(value).target_tags.single_output)


IS_FEATURES = Satisfies("a transformer or a function of images", _is_features)
IS_LEARNER = Satisfies(
    "a classifier of Evergrow with partial_fit and a single label per example", _is_learner
)


def make_features(features: Any, options: ComponentOptions, learner: Any) -> Any:
    """Create an unfitted transformer of images for a learner."""
    if isinstance(features, str):
        # Blocks among which the learner does not choose might do harm.
        alone = features == "auto" and not chooses_blocks(learner, options)
        return FEATURES["embed" if alone else features](options)
    if not hasattr(features, "transform"):
        from evergrow.vision.embedding import Embedder

        return Embedder(features, n_jobs=options.n_jobs, verbose=options.verbose)
    return clone(features)


def make_learner(learner: Any, options: ComponentOptions, features: Any = None) -> Any:
    """Create an unfitted classifier; pass it the feature blocks if it selects among them."""
    made = LEARNERS[learner](options) if isinstance(learner, str) else clone(learner)
    blocks = getattr(features, "blocks_", {})
    if len(blocks) < 2:
        return made
    return made.set_params(**dict.fromkeys(_unset_blocks(made), tuple(blocks.values())))


def chooses_blocks(learner: Any, options: ComponentOptions) -> bool:
    """Whether a learner selects among blocks of features."""
    return bool(_unset_blocks(make_learner(learner, options)))


def _unset_blocks(learner: Any) -> list[str]:
    """Return the parameters for blocks that the user has not set, of classifiers inside too.

    Random features in place of the input mix the columns of all blocks.
    """
    given = learner.get_params()
    return [
        name
        for name, value in given.items()
        if name.split("__")[-1] == "blocks"
        and value is None
        and not isinstance(given.get(name.removesuffix("blocks") + "features"), (ReLU, RFF))
    ]
