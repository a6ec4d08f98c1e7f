"""Checks of the samples and codes passed to the functions that guess."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array

from evergrow.estimators.subcategory.guess.guesser import Codes
from evergrow.estimators.sums.accumulation import check_magnitude

# Code of a missing fine class.
MISSING = -1


def checked_rows(X: npt.ArrayLike) -> npt.NDArray[Any]:
    """A matrix of finite numbers whose squares do not overflow."""
    rows = np.asarray(check_array(X, dtype="numeric"))
    check_magnitude(rows)
    return rows


def checked_codes(values: npt.ArrayLike, name: str, length: int | None, lowest: int) -> Codes:
    """Codes of classes: integers of at least ``lowest``, one for each sample."""
    codes = np.asarray(values)
    if codes.size == 0 and codes.ndim == 1:
        codes = codes.astype(np.int32)
    if codes.ndim != 1 or codes.dtype.kind not in "iu":
        raise ValueError(f"{name} must be a flat array of integers, got {values!r}")
    if length is not None and len(codes) != length:
        raise ValueError(f"{name} must have one code per sample, {length}, got {len(codes)}")
    largest = np.iinfo(np.int32).max
    if len(codes) and (codes.min() < lowest or codes.max() > largest):
        odd = codes[(codes < lowest) | (codes > largest)][0]
        raise ValueError(f"{name} must be codes from {lowest} to {largest}, got {odd}")
    return codes.astype(np.int32)


def checked_labels(
    rows: npt.NDArray[Any], coarse: npt.ArrayLike, fine: npt.ArrayLike, parents: npt.ArrayLike
) -> tuple[Codes, Codes, Codes]:
    """Coarse and fine codes that agree with the parents, and the parents."""
    over = checked_codes(coarse, "coarse", len(rows), 0)
    codes = checked_codes(fine, "fine", len(rows), MISSING)
    above = checked_codes(parents, "parents", None, 0)
    known = codes >= 0
    if known.any() and codes.max() >= len(above):
        raise ValueError(f"fine has the code {codes.max()}, but parents ends at {len(above) - 1}")
    labelled = np.flatnonzero(known)
    wrong = labelled[above[codes[labelled]] != over[labelled]]
    if len(wrong):
        row = int(wrong[0])
        raise ValueError(
            f"sample {row} has the fine class {codes[row]} of the coarse class "
            f"{above[codes[row]]}, but its coarse class is {over[row]}"
        )
    return over, codes, above


def checked_scale(scale: npt.ArrayLike, n_features: int) -> npt.NDArray[np.float64]:
    """A positive factor per feature."""
    factors = np.asarray(scale, dtype=np.float64)
    if factors.shape != (n_features,):
        raise ValueError(f"scale must have the shape ({n_features},), got {factors.shape}")
    if not (np.isfinite(factors).all() and (factors > 0).all()):
        raise ValueError("scale must be positive and finite")
    return factors
