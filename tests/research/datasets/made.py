"""Small files in the formats of published data sets."""

import gzip
import io
import struct
import tarfile

import numpy as np


def idx(values):
    """An array of bytes as MNIST's files hold it."""
    header = struct.pack(f">4B{values.ndim}I", 0, 0, 8, values.ndim, *values.shape)
    return header + values.astype(np.uint8).tobytes()


def mnist(folder, *, suffix="", seed=0):
    """Write twelve training and six test images of 4 x 3 pixels and three classes."""
    rng = np.random.default_rng(seed)
    arrays = {
        "train-images-idx3-ubyte": rng.integers(0, 256, (12, 4, 3)),
        "train-labels-idx1-ubyte": np.arange(12) % 3,
        "t10k-images-idx3-ubyte": rng.integers(0, 256, (6, 4, 3)),
        "t10k-labels-idx1-ubyte": np.arange(6) % 3,
    }
    folder.mkdir(exist_ok=True)
    for name, values in arrays.items():
        content = idx(values)
        packed = gzip.compress(content) if suffix == ".gz" else content
        (folder / (name + suffix)).write_bytes(packed)
    return arrays


def python2_pickle(value):
    """A pickle of protocol 2 as Python 2 wrote it, in which text is bytes."""
    return b"\x80\x02" + _pickled(value) + b"."


def _pickled(value):
    if isinstance(value, str):
        return _pickled(value.encode("latin-1")) + b"q\x01"
    if isinstance(value, bytes):
        short = len(value) < 256
        return (
            b"U" + bytes([len(value)]) if short else b"T" + struct.pack("<i", len(value))
        ) + value
    if isinstance(value, int):
        return b"J" + struct.pack("<i", value) if value > 255 else b"K" + bytes([value])
    if isinstance(value, list):
        return b"](" + b"".join(map(_pickled, value)) + b"e"
    if isinstance(value, dict):
        pairs = (_pickled(key) + _pickled(one) for key, one in value.items())
        return b"}(" + b"".join(pairs) + b"u"
    assert isinstance(value, np.ndarray)
    return _pickled_array(value)


def _pickled_array(values):
    empty = (
        b"cnumpy.core.multiarray\n_reconstruct\nr\x02\x00\x00\x00"
        b"(cnumpy\nndarray\nK\x00\x85U\x01btR"
    )
    minus_one = b"J\xff\xff\xff\xff"
    state = b"(K\x03U\x01|NNN" + minus_one + minus_one + b"K\x00tb"
    dtype = b"cnumpy\ndtype\n(U\x02u1K\x00K\x01tR" + state
    shape = b"(" + b"".join(_pickled(side) for side in values.shape) + b"t"
    return empty + b"(K\x01" + shape + dtype + b"\x89" + _pickled(values.tobytes()) + b"tb"


class Cifar:
    """Images of a few classes, written in the four ways that there are."""

    def __init__(self, seed=0):
        rng = np.random.default_rng(seed)
        self.X = rng.integers(0, 256, (12, 3072)).astype(np.uint8)
        self.y10 = [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1]
        self.y100 = [7, 8, 9, 99, 7, 8, 9, 99, 7, 8, 9, 99]
        self.coarse = [1, 1, 2, 19, 1, 1, 2, 19, 1, 1, 2, 19]

    def ten_binary(self):
        names = [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]
        files = {
            name: b"".join(bytes([self.y10[row]]) + self.X[row].tobytes() for row in rows)
            for name, rows in zip(names, _ROWS, strict=True)
        }
        named = "".join(f"kind{number}\n" for number in range(10)) + "\n"
        return _in_folder("cifar-10-batches-bin", {**files, "batches.meta.txt": named.encode()})

    def ten_python(self):
        names = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
        files = {
            name: python2_pickle(
                {
                    "batch_label": name,
                    "labels": [self.y10[row] for row in rows],
                    "data": self.X[rows],
                    "filenames": ["a.png"] * len(rows),
                }
            )
            for name, rows in zip(names, _ROWS, strict=True)
        }
        meta = {"label_names": [f"kind{number}" for number in range(10)], "num_vis": 3072}
        return _in_folder("cifar-10-batches-py", {**files, "batches.meta": python2_pickle(meta)})

    def hundred_binary(self):
        files = {
            name: b"".join(
                bytes([self.coarse[row], self.y100[row]]) + self.X[row].tobytes() for row in rows
            )
            for name, rows in _TWO_PARTS.items()
        }
        names = {
            "fine_label_names.txt": "".join(f"fine{number}\n" for number in range(100)),
            "coarse_label_names.txt": "".join(f"coarse{number}\n" for number in range(20)),
        }
        texts = {name: text.encode() for name, text in names.items()}
        renamed = {f"{name}.bin": content for name, content in files.items()}
        return _in_folder("cifar-100-binary", {**renamed, **texts})

    def hundred_python(self):
        files = {
            name: python2_pickle(
                {
                    "filenames": ["a.png"] * len(rows),
                    "fine_labels": [self.y100[row] for row in rows],
                    "coarse_labels": [self.coarse[row] for row in rows],
                    "data": self.X[rows],
                }
            )
            for name, rows in _TWO_PARTS.items()
        }
        meta = {
            "fine_label_names": [f"fine{number}" for number in range(100)],
            "coarse_label_names": [f"coarse{number}" for number in range(20)],
        }
        return _in_folder("cifar-100-python", {**files, "meta": python2_pickle(meta)})


_ROWS = [[0], [1], [2], [3], [4], [5, 6, 7, 8, 9]]
_TWO_PARTS = {"train": [0, 1, 2, 3, 4, 5, 6, 7], "test": [8, 9, 10, 11]}


def _in_folder(folder, files):
    return {f"{folder}/{name}": content for name, content in files.items()}


def unpack(files, folder):
    """Write files into a folder and give the one in it that holds them."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder / next(iter(files)).split("/", maxsplit=1)[0]


def pack(files, path, *others, mode="w:gz"):
    """Write files into an archive, after other members without content."""
    with tarfile.open(path, mode) as archive:
        for member in others:
            archive.addfile(member)
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path
