"""What a service answers, as values."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = [
    "Accuracy",
    "Candidate",
    "Change",
    "ClassEntry",
    "Example",
    "FineEntry",
    "Prediction",
    "Review",
    "Status",
    "Taught",
    "TaughtClass",
]


@dataclass(frozen=True)
class Accuracy:
    """How often held-out examples are recognised, with an interval of 95 %.

    Attributes
    ----------
    rate, low, high : float
        The share that was right, and where the true one lies.
    n : int
        Examples that were asked about.
    """

    rate: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Example:
    """An example as the service keeps it.

    Attributes
    ----------
    id : int
        Its number, which never changes.
    event : int
        The change that taught it.
    label : str
        Its class.
    fine : str or None
        Its finer class.
    fine_kind : {"given", "guessed"} or None
        Whether someone said so or the service guessed.
    fine_probability : float or None
        How sure the guess is.
    image : str or None
        SHA-256 of the image file; None for an example that came as an embedding.
    media_type, width, height
        Of that image.
    at : str
        When it was taught.
    actor : str
        Name of the token that taught it.
    """

    id: int
    event: int
    label: str
    fine: str | None = None
    fine_kind: str | None = None
    fine_probability: float | None = None
    image: str | None = None
    media_type: str | None = None
    width: int | None = None
    height: int | None = None
    at: str = ""
    actor: str = ""


@dataclass(frozen=True)
class TaughtClass:
    """The class of an example that was taught: examples it has now, and whether it is new."""

    name: str
    n_examples: int
    new: bool


@dataclass(frozen=True)
class Taught:
    """What became of an example.

    Attributes
    ----------
    example : Example
        The example, with its number.
    event : int
        The change, as ``undo`` takes it.
    duplicate : bool
        True if the class had this very picture already; it is not learnt twice.
    of_class : TaughtClass
        Its class after that.
    known_fine : str or None
        Of a picture known before that came with a finer name: ``"taken"`` if the example has that
        name now, ``"kept"`` if it keeps another that it was given before.
    """

    example: Example
    event: int
    duplicate: bool
    of_class: TaughtClass = field(metadata={"name": "class"})
    known_fine: str | None = None


@dataclass(frozen=True)
class Candidate:
    """A class that an image may be of, and its probability."""

    name: str
    probability: float


@dataclass(frozen=True)
class Prediction:
    """What the service says about one image.

    Attributes
    ----------
    label : str
        The class that fits best.
    probability : float
        Its probability, if the image shows one of the known classes.
    known : bool
        False if it fits none of them: it may be something new.
    fine : str or None
        The finer class, where the class is split and the answer is sure enough.
    fine_probability : float or None
        Of the best finer class, sure or not.
    novelty : float or None
        How strange the image is; None while too little was taught to tell.
    top, fine_top : tuple of Candidate
        The best classes, and the best finer ones of the best class.
    """

    label: str
    probability: float
    known: bool
    fine: str | None = None
    fine_probability: float | None = None
    novelty: float | None = None
    top: tuple[Candidate, ...] = ()
    fine_top: tuple[Candidate, ...] = ()


@dataclass(frozen=True)
class FineEntry:
    """A finer class within a class, and how many of its examples were given and guessed."""

    id: int
    name: str
    n_given: int = 0
    n_guessed: int = 0


@dataclass(frozen=True)
class ClassEntry:
    """A class and how well it is known.

    Attributes
    ----------
    id : int
        Its number, which a new name does not change.
    name : str
        Its name.
    n_examples, n_pictures : int
        Examples, and those of them with a picture.
    split : bool
        Whether it is split into finer classes.
    fine : tuple of FineEntry
        The finer classes.
    sign : {"new", "more", "confused", "enough"}
        Whether it was taught enough: too few examples to tell, more would help to tell, too often
        mistaken for another, good enough.
    accuracy : Accuracy or None
        How often its examples are recognised; None if that was not measured yet.
    confused_with : str or None
        The class it is most often mistaken for.
    confused_share : float or None
        For which share of its examples.
    """

    id: int
    name: str
    n_examples: int
    n_pictures: int = 0
    split: bool = False
    fine: tuple[FineEntry, ...] = ()
    sign: str = "new"
    accuracy: Accuracy | None = None
    confused_with: str | None = None
    confused_share: float | None = None


@dataclass(frozen=True)
class Change:
    """What a change did: its number, its kind, a sentence, and how many examples it concerned."""

    event: int
    kind: str
    summary: str
    n_examples: int = 0


@dataclass(frozen=True)
class Review:
    """An example that someone should look at.

    Attributes
    ----------
    example : Example
        The example.
    reason : {"guess", "doubt"}
        Its finer class is a guess, or the others say that its class is another.
    suggestion : str
        The guess, or the other class.
    probability : float
        How sure that is.
    """

    example: Example
    reason: str
    suggestion: str
    probability: float


@dataclass(frozen=True)
class Status:
    """A workspace at a glance.

    Attributes
    ----------
    id : str
        Of the workspace.
    event : int
        The newest change.
    n_examples, n_classes : int
        What was taught.
    n_features : int or None
        Length of embeddings; None until the first one came.
    takes_images : bool
        Whether it takes images, or embeddings alone.
    false_alarms, measured_false_alarms : float or None
        Share of known things that may be called unknown, and the share that was measured.
    accuracy : Accuracy or None
        Over all classes; None if that was not measured yet.
    scopes : tuple of str
        What the client's token may do.
    max_images, max_request_bytes : int
        What one request may hold; :meth:`Client.predict` keeps to it.
    """

    id: str
    event: int
    n_examples: int
    n_classes: int
    n_features: int | None = None
    takes_images: bool = True
    forest: bool = False
    forest_lacks: int | None = None
    false_alarms: float = 0.0
    measured_false_alarms: float | None = None
    accuracy: Accuracy | None = None
    assessed_event: int | None = None
    snapshot_event: int | None = None
    n_bytes: int = 0
    scopes: tuple[str, ...] = ()
    max_images: int = 1
    max_request_bytes: int = 1 << 20
