"""Names of classes."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evergrow import WorkspaceError
from evergrow.workspace.names import LONGEST_NAME, NAME_PATTERN, checked_name

CHARACTERS = st.characters(exclude_categories=["Cs"])
HOSTILE = st.sampled_from(
    "\u202e\u200b\u200d\u200c\ufeff\u2028\x00\n\t \u00a0\ue000\U000e0041a\ufe0f\u2764\u20e31"
)


@pytest.mark.parametrize(
    "name",
    [
        "cup",
        "<script>alert(1)</script>",
        "Größe 3/4",
        "ネコ",
        "می‌خواهم",
        "👩‍🔬",
        "❤️",
        "1️⃣",
        "☎️ and ©️",
        "cafe\u0301 au lait".replace("e\u0301", "é"),
        "a" * LONGEST_NAME,
        "'; DROP TABLE class; --",
    ],
)
def test_a_name_that_can_be_seen_is_taken_as_it_is(name):
    assert checked_name(name) == name


def test_two_spellings_that_look_the_same_are_one_name():
    assert checked_name("cafe\u0301") == checked_name("caf\u00e9")


def test_white_space_around_a_name_is_left_out():
    assert checked_name(" \t\u3000red cup\r\n") == "red cup"


@pytest.mark.parametrize("text", ["red  cup", "red\u00a0cup", "red \u3000\u2009cup"])
def test_white_space_within_a_name_is_one_space(text):
    assert checked_name(text) == "red cup"


def test_white_space_in_a_row_counts_once():
    text = "a" + " " * 300 + "b" * (LONGEST_NAME - 2)
    assert len(checked_name(text)) == LONGEST_NAME


def test_case_matters():
    assert checked_name("Cup") != checked_name("cup")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must not be empty"),
        (" \n\u00a0", "must not be empty"),
        ("a" * (LONGEST_NAME + 1), "at most 200 characters, got 201"),
        ("a\x00b", "no control character, got U+0000 at place 2"),
        ("a\nb", "no control character, got U+000A at place 2"),
        ("a\x7f", "no control character, got U+007F at place 2"),
        ("ab\u202ecd", "no bidirectional mark, got U+202E at place 3, which cannot be seen"),
        ("\u2066a", "no bidirectional mark, got U+2066 at place 1"),
        ("a\u200bb", "no invisible character, got U+200B at place 2"),
        ("a\ufeff", "no invisible character, got U+FEFF at place 2"),
        ("a\u2028b", "no line or paragraph separator, got U+2028 at place 2"),
        ("\ud800", "no half of a surrogate pair, got U+D800 at place 1"),
        ("a\ue000", "no character of private use, got U+E000 at place 2"),
        ("\uffff", "no code that is no character, got U+FFFF at place 1"),
        ("\u200d", "must not begin or end with an invisible character"),
        ("a\u200c", "got U+200C at place 2"),
        ("cu\u034fp", "no invisible character, got U+034F at place 3"),
        ("cup\u180b", "no invisible character, got U+180B at place 4"),
        ("cup\u180f", "no invisible character, got U+180F at place 4"),
        ("\u2764\ufe0e", "no invisible character, got U+FE0E at place 2"),
        ("cup\U000e0100", "no invisible character, got U+E0100 at place 4"),
        ("cup\ufe0f", "no invisible character, got U+FE0F at place 4"),
        ("\ufe0fcup", "no invisible character, got U+FE0F at place 1"),
        ("\u2764\ufe0f\ufe0f", "no invisible character, got U+FE0F at place 3"),
        ("\u30ab\ufe0f", "no invisible character, got U+FE0F at place 2"),
        ("cup 1\ufe0f", "no invisible character, got U+FE0F at place 6"),
        ("\u3164", "no invisible character"),
    ],
)
def test_a_name_that_cannot_be_seen_is_refused_with_the_place(text, said):
    with pytest.raises(WorkspaceError, match="^label .*" + re.escape(said)):
        checked_name(text)


def test_a_name_that_is_no_text_is_refused():
    with pytest.raises(WorkspaceError, match="label must be text, got int"):
        checked_name(3)


def test_no_character_of_the_invisible_categories_is_taken():
    taken = set()
    for code in range(0x110000):
        if unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"):
            try:
                checked_name(f"a{chr(code)}b")
            except WorkspaceError:
                continue
            taken.add(chr(code))
    assert taken == {"\u200c", "\u200d"}


@given(st.text(CHARACTERS | HOSTILE, max_size=6))
@example("\u200da")
@example("a" * 200)
@example("a" * 201)
@example(" " + "a" * 200 + " ")
@example("a \u200d")
@example("a" + " " * 300 + "b" * 198)
@example("a" + " " * 300 + "b" * 199)
@example("a" + " " * 300)
@example("\u2764\ufe0f")
@example("a \ufe0fb")
@example("1\ufe0f\u20e3")
@example("\u2764\ufe0f" * 100)
def test_the_pattern_says_what_the_function_says(text):
    try:
        checked_name(text)
        taken = True
    except WorkspaceError:
        taken = False
    assert (re.search(NAME_PATTERN, text) is not None) == taken


@given(st.text(CHARACTERS, min_size=1, max_size=6))
def test_a_checked_name_is_its_own_spelling(text):
    try:
        name = checked_name(text)
    except WorkspaceError:
        return
    assert checked_name(name) == name
