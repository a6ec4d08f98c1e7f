"""What a rejecting classifier has learnt, as one value that never changes."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.novelty.calibration import Calibration
from evergrow.estimators.novelty.measures import MEASURES
from evergrow.estimators.sums.held_out import HeldOut
from evergrow.estimators.sums.moments import Moments
from evergrow.estimators.sums.moments_file import moments_from_tensors, moments_to_tensors
from evergrow.foundation.errors import ModelFileError
from evergrow.foundation.labels import ClassList
from evergrow.storage.modelfile import arrays_inside, check_array, class_list

__all__ = ["FittedRejection"]

Tensors = dict[str, npt.NDArray[Any]]

_INSIDE = "estimator/"
_FIXED = "calibration."
_FIXED_PARTS = ("usual", "spreads", "novelties", "weights")


@dataclass(frozen=True, eq=False)
class FittedRejection:
    """Classes, the wrapped estimator, class sums and held-out examples.

    The wrapped estimator is never changed here: who teaches it teaches a copy.

    ``fixed`` is a calibration by other examples than the held-out ones, such as by far more of
    them. It holds until anything is learnt or forgotten.
    """

    labels: ClassList
    estimator: Any
    moments: Moments
    held_out: HeldOut
    measure: str
    fixed: Calibration | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> FittedRejection:
        """Copies share what never changes, which a wrapped estimator may do in the caller's hands.

        Copies of Evergrow's own estimators cost next to nothing.
        """
        twin = copy.copy(self)
        object.__setattr__(twin, "estimator", copy.deepcopy(self.estimator, memo))
        return twin

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.moments.n_features

    @cached_property
    def calibration(self) -> Calibration:
        """Usual scores, from the held-out examples; made when first needed."""
        if self.fixed is not None:
            return self.fixed
        batch = self.held_out.batch
        if not len(batch.rows):
            nothing = np.zeros(0)
            columns = np.zeros(0, dtype=np.int64)
            return Calibration.of(columns, nothing, nothing, len(self.labels))
        score = MEASURES[self.measure].best_held_out
        (columns, scores), usable = score(self.estimator, self.moments, batch)
        weights = batch.weights * self.held_out.represented
        # What an estimator cannot score says nothing about what is usual.
        usable = usable & np.isfinite(scores)
        return Calibration.of(columns[usable], scores[usable], weights[usable], len(self.labels))

    def novelty(self, X: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """How far each row's best score lies below what is usual for that class, in spreads."""
        columns, scores = MEASURES[self.measure].best(self.estimator, self.moments, X)
        return self.calibration.novelty(columns, scores)

    def relabel(self, labels: ClassList, columns: list[int]) -> FittedRejection:
        """Class ``k`` becomes class ``columns[k]``, -1 leaves it out; some may become one."""
        same = columns == list(range(len(labels)))
        return replace(
            self,
            labels=labels,
            fixed=self.fixed if same else None,
            moments=self.moments.relabel(columns, len(labels)),
            held_out=self.held_out.relabel(columns, len(labels)),
        )

    def to_file(self) -> tuple[dict[str, Any], Tensors]:
        """Entries of a header and arrays; those of the wrapped estimator among them."""
        inner_header, inner = self.estimator._to_file()
        header = {
            "inside": inner_header,
            "measure": self.measure,
            "held_out": {"seed": self.held_out.seed, "share": self.held_out.share},
        }
        tensors = moments_to_tensors(self.moments) | self.held_out.to_tensors()
        if self.fixed is not None:
            tensors |= {_FIXED + name: getattr(self.fixed, name) for name in _FIXED_PARTS}
        return header, tensors | {_INSIDE + name: array for name, array in inner.items()}

    @classmethod
    def from_file(cls, header: dict[str, Any], tensors: Tensors, build: Any) -> FittedRejection:
        """Rebuild from :meth:`to_file`; a ``ModelFileError`` if anything does not fit."""
        labels = class_list(header)
        estimator = _read_inside(header, tensors, build)
        if estimator.classes_.tolist() != labels.classes.tolist():
            raise ModelFileError("the model file is inconsistent: the model inside has its classes")
        measure = header.get("measure")
        if not isinstance(measure, str) or measure not in MEASURES:
            raise ModelFileError(f"the model file has an unknown measure {measure!r}")
        seed, share = _read_counts(header)
        sizes = (estimator.n_features_in_, len(labels))
        moments = moments_from_tensors(tensors, *sizes)
        if moments.settled is not None:
            raise ModelFileError("the model file is inconsistent: it has a Gram matrix")
        held_out = HeldOut.from_tensors(tensors, sizes, seed=seed, share=share)
        fixed = _read_fixed(tensors, len(labels))
        return cls(labels, estimator, moments, held_out, measure, fixed)


def _read_fixed(tensors: Tensors, n_classes: int) -> Calibration | None:
    if not any(name.startswith(_FIXED) for name in tensors):
        return None
    sizes = dict.fromkeys(_FIXED_PARTS, n_classes)
    some = tensors.get(f"{_FIXED}novelties")
    sizes |= dict.fromkeys(("novelties", "weights"), 0 if some is None else some.size)
    parts = {
        name: check_array(tensors.get(_FIXED + name), _FIXED + name, np.float64, (size,))
        for name, size in sizes.items()
    }
    ordered = (np.diff(parts["novelties"]) >= 0).all()
    if not ordered or (parts["spreads"] <= 0).any() or (parts["weights"] <= 0).any():
        raise ModelFileError("the model file is inconsistent: its calibration makes no sense")
    return Calibration(**parts)


def _read_inside(header: dict[str, Any], tensors: Tensors, build: Any) -> Any:
    inside = header.get("inside")
    if not isinstance(inside, dict):
        raise ModelFileError("the model file lacks the model inside")
    estimator = build(inside, arrays_inside(tensors, _INSIDE))
    if not hasattr(estimator, "classes_"):
        raise ModelFileError("the model inside the model file is no classifier")
    return estimator


def _read_counts(header: dict[str, Any]) -> tuple[int, int]:
    entry = header.get("held_out")
    numbers = entry if isinstance(entry, dict) else {}
    seed, share = numbers.get("seed"), numbers.get("share")
    if type(seed) is not int or type(share) is not int or min(seed, share - 1) < 0:
        raise ModelFileError("the model file lacks seed and share of the held-out examples")
    return seed, share
