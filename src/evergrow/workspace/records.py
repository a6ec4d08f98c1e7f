"""The values that go into a workspace and come out of it, and the errors that it raises.

The service sends those that extend :class:`Record` as they are. This module imports nothing but the
standard library and the foundation, because its client uses them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Literal, TypeVar

from evergrow.foundation.errors import BadImage, WorkspaceError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

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


class Record:
    """A record that the service sends as JSON."""

    # Read by pydantic: the OpenAPI document promises that a response has no other fields.
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


@dataclass(frozen=True)
class Picture:
    """An image file with its media type, its size in pixels and a thumbnail."""

    content: bytes
    media_type: str
    width: int
    height: int
    thumbnail: bytes | None = None


@dataclass(frozen=True)
class Request:
    """Who asks for a change, and an idempotency key that makes a retry safe.

    Attributes
    ----------
    actor : str
        Name of the token, or "command line".
    key : str or None
        Idempotency key of this one request: the same key gets the same answer again.
    digest : str or None
        Digest of the request: the same key with another digest is refused.
    action : str or None
        What the user did, such as dropping a folder: changes of one actor and action that follow
        each other are undone together.
    """

    actor: str = "command line"
    key: str | None = None
    digest: str | None = None
    action: str | None = None


@dataclass(frozen=True, eq=False)
class NewExample:
    """One example to teach.

    Attributes
    ----------
    embedding : ndarray of shape (n_features,)
        Finite numbers, stored as float32.
    label : str
        Name of the class, known or new.
    fine : str or None
        Fine name within the class.
    picture : Picture or None
        The image that the embedding was computed from, if any.
    request : Request
        Who teaches it.
    move : bool
        Whether an image that another class has already moves to this class. Otherwise it stays
        where it is.
    """

    embedding: npt.NDArray[np.float32]
    label: str
    fine: str | None = None
    picture: Picture | None = None
    request: Request = field(default_factory=Request)
    move: bool = False


@dataclass(frozen=True)
class Example(Record):
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
        Its fine class.
    fine_kind : {"given", "guessed"} or None
        Whether a user gave the fine class or the model guessed it.
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
class TeachResult:
    """The result of teaching one example."""

    example: Example
    event: int
    # Whether the class had the same image already, which is not learnt twice.
    duplicate: bool
    new_class: bool
    # Examples of the class now.
    n_examples: int
    # For a known image with a fine class: whether the example now has it ("taken") or keeps
    # another one that was given before ("kept"). None otherwise.
    known_fine: Literal["taken", "kept"] | None = None
    # The class that has the same image already; the example stays there and nothing was taught.
    known_as: str | None = None
    # The class that had the image before, if it was moved.
    moved_from: str | None = None
    # Whether this is the stored answer to a repeated request; nothing was taught now.
    replayed: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class TaughtImages:
    """The result of teaching image files, and the images that were left out."""

    # One per image that was taught or known already, in order.
    results: list[TeachResult] = field(default_factory=list)
    problems: list[BadImage] = field(default_factory=list)


@dataclass(frozen=True)
class Change(Record):
    """A change that was made: its number, kind, a summary, and the number of its examples.

    ``n_changes`` is the number of changes that an undo took back.
    """

    event: Count
    kind: str
    summary: str
    n_examples: Count
    n_changes: Count = 1


@dataclass(frozen=True)
class UndoStep(Record):
    """What an undo takes back: the newest change, with the others of the same action.

    Attributes
    ----------
    event : int or None
        The newest change; None if there is nothing to undo.
    kind, body
        Of that change.
    n_changes, n_examples : int
        Changes of the step, and the examples that they moved.
    kinds : dict
        Number of changes by kind.
    labels : tuple of str
        The first three classes that examples were taught to or taken out of.
    n_labels : int
        How many such classes there are.
    """

    event: Count | None = None
    kind: str | None = None
    body: dict[str, Any] | None = None
    n_changes: Count = 0
    n_examples: Count = 0
    kinds: dict[str, Count] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    n_labels: Count = 0


@dataclass(frozen=True)
class Accuracy(Record):
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
class FineEntry(Record):
    """A fine class, and how many of its examples were given and guessed."""

    id: Count
    name: str
    n_given: Count
    n_guessed: Count


@dataclass(frozen=True)
class ClassEntry(Record):
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
        Whether it is split into fine classes.
    fine : tuple of FineEntry
        The fine classes.
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
class Answer:
    """The prediction for one embedding.

    Attributes
    ----------
    label : str or None
        The most probable class; None if the embedding is not known.
    probability : float
        Probability of the most probable class, ``top[0]``, given that it is one of the known ones.
    known : bool
        False if the embedding fits none of the classes and may belong to a new one.
    novelty : float or None
        Novelty score; None as long as too few examples were taught to calibrate it.
    fine : str or None
        The fine class, if the class is split and the prediction is certain enough.
    fine_probability : float or None
        Probability of the best fine class, even if it is not certain enough.
    top, fine_top : tuple of (str, float)
        The most probable classes, and the most probable fine classes of the first one. No fine
        classes if the embedding is not known.
    """

    label: str | None
    probability: float
    known: bool
    novelty: float | None
    fine: str | None
    fine_probability: float | None
    top: tuple[tuple[str, float], ...]
    fine_top: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Review(Record):
    """An example that a user should check.

    Attributes
    ----------
    example : Example
        The example.
    reason : {"guess", "doubt"}
        Its fine class is a guess, or a model of the other examples predicts another class.
    suggestion : str
        The guess, or the other class.
    probability : float
        Probability of the guess, or that the label is wrong.
    """

    example: Example
    reason: Literal["guess", "doubt"]
    suggestion: str
    probability: Share


@dataclass(frozen=True)
class Confused:
    """An entry of the confusion matrix: examples of ``label`` predicted as ``answer``."""

    label: str
    answer: str
    n: int


@dataclass(frozen=True)
class Event(Record):
    """A change in the audit log."""

    seq: Count
    kind: str
    at: str
    actor: str
    body: dict[str, Any]
    undoes: Count | None
    undone_by: Count | None


@dataclass(frozen=True)
class Page(Record, Generic[Item]):
    """One page of a listing; ``next`` is the cursor of the next page, or null."""

    items: tuple[Item, ...]
    next: str | None


@dataclass(frozen=True)
class Block(Record):
    """A group of consecutive features of an embedding, and whether least squares uses it."""

    name: str
    width: Count
    used: bool


@dataclass(frozen=True)
class Status(Record):
    """A workspace at a glance."""

    id: str
    event: Count
    n_examples: Count
    n_classes: Count
    n_features: Count | None
    # Of the embedder; empty if the workspace takes only embeddings.
    blocks: tuple[Block, ...]
    takes_images: bool
    forest: bool
    # Examples that the forest was not trained on yet; None without a forest.
    forest_lacks: Count | None
    # Share of known examples that may be called unknown, and the measured share; None if unknown.
    false_alarms: Share
    measured_false_alarms: Share | None
    # Leave-one-out accuracy over all classes; None if not assessed yet.
    accuracy: Accuracy | None
    # Newest event that the last assessment covers; None if there was none.
    assessed_event: Count | None
    snapshot_event: Count | None
    n_bytes: Count
    # Of its folder; services of earlier versions do not send it.
    name: str = field(default="", kw_only=True)


class WorkspaceFullError(WorkspaceError):
    """The disk is full; nothing was changed, and the change can be repeated once there is space."""


class WorkspaceLockedError(WorkspaceError):
    """Another process has the workspace open for writing."""


class WorkspaceLostError(WorkspaceError):
    """The folder was moved or replaced, or another process writes to it; nothing was changed."""


class NewerWorkspaceError(WorkspaceError):
    """The folder was written by a newer version of Evergrow."""


class NoSuchClassError(WorkspaceError):
    """The class called ``name`` does not exist."""

    def __init__(self, name: str) -> None:
        super().__init__(f"class {name!r} does not exist")
        self.name = name

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return type(self), (self.name,)


class NoSuchExampleError(WorkspaceError):
    """The example of this id does not exist, or was removed."""


class ConflictError(WorkspaceError):
    """The request conflicts with the current state, such as a name that is taken."""


class KeyReusedError(WorkspaceError):
    """An idempotency key was used before, for a different request."""
