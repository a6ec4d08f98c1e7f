"""Generated classes, and downloads that become one file."""

import gzip
import hashlib
import io
import struct
import tarfile

import numpy as np
import pytest

pytest.importorskip("evergrow_papers", reason="evergrow-papers is not installed")

from evergrow_papers import data
from evergrow_papers.data import PUBLISHED, Published, download, mixture, spirals

from evergrow.compare import load_dataset

rng = np.random.default_rng(0)


def idx(array):
    sizes = struct.pack(f">{array.ndim}I", *array.shape)
    return gzip.compress(bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes())


def archive(parts):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        for name, records in parts.items():
            member = tarfile.TarInfo(f"cifar/{name}")
            member.size = records.nbytes
            tar.addfile(member, io.BytesIO(records.tobytes()))
    return content.getvalue()


def publish(folder, name, contents):
    """Put files where a download finds them, by an address of this computer."""
    files = {}
    for file, content in contents.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / file).write_bytes(content)
        files[file] = hashlib.sha256(content).hexdigest()
    return {name: Published("https://localhost/", files, PUBLISHED[name].read)}


def test_mnist_becomes_one_file(tmp_path):
    X, y = rng.integers(0, 256, (6, 4, 4), np.uint8), np.arange(6, dtype=np.uint8) % 3
    names = [*PUBLISHED["mnist"].files]
    contents = dict(zip(names, map(idx, (X, y, X[:3], y[:3])), strict=True))
    path = download("mnist", tmp_path, published=publish(tmp_path, "mnist", contents))
    found = load_dataset(path)
    assert found.X_train.tolist() == X.reshape(6, 16).tolist()
    assert (found.y_train.tolist(), found.y_test.tolist()) == (y.tolist(), y[:3].tolist())


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_cifar_becomes_one_file(name, tmp_path):
    n_labels = 2 if name == "cifar100" else 1
    records = rng.integers(0, 256, (8, n_labels + 3072), np.uint8)
    records[:, n_labels - 1] = np.arange(8) % 4
    if n_labels == 2:
        records[:, 0] = records[:, 1] // 2
    parts = {"data_batch_1.bin": records[:4], "data_batch_2.bin": records[4:]}
    (file,) = PUBLISHED[name].files
    contents = {file: archive({**parts, "test_batch.bin": records[:4]})}
    path = download(name, tmp_path, published=publish(tmp_path, name, contents))
    found = load_dataset(path)
    assert found.X_train.shape == (8, 3072)
    assert found.y_train.tolist() == [0, 1, 2, 3] * 2
    if n_labels == 2:
        assert found.parents == {0: 0, 1: 0, 2: 1, 3: 1}


def test_damaged_downloads_are_refused(tmp_path):
    names = [*PUBLISHED["mnist"].files]
    published = publish(tmp_path, "mnist", dict.fromkeys(names, b"no gzip"))
    with pytest.raises(ValueError, match="the files of mnist are damaged"):
        download("mnist", tmp_path, published=published)
    assert not (tmp_path / "mnist.npz").exists()


def test_a_wrong_hash_is_refused(tmp_path, monkeypatch):
    published = publish(tmp_path, "cifar10", {"cifar-10-binary.tar.gz": b"something"})
    (tmp_path / "cifar10" / "cifar-10-binary.tar.gz").write_bytes(b"something else")
    asked = []

    def refuse(url, *args, **kwargs):
        asked.append(url)
        raise ConnectionError("no network in this test")

    monkeypatch.setattr("requests.get", refuse)
    with pytest.raises(ConnectionError):
        download("cifar10", tmp_path, published=published)
    assert asked == ["https://localhost/cifar-10-binary.tar.gz"]


def test_downloads_are_by_https_and_by_hash():
    for each in data.PUBLISHED.values():
        assert each.url.startswith("https://")
        assert all(len(digest) == 64 for digest in each.files.values())


def test_spirals_have_a_class_per_arm():
    found = spirals(3, n_train=200, n_test=10)
    radius = np.hypot(*found.X_train.T.astype(float))
    angle = np.arctan2(*found.X_train.T[::-1].astype(float))
    arm = ((angle - radius / 2) / (2 * np.pi) * 3).round() % 3
    assert (arm == found.y_train).mean() > 0.99


def test_mixtures_have_groups_of_similar_classes():
    found = mixture(8, n_groups=2, n_train=400, distance=2.0)
    means = np.array([found.X_train[found.y_train == c].mean(axis=0) for c in range(8)])
    apart = np.linalg.norm(means[:, None] - means, axis=2)
    same = np.equal.outer([*found.parents.values()], [*found.parents.values()])
    assert apart[same & (apart > 0)].mean() < 0.85 * apart[~same].mean()
    assert mixture(8, n_groups=2).sha256 == mixture(8, n_groups=2).sha256
