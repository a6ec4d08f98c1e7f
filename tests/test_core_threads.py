"""Several threads in the core, and readers during updates; the thread sanitizer runs these."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from evergrow import (
    AxisForestClassifier,
    ERCForest,
    LinearForestClassifier,
    NCMForestClassifier,
    RLSClassifier,
    SVMForestClassifier,
)
from evergrow.estimators import LeaveOneOut, Regularised
from evergrow.estimators.forest.strategy import STRATEGIES

N_THREADS = 4
RNG = np.random.default_rng(0)
Y = np.repeat(np.arange(6), 30)
X = RNG.normal(size=(180, 8)) + Y[:, None]
OLD = Y < 4

MODELS: dict[str, Any] = {
    **{f"ncm {name}": NCMForestClassifier(4, update=name, random_state=0) for name in STRATEGIES},
    "regularised": NCMForestClassifier(4, splits=Regularised(8), random_state=0),
    "axis": AxisForestClassifier(4, random_state=0),
    "linear": LinearForestClassifier(4, random_state=0),
    "svm": SVMForestClassifier(4, random_state=0),
    "words": ERCForest(4, n_words=12, random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
def test_several_threads_learn_and_answer_as_one_does(name: str) -> None:
    answers = []
    for n_threads in (1, N_THREADS):
        model = clone(MODELS[name]).set_params(n_jobs=n_threads).fit(X[OLD], Y[OLD])
        model.partial_fit(X[~OLD], Y[~OLD])
        answers.append(model.predict_proba(X))
    np.testing.assert_array_equal(*answers)


@pytest.mark.parametrize("name", ["ncm rust", "ncm igt", "axis", "least squares"])
def test_readers_during_updates_see_a_whole_model(name: str) -> None:
    template = {
        **MODELS,
        "least squares": RLSClassifier(random_state=0, selection=LeaveOneOut(30)),
    }[name]
    model = clone(template).fit(X[OLD], Y[OLD])

    def read(_: int) -> float:
        return float(model.predict_proba(X[:40]).sum())

    with ThreadPoolExecutor(N_THREADS) as pool:
        sums = pool.map(read, range(8 * N_THREADS))
        for first in range(120, 180, 10):
            model.partial_fit(X[first : first + 10], Y[first : first + 10])
        np.testing.assert_allclose(list(sums), 40)
