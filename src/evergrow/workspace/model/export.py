"""The model of a workspace as an ordinary estimator, whose file needs no workspace.

It answers as the workspace does and goes on learning on its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.linear import RLSClassifier
from evergrow.estimators.linear.selection import Selection, SelectionRequest
from evergrow.estimators.novelty import RejectingClassifier
from evergrow.estimators.novelty.fitted import FittedRejection
from evergrow.estimators.sums.holdout import Holdout
from evergrow.estimators.sums.moments import Batch
from evergrow.foundation.labels import ClassList
from evergrow.vision.classifier import ImageClassifier
from evergrow.vision.classifier.fitted import FittedImages
from evergrow.workspace.errors import ConflictError
from evergrow.workspace.events import Block
from evergrow.workspace.model.least_squares import Learnt
from evergrow.workspace.model.novelty import Limits

__all__ = ["HELD_OUT", "exported"]

# Examples that go along, so that "unknown" can be told anew once more is learnt.
HELD_OUT = 2000
_UNKNOWN = "unknown"


def exported(
    learnt: Learnt,
    names: Mapping[int, str],
    limits: Limits | None,
    sample: Block,
    *,
    false_alarms: float,
    embedder: Any | None = None,
) -> RejectingClassifier | ImageClassifier:
    """An estimator over class names.

    Parameters
    ----------
    learnt : Learnt
        What is known.
    names : mapping
        Names of classes by id.
    limits : Limits or None
        How strange is too strange.
    sample : Block
        At most :data:`HELD_OUT` of the examples.
    false_alarms : float
        Share of known things that may be called unknown.
    embedder : Embedder, default=None
        What turns images into embeddings; without one the classifier takes embeddings.

    Returns
    -------
    model : estimator
        A classifier that may answer "unknown"; of images where there is an embedder. The finer
        names of split classes are no part of it.
    """
    if not learnt.n_examples:
        raise ConflictError("nothing was taught yet: there is no model to export")
    labels = ClassList(np.array([names[k] for k in learnt.class_ids.tolist()]))
    inside = _named(learnt, labels)
    model = _rejecting(learnt, limits, inside, labels, sample, false_alarms)
    if embedder is None:
        return model
    images = ImageClassifier(embedder, model, keep_features=False)
    counts = np.array(list(learnt.class_counts.values()), dtype=np.int64)
    images._take(FittedImages(embedder, model, labels, counts, None))
    return images


def _named(learnt: Learnt, labels: ClassList) -> RLSClassifier:
    """Least squares over names, with the numbers of the workspace."""
    if learnt.fitted is None:
        raise ConflictError("nothing was taught yet: there is no model to export")
    choice, penalty = learnt.choice, learnt.ridge.penalty
    moments = learnt.fitted.moments.without_empty()
    selection = Selection(
        penalty,
        choice.recoding,
        choice.temperature,
        SelectionRequest(penalty, choice.recoding),
        moments.n_examples,
        moments.weight,
        moments.class_examples,
    )
    fitted = replace(
        learnt.fitted,
        labels=labels,
        moments=moments,
        holdout=Holdout.none(1, 0).with_classes(len(labels)),
        selection=selection,
    )
    model = RLSClassifier(regularization=penalty, recoding=choice.recoding)
    model._become(fitted.__deepcopy__({}), None)
    return model


def _rejecting(
    learnt: Learnt,
    limits: Limits | None,
    inside: RLSClassifier,
    labels: ClassList,
    sample: Block,
    false_alarms: float,
) -> RejectingClassifier:
    """Around it what tells the unknown, calibrated as in the workspace."""
    place = {class_id: k for k, class_id in enumerate(learnt.class_ids.tolist())}
    codes = np.array([place[c] for c in sample.class_ids.tolist()], dtype=np.int32)
    batch = Batch(sample.rows.astype(np.float64), codes, np.ones(len(codes)))
    holdout, _ = Holdout.none(HELD_OUT, 0).add(
        batch, labels.classes.tolist(), every=1, max_held_out=HELD_OUT
    )
    fitted = FittedRejection(
        labels,
        inside,
        learnt.plain_moments.without_empty(),
        holdout,
        "cosine",
        None if limits is None else limits.calibration(learnt.class_ids, false_alarms),
    )
    unknown = _free_name(labels.classes)
    model = RejectingClassifier(
        RLSClassifier(**inside.get_params(deep=False)),
        false_alarms=false_alarms,
        unknown_label=None if unknown == _UNKNOWN else unknown,
        max_held_out=HELD_OUT,
    )
    model._become(fitted, None)
    return model


def _free_name(classes: npt.NDArray[Any]) -> str:
    """What stands for the unknown; a class may have the usual name."""
    taken, name, number = set(classes.tolist()), _UNKNOWN, 1
    while name in taken:
        number += 1
        name = f"{_UNKNOWN} {number}"
    return name
