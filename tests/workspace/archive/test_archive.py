"""Labelled pictures in class folders, with a table that says which is which, and zip files."""

from __future__ import annotations

import csv
import errno
import io
import zipfile
import zlib
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from evergrow import InvalidInputError, WorkspaceError
from evergrow.vision.images import find_labelled
from evergrow.vision.images.decoder import MEDIA_TYPES
from evergrow.workspace import ConflictError, Workspace, WorkspaceFullError
from evergrow.workspace.archive import zip_stream
from evergrow.workspace.archive.zip_stream import ZipStream
from tests.workspace.builders import new_example, new_workspace, picture

HOSTILE = ["left/right", "..", "NUL", "labels.csv", "mug", "Mug", "=1+1", "'tis", "قهوة", "m" * 200]


@pytest.fixture
def workspace(tmp_path):
    with new_workspace(tmp_path) as workspace:
        yield workspace


def teach(workspace, labels, **options):
    examples = [
        new_example(label, n, picture=picture((label, n)), **options)
        for n, label in enumerate(labels)
    ]
    return workspace.teach(examples)


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_a_folder_has_the_files_and_the_table(workspace, tmp_path):
    teach(workspace, ["cup", "cup", "pen"])
    done = workspace.export_pictures(tmp_path / "pictures")
    assert (done.n_pictures, done.n_classes, done.n_without_picture, done.n_lost) == (3, 2, 0, 0)
    rows = rows_of((tmp_path / "pictures/labels.csv").read_text())
    assert [row["path"] for row in rows] == ["cup/1.png", "cup/2.png", "pen/3.png"]
    for row in rows:
        content = (tmp_path / "pictures" / row["path"]).read_bytes()
        assert content == workspace.picture(int(row["id"]))
        example = workspace.example(int(row["id"]))
        assert (row["label"], row["time"], row["image"]) == (
            example.label,
            example.at,
            example.image,
        )


def test_a_zip_file_has_the_same_content(workspace, tmp_path):
    teach(workspace, HOSTILE)
    workspace.export_pictures(tmp_path / "pictures")
    workspace.export_pictures(tmp_path / "pictures.zip")
    with workspace.picture_archive() as archive:
        assert (tmp_path / "pictures.zip").stat().st_size == archive.n_bytes
    with zipfile.ZipFile(tmp_path / "pictures.zip") as archive:
        assert archive.testzip() is None
        archive.extractall(tmp_path / "unzipped")
    files = [path for path in (tmp_path / "pictures").rglob("*") if path.is_file()]
    assert len(files) == len(HOSTILE) + 1
    for path in files:
        other = tmp_path / "unzipped" / path.relative_to(tmp_path / "pictures")
        assert path.read_bytes() == other.read_bytes()


def test_the_classes_are_found_again_whatever_their_names(workspace, tmp_path):
    teach(workspace, HOSTILE)
    workspace.export_pictures(tmp_path / "pictures")
    found = find_labelled(tmp_path / "pictures")
    labels = found.labels.tolist()
    contents = {one.read_bytes(): label for one, label in zip(found.paths, labels, strict=True)}
    assert contents == {picture((label, n)).content: label for n, label in enumerate(HOSTILE)}
    assert found.problems == ()


def test_given_fine_classes_are_in_the_table_and_guesses_are_not(workspace, tmp_path):
    teach(workspace, ["dog"] * 2, fine="beagle")
    teach(workspace, ["cat"] * 2)
    workspace.export_pictures(tmp_path / "pictures")
    rows = rows_of((tmp_path / "pictures/labels.csv").read_text())
    assert [row["fine"] for row in rows] == ["beagle", "beagle", "", ""]
    assert find_labelled(tmp_path / "pictures").fine == (None, None, "beagle", "beagle")


def test_examples_without_a_picture_are_in_the_table_only(workspace, tmp_path):
    teach(workspace, ["cup", "pen"])
    workspace.teach([new_example("cup", "embedding"), new_example("key", "embedding")])
    (lost,) = (tmp_path / "workspace/images").rglob(workspace.example(2).image)
    lost.unlink()
    done = workspace.export_pictures(tmp_path / "pictures.zip")
    assert (done.n_pictures, done.n_classes, done.n_without_picture, done.n_lost) == (1, 1, 2, 1)
    with zipfile.ZipFile(tmp_path / "pictures.zip") as archive:
        rows = rows_of(archive.read("labels.csv").decode())
        assert archive.namelist() == ["cup/1.png", "labels.csv"]
    assert [(row["label"], row["path"]) for row in rows] == [
        ("cup", "cup/1.png"),
        ("cup", ""),
        ("pen", ""),
        ("key", ""),
    ]


