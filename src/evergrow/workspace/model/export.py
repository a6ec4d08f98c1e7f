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
from evergrow.estimators.novelty.calibration import Calibration
from evergrow.estimators.novelty.fitted import FittedRejection
from evergrow.estimators.sums.holdout import Holdout
from evergrow.estimators.sums.moments import Batch
from evergrow.foundation.labels import ClassList
from evergrow.vision.classifier import ImageClassifier
from evergrow.vision.classifier.fitted import FittedImages
from evergrow.workspace.events import ExampleBlock
from evergrow.workspace.model.assessment import NoveltyLimits
from evergrow.workspace.model.least_squares import TrainedModel
from evergrow.workspace.records import ConflictError

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
    """An estimator over class names that may predict "unknown".

    It classifies images if there is an embedder, else embeddings, and does not contain the fine
    names of split classes. The sample has at most :data:`HOLDOUT` of the examples.
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
    images._set_fitted(FittedImages(embedder, model, labels, counts, None))
    return images


def _named(trained: TrainedModel, labels: ClassList) -> RLSClassifier:
    """Least squares over names, with the hyperparameters of the workspace."""
    known, chosen, penalty = (
        trained.require_fitted(),
        trained.hyperparameters,
        trained.ridge.penalty,
    )
    moments = known.moments.without_empty()
    selection = Selection(
        penalty,
        chosen.recoding,
        chosen.temperature,
        SelectionRequest(penalty, chosen.recoding, blocks=trained.blocks),
        moments.n_examples,
        moments.weight,
        moments.class_examples,
        chosen.used_blocks if trained.blocks else (),
        chosen.by_means,
    )
    fitted = replace(
        known,
        labels=labels,
        moments=moments,
        holdout=Holdout.none(1, 0).with_classes(len(labels)),
        selection=selection,
    )
    return trained.estimator(fitted.__deepcopy__({}))


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
    # The sums of the model inside, without the constant feature.
    products = inside._fitted.moments.gram[:-1, :-1].copy()
    fitted = FittedRejection(
        labels,
        inside,
        replace(trained.plain_moments.without_empty(), settled=products),
        holdout,
        "auto",
        _calibration(limits, trained.class_ids, false_alarms),
        trained.novelty_ridge.penalty,
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


def _calibration(
    limits: NoveltyLimits | None, class_ids: npt.NDArray[np.int64], false_alarms: float
) -> Calibration | None:
    if limits is None:
        return None
    return limits.valid_for(class_ids).calibration(class_ids, false_alarms)


def _free_name(classes: npt.NDArray[Any]) -> str:
    """The label of unknown things; another one if a class has that name."""
    taken, name, number = set(classes.tolist()), _UNKNOWN, 1
    while name in taken:
        number += 1
        name = f"{_UNKNOWN} {number}"
    return name
