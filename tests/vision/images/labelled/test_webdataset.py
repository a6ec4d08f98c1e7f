"""WebDataset tar files: what the package webdataset writes is read, and what is refused."""

from __future__ import annotations

import gzip
import io
import pickle
import tarfile
from pathlib import Path

import pytest

from evergrow.foundation.errors import InvalidInputError
from evergrow.vision import ImageClassifier, ReadLimits, find_labelled, read_image
from evergrow.vision.images.labelled import tar_file
from evergrow.vision.images.labelled.webdataset import expand_braces
from tests.vision.classifier.pictures import MeanColours, encode_png, picture
from tests.vision.images.labelled.files import shard

pytest.importorskip("webdataset")
RED = encode_png(picture("red", 0))


def tar(path: Path, *members: tuple[str, bytes | str], **options: object) -> Path:
    """A tar file with these members; a text is the target of a link."""
    with tarfile.open(path, "w", **options) as archive:  # type: ignore[call-overload]
        for name, content in members:
            member = tarfile.TarInfo(name)
            if isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
                archive.addfile(member)
            else:
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return path


@pytest.mark.parametrize(
    ("label", "classes"),
    [("cls", ["0", "1"]), ("txt", ["red", "green"]), ("json", ["red", "green"])],
)
def test_shards_of_the_package_are_read(tmp_path: Path, label: str, classes: list[str]) -> None:
    found = find_labelled(shard(tmp_path / "a.tar", label=label))
    assert found.labels.tolist() == [classes[0]] * 3 + [classes[1]] * 3
    assert found.problems == ()
    assert read_image(found.sources[0]).shape == (24, 32, 3)
    model = ImageClassifier(MeanColours()).fit(tmp_path / "a.tar")
    assert model.score(tmp_path / "a.tar") == 1
    assert model.partial_fit(found, skip_known=True).report_.n_known_images == 6  # type: ignore[union-attr]


def test_the_package_reads_the_same_samples(tmp_path: Path) -> None:
    from webdataset import tariterators as read

    path = shard(tmp_path / "a.tar")
    with open(path, "rb") as file:
        members = ({**one, "__url__": "a.tar"} for one in read.tar_file_iterator(file))
        samples = read.group_by_keys(members)
        theirs = [(one["__key__"], one["png"], one["cls"].decode()) for one in samples]
    found = find_labelled(path)
    ours = [
        (source.member.name.removesuffix(".png"), source.read_bytes(ReadLimits()), label)  # type: ignore[union-attr]
        for source, label in zip(found.sources, found.labels.tolist(), strict=True)
    ]
    assert ours == theirs


def test_compressed_shards_and_patterns_are_read(tmp_path: Path) -> None:
    for i in range(2):
        plain = shard(tmp_path / f"plain-{i}.tar", seed=3 * i)
        (tmp_path / f"a-00{i}.tar.gz").write_bytes(gzip.compress(plain.read_bytes()))
        (tmp_path / f"b-{i}.tgz").write_bytes(gzip.compress(plain.read_bytes()))
    for pattern in ("a-{000..001}.tar.gz", "b-?.tgz", "{a-000.tar.gz,b-1.tgz}", "plain-*.tar"):
        found = find_labelled(f"{tmp_path}/{pattern}")
        assert len(found.sources) == 12
        assert [read_image(one).shape for one in found.sources] == [(24, 32, 3)] * 12
    with pytest.raises(FileNotFoundError, match=r"no file matches .*a-002"):
        find_labelled(f"{tmp_path}/a-{{000..002}}.tar.gz")


def test_braces_are_bounded() -> None:
    assert expand_braces("a-{08..11}-{x,y}.tar")[:3] == ["a-08-x.tar", "a-08-y.tar", "a-09-x.tar"]
    assert expand_braces("plain.tar") == ["plain.tar"]
    for pattern in ("{0..999999}.tar", "{0..999}{0..999}.tar"):
        with pytest.raises(InvalidInputError, match="more than 100000 files"):
            expand_braces(pattern)


def test_samples_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    path = tar(
        tmp_path / "a.tar",
        ("ok.png", RED), ("ok.cls", b"7"),
        ("bare.png", RED),
        ("text.txt", b"red"),
        ("two.png", RED), ("two.jpg", RED), ("two.cls", b"7"),
        ("same.png", RED), ("same.PNG", RED), ("same.cls", b"7"),
        ("empty.png", RED), ("empty.cls", b" \n"),
        ("broken.png", RED), ("broken.json", b"{"),
        ("other.png", RED), ("other.json", b'{"caption": "red"}'),
        ("latin.png", RED), ("latin.txt", b"caf\xe9"),
        ("mask.png", RED), ("mask.seg.png", RED), ("mask.cls", b"8"),
        ("._ok.png", b"Mac"), ("README", b"notes"),
    )  # fmt: skip
    found = find_labelled(path)
    assert found.labels.tolist() == ["7", "8"]
    assert [str(one).partition("sample ")[2].split(":")[0] for one in found.unreadable] == [
        repr(name) for name in ("bare", "text", "two", "same", "empty", "broken", "other", "latin")
    ]


