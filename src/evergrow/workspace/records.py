"""The values that go into a workspace and come out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import BadImage

Item = TypeVar("Item")

# Whether a class has enough examples: too few to tell; more are needed to tell; certainly confused
# with others too often; certainly good enough.
Sign = Literal["new", "more", "confused", "enough"]


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
    """

    actor: str = "command line"
    key: str | None = None
    digest: str | None = None


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
    """

    embedding: npt.NDArray[np.float32]
    label: str
    fine: str | None = None
    picture: Picture | None = None
    request: Request = field(default_factory=Request)


@dataclass(frozen=True)
class Example:
    """An example as the workspace stores it."""

    id: int
    event: int
    label: str
    fine: str | None
    # Whether the fine name was given, or guessed with a probability.
    fine_kind: Literal["given", "guessed"] | None
    fine_probability: float | None
    # SHA-256 of the image file; None for an example taught as an embedding.
    image: str | None
    media_type: str | None
    width: int | None
    height: int | None
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
    # For a known image with a fine name: whether the example now has that name ("taken") or keeps
    # another one that was given before ("kept"). None otherwise.
    known_fine: Literal["taken", "kept"] | None = None
    # Whether this is the stored answer to a repeated request; nothing was taught now.
    replayed: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class TaughtImages:
    """The result of teaching image files.

    Attributes
    ----------
    results : list of TeachResult
        One per image that was taught or known already, in order.
    problems : list of BadImage
        The images that were left out.
    """

    results: list[TeachResult] = field(default_factory=list)
    problems: list[BadImage] = field(default_factory=list)


@dataclass(frozen=True)
class Change:
    """The result of a change other than teaching."""

    event: int
    kind: str
    summary: str
    n_examples: int


@dataclass(frozen=True)
class Accuracy:
    """Leave-one-out accuracy with a confidence interval."""

    rate: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class FineEntry:
    """A fine class within a class."""

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
    # The class that it is most often confused with, and for which share of its examples.
    confused_with: str | None
    confused_share: float | None


@dataclass(frozen=True)
class Answer:
    """The prediction for one embedding.

    Attributes
    ----------
    label : str
        The most probable class.
    probability : float
        Probability of that class, given that it is one of the known ones.
    known : bool
        False if the embedding fits none of the classes and may belong to a new one.
    novelty : float or None
        Novelty score; None as long as too few examples were taught to calibrate it.
    fine : str or None
        The fine name, if the class is split and the prediction is certain enough.
    fine_probability : float or None
        Probability of the best fine name, even if it is not certain enough.
    top, fine_top : tuple of (str, float)
        The most probable classes, and the most probable fine names of the first one. Empty fine
        names if the embedding is not known.
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
    """An example to review, and why."""

    example: Example
    reason: Literal["guess", "doubt"]
    # The label that the model predicts instead, or the guessed fine name.
    suggestion: str
    probability: float


@dataclass(frozen=True)
class Confused:
    """An entry of the confusion matrix: examples of ``label`` predicted as ``answer``."""

    label: str
    answer: str
    n: int


@dataclass(frozen=True)
class Event:
    """A change in the audit log."""

    seq: int
    kind: str
    at: str
    actor: str
    body: Mapping[str, Any]
    undoes: int | None
    undone_by: int | None


@dataclass(frozen=True)
class Page(Generic[Item]):
    """Some items of a listing, and the cursor of the next page; None on the last page."""

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
    # Examples that the forest was not trained on yet; None without a forest.
    forest_lacks: int | None
    # Share of known examples that may be called unknown, and the measured share; None if unknown.
    false_alarms: float
    measured_false_alarms: float | None
    # Leave-one-out accuracy over all classes; None if not assessed yet.
    accuracy: Accuracy | None
    # Newest event that the last assessment covers; None if there was none.
    assessed_event: int | None
    snapshot_event: int | None
    n_bytes: int


@dataclass(frozen=True)
class Finding:
    """A problem found by an integrity check, its severity and how to repair it."""

    severity: Literal["harmless", "damage"]
    what: str
    mend: str
    mended: bool = False
