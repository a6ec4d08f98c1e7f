"""What requests hold and answers give, as models: the OpenAPI document is made of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from evergrow.workspace.changes.transaction import MOST_TOGETHER
from evergrow.workspace.names import NAME_PATTERN
from evergrow.workspace.records import Sign

__all__ = [
    "CURSOR_PATTERN",
    "KEY_PATTERN",
    "LARGEST_NUMBER",
    "MAX_FEATURES",
    "Asked",
    "ChangeBody",
    "ClassBody",
    "ClassPage",
    "ConfusionBody",
    "EmbeddingLesson",
    "EventBody",
    "EventPage",
    "ExampleBody",
    "ExamplePage",
    "ExamplesBody",
    "ForgetBody",
    "HealthBody",
    "LabelBody",
    "MergeBody",
    "PredictionsBody",
    "ProblemBody",
    "RelabelBody",
    "RelabelManyBody",
    "RenameBody",
    "ReviewBody",
    "ReviewList",
    "StatusBody",
    "TaughtBody",
    "UndoBody",
]

LARGEST_NUMBER = 2**63 - 1
# Values beyond this are no features; squares of larger ones would drown all others.
LARGEST_VALUE = 1e6
MAX_FEATURES = 65_536
# Visible ASCII: what all programs can put into a header.
KEY_PATTERN = r"^[!-~]{1,255}$"

# Cursors are numbers in base64. A client takes them as they are; the pattern is for those who try
# what a service does with any that could exist.
_TRIPLE = "(?:[MN][DTjz]|O[DT])[AEIMQUYcgk][w-z0-5]"
_REST = "(?:[MN][AQgw]|O[AQ])|(?:[MN][DTjz]|O[DT])[AEIMQUYcgk]"
CURSOR_PATTERN = f"^(?!MD)(?:{_REST}|(?:{_TRIPLE}){{1,5}}(?:{_REST})?|(?:{_TRIPLE}){{6}})$"

# Checked by the workspace, which says what is wrong at which place; here it is only told.
Name = Annotated[str, Field(json_schema_extra={"pattern": NAME_PATTERN}, examples=["mug"])]
Share = Annotated[float, Field(ge=0, le=1)]
Number = Annotated[int, Field(ge=0, le=LARGEST_NUMBER)]


def _whole(value: Any) -> Any:
    """JSON knows numbers only: 7.0 is the same as 7."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


EventNumber = Annotated[int, Field(ge=1, le=LARGEST_NUMBER), BeforeValidator(_whole)]
Value = Annotated[float, Field(ge=-LARGEST_VALUE, le=LARGEST_VALUE, allow_inf_nan=False)]


