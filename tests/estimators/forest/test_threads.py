"""Training can be interrupted, and predicting goes on while it runs."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evergrow import NCMForestClassifier
from evergrow.estimators.forest import predictor
from tests.conftest import FORESTS, Arrays
from tests.estimators.model_files import reload
from tests.estimators.threads import check_interrupted, reading


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT to send")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "n_jobs"),
    [
        (NCMForestClassifier, 1),
        *(pytest.param(kind, 2, marks=pytest.mark.nightly) for kind in FORESTS),
    ],
)
def test_ctrl_c_stops_within_a_second_and_changes_nothing(kind: Any, n_jobs: int) -> None:
    check_interrupted(
        "forest.fit(X, y)",
        f"""
        forest = evergrow.{kind.__name__}(2, n_jobs={n_jobs}, random_state=0).fit(X[:500], y[:500])
        before, state = forest.predict_proba(X[:50]), dict(vars(forest))
        forest.set_params(n_estimators=60000)
        state["n_estimators"] = 60000
        """,
        """
        assert vars(forest) == state
        assert (forest.predict_proba(X[:50]) == before).all()
        """,
    )


def test_readers_see_the_forest_before_or_after_a_fit(digits: Arrays) -> None:
    X, X_test, y, _ = digits
    shifted = (y + 1) % 10
    forests = [NCMForestClassifier(20, random_state=0).fit(X, target) for target in (y, shifted)]
    allowed = {forest.predict_proba(X_test).tobytes() for forest in forests}
    forest = NCMForestClassifier(20, random_state=0).fit(X, y)
    seen: list[bytes] = []
    with reading(lambda: seen.append(forest.predict_proba(X_test).tobytes())):
        for round_ in range(6):
            forest.fit(X, (y, shifted)[round_ % 2])
    assert seen
    assert set(seen) <= allowed


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT to send")
@pytest.mark.slow
@pytest.mark.parametrize(
    "forest",
    [
        "NCMForestClassifier(1, splits=kinds.ClassMeans(1.0, 2**15), random_state=0)",
        *(
            pytest.param(
                f"{kind}ForestClassifier(1, splits=kinds.{splits}(2**20), random_state=0)",
                marks=pytest.mark.nightly,
            )
            for kind, splits in (("Axis", "Thresholds"), ("Linear", "Directions"), ("SVM", "SVMs"))
        ),
    ],
)
def test_ctrl_c_stops_within_a_second_inside_a_huge_node(forest: str) -> None:
    # One tree that takes many seconds, with nodes that take long on their own.
    action = f"evergrow.{forest}.fit(X, y)"
    kinds = "from evergrow import estimators as kinds"
    check_interrupted(action, kinds, n_rows=40000, n_classes=1000, seconds=0.5)


@pytest.mark.slow
def test_readers_never_see_the_names_of_one_forest_and_the_trees_of_another(
    digits: Arrays,
) -> None:
    X, X_test, y, _ = digits
    names = [f"pixel{i}" for i in range(64)]
    frame, query = pd.DataFrame(X, columns=names), pd.DataFrame(X_test, columns=names)
    mirrored = frame[names[::-1]]
    forest = NCMForestClassifier(3, random_state=0).fit(frame, y)
    expected = forest.predict_proba(query)
    wrong: list[int] = []

    def read() -> None:
        try:
            found = forest.predict_proba(query)
        except ValueError:
            return  # refused by name: the mirrored forest
        if not np.array_equal(found, expected):
            wrong.append(1)

    with reading(read):
        for round_ in range(40):
            forest.fit((frame, mirrored)[round_ % 2], y)
    assert not wrong


def test_saving_takes_one_look_at_the_forest(
    digits: Arrays, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, X_test, y, _ = digits
    names = [f"pixel{i}" for i in range(64)]
    frame, query = pd.DataFrame(X, columns=names), pd.DataFrame(X_test, columns=names)
    forest = NCMForestClassifier(3, random_state=0).fit(frame, y)
    expected = forest.predict_proba(query)
    write = predictor.parameters_to_json

    def refit_first(*args: Any, **options: Any) -> Any:
        forest.fit(frame[names[::-1]], y)
        return write(*args, **options)

    monkeypatch.setattr(predictor, "parameters_to_json", refit_first)
    loaded = reload(forest, tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(query), expected)


def test_an_error_in_the_progress_display_stops_the_work() -> None:
    from evergrow import _core

    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 64)).astype(np.float32)
    y = rng.integers(0, 9, 4000).astype(np.int32)
    samples = _core.Samples(64)
    plain = _core.Standardizer(np.zeros(64), np.ones(64))
    samples.write(samples.add(4000), X, y, np.arange(4000), plain)

    def fail(done: int) -> None:
        raise RuntimeError(f"display broke after {done}")

    start = time.perf_counter()
    with pytest.raises(RuntimeError, match="display broke after"):
        _core.Forest.grow(
            samples=samples,
            n_trees=100000,
            n_classes=9,
            seed=0,
            rows_per_tree=4000,
            bootstrap=False,
            rules=_core.SplitRules(
                proposer="ncm",
                n_centroids=3,
                n_candidates=1024,
                min_samples_leaf=10,
                min_gain=0.0,
                regularization=0.0,
            ),
            n_threads=2,
            progress=fail,
        )
    assert time.perf_counter() - start < 10
