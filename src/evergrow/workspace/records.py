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
    """The image file of an example that is taught.

    Attributes
    ----------
    content : bytes
        The content of the file.
    media_type : str
        Its media type, such as ``"image/jpeg"``.
    width : int
        Width in pixels.
    height : int
        Height in pixels.
    thumbnail : bytes or None
        A small JPEG of the image.
    """

    content: bytes
    media_type: str
    width: int
    height: int
    thumbnail: bytes | None = None


@dataclass(frozen=True)
class Request:
    """Who asks for a change, with an idempotency key that makes a retry safe.

    Attributes
    ----------
    actor : str
        Name of the token, or "command line".
    key : str or None
        Idempotency key of this request. A second request with the same key changes nothing and gets
        the answer of the first one.
    digest : str or None
        Digest of the request. The same key with another digest is refused.
    action : str or None
        An identifier of what the user did, such as dropping a folder. Consecutive changes with the
        same actor and action are undone together.
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
        The embedding: finite numbers, which are stored as float32.
    label : str
        Name of the class, known or new.
    fine : str or None
        Name of the fine class within the class.
    picture : Picture or None
        The image that the embedding was computed from, if any.
    request : Request
        Who teaches it.
    move : bool
        What to do if another class already has the image: True moves it to this class, False leaves
        it there.
    """

    embedding: npt.NDArray[np.float32]
    label: str
    fine: str | None = None
    picture: Picture | None = None
    request: Request = field(default_factory=Request)
    move: bool = False


@dataclass(frozen=True)
class Example(Record):
    """An example that is stored in a workspace.

    Attributes
    ----------
    id : int
        Id of the example, which never changes.
    event : int
        Number of the change that added it.
    label : str
        The class.
    fine : str or None
        The fine class, if there is one.
    fine_kind : {"given", "guessed"} or None
        Whether a user gave the fine class or the model guessed it.
    fine_probability : float or None
        Probability of the guess.
    image : str or None
        SHA-256 of the image file; None for an example that was taught as an embedding.
    media_type : str or None
        Media type of the image file, such as "image/jpeg".
    width : int or None
        Width of the image in pixels.
    height : int or None
        Height of the image in pixels.
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
    """The result of teaching one example.

    Attributes
    ----------
    example : Example
        The stored example.
    event : int
        Number of the change.
    duplicate : bool
        Whether the class already had the same image, which is not learnt twice.
    new_class : bool
        Whether the class is new.
    n_examples : int
        Number of examples of the class afterwards.
    known_fine : {"taken", "kept"} or None
        For an image that was already known and was taught with a fine class: ``"taken"`` if the
        example now has this fine class, ``"kept"`` if it keeps another one that was given before.
    known_as : str or None
        The class that already has the same image. The example stays there, and nothing was taught.
    moved_from : str or None
        The class that had the image before, if it was moved.
    replayed : bool
        Whether this is the stored answer to a repeated request, so that nothing was taught now.
    """

    example: Example
    event: int
    duplicate: bool
    new_class: bool
    n_examples: int
    known_fine: Literal["taken", "kept"] | None = None
    known_as: str | None = None
    moved_from: str | None = None
    replayed: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class TaughtImages:
    """The result of teaching image files.

    Attributes
    ----------
    results : list of TeachResult
        One result for each image that was taught or already known, in order.
    problems : list of BadImage
        The images that were skipped, and why.
    """

    results: list[TeachResult] = field(default_factory=list)
    problems: list[BadImage] = field(default_factory=list)


@dataclass(frozen=True)
class Change(Record):
    """A change of a workspace.

    Attributes
    ----------
    event : int
        Number of the change; later changes have higher numbers.
    kind : str
        What was done, such as "rename".
    summary : str
        The change in one sentence.
    n_examples : int
        Number of examples that changed.
    n_changes : int
        Number of changes that an undo took back; 1 for other changes.
    """

    event: Count
    kind: str
    summary: str
    n_examples: Count
    n_changes: Count = 1


@dataclass(frozen=True)
class UndoStep(Record):
    """What the next undo takes back: the newest change and the others of the same action.

    Attributes
    ----------
    event : int or None
        Number of the newest change; None if there is nothing to undo.
    kind : str or None
        Kind of the newest change.
    body : dict or None
        Details of the newest change.
    n_changes : int
        Number of changes that are undone.
    n_examples : int
        Number of examples that these changes affected.
    kinds : dict
        Number of changes of each kind.
    labels : tuple of str
        The first three affected classes.
    n_labels : int
        Number of affected classes.
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
    """Share of examples that a model of the other examples recognises, with a 95 % interval.

    Attributes
    ----------
    rate : float
        The measured share, from 0 to 1.
    low : float
        Lower bound of the interval.
    high : float
        Upper bound of the interval.
    n : int
        Number of examples that were tested.
    """

    rate: Share
    low: Share
    high: Share
    n: Count


