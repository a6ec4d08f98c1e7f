"""Guess the fine classes of samples with only a coarse class."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from sklearn.utils import check_random_state

from evergrow.estimators.forest.value.standardization import Standardization
from evergrow.estimators.subcategory.guess.checks import (
    MISSING,
    checked_codes,
    checked_labels,
    checked_scale,
    validate_rows,
)
from evergrow.estimators.subcategory.guess.guesser import (
    Codes,
    FittedGuesser,
    Guesser,
    SingleClass,
    leave_one_of_each_out,
)
from evergrow.estimators.subcategory.guess.registry import GUESSER_RULES, guesser_of
from evergrow.estimators.subcategory.guess.report import CoarseGuesses, GuessReport
from evergrow.foundation.device import (
    Device,
    Tensor,
    array_module,
    find_device,
    guard_memory,
    is_tensor,
    place_like,
    to_host,
)
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.params import Flag, Integer, Nothing, RandomState, Rule, check_parameters
from evergrow.foundation.progress import progress_bar
from evergrow.foundation.threads import one_blas_thread
from evergrow.storage.device_rows import load_tensor

Places = npt.NDArray[np.int64]

# Rows that are converted to double precision at a time.
_BLOCK_ROWS = 8192
# What to do if the memory of a GPU is exhausted.
_ADVICE = "guess fewer samples at a time, or on the processor with RidgeGuesser(device='cpu')"

_RULES: dict[str, list[Rule]] = {
    "guesser": GUESSER_RULES,
    "check": [Flag()],
    "n_jobs": [Nothing(), Integer(-(1 << 20), -1), Integer(1, 1 << 20)],
    "random_state": [Nothing(), RandomState()],
    "verbose": [Integer(0), Flag()],
}


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


@dataclass(frozen=True, eq=False)
class _Group:
    """Samples that are guessed together: those with a known and those with a missing class."""

    known: Places
    missing: Places
    seed: int


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
        Features. Tensors on a GPU are computed there, unless the guesser names another device.
    coarse : array-like of shape (n_samples,)
        Coarse class of each sample, as a number from 0.
    fine : array-like of shape (n_samples,)
        Fine class of each sample, as a number from 0; -1 if it is missing.
    parents : array-like of shape (n_fine_classes,)
        Coarse class of each fine class.
    guesser : {"ridge", "nn", "nn-unconstrained", "nn-discard", "forest"} or guesser, \
default="ridge"
        How to guess:

        - ``"ridge"``: ridge regression within the coarse class. It is right most often on image
          features.
        - ``"nn"``: the nearest sample of the same coarse class, as in the paper.
        - ``"nn-unconstrained"``: the nearest of all samples, even if it has another coarse class.
        - ``"nn-discard"``: the same, but guesses that contradict the coarse class are discarded.
        - ``"forest"``: predictions of a forest trained on the known samples.

        The last three are only for comparisons. A guesser object such as
        ``RidgeGuesser(scaling=1.0)`` sets its own options.
    scale : array-like of shape (n_features,), default=None
        One divided by the standard deviation of each feature. None measures it on `X`. Pass the
        scale of a trained model to guess later batches like the first.
    check : bool, default=True
        Whether to measure how often guesses are right. This takes about as long as the guesses
        themselves. With ``"forest"``, three more forests are grown.
    n_jobs : int, default=None
        Number of threads, each for one coarse class, as in scikit-learn: None is 1, -1 uses all
        processors. The guesses are the same for any number.
    random_state : int, RandomState or None, default=None
        Seed of the order in which known samples are held out, and of the forest.
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
    checked = validate_rows(X)
    coarse_codes, fine_codes, parent_codes = checked_labels(checked, coarse, fine, parents)
    device = _device(chosen, checked)
    with guard_memory(device, _ADVICE):
        rows = _placed(checked, device)
        factors = _factors(chosen, scale, rows)
    groups = _groups(chosen, coarse_codes, fine_codes, _seed(random_state))
    # Each thread works on one group; a single group gets all threads.
    inner = n_jobs if len(groups) == 1 else 1

    def work(group: _Group) -> tuple[Codes, Codes]:
        known = _scaled(rows[group.known], factors), fine_codes[group.known]
        fitted = _learn(chosen, *known, n_jobs=inner, seed=group.seed)
        guessed = np.zeros(0, dtype=np.int32)
        if len(group.missing):
            guessed = fitted.guess(_scaled(rows[group.missing], factors))
        if not check:
            return guessed, np.full(len(group.known), MISSING, dtype=np.int32)
        folds = leave_one_of_each_out(known[1], np.random.default_rng(group.seed))
        return guessed, fitted.held_out(folds)

    filled, held_out = fine_codes.copy(), np.full(len(fine_codes), MISSING, dtype=np.int32)
    with guard_memory(device, _ADVICE):
        results = _run_groups(work, groups, n_jobs, verbose)
    for group, (guessed, tried) in zip(groups, results, strict=True):
        filled[group.missing] = guessed
        held_out[group.known] = tried
    if chosen.discard:
        for found in (filled, held_out):
            rest = np.flatnonzero(found >= 0)
            found[rest[parent_codes[found[rest]] != coarse_codes[rest]]] = MISSING
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
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> Codes:
    """Guess the fine classes of new samples of one coarse class from known samples.

    Parameters
    ----------
    known_X : array-like of shape (n_known, n_features)
        Samples of the coarse class whose fine class is known. For a guesser that ignores the coarse
        class, all samples with a known fine class.
    known_fine : array-like of shape (n_known,)
        Fine classes of these samples, as numbers.
    X : array-like of shape (n_samples, n_features)
        Samples whose fine class is guessed.
    guesser : {"ridge", "nn", "nn-unconstrained", "nn-discard", "forest"} or guesser, \
