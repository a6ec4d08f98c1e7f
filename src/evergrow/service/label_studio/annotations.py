"""The label of a task, from the annotations of one or several people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evergrow.foundation.errors import InvalidInputError
from evergrow.service.label_studio.labelling_config import LabellingConfig


@dataclass(frozen=True)
class Task:
    """A task of Label Studio.

    Attributes
    ----------
    id : int
        Its id, unique in a Label Studio.
    image : str or None
        Where its image is, as Label Studio says; None if its data has none.
    label : str or None
        The class that its annotators agree on, if any.
    updated_at : str
        When it, or one of its annotations, changed last.
    """

    id: int
    image: str | None
    label: str | None = None
    updated_at: str = ""


def read_task(value: Any, config: LabellingConfig) -> Task:
    """Read a task as Label Studio lists it; raise an ``InvalidInputError`` if it is not one."""
    if not isinstance(value, Mapping) or not is_id(value.get("id")):
        raise InvalidInputError("Label Studio sent a task without an id")
    data, annotations = value.get("data"), value.get("annotations")
    image = data.get(config.image_key) if isinstance(data, Mapping) else None
    return Task(
        value["id"],
        image if isinstance(image, str) and image else None,
        agreed_label(annotations if isinstance(annotations, Sequence) else (), config),
        str(value.get("updated_at") or ""),
    )


def is_id(value: Any) -> bool:
    """Whether a value is an id of Label Studio."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**63


def agreed_label(annotations: Sequence[Any], config: LabellingConfig) -> str | None:
    """Return the class that annotations agree on; None if there is none.

    An annotation that is marked as ground truth decides. Otherwise the newest annotation of each
    person counts, and the class that most of them chose wins. A tie is not an agreement: nothing is
    taught until one more annotation, or a ground truth, decides. Skipped tasks do not count.
    """
    valid = [
        one for one in annotations if isinstance(one, Mapping) and not one.get("was_cancelled")
    ]
    for one in valid:
        if one.get("ground_truth") is True:
            return _chosen_class(one, config)
    # In the order in which they were made: the last one of each person counts.
    by_person = {_person_of(one): _chosen_class(one, config) for one in sorted(valid, key=_number)}
    votes = Counter(label for label in by_person.values() if label is not None).most_common(2)
    if not votes or (len(votes) > 1 and votes[0][1] == votes[1][1]):
        return None
    return votes[0][0]


def _number(annotation: Mapping[str, Any]) -> int:
    found = annotation.get("id")
    return found if isinstance(found, int) else 0


def _person_of(annotation: Mapping[str, Any]) -> str:
    person = annotation.get("completed_by")
    return str(person.get("id") if isinstance(person, Mapping) else person)


def _chosen_class(annotation: Mapping[str, Any], config: LabellingConfig) -> str | None:
    """The class that one annotation chose; None if it chose none, or "unknown"."""
    result = annotation.get("result")
    for item in result if isinstance(result, Sequence) else ():
        if not isinstance(item, Mapping) or item.get("from_name") != config.choices:
            continue
        value = item.get("value")
        chosen = value.get("choices") if isinstance(value, Mapping) else None
        if isinstance(chosen, Sequence) and len(chosen) == 1 and isinstance(chosen[0], str):
            return config.class_of(chosen[0])
    return None
