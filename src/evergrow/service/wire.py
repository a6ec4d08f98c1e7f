"""The records that the service sends as JSON, declared once for the server and the client.

The server describes its responses with them in the OpenAPI document, and the client returns them.
Most are those of the workspace; the others are declared here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from evergrow.workspace import records
from evergrow.workspace.records import (
    Accuracy,
    Block,
    Change,
    ClassEntry,
    Count,
    Example,
    FineEntry,
    Record,
    Review,
    Share,
)

# What can be downloaded.
File = Literal["model", "onnx", "html", "pictures", "labels", "audit-log"]

# Those of the workspace that users import from the service.
__all__ = ["Accuracy", "Block", "Change", "ClassEntry", "Example", "FineEntry", "Review"]


@dataclass(frozen=True)
class Problem(Record):
    """Why a request was refused, as in RFC 9457.

    ``example`` and ``label`` are sent if a picture was refused because another class has it.
    """

    type: str
    title: str
    status: int
    detail: str
    example: Count | None = None
    label: str | None = None


@dataclass(frozen=True)
class Health(Record):
    """The state of the service."""

    status: Literal["alive", "ready"]


@dataclass(frozen=True)
class ClassPage(records.Page[ClassEntry]):
    """One page of the classes."""

    items: tuple[ClassEntry, ...]


@dataclass(frozen=True)
class ExamplePage(records.Page[Example]):
    """One page of the examples."""

    items: tuple[Example, ...]


@dataclass(frozen=True)
class EventPage(records.Page[records.Event]):
    """One page of the audit log."""

    items: tuple[records.Event, ...]


@dataclass(frozen=True)
class TaughtClass(Record):
    """The class of an example that was taught.

    Attributes
    ----------
    name : str
        Name of the class.
    n_examples : int
        Number of its examples afterwards.
    new : bool
        Whether the class is new.
    """

    name: str
    n_examples: Count
    new: bool


@dataclass(frozen=True)
class TeachResult(Record):
    """The result of teaching one example.

    Attributes
    ----------
    example : Example
        The stored example.
    event : int
        Number of the change, which ``undo`` accepts.
    duplicate : bool
        True if the class already had this picture, which is not learnt twice.
    of_class : TaughtClass
        The class of the example.
    known_fine : {"taken", "kept"} or None
        For a picture that was already known and was sent with a fine class: ``"taken"`` if the
        example now has this fine class, ``"kept"`` if it keeps another one that was given before.
    moved_from : str or None
        The class that had the picture before, if it was moved.
    """

    example: Example
    event: Count
    duplicate: bool
    of_class: TaughtClass = field(metadata={"alias": "class"})
    known_fine: Literal["taken", "kept"] | None
    moved_from: str | None = None


@dataclass(frozen=True)
class Candidate(Record):
    """A class and its probability.

    Attributes
    ----------
    name : str
        Name of the class.
    probability : float
        Its probability, from 0 to 1.
    """

    name: str
    probability: Share


@dataclass(frozen=True)
class Prediction(Record):
    """The prediction for one image or embedding.

    Attributes
    ----------
    label : str or None
        The most probable class; None if the image fits no class.
    probability : float
        Probability of the most probable class, ``top[0]``, given that the image shows one of the
        known classes.
    known : bool
        False if the image fits no class and may show something new.
    novelty : float or None
        How far the image is from all known classes; None as long as there are too few examples to
        tell.
    fine : str or None
        The fine class, if the class is split and the prediction is certain enough.
    fine_probability : float or None
        Probability of the best fine class, certain enough or not.
    top : tuple of Candidate
        The most probable classes, best first.
    fine_top : tuple of Candidate
        The most probable fine classes of the best class.
    """

    label: str | None
    probability: Share
    known: bool
    novelty: float | None
    fine: str | None
    fine_probability: Share | None
    top: tuple[Candidate, ...]
    fine_top: tuple[Candidate, ...]


@dataclass(frozen=True)
class Predictions(Record):
    """The predictions for all inputs, in their order, and the last change the model had learnt."""

    predictions: tuple[Prediction, ...]
    event: Count


@dataclass(frozen=True)
class ExampleList(Record):
    """Some examples."""

    items: tuple[Example, ...]


@dataclass(frozen=True)
class ReviewList(Record):
    """Examples to check, most urgent first."""

    items: tuple[Review, ...]


@dataclass(frozen=True)
class Confusion(Record):
    """Confusion matrix: rows are true classes, columns are predicted ones.

    Attributes
    ----------
    classes : tuple of str
        All classes, or those of the most frequent mistakes if there are many.
    counts : tuple of tuple of int
        The matrix.
    unknown : tuple of int or None
        How many examples of each class are taken for something unknown; they are counted in the
        matrix too, by their nearest class. None if that was not measured.
    n_classes : int
        Number of all classes that were measured.
    event : int or None
        The last change before the measurement; None if nothing was measured yet.
    """

    classes: tuple[str, ...]
    counts: tuple[tuple[Count, ...], ...]
    unknown: tuple[Count, ...] | None
    n_classes: Count
    event: Count | None


@dataclass(frozen=True)
class Status(records.Status):
    """The state of a workspace, and the limits of the service.

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
    scopes : tuple of str
        What the token of the client may do.
    max_images : int
        Maximum number of images in one request.
    max_request_bytes : int
        Maximum size of one request in bytes.
    """

    scopes: tuple[str, ...]
    max_images: Count
    max_request_bytes: Count


@dataclass(frozen=True)
class DownloadLink(Record):
    """A link to a file that is ready.

    Attributes
    ----------
    ticket : str
        ``GET /v1/downloads/{ticket}`` sends the file, once and without a token.
    seconds : int
        For how long the link is valid.
    name : str
        What to call the file.
    n_bytes : int or None
        Its size; None if it is not known before the end.
    """

    ticket: str
    seconds: Count
    name: str
    n_bytes: Count | None


@dataclass(frozen=True)
class LabelStudioHealth(Record):
    """The state of a back end, as Label Studio reads it."""

    status: Literal["UP"]
    model_class: str
    model_version: str


@dataclass(frozen=True)
class LabelStudioSetup(Record):
    """A project is connected; a new version of the model makes Label Studio ask again."""

    model_version: str


@dataclass(frozen=True)
class LabelStudioVersions(Record):
    """The versions of the model."""

    versions: tuple[str, ...]


@dataclass(frozen=True)
class LabelStudioPredictions(Record):
    """A prediction for each task, in the format of Label Studio."""

    results: tuple[dict[str, Any], ...]
    model_version: str


@dataclass(frozen=True)
class LabelStudioWebhook(Record):
    """Whether the tasks of a webhook were learnt, will be, or need not be."""

    status: Literal["done", "queued", "ignored"]


@dataclass(frozen=True)
class LabelStudioSync(Record):
    """The result of reading all annotations of Label Studio.

    Attributes
    ----------
    n_tasks : int
        Number of tasks that were read.
    n_taught : int
        Number of examples that were taught.
    n_moved : int
        Number of examples that were moved to another class.
    n_removed : int
        Number of examples that were removed.
    problems : tuple of str
        The first few problems with tasks or projects.
    """

    n_tasks: Count
    n_taught: Count
    n_moved: Count
    n_removed: Count
    problems: tuple[str, ...]
