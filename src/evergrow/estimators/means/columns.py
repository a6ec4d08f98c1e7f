"""Classes that join or come, and what happens to their sums."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from evergrow.estimators.means.distances import Learnt
from evergrow.estimators.means.fitted import FittedMeans
from evergrow.estimators.sums.moments import Moments
from evergrow.foundation.labels import ClassList

__all__ = ["differences", "merge", "rename"]

Columns = tuple[ClassList, Moments]


def rename(labels: ClassList, moments: Moments, names: Mapping[Any, Any]) -> Columns:
    """Give classes other names; those given one name become one, in the first of their columns."""
    named, columns = labels.renamed(names)
    return named, moments.relabel(columns, len(named))


def merge(ours: FittedMeans, theirs: FittedMeans) -> Columns:
    """Sums over the examples of both; our columns stay, new ones of theirs follow, sorted."""
    labels, columns = ours.labels.extend(theirs.labels.classes)
    return labels, ours.moments.merged(theirs.moments, columns.tolist(), len(labels))


def differences(ours: FittedMeans, theirs: FittedMeans) -> list[str]:
    """What keeps the sums of two models from adding up to those of one."""
    if ours.n_features != theirs.n_features:
        return ["the number of features"]
    # Shrinkage is no matter of the sums: the model that takes them in has its own.
    one, other = ours.distance(0.0), theirs.distance(0.0)
    if type(one) is not type(other):
        return ["metric"]
    if isinstance(one, Learnt) and isinstance(other, Learnt):
        same = np.array_equal(one.components, other.components)
        return [] if same else ["the metric that was learnt"]
    per_class = [fitted.moments.class_settled is not None for fitted in (ours, theirs)]
    return [] if per_class[0] == per_class[1] else ["keep_class_statistics"]
