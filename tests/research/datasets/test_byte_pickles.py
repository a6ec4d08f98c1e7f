"""Pickles as plain values: what CIFAR's files need is read, and nothing is ever run."""

import contextlib
import os
import pickle
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evergrow import DatasetError
from evergrow.research.datasets.formats.byte_pickles import read_plain_pickle
from tests.research.datasets.made import python2_pickle

PLAIN = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner),
        max_leaves=8,
    ),
    max_size=4,
)


@given(PLAIN, st.sampled_from([2, 3]))
def test_plain_values_are_what_pickle_would_give(value, protocol):
    assert read_plain_pickle(pickle.dumps(value, protocol), "it") == value


@given(PLAIN, st.data())
def test_a_pickle_that_is_cut_or_changed_is_read_or_refused(value, data):
    content = bytearray(pickle.dumps(value, 2))
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    for changed in (bytes(content), bytes(content[: data.draw(st.integers(0, len(content)))])):
        with contextlib.suppress(DatasetError):
            assert isinstance(read_plain_pickle(changed, "it"), dict)


def test_arrays_of_bytes_are_read_as_python_2_wrote_them():
    values = np.arange(600, dtype=np.uint8).reshape(3, 200)
    found = read_plain_pickle(python2_pickle({"data": values, "labels": [1, 300]}), "it")
    np.testing.assert_array_equal(found["data"], values)
    assert found["labels"] == [1, 300]


def test_arrays_of_bytes_are_read_as_python_3_writes_them():
    values = np.asfortranarray(np.arange(6, dtype=np.uint8).reshape(2, 3))
    found = read_plain_pickle(pickle.dumps({"data": values}, 3), "it")
    np.testing.assert_array_equal(found["data"], values)


class Harmful:
    def __reduce__(self):
        return os.mkdir, ("harm",)


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_no_function_is_ever_called(tmp_path, monkeypatch, protocol):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DatasetError, match="is refused"):
        read_plain_pickle(pickle.dumps({"data": Harmful()}, protocol), "it")
    assert not (tmp_path / "harm").exists()


ARRAY = python2_pickle({"data": np.zeros((2, 3), np.uint8)})
REFUSED = {
    "system": (b"\x80\x02cos\nsystem\nU\x04true\x85R.", "names os.system"),
    "eval": (b"\x80\x02c__builtin__\neval\n.", "names __builtin__.eval"),
    "getattr": (b"\x80\x02cnumpy\nload\n.", "names numpy.load"),
    "instance": (b"(ios\nsystem\n.", "instruction INST"),
    "object": (b"(cos\nsystem\no.", "names os.system"),
    "new object": (b"\x80\x02cnumpy\nndarray\n)\x81.", "instruction NEWOBJ"),
    "extension": (b"\x80\x02\x82\x01.", "instruction EXT1"),
    "outside": (b"\x80\x02U\x01aQ.", "instruction BINPERSID"),
    "stacked name": (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "is refused"),
    "called text": (b"\x80\x02U\x05arrayU\x07ndarray\x85R.", "calls something"),
    "array of text": (b"\x80\x02cnumpy.core.multiarray\n_reconstruct\nU\x07ndarray\x85R.", "calls"),
    "built text": (b"\x80\x02U\x01a}b.", "changes something"),
    "objects": (ARRAY.replace(b"U\x02u1", b"U\x02O8"), "not an array of bytes"),
    "floats": (ARRAY.replace(b"U\x02u1", b"U\x02f4"), "not an array of bytes"),
    "larger shape": (ARRAY.replace(b"(K\x02K\x03t", b"(K\xffK\xfft"), "another number of bytes"),
    "negative shape": (
        ARRAY.replace(b"(K\x02K\x03t", b"(J\xfe\xff\xff\xffJ\xfd\xff\xff\xfft"),
        "an invalid shape",
    ),
    "text for a shape": (ARRAY.replace(b"(K\x02K\x03t", b"U\x01a"), "an invalid shape"),
    "key of tuples": (b"\x80\x02}))\x86K\x01s.", "keys of type tuple"),
    "list as dictionary": (b"\x80\x02]U\x01aK\x01s.", "not a dictionary"),
    "odd entries": (b"\x80\x02}(U\x01au.", "not a dictionary"),
    "dictionary as list": (b"\x80\x02}K\x01a.", "not a list"),
    "no mark": (b"\x80\x02K\x01t.", "no start|not a complete"),
    "popped mark": (b"\x80\x02](a.", "no operand"),
    "empty stack": (b"\x80\x02R.", "not a complete pickle"),
    "empty memory": (b"\x80\x02h\x07.", "not a complete pickle"),
    "two values": (b"\x80\x02}}.", "not a complete pickle"),
    "text beyond the end": (
        b"\x80\x02T" + struct.pack("<i", 2**31 - 1) + b"a.",
        "not a complete pickle",
    ),
    "number": (b"\x80\x02K\x01.", "must be a dictionary"),
    "nothing": (b"", "not a complete pickle"),
    "no end": (b"\x80\x02}", "not a complete pickle"),
}


@pytest.mark.parametrize(("content", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_all_else_is_refused(content, message):
    with pytest.raises(DatasetError, match=message):
        read_plain_pickle(content, "it")


def test_a_far_place_in_memory_takes_no_memory():
    content = b"\x80\x02}r\xff\xff\xff\x7f."
    assert read_plain_pickle(content, "it") == {}
