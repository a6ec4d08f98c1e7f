"""What goes into a workspace and what comes out of it, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = [
    "Accuracy",
    "Answer",
    "Change",
    "ClassEntry",
    "Confused",
    "Event",
    "Example",
    "Finding",
    "FineEntry",
    "Lesson",
    "Page",
    "Picture",
    "Request",
    "Review",
    "Sign",
    "Status",
    "Taught",
]

Item = TypeVar("Item")

# Whether a class was taught enough: too few examples to tell; more would help to tell; surely
# mistaken for others too often; surely good enough.
Sign = Literal["new", "more", "confused", "enough"]


@dataclass(frozen=True)
class Picture:
    """The bytes of an image file as they came, and what was found out about them."""

    content: bytes
    media_type: str
    width: int
    height: int
    thumbnail: bytes | None = None


@dataclass(frozen=True)
class Request:
    """Who asks for a change, and what makes asking twice harmless.

    Attributes
    ----------
    actor : str
        Name of the token, or "command line".
    key : str or None
        Stands for this one request: the same key gives the same answer again.
    digest : str or None
        Of what was asked for: the same key with another digest is refused.
    """

    actor: str = "command line"
    key: str | None = None
    digest: str | None = None


@dataclass(frozen=True, eq=False)
class Lesson:
    """One example to teach.

    Attributes
    ----------
    embedding : ndarray of shape (n_features,)
        Finite numbers, kept as float32.
    label : str
        Name of the class, known or new.
    fine : str or None
        Finer name within the class.
    picture : Picture or None
        The image, if the embedding was made of one.
    request : Request
        Who teaches.
    """

    embedding: npt.NDArray[np.float32]
    label: str
    fine: str | None = None
    picture: Picture | None = None
    request: Request = field(default_factory=Request)


@dataclass(frozen=True)
class Example:
    """An example as the workspace keeps it."""

    id: int
    event: int
    label: str
    fine: str | None
    # Whether someone gave the fine name, or it was guessed and how surely.
    fine_kind: Literal["given", "guessed"] | None
    fine_probability: float | None
    # SHA-256 of the image file; None for an example that came as an embedding.
    image: str | None
    media_type: str | None
    width: int | None
    height: int | None
    at: str
    actor: str


@dataclass(frozen=True)
class Taught:
    """What became of a lesson."""

    example: Example
    event: int
    # Whether the class had the same picture already, which is not learnt twice.
    duplicate: bool
    new_class: bool
    # Examples of the class now.
    n_examples: int
    # Of a known picture that came with a finer name: whether the example has that name from now
    # on, or keeps another one that it was given before. None if neither.
    known_fine: Literal["taken", "kept"] | None = None


@dataclass(frozen=True)
class Change:
    """What a change other than teaching did."""

    event: int
    kind: str
    summary: str
    n_examples: int


@dataclass(frozen=True)
class Accuracy:
    """How often examples of a class are recognised by what was learnt from the others."""

    rate: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class FineEntry:
    """A finer class within a class."""

    id: int
    name: str
    n_given: int
    n_guessed: int


@dataclass(frozen=True)
class ClassEntry:
    """A class and how well it is known."""

    id: int
    name: str
    n_examples: int
    n_pictures: int
    split: bool
    fine: tuple[FineEntry, ...]
    sign: Sign
    accuracy: Accuracy | None
    # The class it is most often mistaken for, and for which share of its examples.
    confused_with: str | None
    confused_share: float | None


@dataclass(frozen=True)
class Answer:
    """What the model says about one example.

    Attributes
    ----------
    label : str
        The class that fits best.
    probability : float
        Of that class, given that it is one of the known ones.
    known : bool
        False if the example fits none of the classes: offer it as a new one.
    novelty : float or None
        How strange it is; None as long as too few examples were taught to tell.
    fine : str or None
        The finer name, where the class is split and the answer is sure enough.
    fine_probability : float or None
        Of the best finer name, sure enough or not.
    top, fine_top : tuple of (str, float)
        The best classes, and the best finer names of the best class.
    """

    label: str
    probability: float
    known: bool
    novelty: float | None
    fine: str | None
    fine_probability: float | None
    top: tuple[tuple[str, float], ...]
    fine_top: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Review:
    """An example that someone should look at, and why."""

    example: Example
    reason: Literal["guess", "doubt"]
    # What the model says instead, or the guess itself.
    suggestion: str
    probability: float


@dataclass(frozen=True)
class Confused:
    """How many examples of a class were taken for a class, itself or another."""

    label: str
    answer: str
    n: int


@dataclass(frozen=True)
class Event:
    """A change, as the audit log keeps it."""

    seq: int
    kind: str
    at: str
    actor: str
    body: Mapping[str, Any]
    undoes: int | None
    undone_by: int | None


@dataclass(frozen=True)
class Page(Generic[Item]):
    """Some items of a listing, and where the next ones begin; None at the end."""

    items: tuple[Item, ...]
    next: str | None


@dataclass(frozen=True)
class Status:
    """A workspace at a glance."""

    id: str
    event: int
    n_examples: int
    n_classes: int
    n_features: int | None
    takes_images: bool
    forest: bool
    # Examples that the forest has not learnt yet; None without one.
    forest_lacks: int | None
    # Share of known things that may be called unknown, and the share measured; None if not yet.
    false_alarms: float
    measured_false_alarms: float | None
    # Leave-one-out accuracy over all classes; None if not yet.
    accuracy: Accuracy | None
    # Event that the last assessment saw; None if there was none.
    assessed_event: int | None
    snapshot_event: int | None
    n_bytes: int


@dataclass(frozen=True)
class Finding:
    """Something that is not as it should be, how bad it is and what mends it."""

    severity: Literal["harmless", "damage"]
    what: str
    mend: str
    mended: bool = False
