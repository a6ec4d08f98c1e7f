"""Tables of labels: what is read, alone and next to class folders, and what is refused."""

from __future__ import annotations

import csv
import io
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evergrow.foundation.errors import ImageError, InvalidInputError
from evergrow.vision import ImageClassifier, find_labelled
from evergrow.vision.images.label_table import COLUMNS, format_rows, parse_field
from tests.vision.classifier.pictures import MeanColours
from tests.vision.images.labelled.files import pictures, table

needs_links = pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")


def write(folder: Path, text: str | bytes, name: str = "t.csv") -> Path:
    pictures(folder)
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def problems(path: Path, **options: object) -> list[str]:
    return [str(one) for one in find_labelled(path, **options).problems]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "path,label\nr0.png,red\ng0.png,green\n",
        "\ufeffpath,label\r\nr0.png,red\r\ng0.png,green\r\n",
        "label;path\nred;r0.png\ngreen;g0.png\n",
        "Image\tClass\tnotes\nr0.png\tred\t1,2\ng0.png\tgreen\t\n",
        'filename,category\n"r0.png","red"\ng0.png , green',
        "path|label\nr0.png|red\n\n\ng0.png|green\n",
    ],
    ids=["plain", "bom", "semicolon", "tabs", "quotes", "blank lines"],
)
def test_usual_tables_are_read(tmp_path: Path, text: str) -> None:
    found = find_labelled(write(tmp_path, text))
    assert [path.name for path in found.paths] == ["r0.png", "g0.png"]
    assert found.labels.tolist() == ["red", "green"]
    assert found.problems == ()


def test_bad_rows_are_named_by_their_lines(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        'path,label,note\nr0.png,red,"two\nlines"\nmissing.png,red,\ng0.png,,\nr1.png,red\n'
        "../t.csv,red,\n/etc/passwd,red,\n,red,\nr0.png,red,\nr2.png,a\0b,\n.,red,\n",
    )
    found = find_labelled(path)
    assert [path.name for path in found.paths] == ["r0.png"]
    assert [str(one).partition("t.csv' ")[2] for one in found.problems] == [
        "line 4: 'missing.png': there is no such file",
        "line 5: it has no label",
        "line 6: it has 2 fields, the header has 3",
        "line 7: '../t.csv' leaves the folder of the file",
        "line 8: '/etc/passwd' is an absolute path",
        "line 9: it has no path",
        "line 11: its label has a control character",
        "line 12: '.' is not a regular file",
        "line 10: the same row as in line 2",
    ]
    # The repeated row hides no image.
    assert len(found.unreadable) == 8


def test_training_stops_at_bad_rows_unless_they_are_skipped(tmp_path: Path) -> None:
    path = write(tmp_path, "path,label\nr0.png,red\nx.png,red\ng0.png,green\ny.png,green\n")
    model = ImageClassifier(MeanColours())
    with pytest.raises(ImageError, match=r"line 3: 'x.png'.*line 5: 'y.png'"):
        model.fit(path)
    with pytest.warns(UserWarning, match="line 3"):
        model.set_params(on_error="skip").fit(path)
    assert model.class_counts_.tolist() == [1, 1]


def test_names_outside_of_the_folder_need_permission(tmp_path: Path) -> None:
    pictures(tmp_path / "elsewhere")
    (tmp_path / "tables").mkdir()
    path = tmp_path / "tables" / "t.csv"
    absolute = tmp_path / "elsewhere" / "g0.png"
    path.write_text(f"path,label\n../elsewhere/r0.png,red\n{absolute},green\n")
    with pytest.raises(InvalidInputError, match=r"line 2: .*leaves the folder.*line 3"):
        find_labelled(path)
    assert find_labelled(path, outside=True).labels.tolist() == ["red", "green"]


def test_a_drive_of_windows_is_absolute_everywhere(tmp_path: Path) -> None:
    path = write(tmp_path, "path,label\nr0.png,red\nC:\\r0.png,red\n\\r0.png,red\n")
    assert ["absolute path" in one for one in problems(path)] == [True, True]


