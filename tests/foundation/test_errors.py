"""One root for refused input, apart from our own bugs."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import evergrow
from evergrow import EvergrowError, InvalidInputError, InvalidTypeError
from evergrow.foundation.labels import ClassList, as_classes, check_label_types
from evergrow.foundation.params import Integer, bytes_of, check_parameters
from evergrow.foundation.ragged import RaggedArray

REFUSALS = ("DatasetError", "ImageError", "ModelFileError", "ShardError", "WorkspaceError")


@pytest.mark.parametrize("name", [*REFUSALS, "ClusterError", "ServiceError"])
def test_every_error_has_the_one_root(name: str) -> None:
    kind = getattr(evergrow, name)
    assert issubclass(kind, EvergrowError)
    assert issubclass(kind, InvalidInputError) == (name in REFUSALS)
    assert issubclass(kind, ValueError) == (name in REFUSALS)


def test_a_plain_value_error_is_not_a_refusal() -> None:
    assert not issubclass(ValueError, EvergrowError)


@pytest.mark.parametrize(
    "refuse",
    [
        lambda: check_parameters({"n": 0}, {"n": [Integer(1)]}),
        lambda: bytes_of("many"),
        lambda: as_classes([[1]]),
        lambda: ClassList(np.array([1])).columns_of([2]),
        lambda: RaggedArray(np.zeros((2, 1)), [0]),
    ],
)
def test_foundation_refuses_values_by_the_root(refuse: object) -> None:
    with pytest.raises(InvalidInputError):
        refuse()  # type: ignore[operator]


def test_a_refused_type_is_a_type_error_too() -> None:
    with pytest.raises(InvalidTypeError) as caught:
        check_label_types([1, "cat"])
    assert isinstance(caught.value, TypeError)
    assert isinstance(pickle.loads(pickle.dumps(caught.value)), InvalidInputError)