@pytest.mark.parametrize("kind", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_names_of_all_kinds_of_tar_are_read(tmp_path: Path, kind: int) -> None:
    key = f"{'deep/' * 20}{'x' * 90}é"
    path = tar(tmp_path / "a.tar", (f"./{key}.png", RED), (f"./{key}.cls", b"1"), format=kind)
    (image,) = find_labelled(path).sources
    assert image.member.name == f"{key}.png"  # type: ignore[union-attr]
    assert read_image(image).shape == (24, 32, 3)


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ([("a.png", "/etc/passwd")], "'a.png' is a link"),
        ([("../a.png", RED)], "not the name of a file in a folder"),
        ([("/a.png", RED)], "not the name of a file in a folder"),
        ([("x/../../a.png", RED)], "not the name of a file in a folder"),
        ([("notes.txt", b"hello")], "found no labelled images"),
        ([], "found no labelled images"),
    ],
)
def test_links_and_names_that_leave_are_refused(
    tmp_path: Path, members: list[tuple[str, bytes | str]], reason: str
) -> None:
    with pytest.raises(InvalidInputError, match=reason):
        find_labelled(tar(tmp_path / "a.tar", *members))


def test_truncated_and_damaged_files_are_refused(tmp_path: Path) -> None:
    content = shard(tmp_path / "a.tar").read_bytes()
    with tarfile.open(tmp_path / "a.tar") as archive:
        image = archive.getmember("red/0000.png")
    path = tmp_path / "b.tar"
    for end, reason in (
        (100, "truncated within a header"),
        (image.offset, "empty blocks at its end are missing"),
        (image.offset_data + 10, "truncated: 'red/0000.png' ends beyond"),
    ):
        path.write_bytes(content[:end])
        with pytest.raises(InvalidInputError, match=reason):
            find_labelled(path)
    path.write_bytes(b"x" * 2000)
    with pytest.raises(InvalidInputError, match="damaged, or it is not a tar file"):
        find_labelled(path)
    path.write_bytes(gzip.compress(content)[:-20])
    with pytest.raises(InvalidInputError, match="its compression is damaged"):
        find_labelled(path)


def test_compressed_zeros_do_not_fill_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tar_file, "_SMALL_BYTES", 1 << 20)
    path = tmp_path / "a.tar.gz"
    path.write_bytes(gzip.compress(bytes(10_000_000)))
    with pytest.raises(InvalidInputError, match="20 times its size: decompress it first"):
        find_labelled(path)


def test_sparse_files_and_large_headers_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        member = tarfile.TarInfo("a.png")
        member.pax_headers = {"GNU.sparse.major": "1"}
        archive.addfile(member)
    with pytest.raises(InvalidInputError, match="sparse"):
        find_labelled(path)
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        member = tarfile.TarInfo("a.png")
        member.pax_headers = {"comment": "x" * 100_000}
        archive.addfile(member)
    with pytest.raises(InvalidInputError, match="the header of a long name"):
        find_labelled(path)


def test_an_image_over_the_limit_is_not_read(tmp_path: Path) -> None:
    found = find_labelled(shard(tmp_path / "a.tar"))
    with pytest.raises(InvalidInputError, match="limit of 10 bytes"):
        read_image(found.sources[0], limits=ReadLimits(max_bytes=10))


def test_a_file_that_changes_meanwhile_is_noticed(tmp_path: Path) -> None:
    path = shard(tmp_path / "a.tar")
    found = find_labelled(path)
    path.write_bytes(path.read_bytes() + bytes(512))
    with pytest.raises(InvalidInputError, match="changed meanwhile"):
        read_image(found.sources[0])


def test_images_can_be_sent_to_other_processes_unless_compressed(tmp_path: Path) -> None:
    path = shard(tmp_path / "a.tar")
    image = pickle.loads(pickle.dumps(find_labelled(path).sources[0]))
    assert read_image(image).shape == (24, 32, 3)
    (tmp_path / "b.tgz").write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(InvalidInputError, match="decompress it first"):
        pickle.dumps(find_labelled(tmp_path / "b.tgz").sources[0])
