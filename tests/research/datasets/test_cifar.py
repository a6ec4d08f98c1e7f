"""CIFAR in all versions, from folders and archives, valid and malicious."""

import os
import pickle
import tarfile

import numpy as np
import pytest

from evergrow import DatasetError
from evergrow.research import load_dataset
from tests.research.datasets.made import Cifar, pack, python2_pickle, unpack

MADE = Cifar()
VERSIONS = {
    "ten binary": ("cifar10", MADE.ten_binary()),
    "ten python": ("cifar10", MADE.ten_python()),
    "hundred binary": ("cifar100", MADE.hundred_binary()),
    "hundred python": ("cifar100", MADE.hundred_python()),
}
each_version = pytest.mark.parametrize(("name", "files"), VERSIONS.values(), ids=VERSIONS.keys())


def check(name, data):
    y, n_train = (MADE.y10, 5) if name == "cifar10" else (MADE.y100, 8)
    assert data.name == name
    np.testing.assert_array_equal(data.X_train, MADE.X[:n_train])
    np.testing.assert_array_equal(data.y_train, y[:n_train])
    np.testing.assert_array_equal(data.X_test, MADE.X[n_train : n_train + len(data.X_test)])
    np.testing.assert_array_equal(data.y_test, y[n_train : n_train + len(data.X_test)])
    if name == "cifar10":
        assert data.parents is None
        assert data.class_names == {label: f"kind{label}" for label in range(5)}
    else:
        assert data.parents == {7: 1, 8: 1, 9: 2, 99: 19}
        assert data.class_names == {label: f"fine{label}" for label in (7, 8, 9, 99)}
        assert data.parent_names == {label: f"coarse{label}" for label in (1, 2, 19)}


@each_version
def test_the_folder_and_the_one_around_it_are_read(tmp_path, name, files):
    folder = unpack(files, tmp_path)
    check(name, load_dataset(name, path=folder))
    check(name, load_dataset(name, path=tmp_path))


@each_version
@pytest.mark.parametrize("mode", ["w:gz", "w"])
def test_the_archive_is_read_and_nothing_is_unpacked(tmp_path, name, files, mode):
    check(name, load_dataset(name, path=pack(files, tmp_path / "some.tar", mode=mode)))
    assert [path.name for path in tmp_path.iterdir()] == ["some.tar"]


def test_the_archive_is_found_in_its_folder(tmp_path):
    pack(MADE.ten_binary(), tmp_path / "cifar-10-binary.tar.gz")
    check("cifar10", load_dataset("cifar10", path=tmp_path))


def test_an_archive_with_dots_before_its_names_is_read(tmp_path):
    files = {f"./{name}": content for name, content in MADE.ten_binary().items()}
    check("cifar10", load_dataset("cifar10", path=pack(files, tmp_path / "a.tar.gz")))


def test_names_of_classes_may_be_missing(tmp_path):
    folder = unpack(MADE.ten_binary(), tmp_path)
    (folder / "batches.meta.txt").unlink()
    assert load_dataset("cifar10", path=folder).class_names is None


class Harmful:
    def __reduce__(self):
        return os.system, ("touch harm",)


def test_a_harmful_pickle_is_refused_and_not_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = MADE.hundred_python()
    files["cifar-100-python/test"] = pickle.dumps({"data": Harmful()}, protocol=2)
    with pytest.raises(DatasetError, match=r"'test' is refused: it names (posix|nt)\.system"):
        load_dataset("cifar100", path=pack(files, tmp_path / "a.tar.gz"))
    assert not (tmp_path / "harm").exists()


def link(name, target, kind=tarfile.SYMTYPE):
    member = tarfile.TarInfo(name)
    member.type = kind
    member.linkname = target
    return member


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE]
)
def test_members_that_are_not_files_are_refused(tmp_path, kind):
    member = link("cifar-10-batches-bin/test_batch.bin", "/etc/passwd", kind)
    path = pack(MADE.ten_binary(), tmp_path / "a.tar.gz", member)
    with pytest.raises(DatasetError, match=r"test_batch\.bin' in .* is not a regular file"):
        load_dataset("cifar10", path=path)


def test_members_that_lead_elsewhere_are_not_taken(tmp_path):
    files = {f"../{name}": content for name, content in MADE.ten_binary().items()}
    with pytest.raises(DatasetError, match=r"has no cifar-10-batches-bin/data_batch_1\.bin"):
        load_dataset("cifar10", path=pack(files, tmp_path / "a.tar.gz"))
    assert [path.name for path in tmp_path.iterdir()] == ["a.tar.gz"]


