"""The table next to class folders: its names, and what is not one."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evergrow.foundation.errors import InvalidInputError
from evergrow.vision.images import find_labelled
from evergrow.vision.images.label_table import COLUMNS, format_rows, parse_field


def write(folder, rows, images=()):
    for path in images:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(b"")
    text = format_rows([COLUMNS, *((*row, "", 1, "") for row in rows)])
    (folder / "labels.csv").write_bytes(text.encode())


def test_names_come_from_the_table(tmp_path):
    images = ["a_b/1.jpg", "a_b/2.jpg", "c/3.jpg"]
    rows = [("a_b/1.jpg", "a/b", None), ("a_b/2.jpg", "a/b", "x"), ("c/3.jpg", "=c", None)]
    write(tmp_path, rows, images)
    found = find_labelled(tmp_path)
    assert found.labels.tolist() == ["a/b", "a/b", "=c"]
    assert found.fine == (None, "x", None)


def test_images_that_were_added_or_moved_have_the_class_of_their_folder(tmp_path):
    images = ["a_b/1.jpg", "a_b/new.jpg", "a_b/3.jpg", "d/4.jpg"]
    write(tmp_path, [("a_b/1.jpg", "a/b", None), ("c/3.jpg", "c", None)], images)
    labels = find_labelled(tmp_path).labels.tolist()
    assert sorted(labels) == ["a/b", "a/b", "a/b", "d"]


def test_an_image_may_have_another_class_than_its_folder(tmp_path):
    rows = [("a/1.jpg", "a", None), ("a/2.jpg", "b", None)]
    write(tmp_path, rows, ["a/1.jpg", "a/2.jpg", "a/3.jpg"])
    assert find_labelled(tmp_path).labels.tolist() == ["a", "b", "a"]


def test_names_that_a_mac_decomposed_are_found(tmp_path):
    folder = unicodedata.normalize("NFD", "café")
    write(tmp_path, [("café/1.jpg", "Café!", None)], [f"{folder}/1.jpg"])
    assert find_labelled(tmp_path).labels.tolist() == ["Café!"]


@pytest.mark.parametrize("text", ["", "path,label\nc/3.jpg,x\n", "id,breed\n1,dog\n", "\0" * 50])
def test_a_table_of_others_is_ignored(tmp_path, text):
    write(tmp_path, [], ["c/3.jpg"])
    (tmp_path / "labels.csv").write_text(text)
    assert find_labelled(tmp_path).labels.tolist() == ["c"]


HEADER = ",".join(COLUMNS).encode() + b"\r\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"c/3.jpg,x\r\n", "row 2 has 2 fields instead of 6"),
        (b"c/3.jpg,,,,,\r\n", "row 2 has no label"),
        (b'c/3.jpg,"a\nb",,,,\r\n', "control character"),
        (b"c/3.jpg,\x1b[2J,,,,\r\n", "control character"),
        (b"c/3.jpg,\xff,,,,\r\n", "cannot be read"),
        (b"c/3.jpg," + b"x" * 200_000 + b",,,,\r\n", "field larger than field limit"),
    ],
)
def test_a_damaged_table_is_an_error_that_says_what_to_do(tmp_path, content, message):
    write(tmp_path, [], ["c/3.jpg"])
    (tmp_path / "labels.csv").write_bytes(HEADER + content)
    with pytest.raises(InvalidInputError, match=message) as raised:
        find_labelled(tmp_path)
    assert "delete it" in str(raised.value)


@given(st.text())
def test_a_field_is_read_as_it_was_written(text):
    import csv
    import io

    ((field,),) = list(
        csv.reader(
            io.StringIO(
                format_rows(
                    [
                        [
                            text,
                        ]
                    ]
                ),
                newline="",
            )
        )
    ) or [[""]]
    assert parse_field(field) == text
