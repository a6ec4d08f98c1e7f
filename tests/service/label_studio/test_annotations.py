"""The label of a task with one or several annotations."""

from __future__ import annotations

from typing import Any

import pytest

from evergrow.foundation.errors import InvalidInputError
from evergrow.service.label_studio.annotations import agreed_label, read_task
from evergrow.service.label_studio.labelling_config import parse_labelling_config
from tests.service.label_studio.fake import CONFIG, FakeLabelStudio

CHOICES = parse_labelling_config(CONFIG)


def annotation(number: int, label: str, person: int = 1, **members: Any) -> dict[str, Any]:
    result = [FakeLabelStudio.choice(label)]
    return {"id": number, "completed_by": person, "result": result, **members}


def test_the_newest_annotation_of_a_person_counts() -> None:
    both = [annotation(2, "pen"), annotation(1, "cup")]
    assert agreed_label(both, CHOICES) == "pen"


def test_most_people_decide() -> None:
    three = [annotation(n, label, n) for n, label in enumerate(("cup", "pen", "pen"), start=1)]
    assert agreed_label(three, CHOICES) == "pen"


def test_a_tie_is_no_agreement() -> None:
    assert agreed_label([annotation(1, "cup", 1), annotation(2, "pen", 2)], CHOICES) is None


def test_ground_truth_decides() -> None:
    marked = annotation(1, "cup", 1, ground_truth=True)
    assert (
        agreed_label([marked, annotation(2, "pen", 2), annotation(3, "pen", 3)], CHOICES) == "cup"
    )


def test_skipped_tasks_and_other_choices_teach_nothing() -> None:
    skipped = annotation(1, "cup", was_cancelled=True)
    assert agreed_label([skipped], CHOICES) is None
    assert agreed_label([annotation(1, "not a choice")], CHOICES) is None
    assert agreed_label([{"id": 1, "completed_by": 1, "result": []}], CHOICES) is None


def test_a_person_may_be_an_object() -> None:
    both = [annotation(1, "cup"), annotation(2, "pen")]
    for one in both:
        one["completed_by"] = {"id": 7}
    assert agreed_label(both, CHOICES) == "pen"


@pytest.mark.parametrize(
    "annotations",
    [
        [None, 3, "text"],
        [{"result": 3}],
        [{"result": [3]}],
        [{"result": [{"from_name": "class"}]}],
        [{"result": [{"from_name": "class", "value": {"choices": [["a", "b"]]}}]}],
        [{"result": [{"from_name": "class", "value": {"choices": ["cup", "pen"]}}]}],
    ],
)
def test_what_is_not_understood_teaches_nothing(annotations: Any) -> None:
    assert agreed_label(annotations, CHOICES) is None


def test_a_task_needs_an_id() -> None:
    for value in (None, {}, {"id": "1"}, {"id": True}, {"id": 0}):
        with pytest.raises(InvalidInputError, match="without an id"):
            read_task(value, CHOICES)


def test_a_task_may_lack_its_image() -> None:
    assert read_task({"id": 3, "data": {"image": 7}}, CHOICES).image is None
    assert read_task({"id": 3}, CHOICES).image is None
