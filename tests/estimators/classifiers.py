"""Small classifiers of every family, for tests of what all have in common."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import pandas as pd
import pytest

from evergrow import RLSClassifier
from tests.conftest import FORESTS
from tests.estimators.means.cases import METRICS, blobs
from tests.estimators.novelty.cones import rejecting

# To add an estimator: start from ``ScoringClassifier``, as ``NCMClassifier`` does; parameters are
# dataclass fields with their rules, what is learnt is one immutable value. Export it in the
# ``__init__.pyi`` of its room, name it in docs/api, and add it here: all classifiers share these
# tests.
KINDS = {kind.__name__: partial(kind, 3, min_samples_leaf=1, random_state=0) for kind in FORESTS}
MODELS: dict[str, Callable[[], Any]] = {
    **KINDS,
    **METRICS,
    "rls": partial(RLSClassifier, random_state=0),
    "rls fixed": partial(RLSClassifier, regularization=1.0, recoding=0.5),
    "rejecting": rejecting,
}
SUMS = [*METRICS, "rls", "rls fixed"]
SAVED = ["NCMForestClassifier", "euclidean", "rls", "rejecting"]
PLAIN = [name for name in MODELS if name != "rejecting"]
every_model = pytest.mark.parametrize("name", MODELS)

X, Y = blobs(60, n_classes=3)
FRAME = pd.DataFrame(X, columns=list("abcde"))


@cache
def fitted(name: str) -> Any:
    """A fitted model; tests must not change it."""
    return MODELS[name]().fit(X, Y)


def can(name: str, method: str) -> bool:
    """Whether a model has a method or a property."""
    return hasattr(type(MODELS[name]()), method)