def test_a_member_that_comes_twice_is_refused(tmp_path):
    member = tarfile.TarInfo("cifar-10-batches-bin/test_batch.bin")
    with pytest.raises(DatasetError, match="twice"):
        load_dataset("cifar10", path=pack(MADE.ten_binary(), tmp_path / "a.tar.gz", member))


def test_an_archive_of_too_many_files_is_refused(tmp_path):
    members = [tarfile.TarInfo(str(number)) for number in range(1001)]
    with pytest.raises(DatasetError, match="more than 1000 files"):
        load_dataset("cifar10", path=pack({}, tmp_path / "a.tar.gz", *members))


def test_an_archive_that_unpacks_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("evergrow.research.datasets.formats.archives._MAX_UNPACKED", 1_000_000)
    path = pack({"other": bytes(3_000_000)}, tmp_path / "a.tar.gz")
    assert path.stat().st_size < 10_000
    with pytest.raises(DatasetError, match="unpacks to more than 1000000 bytes"):
        load_dataset("cifar10", path=path)


def test_more_memory_than_allowed_is_refused(tmp_path):
    path = pack(MADE.ten_binary(), tmp_path / "a.tar.gz")
    with pytest.raises(DatasetError, match="increase max_bytes"):
        load_dataset("cifar10", path=path, max_bytes=10_000)


def test_damaged_archives_are_refused(tmp_path):
    path = pack(MADE.ten_binary(), tmp_path / "a.tar.gz")
    whole = path.read_bytes()
    for content in (b"", b"text", whole[: len(whole) // 2], whole[:99] + b"\xff\xff" + whole[101:]):
        path.write_bytes(content)
        with pytest.raises(DatasetError, match=r"a\.tar\.gz'"):
            load_dataset("cifar10", path=path)


def broken(name, files, **changed):
    folder = next(iter(files)).split("/", maxsplit=1)[0]
    return name, {**files, **{f"{folder}/{key}": content for key, content in changed.items()}}


def batch(**changed):
    return python2_pickle(
        {"data": MADE.X[:2], "fine_labels": [1, 2], "coarse_labels": [0, 1], **changed}
    )


PYTHON, BINARY = MADE.hundred_python(), MADE.hundred_binary()
REFUSED = {
    "half a record": (*broken("cifar100", BINARY, **{"test.bin": bytes(3000)}), "record size 3074"),
    "empty": (*broken("cifar100", BINARY, **{"test.bin": b""}), "record size 3074"),
    "label": (
        *broken("cifar100", BINARY, **{"test.bin": b"\x00\xc8" + bytes(3072)}),
        "expected 0 to 99",
    ),
    "coarse label": (
        *broken("cifar100", BINARY, **{"test.bin": b"\x14" + bytes(3073)}),
        "expected 0 to 19",
    ),
    "two parents": (
        *broken("cifar100", BINARY, **{"test.bin": b"\x05\x07" + bytes(3072)}),
        "two coarse",
    ),
    "few names": (
        *broken("cifar100", BINARY, **{"fine_label_names.txt": b"a\nb\n"}),
        "name 100 classes",
    ),
    "no data": (*broken("cifar100", PYTHON, test=batch(data=[1])), "no matrix 'data'"),
    "small images": (
        *broken("cifar100", PYTHON, test=batch(data=MADE.X[:2, :9])),
        "no matrix 'data'",
    ),
    "few labels": (
        *broken("cifar100", PYTHON, test=batch(fine_labels=[1])),
        "no list 'fine_labels'",
    ),
    "text labels": (
        *broken("cifar100", PYTHON, test=batch(fine_labels=["a", "b"])),
        "'fine_labels'",
    ),
    "large label": (
        *broken("cifar100", PYTHON, test=batch(fine_labels=[1, 9999])),
        "'fine_labels'",
    ),
    "no names": (*broken("cifar100", PYTHON, meta=python2_pickle({"a": 1})), "name 100 classes"),
}


@pytest.mark.parametrize(("name", "files", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_files_that_are_not_batches_are_refused(tmp_path, name, files, message):
    with pytest.raises(DatasetError, match=message):
        load_dataset(name, path=unpack(files, tmp_path))


def test_missing_files_are_reported(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"has none of cifar-10-binary\.tar\.gz"):
        load_dataset("cifar10", path=tmp_path)
    with pytest.raises(FileNotFoundError, match="no such file or folder"):
        load_dataset("cifar10", path=tmp_path / "nowhere")
    folder = unpack(MADE.ten_binary(), tmp_path)
    (folder / "data_batch_3.bin").unlink()
    with pytest.raises(FileNotFoundError, match=r"data_batch_3\.bin"):
        load_dataset("cifar10", path=folder)
