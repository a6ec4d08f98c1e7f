"""JSON bodies of requests, as pydantic models that validate them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from evergrow.foundation.errors import InvalidInputError
from evergrow.service.wire import File
from evergrow.workspace.changes.transaction import MAX_EXAMPLES_PER_CHANGE
from evergrow.workspace.names import NAME_PATTERN

LARGEST_NUMBER = 2**63 - 1
# Larger values are not features; their squares would dominate all others.
LARGEST_VALUE = 1e6
MAX_FEATURES = 65_536
# The workspace checks names and says what is wrong where; here the pattern is only documented.
Name = Annotated[str, Field(json_schema_extra={"pattern": NAME_PATTERN}, examples=["mug"])]


def _to_integer(value: Any) -> Any:
    """Accept 7.0 for 7: JSON does not distinguish integers from floats."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


EventNumber = Annotated[int, Field(ge=1, le=LARGEST_NUMBER), BeforeValidator(_to_integer)]
Value = Annotated[float, Field(ge=-LARGEST_VALUE, le=LARGEST_VALUE, allow_inf_nan=False)]


class RequestBody(BaseModel):
    """A request body: unknown members and other types are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What identifies the change: a repeated request must have the same."""
        return tuple(self.model_dump().values())


# Stop at the first error: describing each of a million would take seconds.
Vector = Annotated[list[Value], Field(min_length=1, max_length=MAX_FEATURES, fail_fast=True)]


class TeachBody(RequestBody):
    """An embedding and its class."""

    embedding: Vector = Field(description="The embedding of the example.")
    label: Name = Field(description="The class, known or new.")
    fine: Name | None = Field(None, description="The fine class within the class.")


class PredictBody(RequestBody):
    """Embeddings to predict."""

    embeddings: list[Vector] = Field(
        min_length=1, max_length=1024, fail_fast=True, description="The embeddings to predict."
    )


def _complete_schema(schema: dict[str, Any]) -> None:
    """Document what the model cannot express: one member is required, and label is not null."""
    schema["minProperties"] = 1 + len(schema.get("required", ()))
    label = schema["properties"]["label"]
    label.update(*(kind for kind in label.pop("anyOf") if kind != {"type": "null"}))
    label.pop("default")


class RelabelBody(RequestBody):
    """The correct class of an example; members left out stay, null removes the fine class."""

    model_config = ConfigDict(json_schema_extra=_complete_schema)

    label: Name | None = Field(
        None, description="The new class. The current class confirms it. Left out, it stays."
    )
    fine: Name | None = Field(
        None, description="The new fine class. Left out, it stays; null removes it."
    )

    @field_validator("label")
    @classmethod
    def _require_name(cls, label: str | None) -> str:
        if label is None:
            raise InvalidInputError("an example must have a label")
        return label

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The members, and whether fine classes are removed: by null, not by omitting ``fine``."""
        return *super().arguments, "fine" in self.model_fields_set and self.fine is None


class ExamplesBody(RequestBody):
    """Examples that are changed together."""

    examples: list[EventNumber] = Field(
        min_length=1,
        max_length=MAX_EXAMPLES_PER_CHANGE,
        description=f"Ids of up to {MAX_EXAMPLES_PER_CHANGE} examples.",
    )


class RelabelManyBody(RelabelBody, ExamplesBody):
    """The correct class of several examples; members left out stay, null removes fine classes."""


class LabelBody(RequestBody):
    """A class."""

    label: Name = Field(description="The class.")


class ForgetBody(LabelBody):
    """A class to forget; with ``erase`` its images are deleted, which cannot be undone.

    Everything that was removed before is erased with it. A forgotten class can still be erased.
    """

    erase: bool = Field(
        False, description="Whether to delete its images permanently, which cannot be undone."
    )


class RenameBody(LabelBody):
    """A class and its new name."""

    to: Name = Field(description="The new name, which no other class may have.")


class MergeBody(LabelBody):
    """A class and the one that it is merged into."""

    into: Name = Field(description="The class that gets its examples.")


class UndoBody(RequestBody):
    """The change to undo; by default the newest one."""

    event: EventNumber | None = Field(
        None,
        description="Number of the newest change that the client knows. If there is a newer one,"
        " nothing is undone.",
    )


class DownloadBody(RequestBody):
    """The file to download."""

    file: File = Field(description="The file to prepare.")