def test_the_folder_of_the_images_can_be_named(tmp_path: Path) -> None:
    pictures(tmp_path / "photos" / "deep")
    path = tmp_path / "t.csv"
    path.write_text("path,label\ndeep/r0.png,red\ndeep\\g0.png,green\n")
    found = find_labelled(path, images=tmp_path / "photos")
    assert [path.name for path in found.paths] == ["r0.png", "g0.png"]


@needs_links
def test_links_are_followed_unless_forbidden(tmp_path: Path) -> None:
    path = write(tmp_path, "path,label\nlink.png,red\ndeep/r0.png,red\nr0.png,red\n")
    (tmp_path / "link.png").symlink_to("r0.png")
    (tmp_path / "deep").symlink_to(".")
    assert len(find_labelled(path).paths) == 3
    found = find_labelled(path, follow_links=False)
    assert [path.name for path in found.paths] == ["r0.png"]
    assert all("a link is not followed" in str(one) for one in found.unreadable)


def test_a_column_of_splits_is_used(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "path,label,split\nr0.png,red,train\ng0.png,green,Train\nr1.png,red,valid\n"
        "r2.png,red,valid\n",
    )
    found = find_labelled(path)
    assert (found.labels.tolist(), found.splits) == (["red", "green"], ("train", "val"))
    assert found.split == path / "train"
    assert len(find_labelled(path, split="test").paths) == 2
    assert len(find_labelled(path, split=None).paths) == 4
    path.write_text("path,label,split\nr0.png,red,test\n")
    with pytest.raises(InvalidInputError, match="has the splits 'test', but not train"):
        find_labelled(path)


def test_other_values_in_a_column_of_splits_are_not_splits(tmp_path: Path) -> None:
    path = write(tmp_path, "path,label,split\nr0.png,red,train\ng0.png,green,fold 2\n")
    assert (len(find_labelled(path).paths), find_labelled(path).split) == (2, None)


def test_columns_can_be_named(tmp_path: Path) -> None:
    path = write(tmp_path, "id,what,where\n1,red,r0.png\n2,green,g0.png\n")
    with pytest.raises(InvalidInputError, match=r"must name the columns.*it has 'id', 'what'"):
        find_labelled(path)
    assert find_labelled(path, columns=("where", "what")).labels.tolist() == ["red", "green"]
    with pytest.raises(InvalidInputError, match="columns where and who"):
        find_labelled(path, columns=("where", "who"))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty"),
        (b"\n\n", "it is empty"),
        ("path,label\n".encode("utf-16"), "it is UTF-16: save it as UTF-8"),
        (b"path,label\nr0.png,red\nr1.png,caf\xe9\n", "it is not UTF-8 from line"),
        (b'path,label\nr0.png,"red\n', "line 2: unexpected end of data"),
        (b'path,label\nr0.png,red\n"a"b,red\n', "line 3: ',' expected after"),
        (b"path,label\nr0.png," + b"x" * 200_000, "line 2: field larger than field limit"),
        (b"path,label\n", "found no images"),
        (b"path,label\nx.png,red\n", "found no images.*line 2"),
        (b"\x89PNG\r\n\x1a\n\0\0", "not a table of images"),
    ],
)
def test_files_that_are_not_tables_are_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    with pytest.raises(InvalidInputError, match=reason):
        find_labelled(write(tmp_path, content))


def test_the_size_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = table(tmp_path)
    module = "evergrow.vision.images.labelled.table"
    monkeypatch.setattr(f"{module}._MAX_ROWS", 5)
    with pytest.raises(InvalidInputError, match="more than 5 rows"):
        find_labelled(path)
    monkeypatch.setattr(f"{module}._MAX_BYTES", 20)
    with pytest.raises(InvalidInputError, match="a table may have 20 bytes"):
        find_labelled(path)


