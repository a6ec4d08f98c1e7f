"""From one fitted value of least squares to the next: more examples, fewer, other classes.

The functions never change their arguments, so that a failure or an interrupt leaves the model as it
was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from evergrow.estimators.linear.feature_map import RFF, FeatureRows, resolve_map
from evergrow.estimators.linear.fitted import FittedRLS
from evergrow.estimators.linear.selection import SelectionRequest
from evergrow.estimators.linear.solver import Ridge
from evergrow.estimators.sums.accumulation import add_examples, iter_batches
from evergrow.estimators.sums.changes import (
    check_examples_left,
    remove_classes,
    subtract_examples,
)
from evergrow.estimators.sums.moments import Batch, Moments
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.labels import ClassList


@dataclass(frozen=True)
class RLSRequest:
    """The parameters of one call."""

    selection: SelectionRequest
    ridge: Callable[[float], Ridge]
    validation_every: int
    max_held_out: int
    verbose: int

    @classmethod
    def of(cls, estimator: Any) -> RLSRequest:
        """Return the request that the parameters of an estimator make."""
        automatic, standardize = estimator.regularization == "auto", bool(estimator.standardize)
        return cls(
            SelectionRequest(
                None if automatic else float(estimator.regularization),
                estimator._recoding,
                standardize,
            ),
            partial(Ridge, standardize=standardize, intercept=bool(estimator.fit_intercept)),
            int(estimator.validation_every),
            int(estimator.max_held_out),
            int(estimator.verbose),
        )


def check_structure(estimator: Any, known: FittedRLS) -> None:
    """Raise a ``ValueError`` if parameters that determine the sums have changed."""
    if known.fixed is not None:
        return
    features, wanted_map = known.features, resolve_map(estimator.feature_map)
    now: dict[str, tuple[Any, Any]] = {
        "fit_intercept": (bool(estimator.fit_intercept), known.intercept),
        "n_random_features": (estimator.n_random_features, features.n_random),
        "keep_class_statistics": (
            bool(getattr(estimator, "keep_class_statistics", False)),
            known.moments.class_settled is not None,
        ),
    }
    if features.n_random:
        now["feature_map"] = (wanted_map.name, features.kind)
    if features.kind == "rff" and isinstance(wanted_map, RFF) and wanted_map.gamma != "scale":
        now["gamma"] = (float(wanted_map.gamma), features.gamma)
    for name, (wanted, fixed) in now.items():
        if wanted != fixed:
            raise InvalidInputError(
                f"{name} is {wanted!r} but the model was trained with {fixed!r}: "
                "fit again to change it"
            )


def extend(known: FittedRLS, labels: ClassList, new: Batch, request: RLSRequest) -> FittedRLS:
    """Add examples, inputs of any type; ``labels`` are the classes known afterwards."""
    moments = known.moments.with_classes(len(labels))
    holdout = known.holdout.with_classes(len(labels))
    row_map, verbose = FeatureRows(known.features, known.intercept), request.verbose
    if not request.selection.needs_holdout:
        moments, _ = add_examples(moments, new, row_map, verbose=verbose)
    else:
        drawn = holdout.draw(
            new.codes,
            labels.classes.tolist(),
            every=request.validation_every,
            max_held_out=request.max_held_out,
        )
        places = drawn.places
        moments, rows = add_examples(moments, new, row_map, places=places, verbose=verbose)
        holdout = holdout.with_drawn(drawn, rows, new.weights[places])
    moments.check_finite()
    return _select(replace(known, labels=labels, moments=moments, holdout=holdout), request)


def forget(known: FittedRLS, gone: Batch, request: RLSRequest) -> FittedRLS:
    """Remove examples; a ``ValueError`` if they cannot have been learnt."""
    features = iter_batches(gone, FeatureRows(known.features, known.intercept))
    moments = subtract_examples(known.labels, known.moments, features)
    check_examples_left(moments)
    holdout, _ = known.holdout.remove(gone)
    return _select(replace(known, moments=moments, holdout=holdout), request)


def forget_classes(known: FittedRLS, removed: list[int], request: RLSRequest) -> FittedRLS:
    """Remove classes and their columns."""
    check_examples_left(known.moments, removed)
    labels, columns, moments = remove_classes(known.labels, known.moments, removed)
    return _relabel(known, labels, columns, moments, request)


def rename(known: FittedRLS, names: Mapping[Any, Any], request: RLSRequest) -> FittedRLS:
    """Give classes other names; classes with the same new name become one."""
    labels, columns = known.labels.renamed(names)
    if len(labels) == len(known.labels):
        return replace(known, labels=labels)
    moments = known.moments.relabel(columns, len(labels))
    return _relabel(known, labels, columns, moments, request)


def merge(known: FittedRLS, other: FittedRLS, request: RLSRequest) -> FittedRLS:
    """Return what one model would have learnt from the examples of both."""
    labels, codes = known.labels.extend(other.labels.classes)
    columns, n_classes = codes.tolist(), len(labels)
    moments = known.moments.merged(other.moments, columns, n_classes)
    holdout = known.holdout.merged(other.holdout, columns, n_classes, request.max_held_out)
    joint = replace(known, labels=labels, moments=moments, holdout=holdout)
    return _select(joint, request, force=True)


def differences(known: FittedRLS, other: FittedRLS) -> list[str]:
    """Return what must be equal to merge two models, but is not."""
    mine, theirs = known.features, other.features
    pairs = {
        "the number of features": (mine.n_inputs, theirs.n_inputs),
        "fit_intercept": (known.intercept, other.intercept),
        "n_random_features": (mine.n_random, theirs.n_random),
        "feature_map": (mine.kind, theirs.kind),
        "the seed of the random features": (mine.seed, theirs.seed),
        "gamma of the random features": (mine.gamma, theirs.gamma),
        "keep_class_statistics": (
            known.moments.class_settled is not None,
            other.moments.class_settled is not None,
        ),
    }
    return [f"{name} ({a} and {b})" for name, (a, b) in pairs.items() if a != b]


def _relabel(
    known: FittedRLS, labels: ClassList, columns: list[int], moments: Moments, request: RLSRequest
) -> FittedRLS:
    """Replace classes and sums; class ``k`` became class ``columns[k]``."""
    holdout = known.holdout.relabel(columns, len(labels))
    selection = known.selection
    if selection is not None:
        selection = replace(selection, class_examples=moments.class_examples)
    changed = replace(known, labels=labels, moments=moments, holdout=holdout, selection=selection)
    return _select(changed, request, force=True)


def _select(known: FittedRLS, request: RLSRequest, *, force: bool = False) -> FittedRLS:
    """Choose the parameters that are "auto" again, if it is time to."""
    wanted, last = request.selection, known.selection
    if not wanted.needs_holdout:
        return known
    if last is not None and not force and not last.is_due(known.moments, wanted):
        return known
    return known.select(request.ridge, wanted, force=force)
