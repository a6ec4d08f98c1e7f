"""Names of folders: portable, distinct, and like the names of the classes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evergrow.foundation.errors import WorkspaceError
from evergrow.vision.images.folder_names import FolderNames
from evergrow.workspace.names import normalise_name

DEVICES = ["con", "prn", "aux", "nul", "com1", "lpt9", "com²"]


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("cup", "cup"),
        ("red cup", "red cup"),
        ("Größe 43", "Größe 43"),
        ("قهوة", "قهوة"),
        ("👩‍🔬", "👩_🔬"),
        ("a/b\\c", "a_b_c"),
        ('<b>"x"?*|:</b>', "_b__x_______b_"),
        (".", "_"),
        ("..", "__"),
        (".hidden", "_hidden"),
        ("etc.", "etc_"),
        ("nul", "_nul"),
        ("NUL.txt", "_NUL.txt"),
        ("con .tar.gz", "_con .tar.gz"),
        ("console", "console"),
        ("m" * 200, "m" * 100),
        ("é" * 200, "é" * 50),
        ("m" * 99 + " m", "m" * 99),
    ],
)
def test_a_folder_is_called_like_its_class_as_far_as_possible(name, folder):
    assert FolderNames().find(name) == folder


def test_names_that_a_file_system_takes_for_the_same_are_told_apart():
    names = FolderNames(["labels.csv"])
    found = [names.find(name) for name in ("mug", "Mug", "a/b", "a:b", "ﬁn", "fin", "LABELS.CSV")]
    assert found == ["mug", "Mug (2)", "a_b", "a_b (2)", "ﬁn", "fin (2)", "LABELS.CSV (2)"]


def test_a_number_may_be_taken_by_a_class_too():
    names = FolderNames()
    found = [names.find(name) for name in ("a_b (2)", "a/b", "a:b", "a?b")]
    assert found == ["a_b (2)", "a_b", "a_b (3)", "a_b (4)"]


def acceptable(name):
    try:
        return normalise_name(name) == name
    except WorkspaceError:
        return False


@pytest.mark.slow
@given(st.lists(st.text(min_size=1, max_size=200).filter(acceptable), unique=True, max_size=20))
def test_any_names_of_classes_give_distinct_portable_folders(labels):
    names = FolderNames()
    folders = [names.find(label) for label in labels]
    assert len({folder.casefold() for folder in folders}) == len(labels)
    for folder in folders:
        assert folder.isprintable()
        assert not set(folder) & set('<>:"/\\|?*')
        assert not folder.startswith((".", " "))
        assert not folder.endswith((".", " "))
        assert 0 < len(folder.encode()) <= 110
        assert folder.partition(".")[0].rstrip().lower() not in DEVICES
