"""Pre-annotations: the class of a task's image with its probability, or nothing if it is unknown.

The score of a prediction orders tasks: Label Studio's uncertainty sampling shows the lowest first.
For a single task it is the probability of the class, and 0 for something unknown. The scores of
several tasks are those numbers too, but handed out in the order in which the tasks should be
labelled, the lowest to the most useful one. The probability of the class is in the result.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evergrow.estimators.curation.next_to_label import next_to_label
from evergrow.service.label_studio.annotations import Task
from evergrow.service.label_studio.labelling_config import LabellingConfig
from evergrow.service.label_studio.learner import Row
from evergrow.workspace.model.snapshot import Snapshot
from evergrow.workspace.records import Answer

# Comparing all pairs of more tasks would take seconds; the others follow by their scores.
_MAX_RANKED = 2000
# Classes that are not choices of the project are passed over; a few hundred are enough.
_MAX_TOP = 1000

_log = logging.getLogger("evergrow.service")


def model_version(snapshot: Snapshot) -> str:
    """Return the version of a model; it changes with every lesson, so Label Studio asks again."""
    return f"evergrow-{snapshot.event}"


@dataclass(frozen=True)
class PreAnnotation:
    """The answer for one task; ``choice`` is None if nothing should be selected."""

    task: int
    choice: str | None
    probability: float
    score: float

    def to_json(self, config: LabellingConfig, version: str) -> dict[str, Any]:
        """Return the prediction as Label Studio reads it."""
        result = []
        if self.choice is not None:
            result.append(
                {
                    "from_name": config.choices,
                    "to_name": config.image,
                    "type": "choices",
                    "value": {"choices": [self.choice]},
                    "score": self.probability,
                }
            )
        return {"result": result, "score": self.score, "model_version": version}


def predict_tasks(
    snapshot: Snapshot,
    config: LabellingConfig,
    tasks: Sequence[Task],
    rows: Mapping[int, Row | Exception],
) -> list[PreAnnotation]:
    """Predict tasks from the embeddings of their images; those without one get an empty answer."""
    for task in tasks:
        if isinstance(error := rows.get(task.id), Exception):
            _log.warning("task %d of Label Studio was not predicted: %s", task.id, error)
    known = [task for task in tasks if isinstance(rows.get(task.id), np.ndarray)]
    empty = {task.id: PreAnnotation(task.id, None, 0.0, 0.0) for task in tasks}
    # The first lesson fixes the length of embeddings.
    if not len(snapshot.class_ids) or not known:
        return list(empty.values())
    matrix = np.stack([np.asarray(rows[task.id]) for task in known])
    answers = snapshot.predict(matrix, top=min(_MAX_TOP, len(snapshot.class_ids)))
    found = [_choose(config, task, answer) for task, answer in zip(known, answers, strict=True)]
    if len(found) > 1:
        found = _rank(found, matrix, class_probabilities(snapshot, matrix))
    return list({**empty, **{one.task: one for one in found}}.values())


def _choose(config: LabellingConfig, task: Task, answer: Answer) -> PreAnnotation:
    if not answer.known:
        return PreAnnotation(task.id, config.unknown, answer.probability, 0.0)
    for name, probability in answer.top:
        if name in config.classes:
            return PreAnnotation(task.id, config.classes[name], probability, probability)
    return PreAnnotation(task.id, config.unknown, 0.0, 0.0)


def class_probabilities(snapshot: Snapshot, matrix: Any) -> Any:
    """Return the probabilities of all classes of a model, one row per embedding."""
    logits = snapshot.scores(matrix) / snapshot.temperature
    values = np.exp(logits - logits.max(axis=1, keepdims=True))
    return values / values.sum(axis=1, keepdims=True)


def _rank(found: list[PreAnnotation], matrix: Any, probabilities: Any) -> list[PreAnnotation]:
    """Hand out the scores in the order in which the tasks should be labelled."""
    scores = np.array([one.score for one in found])
    order = np.argsort(scores, kind="stable")
    ranked = order[:_MAX_RANKED]
    chosen = next_to_label(matrix[ranked], probabilities=probabilities[ranked], n=len(ranked))
    order = np.concatenate([ranked[chosen], order[_MAX_RANKED:]])
    sorted_scores = np.sort(scores)
    handed_out = np.empty_like(sorted_scores)
    handed_out[order] = sorted_scores
    return [
        PreAnnotation(one.task, one.choice, one.probability, float(score))
        for one, score in zip(found, handed_out, strict=True)
    ]
