"""The records that the service sends as JSON, declared once for the server and the client.

The server describes its responses with them in the OpenAPI document, and the client returns them.
This module uses the standard library only, because the client does. Records of the same name in
:mod:`evergrow.workspace.records` have the same fields.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True)
class _Range:
    """Bounds of a number, for the OpenAPI document."""

    minimum: float
    maximum: float | None = None

    def __get_pydantic_json_schema__(self, schema: Any, handler: Callable[[Any], Any]) -> Any:
        # Found by pydantic by its name, so that pydantic need not be imported here.
        bounds = {name: value for name, value in vars(self).items() if value is not None}
        return {**handler(schema), **bounds}


Count = Annotated[int, _Range(0)]
Share = Annotated[float, _Range(0, 1)]
# Whether a class has enough examples: too few to tell; more would help; confused with another
# class; enough.
Sign = Literal["new", "more", "confused", "enough"]


class _Record:
    # Read by pydantic: the OpenAPI document promises that a response has no other fields.
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


@dataclass(frozen=True)
class Problem(_Record):
    """Why a request was refused, as in RFC 9457."""

    type: str
    title: str
    status: int
    detail: str


@dataclass(frozen=True)
class Health(_Record):
    """The state of the service."""

    status: Literal["alive", "ready"]


@dataclass(frozen=True)
class Page(_Record, Generic[Item]):
    """One page of a listing; ``next`` is the cursor of the next page, or null."""

    items: tuple[Item, ...]
    next: str | None


@dataclass(frozen=True)
class Accuracy(_Record):
    """Share of examples that are recognised by a model of the others, with a 95 % interval.

    Attributes
    ----------
    rate, low, high : float
        The measured share, and the bounds of the interval.
    n : int
        Number of examples that were tested.
    """

    rate: Share
    low: Share
    high: Share
    n: Count


@dataclass(frozen=True)
class Example(_Record):
    """A stored example.

    Attributes
    ----------
    id : int
        Its number, which never changes.
    event : int
        The change that added it.
    label : str
        Its class.
    fine : str or None
        Its finer class.
    fine_kind : {"given", "guessed"} or None
        Whether a user gave the finer class or the model guessed it.
    fine_probability : float or None
        Probability of the guess.
    image : str or None
        SHA-256 of the image file; None for an example that was taught as an embedding.
    media_type, width, height
        Of that image.
    at : str
        When it was taught.
    actor : str
        Name of the token that taught it.
    """

    id: Count
    event: Count
    label: str
    fine: str | None
    fine_kind: Literal["given", "guessed"] | None
    fine_probability: Share | None
    image: str | None
    media_type: str | None
    width: Count | None
    height: Count | None
    at: str
    actor: str


@dataclass(frozen=True)
class TaughtClass(_Record):
    """The class of a taught example: its number of examples now, and whether it is new."""

    name: str
    n_examples: Count
    new: bool


@dataclass(frozen=True)
class TeachResult(_Record):
    """The result of teaching one example.

    Attributes
    ----------
    example : Example
        The stored example.
    event : int
        The change, as ``undo`` takes it.
    duplicate : bool
        True if the class already had this picture; it is not learnt twice.
    of_class : TaughtClass
        Its class afterwards.
    known_fine : {"taken", "kept"} or None
        For a known picture that was sent with a finer class: ``"taken"`` if the example now has
        that finer class, ``"kept"`` if it keeps one that it was given before.
    """

    example: Example
    event: Count
    duplicate: bool
    of_class: TaughtClass = field(metadata={"alias": "class"})
    known_fine: Literal["taken", "kept"] | None


@dataclass(frozen=True)
class Candidate(_Record):
    """A class and its probability."""

    name: str
    probability: Share


@dataclass(frozen=True)
class Prediction(_Record):
    """The prediction for one image or embedding.

    Attributes
    ----------
    label : str
        The most probable class.
    probability : float
        Its probability, given that the image shows one of the known classes.
    known : bool
        False if the image fits none of the classes: it may show something new.
    novelty : float or None
        How unusual the image is; None while there are too few examples to tell.
    fine : str or None
        The finer class, if the class is split and the prediction is certain enough.
    fine_probability : float or None
        Probability of the best finer class, certain enough or not.
    top, fine_top : tuple of Candidate
        The best classes, and the best finer classes of the best class.
    """

    label: str
    probability: Share
    known: bool
    novelty: float | None
    fine: str | None
    fine_probability: Share | None
    top: tuple[Candidate, ...]
    fine_top: tuple[Candidate, ...]


@dataclass(frozen=True)
class Predictions(_Record):
    """The predictions for all inputs, in their order, and the last change the model had learnt."""

    predictions: tuple[Prediction, ...]
    event: Count


@dataclass(frozen=True)
class FineEntry(_Record):
    """A finer class, and how many of its examples were given and guessed."""

    id: Count
    name: str
    n_given: Count
    n_guessed: Count


@dataclass(frozen=True)
class ClassEntry(_Record):
    """A class and how well it is recognised.

    Attributes
    ----------
    id : int
        Its number, which renaming does not change.
    name : str
        Its name.
    n_examples, n_pictures : int
        Number of examples, and of those with a picture.
    split : bool
        Whether it is split into finer classes.
    fine : tuple of FineEntry
        The finer classes.
    sign : {"new", "more", "confused", "enough"}
        Whether it has enough examples: too few to tell, more would help, confused with another
        class, enough.
    accuracy : Accuracy or None
        How often its examples are recognised; None if not measured yet.
    confused_with : str or None
        The class that its examples are most often mistaken for.
    confused_share : float or None
        The share of its examples that are.
    """

    id: Count
    name: str
    n_examples: Count
    n_pictures: Count
    split: bool
    fine: tuple[FineEntry, ...]
    sign: Sign
    accuracy: Accuracy | None
    confused_with: str | None
    confused_share: Share | None


@dataclass(frozen=True)
class Change(_Record):
    """A change that was made: its number, kind, a summary, and the number of its examples."""

    event: Count
    kind: str
    summary: str
    n_examples: Count


@dataclass(frozen=True)
class Review(_Record):
    """An example that a user should check.

    Attributes
    ----------
    example : Example
        The example.
    reason : {"guess", "doubt"}
        Its finer class is a guess, or a model of the other examples predicts another class.
    suggestion : str
        The guess, or the other class.
    probability : float
        Probability of the suggestion.
    """

    example: Example
    reason: Literal["guess", "doubt"]
    suggestion: str
    probability: Share


@dataclass(frozen=True)
class ReviewList(_Record):
    """Examples to check, most urgent first."""

    items: tuple[Review, ...]


@dataclass(frozen=True)
class Confusion(_Record):
    """Confusion matrix: rows are true classes, columns are predicted ones.

    Attributes
    ----------
    classes : tuple of str
        The classes with the most mistakes.
    counts : tuple of tuple of int
        The matrix.
    n_classes : int
        Number of all classes that were measured.
    event : int or None
        The last change before the measurement; None if nothing was measured yet.
    """

    classes: tuple[str, ...]
    counts: tuple[tuple[Count, ...], ...]
    n_classes: Count
    event: Count | None


@dataclass(frozen=True)
class Event(_Record):
    """A change in the audit log."""

    seq: Count
    kind: str
    at: str
    actor: str
    body: dict[str, Any]
    undoes: Count | None
    undone_by: Count | None


@dataclass(frozen=True)
class Status(_Record):
    """The state of a workspace, and the limits of the service.

    Attributes
    ----------
    id : str
        Of the workspace.
    event : int
        The newest change.
    n_examples, n_classes : int
        Size of the workspace.
    n_features : int or None
        Length of embeddings; None before the first example.
    takes_images : bool
        Whether it accepts images, or only embeddings.
    forest : bool
        Whether it also trains a forest.
    forest_lacks : int or None
        Examples that the forest has not learnt yet.
    false_alarms, measured_false_alarms : float or None
        Share of known things that may be reported as unknown, and the share that was measured.
    accuracy : Accuracy or None
        Over all classes; None if not measured yet.
    assessed_event, snapshot_event : int or None
        The last change before the newest measurement, and before the newest snapshot.
    n_bytes : int
        Size on disk.
    scopes : tuple of str
        What the client's token may do.
    max_images, max_request_bytes : int
        Limits of one request; :meth:`Client.predict` respects them.
    """

    id: str
    event: Count
    n_examples: Count
    n_classes: Count
    n_features: Count | None
    takes_images: bool
    forest: bool
    forest_lacks: Count | None
    false_alarms: Share
    measured_false_alarms: Share | None
    accuracy: Accuracy | None
    assessed_event: Count | None
    snapshot_event: Count | None
    n_bytes: Count
    scopes: tuple[str, ...]
    max_images: Count
    max_request_bytes: Count