@dataclass(frozen=True)
class FineEntry(Record):
    """A fine class of a class.

    Attributes
    ----------
    id : int
        Id of the fine class, which renaming does not change.
    name : str
        Its name.
    n_given : int
        Number of examples that users gave this fine class.
    n_guessed : int
        Number of examples for which the model guessed it.
    """

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
        Id of the class, which renaming does not change.
    name : str
        Name of the class.
    n_examples : int
        Number of examples.
    n_pictures : int
        Number of examples with a picture.
    split : bool
        Whether its fine classes are predicted.
    fine : tuple of FineEntry
        The fine classes.
    sign : {"new", "more", "confused", "enough"}
        Whether it has enough examples: ``"new"`` if there are too few to tell, ``"more"`` if more
        would help, ``"confused"`` if it is confused with another class, otherwise ``"enough"``.
    accuracy : Accuracy or None
        How often its examples are recognised; None if not measured yet.
    confused_with : str or None
        The class for which its examples are most often mistaken.
    confused_share : float or None
        The share of its examples that are mistaken for that class.
    n_unknown : int or None
        How many of the ``accuracy.n`` measured examples are answered "unknown", right or not, at
        most; None if fewer than 40 examples of classes with two or more were measured.
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
    n_unknown: Count | None


@dataclass(frozen=True)
class Answer:
    """The prediction for one embedding.

    Attributes
    ----------
    label : str or None
        The most probable class; None if the embedding fits no class.
    probability : float
        Probability of the most probable class, ``top[0]``, given that it is one of the known ones.
    known : bool
        False if the embedding fits no class.
    novelty : float or None
        How far the embedding is from all known classes; None as long as there are too few examples
        to tell.
    fine : str or None
        The fine class, if the class is split and the prediction is certain enough.
    fine_probability : float or None
        Probability of the best fine class, even if it is not certain enough.
    top : tuple of (str, float)
        The most probable classes and their probabilities, best first.
    fine_top : tuple of (str, float)
        The most probable fine classes of the best class. Empty if the embedding fits no class.
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
    """An example that a person should check.

    Attributes
    ----------
    example : Example
        The example.
    reason : {"guess", "doubt"}
        ``"guess"`` if its fine class is a guess, ``"doubt"`` if a model of the other examples
        predicts another class.
    suggestion : str
        The guessed fine class, or the other class.
    probability : float
        For ``"guess"``, the probability of the guess. For ``"doubt"``, the probability that the
        label is wrong.
    """

    example: Example
    reason: Literal["guess", "doubt"]
    suggestion: str
    probability: Share


@dataclass(frozen=True)
class Confused:
    """One entry of a confusion matrix.

    Attributes
    ----------
    label : str
        The true class.
    answer : str
        The predicted class.
    n : int
        Number of examples of `label` that were predicted as `answer`.
    """

    label: str
    answer: str
    n: int


@dataclass(frozen=True)
class Event(Record):
    """One change in the audit log.

    Attributes
    ----------
    seq : int
        Number of the change.
    kind : str
        What was done, such as "rename".
    at : str
        When it was done.
    actor : str
        Name of the token that did it, or "command line".
    body : dict
        Details of the change.
    undoes : int or None
        Number of the change that this one undid.
    undone_by : int or None
        Number of the change that undid this one.
    """

    seq: Count
    kind: str
    at: str
    actor: str
    body: dict[str, Any]
    undoes: Count | None
    undone_by: Count | None


@dataclass(frozen=True)
class Page(Record, Generic[Item]):
    """One page of a listing.

    Attributes
    ----------
    items : tuple
        The items of the page.
    next : str or None
        Cursor of the next page; None on the last page.
    """

    items: tuple[Item, ...]
    next: str | None


@dataclass(frozen=True)
class Block(Record):
    """A group of consecutive features of an embedding.

    Attributes
    ----------
    name : str
        Name of the group, such as "head".
    width : int
        Number of features.
    used : bool
        Whether the model uses it.
    """

    name: str
    width: Count
    used: bool


@dataclass(frozen=True)
class Status(Record):
    """The state of a workspace: its size, its model and how good it is.

    Attributes
    ----------
    id : str
        Id of the workspace.
    event : int
        Number of the newest change.
    n_examples : int
        Number of examples.
    n_classes : int
        Number of classes.
    n_features : int or None
        Length of an embedding; None before the first example.
    blocks : tuple of Block
        The groups of features of the embedder. Empty if the workspace takes only embeddings.
    takes_images : bool
        Whether it takes images; otherwise it takes only embeddings.
    forest : bool
        Whether it also trains a forest.
    forest_lacks : int or None
        Number of examples that the forest has not learnt yet; None without a forest.
    false_alarms : float
        Share of examples of known classes that may be answered "unknown".
    measured_false_alarms : float or None
        The measured share; None if not measured yet.
    accuracy : Accuracy or None
        Accuracy over all classes, measured by leave-one-out; None if not measured yet.
    assessed_event : int or None
        Number of the newest change that the last measurement covers.
    snapshot_event : int or None
        Number of the newest change that the last snapshot covers.
    n_bytes : int
        Size on disk in bytes.
    name : str
        Name of the folder.
    """

    id: str
    event: Count
    n_examples: Count
    n_classes: Count
    n_features: Count | None
    blocks: tuple[Block, ...]
    takes_images: bool
    forest: bool
    forest_lacks: Count | None
    false_alarms: Share
    measured_false_alarms: Share | None
    accuracy: Accuracy | None
    assessed_event: Count | None
    snapshot_event: Count | None
    n_bytes: Count
    name: str


class WorkspaceFullError(WorkspaceError):
    """The disk is full; nothing was changed. Free some space and repeat the change."""


class WorkspaceLockedError(WorkspaceError):
    """Another process has the workspace open for writing."""


class WorkspaceLostError(WorkspaceError):
    """The folder was moved or replaced, or another process writes to it; nothing was changed."""


class WorkspaceFormatError(WorkspaceError):
    """The folder has another format than the one that this version of Evergrow reads."""


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