class Asked(BaseModel):
    """A request: nothing but what is named, and of the type that is named."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Given(BaseModel):
    """An answer, made of the values of the workspace."""

    model_config = ConfigDict(from_attributes=True, extra="forbid")


# The first wrong one is enough: to describe each of a million would take seconds.
Vector = Annotated[list[Value], Field(min_length=1, max_length=MAX_FEATURES, fail_fast=True)]


class EmbeddingLesson(Asked):
    """An example as numbers, and what it is."""

    embedding: Vector
    label: Name
    fine: Name | None = None


class Embeddings(Asked):
    """Things to name, as numbers."""

    embeddings: list[Vector] = Field(min_length=1, max_length=1024, fail_fast=True)


def _as_checked(schema: dict[str, Any]) -> None:
    """Say of a correction what its model cannot: something is needed, and a label is a name."""
    schema["minProperties"] = 1 + len(schema.get("required", ()))
    label = schema["properties"]["label"]
    label.update(*(kind for kind in label.pop("anyOf") if kind != {"type": "null"}))
    label.pop("default")


class RelabelBody(Asked):
    """What an example really is; what is left out stays, and null takes a finer name away."""

    model_config = ConfigDict(json_schema_extra=_as_checked)

    label: Name | None = None
    fine: Name | None = None

    @field_validator("label")
    @classmethod
    def _is_a_name(cls, label: str | None) -> str:
        if label is None:
            raise ValueError("an example always has a label")
        return label


class ExamplesBody(Asked):
    """Examples that are changed together."""

    examples: list[EventNumber] = Field(min_length=1, max_length=MOST_TOGETHER)


class RelabelManyBody(RelabelBody, ExamplesBody):
    """What several examples really are; what is left out stays, and null takes finer names away."""


class LabelBody(Asked):
    """A class."""

    label: Name


class ForgetBody(LabelBody):
    """A class to forget; erased, its images are gone for good and it cannot be undone.

    All that was taken out before is erased with it. A class that was forgotten can be erased.
    """

    erase: bool = False


class RenameBody(LabelBody):
    """A class and its new name."""

    to: Name


class MergeBody(LabelBody):
    """A class and the one that takes its examples."""

    into: Name


class UndoBody(Asked):
    """The change to take back; the newest one if none is named."""

    event: EventNumber | None = None


class ProblemBody(Given):
    """Why a request was refused."""

    type: str
    title: str
    status: int
    detail: str


class HealthBody(Given):
    """How the service is."""

    status: Literal["alive", "ready"]


class ExampleBody(Given):
    """An example as the workspace keeps it."""

    id: Number
    event: Number
    label: str
    fine: str | None
    fine_kind: Literal["given", "guessed"] | None
    fine_probability: Share | None
    image: str | None
    media_type: str | None
    width: Number | None
    height: Number | None
    at: str
    actor: str


class ExamplePage(Given):
    """Some examples, and where the next ones begin; null at the end."""

    items: list[ExampleBody]
    next: str | None


class TaughtClass(Given):
    """The class of a lesson after it."""

    name: str
    n_examples: Number
    new: bool


class TaughtBody(Given):
    """What became of a lesson.

    ``known_fine`` is of a known picture that came with a finer name: the example has taken that
    name, or has kept another that it was given before; null if neither.
    """

    example: ExampleBody
    class_: TaughtClass = Field(alias="class")
    event: Number
    duplicate: bool
    known_fine: Literal["taken", "kept"] | None


class ChangeBody(Given):
    """What a change did."""

    event: Number
    kind: str
    summary: str
    n_examples: Number


class AccuracyBody(Given):
    """How often examples are recognised by what was learnt from the others, with its interval."""

    rate: Share
    low: Share
    high: Share
    n: Number


class FineBody(Given):
    """A finer class."""

    id: Number
    name: str
    n_given: Number
    n_guessed: Number


class ClassBody(Given):
    """A class and how well it is known."""

    id: Number
    name: str
    n_examples: Number
    n_pictures: Number
    split: bool
    fine: list[FineBody]
    sign: Sign
    accuracy: AccuracyBody | None
    confused_with: str | None
    confused_share: Share | None


class ClassPage(Given):
    """Some classes, and where the next ones begin; null at the end."""

    items: list[ClassBody]
    next: str | None


class Candidate(Given):
    """A name and how probable it is."""

    name: str
    probability: Share


class Prediction(Given):
    """What the model says about one thing."""

    label: str
    probability: Share
    known: bool
    novelty: float | None
    fine: str | None
    fine_probability: Share | None
    top: list[Candidate]
    fine_top: list[Candidate]


class PredictionsBody(Given):
    """What the model says about all that was sent, in its order, and what it had learnt."""

    predictions: list[Prediction]
    event: Number


class ReviewBody(Given):
    """An example that someone should look at."""

    example: ExampleBody
    reason: Literal["guess", "doubt"]
    suggestion: str
    probability: Share


class ReviewList(Given):
    """What should be looked at, most urgent first."""

    items: list[ReviewBody]


class ConfusionBody(Given):
    """How often examples of each class (rows) were taken for each class (columns)."""

    classes: list[str]
    counts: list[list[Number]]
    # There may be more than are shown.
    n_classes: Number
    event: Number | None


class EventBody(Given):
    """A change as the audit log keeps it."""

    seq: Number
    kind: str
    at: str
    actor: str
    body: dict[str, Any]
    undoes: Number | None
    undone_by: Number | None


class EventPage(Given):
    """Some changes, and where the next ones begin; null at the end."""

    items: list[EventBody]
    next: str | None


class StatusBody(Given):
    """A workspace at a glance, and the limits of the service."""

    id: str
    event: Number
    n_examples: Number
    n_classes: Number
    n_features: Number | None
    takes_images: bool
    forest: bool
    forest_lacks: Number | None
    false_alarms: Share
    measured_false_alarms: Share | None
    accuracy: AccuracyBody | None
    assessed_event: Number | None
    snapshot_event: Number | None
    n_bytes: Number
    # What the token that asks may do.
    scopes: list[str]
    max_request_bytes: Number
    max_images: Number
