"""Checks of the samples and codes passed to the functions that guess."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array

from evergrow.estimators.classifier.learner import translate_errors
from evergrow.estimators.subcategory.guess.guesser import Codes
from evergrow.estimators.sums.accumulation import check_magnitude
from evergrow.foundation.device import is_on_gpu
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.foreign_arrays import from_other_library
from evergrow.storage.device_rows import DeviceRows

# As for arrays: sums of squares of larger numbers would overflow.
_LARGEST = 1e140
# Code of a missing fine class.
MISSING = -1


@translate_errors()
def validate_rows(X: npt.ArrayLike) -> npt.NDArray[Any]:
    """A matrix of finite numbers whose squares do not overflow; rows on a GPU stay there."""
    X = from_other_library(X)
    if is_on_gpu(X):
        X = DeviceRows.of(X)
    if isinstance(X, DeviceRows):
        if not X.size:
            raise InvalidInputError(f"Found array with shape={X.shape}, without any numbers.")
        X.check_magnitude(_LARGEST)
        return cast("npt.NDArray[Any]", X)
    rows = np.asarray(check_array(X, dtype="numeric"))
    check_magnitude(rows)
    return rows


def checked_codes(values: npt.ArrayLike, name: str, length: int | None, lowest: int) -> Codes:
    """Codes of classes: integers of at least ``lowest``, one for each sample."""
    codes = np.asarray(values)
    if codes.size == 0 and codes.ndim == 1:
        codes = codes.astype(np.int32)
    if codes.ndim != 1 or codes.dtype.kind not in "iu":
        raise InvalidInputError(f"{name} must be a flat array of integers, got {values!r}")
    if length is not None and len(codes) != length:
        raise InvalidInputError(f"{name} must have one code per sample, {length}, got {len(codes)}")
    largest = np.iinfo(np.int32).max
    if len(codes) and (codes.min() < lowest or codes.max() > largest):
        odd = codes[(codes < lowest) | (codes > largest)][0]
        raise InvalidInputError(f"{name} must be codes from {lowest} to {largest}, got {odd}")
    return codes.astype(np.int32)


def checked_labels(
    rows: npt.NDArray[Any], coarse: npt.ArrayLike, fine: npt.ArrayLike, parents: npt.ArrayLike
) -> tuple[Codes, Codes, Codes]:
    """Coarse and fine codes that agree with the parents, and the parents."""
    coarse_codes = checked_codes(coarse, "coarse", len(rows), 0)
    fine_codes = checked_codes(fine, "fine", len(rows), MISSING)
    parent_codes = checked_codes(parents, "parents", None, 0)
    known = fine_codes >= 0
    if known.any() and fine_codes.max() >= len(parent_codes):
        raise InvalidInputError(
            f"fine has the code {fine_codes.max()}, but parents ends at {len(parent_codes) - 1}"
        )
    labelled = np.flatnonzero(known)
    wrong = labelled[parent_codes[fine_codes[labelled]] != coarse_codes[labelled]]
    if len(wrong):
        row = int(wrong[0])
        raise InvalidInputError(
            f"sample {row} has the fine class {fine_codes[row]} of the coarse class "
            f"{parent_codes[fine_codes[row]]}, but its coarse class is {coarse_codes[row]}"
        )
    return coarse_codes, fine_codes, parent_codes


def checked_scale(scale: npt.ArrayLike, n_features: int) -> npt.NDArray[np.float64]:
    """A positive factor per feature."""
    factors = np.asarray(scale, dtype=np.float64)
    if factors.shape != (n_features,):
        raise InvalidInputError(f"scale must have the shape ({n_features},), got {factors.shape}")
    if not (np.isfinite(factors).all() and (factors > 0).all()):
        raise InvalidInputError("scale must be positive and finite")
    return factors