@pytest.mark.parametrize("name", ["pictures.zip", "pictures"])
def test_without_pictures_nothing_is_written(workspace, tmp_path, name):
    with pytest.raises(ConflictError, match="no examples yet"):
        workspace.export_pictures(tmp_path / name)
    workspace.teach([new_example("cup")])
    with pytest.raises(ConflictError, match="taught as embeddings"):
        workspace.export_pictures(tmp_path / name)
    assert {path.name for path in tmp_path.iterdir()} == {"workspace"}


def test_a_folder_that_has_something_is_left_alone(workspace, tmp_path):
    teach(workspace, ["cup"])
    (tmp_path / "pictures").mkdir()
    workspace.export_pictures(tmp_path / "pictures")
    with pytest.raises(InvalidInputError, match="not empty"):
        workspace.export_pictures(tmp_path / "pictures")


@pytest.mark.parametrize("name", ["pictures.zip", "pictures"])
def test_an_erasure_meanwhile_ends_the_export_and_leaves_no_file(workspace, tmp_path, name):
    teach(workspace, ["cup", "pen"])
    with workspace.picture_archive() as archive:
        workspace.forget("pen", erase=True)
        write = archive.write_zip if name.endswith(".zip") else archive.write_folder
        with pytest.raises(WorkspaceError, match="erased during the export"):
            write(tmp_path / name)
    assert {path.name for path in tmp_path.iterdir()} == {"workspace"}


def test_a_picture_that_shrank_ends_the_export(workspace, tmp_path):
    teach(workspace, ["cup"])
    with workspace.picture_archive() as archive:
        (file,) = (path for path in (tmp_path / "workspace/images").rglob("*") if path.is_file())
        file.write_bytes(b"less")
        with pytest.raises(WorkspaceError, match="try again"):
            archive.write_zip(tmp_path / "pictures.zip")


def test_a_reader_exports_while_another_process_may_write(workspace, tmp_path):
    teach(workspace, ["cup"])
    with Workspace.open(tmp_path / "workspace", read_only=True) as reader:
        reader.export_pictures(tmp_path / "pictures.zip")
        reader.export_audit_log(tmp_path / "log.jsonl")
    assert (tmp_path / "log.jsonl").read_text().count("\n") == 1


@pytest.mark.parametrize("media_type", MEDIA_TYPES)
def test_files_of_every_type_are_found_by_their_suffix(workspace, tmp_path, media_type):
    workspace.teach([new_example("cup", picture=replace(picture(0), media_type=media_type))])
    workspace.export_pictures(tmp_path / "pictures")
    assert len(find_labelled(tmp_path / "pictures").paths) == 1


def test_a_full_disk_of_temporary_files_is_named(workspace, monkeypatch):
    class FullFile:
        def __init__(self, *_):
            pass

        def write(self, _):
            raise OSError(errno.ENOSPC, "No space left on device")

        def close(self):
            pass

    teach(workspace, ["cup"])
    monkeypatch.setattr("tempfile.SpooledTemporaryFile", FullFile)
    with pytest.raises(WorkspaceFullError, match="free some space"):
        workspace.picture_archive()


def test_examples_are_read_by_an_index(workspace):
    from evergrow.workspace.archive.archive import _EXAMPLES

    with workspace._store.database.read_transaction() as connection:
        plan = connection.execute(f"EXPLAIN QUERY PLAN {_EXAMPLES}").fetchall()
    assert not any("TEMP B-TREE" in row[-1] for row in plan), plan


def test_memory_does_not_grow_with_the_pictures(workspace, tmp_path):
    import tracemalloc

    large = replace(picture(0), content=bytes(8 << 20))
    workspace.teach([new_example("cup", 0, picture=large)])
    with workspace.picture_archive() as archive:
        tracemalloc.start()
        archive.write_zip(tmp_path / "pictures.zip")
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 2 << 20


