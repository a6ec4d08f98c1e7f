"""The engine that is a plain loop, and which engine is in use."""

import numpy as np
import pytest

from evergrow.foundation.engine import Job, LocalEngine, current_engine, use_engine


def _with_offset(part, offset):
    return {"parts": np.array([part + offset])}


def _bracketed(first, second):
    return {"text": np.array(f"({first['text']}{second['text']})")}


def _letter(part):
    return {"text": np.array(part)}


def test_parts_run_in_order_with_what_is_shared():
    engine = LocalEngine()
    results = engine.run(Job(_with_offset, [1, 2, 3], [engine.share(10)]))
    assert [(place, int(found["parts"][0])) for place, found in results] == [
        (0, 11),
        (1, 12),
        (2, 13),
    ]


@pytest.mark.parametrize(
    ("letters", "joined"),
    [
        ("a", "a"),
        ("ab", "(ab)"),
        ("abc", "((ab)c)"),
        ("abcdefg", "(((ab)(cd))((ef)g))"),
        ("abcdefgh", "(((ab)(cd))((ef)(gh)))"),
    ],
)
def test_neighbours_are_joined_two_at_a_time(letters, joined):
    found = LocalEngine().reduce(Job(_letter, list(letters)), _bracketed)
    assert str(found["text"]) == joined


def test_an_engine_is_in_use_only_within_its_block():
    engine = LocalEngine()
    with use_engine(engine):
        assert current_engine() is engine
        with use_engine(None):
            assert current_engine() is None
    assert current_engine() is None


def test_a_block_that_fails_leaves_no_engine_behind():
    with pytest.raises(ZeroDivisionError), use_engine(LocalEngine()):
        raise ZeroDivisionError
    assert current_engine() is None
