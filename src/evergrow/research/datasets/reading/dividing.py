"""Which samples are for training and which for testing, where the data do not say."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import DatasetError, DatasetWarning
from evergrow.foundation.params import Fraction, Integer, Nothing, check_parameters

__all__ = ["check_division", "check_tested", "divided", "refuse_division"]

Array = npt.NDArray[Any]

DEFAULT_SHARE = 0.25
# A warning names so many classes.
_NAMED = 5


def check_division(test_share: object, random_state: object) -> None:
    """Raise a ``ValueError`` for a share or a seed that is none."""
    check_parameters(
        {"test_share": test_share, "random_state": random_state},
        {"test_share": [Fraction(), Nothing()], "random_state": [Integer(0, 2**32 - 1)]},
    )
    if test_share == 1.0:
        raise ValueError("test_share must be below 1, or nothing is left to learn from")


def refuse_division(test_share: float | None, what: str) -> None:
    """Raise a ``ValueError`` if a share is given where the data are divided already."""
    if test_share is not None:
        raise ValueError(f"test_share has no use: {what} says what is for testing")


def divided(y: Array, test_share: float | None, random_state: int) -> tuple[Array, Array]:
    """Rows for training and rows for testing, the same share of each class.

    Of two samples of a class one is for testing; a single one is for training. Both keep the order
    that they had.
    """
    share = DEFAULT_SHARE if test_share is None else test_share
    # The numbers of a RandomState are the same in every version of NumPy.
    rng = np.random.RandomState(random_state)
    tested = np.zeros(len(y), bool)
    labels, codes = np.unique(y, return_inverse=True)
    starts = np.cumsum(np.bincount(codes, minlength=len(labels)))[:-1]
    for rows in np.split(np.argsort(codes, kind="stable"), starts):
        n_test = min(max(1, round(share * len(rows))), len(rows) - 1)
        tested[rng.permutation(rows)[:n_test]] = True
    return np.flatnonzero(~tested), np.flatnonzero(tested)


def check_tested(y_train: Array, y_test: Array, what: str) -> None:
    """Warn of classes that cannot be tested; raise for some that can only be tested."""
    for part, y in (("training", y_train), ("testing", y_test)):
        if not len(y):
            raise DatasetError(f"{what} has no samples for {part}")
    unknown = np.setdiff1d(y_test, y_train)
    if len(unknown):
        raise DatasetError(
            f"{what} has test samples of {_several(unknown)} without training samples: "
            f"{_listed(unknown)}"
        )
    untested = np.setdiff1d(y_train, y_test)
    if len(untested):
        warnings.warn(
            f"{what} has {_several(untested)} without test samples, a single sample perhaps, "
            f"which are learnt but never tested: {_listed(untested)}",
            DatasetWarning,
            stacklevel=3,
        )


def _several(labels: Array) -> str:
    return "1 class" if len(labels) == 1 else f"{len(labels)} classes"


def _listed(labels: Iterable[Any]) -> str:
    names = [repr(label) for label in np.asarray(labels).tolist()]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