@pytest.mark.parametrize("name", ["pictures.zip", "pictures"])
def test_annotations_of_coco_give_the_same_labels_again(workspace, tmp_path, name):
    # One of them has the name of the file.
    labels = ["cup", "a/b", "=1+1", "annotations.json", "Häferl"]
    teach(workspace, labels)
    workspace.export_pictures(tmp_path / name, coco=True)
    folder = tmp_path / "pictures"
    if name.endswith(".zip"):
        with zipfile.ZipFile(tmp_path / name) as archive:
            archive.extractall(folder)
    by_folder = find_labelled(folder)
    by_table = find_labelled(folder / "labels.csv")
    by_coco = find_labelled(folder / "annotations.json")
    expected = dict(zip(by_folder.paths, by_folder.labels.tolist(), strict=True))
    assert sorted(expected.values()) == sorted(labels)
    for found in (by_table, by_coco):
        assert dict(zip(found.paths, found.labels.tolist(), strict=True)) == expected
        assert found.problems == ()


def test_labels_are_written_without_pictures(workspace, tmp_path):
    teach(workspace, ["cup", "=1"])
    workspace.export_labels(tmp_path / "labels.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "labels.csv").read_text())))
    assert sorted(row["label"] for row in rows) == ["'=1", "cup"]


AT = datetime(2026, 11, 18, 12, 34, 56, tzinfo=UTC)


def make(files):
    """A zip file, and the size that was said before it was made."""
    with ZipStream() as size:
        for name, content in files.items():
            size.add(name, len(content), 0, AT)
        n_bytes = size.n_bytes
    with ZipStream() as archive:
        made = b"".join(
            archive.add(name, len(content), zlib.crc32(content), AT) + content
            for name, content in files.items()
        )
        return made + b"".join(archive.end()), n_bytes


FILES = {"a.txt": b"one", "ünder/☕.bin": bytes(range(256)) * 9, "empty": b""}


@pytest.mark.slow
@pytest.mark.parametrize("files", [FILES, {}, {f"{n}": b"x" for n in range(70_000)}])
def test_the_content_is_that_of_the_files_and_the_size_as_said(files):
    made, n_bytes = make(files)
    assert len(made) == n_bytes
    with zipfile.ZipFile(io.BytesIO(made)) as archive:
        assert archive.namelist() == list(files)
        assert archive.testzip() is None
        assert {name: archive.read(name) for name in list(files)[:100]} == dict(
            list(files.items())[:100]
        )


def test_files_have_their_time_and_ordinary_permissions():
    with zipfile.ZipFile(io.BytesIO(make(FILES)[0])) as archive:
        info = archive.infolist()[0]
    assert info.date_time == (2026, 11, 18, 12, 34, 56)
    assert info.external_attr >> 16 == 0o100644


@pytest.mark.parametrize("year", [1, 1979, 2108, 9999])
def test_times_that_zip_files_cannot_have_are_the_nearest(year):
    time = datetime(year, 1, 1, tzinfo=UTC)
    with ZipStream() as archive:
        made = archive.add("a", 0, 0, time) + b"".join(archive.end())
    with zipfile.ZipFile(io.BytesIO(made)) as read:
        assert read.infolist()[0].date_time[0] == min(max(year, 1980), 2107)


def test_large_files_and_far_places_use_64_bits(monkeypatch):
    """The limits are lowered: no test writes four gigabytes."""
    monkeypatch.setattr(zip_stream, "_MAX_32", 1000)
    content = b"x" * 1500
    with ZipStream() as size:
        for name in "ab":
            size.add(name, len(content), 0, AT)
        n_bytes = size.n_bytes
    with ZipStream() as archive:
        made = b"".join(
            archive.add(name, len(content), zlib.crc32(content), AT) + content for name in "ab"
        )
        made += b"".join(archive.end())
    assert len(made) == n_bytes
    # The places of 32 bits hold 1000, which readers take for a number: set them to the true limit.
    limit = (1000).to_bytes(4, "little")
    whole = made.replace(limit, b"\xff\xff\xff\xff")
    with zipfile.ZipFile(io.BytesIO(whole)) as read:
        assert [read.read(name) for name in "ab"] == [content, content]


def test_a_large_directory_is_not_kept_in_memory():
    with ZipStream() as archive:
        for number in range(20_000):
            archive.add(f"{number:0100d}", 0, 0, AT)
        assert archive._directory._rolled
