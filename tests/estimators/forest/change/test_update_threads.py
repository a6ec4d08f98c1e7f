"""An update can be interrupted at any moment, and other threads predict while it runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from evergrow import RTST, NCMForestClassifier
from evergrow.estimators.forest.change import addition, growth, removal
from tests.conftest import FORESTS
from tests.estimators.forest.blobs import CASES, blobs
from tests.estimators.threads import check_interrupted, reading

X_QUERY, _ = blobs(80, range(6), seed=77)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT to send")
@pytest.mark.parametrize(
    ("kind", "update"), [(NCMForestClassifier, "rust"), *((kind, "rtst") for kind in FORESTS[3:])]
)
def test_ctrl_c_stops_an_update_within_a_second_and_changes_nothing(kind: Any, update: str) -> None:
    check_interrupted(
        "forest.partial_fit(X, y)",
        f"""
        forest = evergrow.{kind.__name__}(400, update="{update}", n_jobs=2, random_state=0)
        forest.fit(X[:100], y[:100] % 2)
        before, state = forest.predict_proba(X[:50]), dict(vars(forest))
        """,
        """
        assert vars(forest) == state
        assert (forest.predict_proba(X[:50]) == before).all()
        forest._fitted.forest.check()
        forest.partial_fit(X[:10], y[:10])
        """,
    )


def trained(kind: Any, update: str) -> Any:
    return kind(5, min_samples_leaf=3, update=update, random_state=0).fit(*blobs(120, [0, 1, 2]))


ACTIONS: dict[str, Callable[[Any], Any]] = {
    "fit": lambda forest: forest.fit(*blobs(90, [4, 5], seed=1)),
    "partial_fit": lambda forest: forest.partial_fit(*blobs(90, [1, 4, 5], seed=1)),
    "forget class": lambda forest: forest.forget(classes=[1]),
    "forget samples": lambda forest: forest.forget(samples=range(0, 120, 3)),
}


@pytest.mark.parametrize(("kind", "update"), CASES)
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_at_the_end_of_the_display_changes_nothing(
    kind: Any,
    update: str,
    action: str,
    error: type[BaseException],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @contextmanager
    def broken(*args: object) -> Iterator[None]:
        yield None
        raise error("display broke")

    forest = trained(kind, update)
    before, state = forest.predict_proba(X_QUERY), dict(vars(forest))
    with monkeypatch.context() as patch:
        for module in (growth, addition, removal):
            patch.setattr(module, "progress_bar", broken)
        with pytest.raises(error, match="display broke"):
            ACTIONS[action](forest)
    assert vars(forest) == state
    np.testing.assert_array_equal(forest.predict_proba(X_QUERY), before)
    found = ACTIONS[action](forest).predict_proba(X_QUERY)
    np.testing.assert_array_equal(
        found, ACTIONS[action](trained(kind, update)).predict_proba(X_QUERY)
    )


def test_an_error_in_the_display_stops_an_update(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    @contextmanager
    def broken(*args: object) -> Iterator[Callable[[int], None]]:
        def fail(done: int) -> None:
            calls.append(done)
            raise RuntimeError(f"display broke after {done}")

        yield fail

    random = np.random.default_rng(0)
    X, y = random.normal(size=(4000, 64)), random.integers(0, 9, 4000)
    forest = NCMForestClassifier(500, update=RTST(refresh=0.0), random_state=0)
    forest.fit(X[:60], y[:60])
    state = dict(vars(forest))
    monkeypatch.setattr(addition, "progress_bar", broken)
    with pytest.raises(RuntimeError, match="display broke after"):
        forest.partial_fit(X, y)
    assert vars(forest) == state
    assert len(calls) == 1
    assert calls[0] < 500


@pytest.mark.parametrize(("kind", "update"), CASES)
def test_readers_see_the_forest_before_or_after_an_update(kind: Any, update: str) -> None:
    steps: list[Callable[[Any], Any]] = [
        lambda forest: forest.partial_fit(*blobs(60, [3, 4], seed=1)),
        lambda forest: forest.forget(classes=[1]),
        lambda forest: forest.partial_fit(*blobs(60, [0, 5], seed=2)),
        lambda forest: forest.rename_classes({2: 8, 4: 8}),
        lambda forest: forest.compact(),
        lambda forest: forest.forget(samples=range(130, 160)),
    ]
    forest = trained(kind, update)
    allowed = {forest.predict_proba(X_QUERY).tobytes()}
    for step in steps:
        allowed.add(step(forest).predict_proba(X_QUERY).tobytes())
    forest = trained(kind, update)
    seen: list[bytes] = []

    def read() -> None:
        seen.append(forest.predict_proba(X_QUERY).tobytes())
        forest.predict(X_QUERY)
        forest.explain(X_QUERY[0])

    with reading(read, n_threads=2):
        for step in steps:
            step(forest)
    assert seen
    assert set(seen) <= allowed