default="ridge"
        How to guess, as in :func:`guess_fine`.
    scale : array-like of shape (n_features,), default=None
        One divided by the standard deviation of each feature. None measures it on all given
        samples. If there are few, pass the scale of a trained model.
    n_jobs : int, default=None
        Number of threads, as in :func:`guess_fine`.
    random_state : int, RandomState or None, default=None
        Seed, as in :func:`guess_fine`.

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
    options = {"check": False, "n_jobs": n_jobs, "random_state": random_state, "verbose": 0}
    check_parameters({"guesser": guesser, **options}, _RULES)
    chosen = guesser_of(guesser)
    known, rows = validate_rows(known_X), validate_rows(X)
    if known.shape[1] != rows.shape[1]:
        raise InvalidInputError(f"X has {rows.shape[1]} features, but known_X has {known.shape[1]}")
    codes = checked_codes(known_fine, "known_fine", len(known), 0)
    device, seed = _device(chosen, rows, known), _seed(random_state)
    with guard_memory(device, _ADVICE):
        known, rows = _placed(known, device), _placed(rows, device)
        factors = _factors(chosen, scale, known, rows)
        fitted = _learn(chosen, _scaled(known, factors), codes, n_jobs=n_jobs, seed=seed)
        return fitted.guess(_scaled(rows, factors))


def _device(guesser: Guesser, *samples: Any) -> Device | None:
    """Where to guess: the processor if the guesser has no such option."""
    name = getattr(guesser, "device", "cpu")
    found = (find_device(name, one) for one in samples)
    return next((device for device in found if device is not None), None)


def _placed(rows: Any, device: Device | None) -> Any:
    """Samples as a tensor on a device, or as an array."""
    return np.asarray(rows) if device is None else load_tensor(rows, device)


def _factors(guesser: Guesser, scale: npt.ArrayLike | None, *samples: Any) -> Any:
    """Factors of the features; None if they are not scaled."""
    n_features = samples[0].shape[1]
    given = None if scale is None else checked_scale(scale, n_features)
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


def _seed(random_state: int | np.random.RandomState | None) -> int:
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def _groups(guesser: Guesser, coarse: Codes, fine: Codes, seed: int) -> list[_Group]:
    """Groups with known samples: one for each coarse class, or a single one."""
    divided = np.unique(coarse[fine >= 0])
    member = np.isin(coarse, divided)
    parts = [coarse == c for c in divided] if guesser.within else [member] * bool(len(divided))
    return [
        _Group(np.flatnonzero(part & (fine >= 0)), np.flatnonzero(part & (fine < 0)), seed + k)
        for k, part in enumerate(parts)
    ]


def _learn(
    guesser: Guesser, X: npt.NDArray[Any], fine: Codes, *, n_jobs: int | None, seed: int
) -> FittedGuesser:
    if (fine == fine[0]).all():
        return SingleClass(fine)
    return guesser.learn(X, fine, n_jobs=n_jobs, seed=seed)


def _run_groups(
    work: Callable[[_Group], tuple[Codes, Codes]],
    groups: list[_Group],
    n_jobs: int | None,
    verbose: int,
) -> list[tuple[Codes, Codes]]:
    """Results of all groups, in their order."""
    parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    # BLAS results depend on its number of threads, and guesses must not depend on n_jobs.
    one = one_blas_thread() if len(groups) > 1 else nullcontext()
    done = []
    with one, progress_bar("guessing fine classes", len(groups), verbose) as finished:
        for result in parallel(delayed(work)(group) for group in groups):
            done.append(result)
            if finished is not None:
                finished(len(done))
    return done


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
