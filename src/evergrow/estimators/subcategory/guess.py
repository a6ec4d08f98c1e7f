"""Guess the fine classes of samples with only a coarse class, and report how often it is right."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from sklearn.utils import check_array, check_random_state

from evergrow.estimators.classifier.learner import translate_errors
from evergrow.estimators.forest.value.standardization import Standardization
from evergrow.estimators.subcategory.guessers import (
    GUESSER_RULES,
    Codes,
    Guesser,
    guesser_of,
    leave_one_of_each_out,
)
from evergrow.estimators.sums.accumulation import check_magnitude
from evergrow.foundation.device import (
    Device,
    Tensor,
    array_module,
    find_device,
    guard_memory,
    is_on_gpu,
    is_tensor,
    place_like,
    to_host,
)
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.foreign_arrays import from_other_library
from evergrow.foundation.params import (
    Flag,
    Integer,
    Nothing,
    RandomState,
    Rule,
    check_parameters,
)
from evergrow.foundation.progress import progress_bar
from evergrow.foundation.threads import one_blas_thread
from evergrow.storage.device_rows import DeviceRows, load_tensor

# Code of a missing fine class.
MISSING = -1
# As for arrays: sums of squares of larger numbers would overflow.
_LARGEST = 1e140
# Rows that are converted to double precision at a time.
_BLOCK_ROWS = 8192
# What to do if the memory of a GPU is exhausted.
_ADVICE = "guess fewer samples at a time, or on the processor with evergrow.device('cpu')"

_RULES: dict[str, list[Rule]] = {
    "guesser": GUESSER_RULES,
    "check": [Flag()],
    "n_jobs": [Nothing(), Integer(-(1 << 20), -1), Integer(1, 1 << 20)],
    "random_state": [Nothing(), RandomState()],
    "verbose": [Integer(0), Flag()],
}


@dataclass(frozen=True)
class CoarseGuesses:
    """Numbers of guesses within one coarse class, and how many were right.

    Attributes
    ----------
    coarse : int or str
        Code or name of the coarse class.
    n_known : int
        Number of samples whose fine class was known.
    n_missing : int
        Number of samples whose fine class was missing.
    n_guessed : int
        Number of samples that got a guess. The others have a coarse class without fine classes, or
        their guess was discarded.
    n_checked : int
        Number of known samples that were also guessed without their own label, to measure the rate.
        The only sample of a fine class cannot be checked. It is 0 if fewer than two fine classes
        are known or if a fine class has no known sample.
    n_right : int
        Number of checked samples whose guess was right.
    level : int
        Level of the class; 0 is the coarsest. With more than two levels, the fine classes are those
        directly below this class.
    """

    coarse: Any
    n_known: int = 0
    n_missing: int = 0
    n_guessed: int = 0
    n_checked: int = 0
    n_right: int = 0
    level: int = 0

    @property
    def rate(self) -> float:
        """Share of right guesses, measured on known samples; NaN if it cannot be measured."""
        return self.n_right / self.n_checked if self.n_checked else math.nan

    @property
    def standard_error(self) -> float:
        """Standard error of the rate; NaN without a rate."""
        if not self.n_checked:
            return math.nan
        # Counts one more right and one more wrong, so that 5 of 5 do not give an error of 0.
        share = (self.n_right + 1) / (self.n_checked + 2)
        return math.sqrt(share * (1 - share) / self.n_checked)


@dataclass(frozen=True)
class GuessReport:
    """How many fine labels were guessed, and how often such guesses are right.

    The rate of right guesses is measured on samples whose fine class is known. Each is guessed
    without its own label and without one sample of every other class. For classes with few samples
    this is harder than the actual guesses, so the rate is somewhat too low.

    Attributes
    ----------
    coarse : tuple of CoarseGuesses
        One report for each coarse class. With more than two levels, one for each class that has
        finer ones, level by level. A sample then counts on several levels.
    once : tuple of int or None
        With more than two levels, ``n_known``, ``n_missing`` and ``n_guessed`` with each sample
        counted once. None with two levels, because they are sums over `coarse` then.

    Examples
    --------
    >>> from evergrow.estimators import CoarseGuesses, GuessReport
    >>> cats = CoarseGuesses(0, n_known=20, n_missing=30, n_guessed=30, n_checked=20, n_right=15)
    >>> cows = CoarseGuesses(1, n_missing=5)
    >>> print(GuessReport((cats, cows)).table(["cat", "cow"]))
    coarse class  known  missing  guessed  right
    cat              20       30       30  0.750 +- 0.100
    cow               0        5        0  -
    all              20       35       30  0.750 +- 0.100
    """

    coarse: tuple[CoarseGuesses, ...]
    once: tuple[int, int, int] | None = None

    @property
    def n_known(self) -> int:
        """Number of samples whose fine class was known."""
        return self.once[0] if self.once else sum(part.n_known for part in self.coarse)

    @property
    def n_missing(self) -> int:
        """Number of samples whose fine class was missing."""
        return self.once[1] if self.once else sum(part.n_missing for part in self.coarse)

    @property
    def n_guessed(self) -> int:
        """Number of samples that got a guess."""
        return self.once[2] if self.once else sum(part.n_guessed for part in self.coarse)

    @property
    def rate(self) -> float:
        """Share of right guesses overall; NaN if it cannot be measured.

        With more than two levels, it covers the guesses on all levels.
        """
        parts = self._measured()
        weight = sum(part.n_guessed for part in parts)
        return sum(part.n_guessed * part.rate for part in parts) / weight if weight else math.nan

    @property
    def standard_error(self) -> float:
        """Standard error of the rate; NaN without a rate."""
        parts = self._measured()
        weight = sum(part.n_guessed for part in parts)
        squares = sum((part.n_guessed * part.standard_error) ** 2 for part in parts)
        return math.sqrt(squares) / weight if weight else math.nan

    def _measured(self) -> list[CoarseGuesses]:
        return [part for part in self.coarse if part.n_guessed and not math.isnan(part.rate)]

    def table(self, names: Sequence[object] | Mapping[Any, object] | None = None) -> str:
        """Return the report as a table.

        Parameters
        ----------
        names : sequence or mapping, default=None
            Names of the coarse classes. None shows their numbers. Reports of an estimator already
            have names, which a mapping may replace.

        Returns
        -------
        table : str
            One line for each class of ``coarse``, and one for all of them.
        """
        shown = [str(_name(part.coarse, names)) for part in self.coarse]
        heading = "coarse class" if self.once is None else "class"
        width = max(len(name) for name in [heading, *shown, "all"])
        levels = [""] * (len(shown) + 2)
        if self.once is not None:
            levels = ["  level", *(f"  {part.level:5}" for part in self.coarse), " " * 7]
        lines = [f"{heading:{width}}{levels[0]}  known  missing  guessed  right"]
        parts: list[CoarseGuesses | GuessReport] = [*self.coarse, self]
        for name, level, part in zip([*shown, "all"], levels[1:], parts, strict=True):
            counts = f"{part.n_known:5}  {part.n_missing:7}  {part.n_guessed:7}"
            rate = "-"
            if not math.isnan(part.rate):
                rate = f"{part.rate:.3f} +- {part.standard_error:.3f}"
            lines.append(f"{name:{width}}{level}  {counts}  {rate}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.table()


def _name(coarse: Any, names: Sequence[object] | Mapping[Any, object] | None) -> object:
    if isinstance(names, Mapping):
        return names.get(coarse, coarse)
    return coarse if names is None or not isinstance(coarse, int) else names[coarse]


@dataclass(frozen=True, eq=False)
class Guesses:
    """Result of :func:`guess_fine`: fine classes, known and guessed.

    Attributes
    ----------
    fine : ndarray of shape (n_samples,), int32
        Fine class of each sample, known or guessed; -1 if there is none.
    guessed : ndarray of shape (n_samples,), bool
        Whether the fine class of each sample is a guess.
    report : GuessReport
        How many were guessed, and how often guesses are right.
    """

    fine: Codes
    guessed: npt.NDArray[np.bool_]
    report: GuessReport


def guess_fine(
    X: npt.ArrayLike,
    coarse: npt.ArrayLike,
    fine: npt.ArrayLike,
    parents: npt.ArrayLike,
    *,
    guesser: str | Guesser = "ridge",
    scale: npt.ArrayLike | None = None,
    check: bool = True,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
    verbose: int = 0,
) -> Guesses:
    """Guess missing fine classes from samples whose fine class is known.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Features. Tensors on a GPU are computed there (:doc:`/gpu`).
    coarse : array-like of shape (n_samples,)
        Coarse class of each sample, as a number from 0.
    fine : array-like of shape (n_samples,)
        Fine class of each sample, as a number from 0; -1 if it is missing.
    parents : array-like of shape (n_fine_classes,)
        Coarse class of each fine class.
    guesser : {"ridge", "nn"} or guesser, default="ridge"
        How to guess:

        - ``"ridge"``: ridge regression within the coarse class. It is right most often on image
          features.
        - ``"nn"``: the nearest sample of the same coarse class, as in the paper.

        A guesser object such as ``RidgeGuesser(scaling=1.0)`` sets its own options.
    scale : array-like of shape (n_features,), default=None
        One divided by the standard deviation of each feature. None measures it on `X`. Pass the
        scale of a trained model to guess later batches like the first.
    check : bool, default=True
        Whether to measure how often guesses are right. This takes about as long as the guesses
        themselves.
    n_jobs : int, default=None
        Number of threads, each for one coarse class, as in scikit-learn: None is 1, -1 uses all
        processors. The guesses are the same for any number.
    random_state : int, RandomState or None, default=None
        Seed of the order in which known samples are held out to check the guesses.
    verbose : int, default=0
        Show a progress bar if positive.

    Returns
    -------
    guesses : Guesses
        Fine class of every sample, which of them are guesses, and a report.

    Examples
    --------
    >>> from evergrow.estimators import guess_fine
    >>> X = [[0], [1], [8], [9], [2], [7], [5]]
    >>> coarse = [0, 0, 0, 0, 0, 0, 1]
    >>> fine = [0, 0, 1, 1, -1, -1, -1]
    >>> guesses = guess_fine(X, coarse, fine, parents=[0, 0])
    >>> guesses.fine.tolist()
    [0, 0, 1, 1, 0, 1, -1]
    >>> print(guesses.report)
    coarse class  known  missing  guessed  right
    0                 4        2        2  1.000 +- 0.186
    1                 0        1        0  -
    all               4        3        2  1.000 +- 0.186
    """
    options = {"check": check, "n_jobs": n_jobs, "random_state": random_state, "verbose": verbose}
    check_parameters({"guesser": guesser, **options}, _RULES)
    chosen = guesser_of(guesser)
    checked = _validate_rows(X)
    coarse_codes, fine_codes, parent_codes = _checked_labels(checked, coarse, fine, parents)
    device = _device(checked)
    with guard_memory(device, _ADVICE):
        rows = _placed(checked, device)
        factors = _factors(chosen, scale, rows)
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    filled, held_out = fine_codes.copy(), np.full(len(fine_codes), MISSING, dtype=np.int32)

    def work(number: int, code: int) -> None:
        """Guess within one coarse class."""
        own, is_known = coarse_codes == code, fine_codes >= 0
        known, missing = np.flatnonzero(own & is_known), np.flatnonzero(own & ~is_known)
        given = fine_codes[known]
        if (given == given[0]).all():
            filled[missing] = given[0]
            return
        learnt = chosen.learn(_scaled(rows[known], factors), given)
        if len(missing):
            filled[missing] = learnt.guess(_scaled(rows[missing], factors))
        if check:
            folds = leave_one_of_each_out(given, np.random.default_rng(seed + number))
            held_out[known] = learnt.held_out(folds)

    with guard_memory(device, _ADVICE):
        _run_groups(work, np.unique(coarse_codes[fine_codes >= 0]).tolist(), n_jobs, verbose)
    is_guess = (fine_codes < 0) & (filled >= 0)
    return Guesses(
        filled, is_guess, _report(coarse_codes, fine_codes, parent_codes, is_guess, held_out)
    )


def guess_within(
    known_X: npt.ArrayLike,
    known_fine: npt.ArrayLike,
    X: npt.ArrayLike,
    *,
    guesser: str | Guesser = "ridge",
    scale: npt.ArrayLike | None = None,
) -> Codes:
    """Guess the fine classes of new samples of one coarse class from known samples.

    Parameters
    ----------
    known_X : array-like of shape (n_known, n_features)
        Samples of the coarse class whose fine class is known.
    known_fine : array-like of shape (n_known,)
        Fine classes of these samples, as numbers.
    X : array-like of shape (n_samples, n_features)
        Samples whose fine class is guessed.
    guesser : {"ridge", "nn"} or guesser, default="ridge"
        How to guess, as in :func:`guess_fine`.
    scale : array-like of shape (n_features,), default=None
        One divided by the standard deviation of each feature. None measures it on all given
        samples. If there are few, pass the scale of a trained model.

    Returns
    -------
    fine : ndarray of shape (n_samples,), int32
        The guessed fine classes. It is an array in main memory, even if the samples are on a GPU.

    Examples
    --------
    >>> from evergrow.estimators import guess_within
    >>> guess_within([[0], [1], [8], [9]], [0, 0, 1, 1], [[2], [7]])
    array([0, 1], dtype=int32)
    """
    check_parameters({"guesser": guesser}, {"guesser": GUESSER_RULES})
    chosen = guesser_of(guesser)
    known, rows = _validate_rows(known_X), _validate_rows(X)
    if known.shape[1] != rows.shape[1]:
        raise InvalidInputError(f"X has {rows.shape[1]} features, but known_X has {known.shape[1]}")
    codes = _checked_codes(known_fine, "known_fine", len(known), 0)
    device = _device(rows, known)
    with guard_memory(device, _ADVICE):
        known, rows = _placed(known, device), _placed(rows, device)
        factors = _factors(chosen, scale, known, rows)
        if (codes == codes[0]).all():
            return np.full(len(rows), codes[0], dtype=np.int32)
        return chosen.learn(_scaled(known, factors), codes).guess(_scaled(rows, factors))


@translate_errors()
def _validate_rows(X: npt.ArrayLike) -> npt.NDArray[Any]:
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


@translate_errors()
def _checked_codes(values: npt.ArrayLike, name: str, length: int | None, lowest: int) -> Codes:
    """Codes of classes: integers of at least ``lowest``, one for each sample."""
    codes = np.asarray(values)
    if codes.size == 0 and codes.ndim == 1:
        codes = codes.astype(np.int32)
    if codes.ndim != 1 or codes.dtype.kind not in "iu":
        raise InvalidInputError(
            f"{name} must be a flat array of integers, got {codes.dtype} of shape {codes.shape}"
        )
    if length is not None and len(codes) != length:
        raise InvalidInputError(f"{name} must have one code per sample, {length}, got {len(codes)}")
    largest = np.iinfo(np.int32).max
    if len(codes) and (codes.min() < lowest or codes.max() > largest):
        odd = codes[(codes < lowest) | (codes > largest)][0]
        raise InvalidInputError(f"{name} must be codes from {lowest} to {largest}, got {odd}")
    return codes.astype(np.int32)


def _checked_labels(
    rows: npt.NDArray[Any], coarse: npt.ArrayLike, fine: npt.ArrayLike, parents: npt.ArrayLike
) -> tuple[Codes, Codes, Codes]:
    """Coarse and fine codes that agree with the parents, and the parents."""
    coarse_codes = _checked_codes(coarse, "coarse", len(rows), 0)
    fine_codes = _checked_codes(fine, "fine", len(rows), MISSING)
    parent_codes = _checked_codes(parents, "parents", None, 0)
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


@translate_errors()
def _checked_scale(scale: npt.ArrayLike, n_features: int) -> npt.NDArray[np.float64]:
    """A positive factor per feature."""
    factors = np.asarray(scale, dtype=np.float64)
    if factors.shape != (n_features,):
        raise InvalidInputError(f"scale must have the shape ({n_features},), got {factors.shape}")
    if not (np.isfinite(factors).all() and (factors > 0).all()):
        raise InvalidInputError("scale must be positive and finite")
    return factors


def _device(*samples: Any) -> Device | None:
    """Where to guess."""
    found = map(find_device, samples)
    return next((device for device in found if device is not None), None)


def _placed(rows: Any, device: Device | None) -> Any:
    """Samples as a tensor on a device, or as an array."""
    return np.asarray(rows) if device is None else load_tensor(rows, device)


def _factors(guesser: Guesser, scale: npt.ArrayLike | None, *samples: Any) -> Any:
    """Factors of the features; None if they are not scaled."""
    n_features = samples[0].shape[1]
    given = None if scale is None else _checked_scale(scale, n_features)
    if not guesser.scaling:
        return None
    if given is None and is_tensor(samples[0]):
        given = inverse_deviations(array_module(samples[0]).cat(samples))
    elif given is None:
        together = samples[0] if len(samples) == 1 else np.concatenate(samples)
        given = Standardization.of_each(together).scale
    return place_like(given**guesser.scaling, samples[0])


def _scaled(rows: Any, factors: Any) -> Any:
    return rows if factors is None else rows * factors


def inverse_deviations(rows: Tensor) -> npt.NDArray[np.float64]:
    """Return one divided by the standard deviation of each column; 1 for a constant one."""
    double = array_module(rows).float64
    mean = rows.mean(0, dtype=double)
    squares = [((block - mean) ** 2).sum(0) for block in rows.split(_BLOCK_ROWS)]
    variance = to_host(sum(squares) / len(rows))
    if not np.isfinite(variance).all():
        raise InvalidInputError("Input X contains values too large to compute their variance.")
    # As on the processor: a constant column has a tiny variance from rounding.
    varies = variance > (len(rows) * np.abs(to_host(mean)) * np.finfo(np.float64).eps) ** 2
    return 1.0 / np.sqrt(np.where(varies, variance, 1.0))


def _run_groups(
    work: Callable[[int, int], None], groups: list[int], n_jobs: int | None, verbose: int
) -> None:
    """Work on all groups, each in one thread."""
    parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    # BLAS results depend on its number of threads, and guesses must not depend on n_jobs.
    one = one_blas_thread() if len(groups) > 1 else nullcontext()
    with one, progress_bar("guessing fine classes", len(groups), verbose) as finished:
        done = parallel(delayed(work)(number, code) for number, code in enumerate(groups))
        for number, _ in enumerate(done, 1):
            if finished is not None:
                finished(number)


def _report(
    coarse: Codes, fine: Codes, parents: Codes, guessed: npt.NDArray[np.bool_], held_out: Codes
) -> GuessReport:
    known = fine >= 0
    sizes = np.bincount(fine[known], minlength=1)
    # A class with a single sample cannot be guessed without it.
    checked = known & (held_out >= 0) & (sizes[fine] > 1)
    parts = []
    for code in np.unique(coarse):
        own = coarse == code
        labels = fine[own & known]
        n_shown, n_kinds = len(np.unique(labels)), int((parents == code).sum())
        tells = own & checked & (n_shown == max(n_kinds, 2))
        parts.append(
            CoarseGuesses(
                coarse=int(code),
                n_known=len(labels),
                n_missing=int((own & ~known).sum()),
                n_guessed=int((own & guessed).sum()),
                n_checked=int(tells.sum()),
                n_right=int((tells & (held_out == fine)).sum()),
            )
        )
    return GuessReport(tuple(parts))
