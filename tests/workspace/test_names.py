"""Names of classes."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evergrow import WorkspaceError
from evergrow.workspace.names import LONGEST_NAME, NAME_PATTERN, normalise_name, similar_names

# Cases that the page decides in the same way.
SIMILAR_NAMES = json.loads((Path(__file__).parent / "similar_names.json").read_text())
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
def test_a_visible_name_is_accepted_unchanged(name):
    assert normalise_name(name) == name


def test_white_space_around_a_name_is_left_out():
    assert normalise_name(" \t\u3000red cup\r\n") == "red cup"


@pytest.mark.parametrize("text", ["red  cup", "red\u00a0cup", "red \u3000\u2009cup"])
def test_white_space_within_a_name_is_one_space(text):
    assert normalise_name(text) == "red cup"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must not be empty"),
        (" \n\u00a0", "must not be empty"),
        ("a" * (LONGEST_NAME + 1), "at most 200 characters, got 201"),
        ("a\x00b", "U+0000 at position 2, a control character"),
        ("a\nb", "U+000A at position 2, a control character"),
        ("a\x7f", "U+007F at position 2, a control character"),
        ("ab\u202ecd", "U+202E at position 3, a bidirectional mark"),
        ("\u2066a", "U+2066 at position 1, a bidirectional mark"),
        ("a\u200bb", "U+200B at position 2, a hidden character"),
        ("a\ufeff", "U+FEFF at position 2, a hidden character"),
        ("a\u2028b", "U+2028 at position 2, a line or paragraph separator"),
        ("\ud800", "U+D800 at position 1, a half of a surrogate pair"),
        ("a\ue000", "U+E000 at position 2, a character of private use"),
        ("\uffff", "U+FFFF at position 1, a code that is not a character"),
        ("\u200d", "must not begin or end with an invisible character"),
        ("a\u200c", "got U+200C at position 2"),
        ("cu\u034fp", "U+034F at position 3, a hidden character"),
        ("cup\u180b", "U+180B at position 4, a hidden character"),
        ("cup\u180f", "U+180F at position 4, a hidden character"),
        ("\u2764\ufe0e", "U+FE0E at position 2, a hidden character"),
        ("cup\U000e0100", "U+E0100 at position 4, a hidden character"),
        ("cup\ufe0f", "U+FE0F at position 4, which is invisible"),
        ("\ufe0fcup", "U+FE0F at position 1, which is invisible"),
        ("\u2764\ufe0f\ufe0f", "U+FE0F at position 3, which is invisible"),
        ("\u30ab\ufe0f", "U+FE0F at position 2, which is invisible"),
        ("cup 1\ufe0f", "U+FE0F at position 6, which is invisible"),
        ("\u3164", "a hidden character, which is not allowed: it is invisible"),
    ],
)
def test_an_invisible_character_is_refused_with_its_position(text, message):
    with pytest.raises(WorkspaceError, match="^label .*" + re.escape(message)):
        normalise_name(text)


def test_a_name_that_is_not_text_is_refused():
    with pytest.raises(WorkspaceError, match="label must be text, got int"):
        normalise_name(3)


@pytest.mark.slow
def test_no_character_of_the_invisible_categories_is_accepted():
    taken = set()
    for code in range(0x110000):
        if unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"):
            try:
                normalise_name(f"a{chr(code)}b")
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
def test_the_pattern_agrees_with_the_function(text):
    try:
        normalise_name(text)
        taken = True
    except WorkspaceError:
        taken = False
    assert (re.search(NAME_PATTERN, text) is not None) == taken


@given(st.text(CHARACTERS, min_size=1, max_size=6))
def test_a_normalised_name_does_not_change_again(text):
    try:
        name = normalise_name(text)
    except WorkspaceError:
        return
    assert normalise_name(name) == name


@pytest.mark.parametrize(("name", "other", "similar"), SIMILAR_NAMES)
def test_names_that_differ_only_by_case_or_space_are_similar(name, other, similar):
    assert similar_names([name], ["first", other]) == ({name: other} if similar else {})
    assert similar_names([other], ["first", name]) == ({other: name} if similar else {})
