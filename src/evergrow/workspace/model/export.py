"""Exports the model of a workspace as an estimator that needs no workspace.

It predicts as the workspace does and can be trained further on its own.
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
from evergrow.workspace.events import ExampleBlock
from evergrow.workspace.model.least_squares import TrainedModel
from evergrow.workspace.model.novelty import NoveltyLimits

# Examples that are exported as a holdout, to recalibrate "unknown" after more training.
HOLDOUT = 2000
_UNKNOWN = "unknown"


def export_model(
    trained: TrainedModel,
    names: Mapping[int, str],
    limits: NoveltyLimits | None,
    sample: ExampleBlock,
    *,
    false_alarms: float,
    embedder: Any | None = None,
) -> RejectingClassifier | ImageClassifier:
    """An estimator over class names.

    Parameters
    ----------
    trained : TrainedModel
        The least squares of the workspace.
    names : mapping
        Names of classes by id.
    limits : NoveltyLimits or None
        Calibration of the novelty.
    sample : ExampleBlock
        At most :data:`HOLDOUT` of the examples.
    false_alarms : float
        Share of known examples that may be called unknown.
    embedder : Embedder, default=None
        The embedder of images; without one the classifier takes embeddings.

    Returns
    -------
    model : estimator
        A classifier that may predict "unknown", of images if there is an embedder. It does not
        contain the fine names of split classes.
    """
    if not trained.n_examples:
        raise ConflictError("the workspace has no examples yet: there is no model to export")
    labels = ClassList(np.array([names[k] for k in trained.class_ids.tolist()]))
    inside = _named(trained, labels)
    model = _rejecting(trained, limits, inside, labels, sample, false_alarms)
    if embedder is None:
        return model
    images = ImageClassifier(embedder, model, keep_features=False)
    counts = np.array(list(trained.class_counts.values()), dtype=np.int64)
    images._take(FittedImages(embedder, model, labels, counts, None))
    return images


def _named(trained: TrainedModel, labels: ClassList) -> RLSClassifier:
    """Least squares over names, with the hyperparameters of the workspace."""
    if trained.fitted is None:
        raise ConflictError("the workspace has no examples yet: there is no model to export")
    chosen, penalty = trained.hyperparameters, trained.ridge.penalty
    moments = trained.fitted.moments.without_empty()
    selection = Selection(
        penalty,
        chosen.recoding,
        chosen.temperature,
        SelectionRequest(penalty, chosen.recoding),
        moments.n_examples,
        moments.weight,
        moments.class_examples,
    )
    fitted = replace(
        trained.fitted,
        labels=labels,
        moments=moments,
        holdout=Holdout.none(1, 0).with_classes(len(labels)),
        selection=selection,
    )
    model = RLSClassifier(regularization=penalty, recoding=chosen.recoding)
    model._set_fitted(fitted.__deepcopy__({}), None)
    return model


def _rejecting(
    trained: TrainedModel,
    limits: NoveltyLimits | None,
    inside: RLSClassifier,
    labels: ClassList,
    sample: ExampleBlock,
    false_alarms: float,
) -> RejectingClassifier:
    """The classifier with a rejection of unknown things, calibrated as in the workspace."""
    place = {class_id: k for k, class_id in enumerate(trained.class_ids.tolist())}
    codes = np.array([place[c] for c in sample.class_ids.tolist()], dtype=np.int32)
    batch = Batch(sample.rows.astype(np.float64), codes, np.ones(len(codes)))
    holdout, _ = Holdout.none(HOLDOUT, 0).add(
        batch, labels.classes.tolist(), every=1, max_held_out=HOLDOUT
    )
    fitted = FittedRejection(
        labels,
        inside,
        trained.plain_moments.without_empty(),
        holdout,
        "cosine",
        None if limits is None else limits.calibration(trained.class_ids, false_alarms),
    )
    unknown = _free_name(labels.classes)
    model = RejectingClassifier(
        RLSClassifier(**inside.get_params(deep=False)),
        false_alarms=false_alarms,
        unknown_label=None if unknown == _UNKNOWN else unknown,
        max_held_out=HOLDOUT,
    )
    model._set_fitted(fitted, None)
    return model


def _free_name(classes: npt.NDArray[Any]) -> str:
    """The label of unknown things; another one if a class has that name."""
    taken, name, number = set(classes.tolist()), _UNKNOWN, 1
    while name in taken:
        number += 1
        name = f"{_UNKNOWN} {number}"
    return name