def test_a_long_label_among_many_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, f"path,label\nr0.png,red\nr1.png,{'x' * 200}\n")
    assert len(find_labelled(path).labels) == 2
    module = "evergrow.vision.images.labelled.labelled_images"
    monkeypatch.setattr(f"{module}._MAX_LABEL_BYTES", 1599)
    with pytest.raises(InvalidInputError, match="use shorter names"):
        find_labelled(path)
    path.write_text(f"path,label\nr0.png,red\nr1.png,{'x' * 201}\n")
    assert "201 characters" in problems(path)[0]


def test_the_table_of_a_workspace_is_read_with_its_fine_classes(tmp_path: Path) -> None:
    rows = [COLUMNS, ("r0.png", "=red", "dark", "", 1, ""), ("g0.png", "green", "", "", 2, "")]
    found = find_labelled(write(tmp_path, format_rows(rows)))
    assert (found.labels.tolist(), found.fine) == (["=red", "green"], ("dark", None))


def test_a_quote_of_others_stays(tmp_path: Path) -> None:
    path = write(tmp_path, "path,label\nr0.png,'=red\n")
    assert find_labelled(path).labels.tolist() == ["'=red"]


def test_options_of_other_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="crop is for COCO annotations"):
        find_labelled(table(tmp_path), crop=True)


def write_rows(folder, rows, images=()):
    for path in images:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(b"")
    text = format_rows([COLUMNS, *((*row, "", 1, "") for row in rows)])
    (folder / "labels.csv").write_bytes(text.encode())


def test_names_come_from_the_table(tmp_path):
    images = ["a_b/1.jpg", "a_b/2.jpg", "c/3.jpg"]
    rows = [("a_b/1.jpg", "a/b", None), ("a_b/2.jpg", "a/b", "x"), ("c/3.jpg", "=c", None)]
    write_rows(tmp_path, rows, images)
    found = find_labelled(tmp_path)
    assert found.labels.tolist() == ["a/b", "a/b", "=c"]
    assert found.fine == (None, "x", None)


def test_images_that_were_added_or_moved_have_the_class_of_their_folder(tmp_path):
    images = ["a_b/1.jpg", "a_b/new.jpg", "a_b/3.jpg", "d/4.jpg"]
    write_rows(tmp_path, [("a_b/1.jpg", "a/b", None), ("c/3.jpg", "c", None)], images)
    labels = find_labelled(tmp_path).labels.tolist()
    assert sorted(labels) == ["a/b", "a/b", "a/b", "d"]


def test_an_image_may_have_another_class_than_its_folder(tmp_path):
    rows = [("a/1.jpg", "a", None), ("a/2.jpg", "b", None)]
    write_rows(tmp_path, rows, ["a/1.jpg", "a/2.jpg", "a/3.jpg"])
    assert find_labelled(tmp_path).labels.tolist() == ["a", "b", "a"]


def test_names_that_a_mac_decomposed_are_found(tmp_path):
    folder = unicodedata.normalize("NFD", "café")
    write_rows(tmp_path, [("café/1.jpg", "Café!", None)], [f"{folder}/1.jpg"])
    assert find_labelled(tmp_path).labels.tolist() == ["Café!"]


@pytest.mark.parametrize("text", ["", "path,label\nc/3.jpg,x\n", "id,breed\n1,dog\n", "\0" * 50])
def test_a_table_of_others_is_ignored(tmp_path, text):
    write_rows(tmp_path, [], ["c/3.jpg"])
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
    write_rows(tmp_path, [], ["c/3.jpg"])
    (tmp_path / "labels.csv").write_bytes(HEADER + content)
    with pytest.raises(InvalidInputError, match=message) as raised:
        find_labelled(tmp_path)
    assert "delete it" in str(raised.value)


@given(st.text())
def test_a_field_is_read_as_it_was_written(text):
    file = io.StringIO(format_rows([[text]]), newline="")
    ((field,),) = list(csv.reader(file)) or [[""]]
    assert parse_field(field) == text
