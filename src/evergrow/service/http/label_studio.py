"""The service as the back end of Label Studio uses it: images, changes, the workspace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

from evergrow.foundation.errors import InvalidInputError
from evergrow.service.decoding.pool import TooManyImagesError
from evergrow.service.http.fairness import Actor
from evergrow.service.http.images import ImagePipeline
from evergrow.service.http.responses import ProblemError
from evergrow.service.http.writer import WriterThread
from evergrow.service.label_studio.api import LabelStudioApi
from evergrow.service.label_studio.back_end import BackEnd
from evergrow.service.label_studio.learner import EmbeddedImage, LearnerBusyError, Row
from evergrow.workspace.records import Change, NewExample, Picture, TeachResult
from evergrow.workspace.tokens import LABEL_STUDIO
from evergrow.workspace.workspace import Workspace

if TYPE_CHECKING:
    from evergrow.service.http.service import Service

Result = TypeVar("Result")

# Its images share the decoders and the network with those of tokens.
_ACTOR = Actor(LABEL_STUDIO, frozenset({"read", "teach"}))


def open_back_end(service: Service, writer: WriterThread, images: ImagePipeline | None) -> BackEnd:
    """Make the back end that the settings of a service describe."""
    settings = service.settings
    if images is None:
        raise InvalidInputError(
            "Label Studio needs a workspace that takes images, and this one takes embeddings"
        )
    api = LabelStudioApi(
        settings.label_studio,
        settings.label_studio_token,
        max_image_bytes=settings.max_request_bytes,
    )
    learner = ServiceLearner(service, writer, images)
    return BackEnd(api, learner, period=settings.label_studio_seconds)


class ServiceLearner:
    """Teaches and embeds for Label Studio, in the threads of the service."""

    def __init__(self, service: Service, writer: WriterThread, images: ImagePipeline) -> None:
        self._service = service
        self._writer = writer
        self._images = images

    @property
    def workspace(self) -> Workspace:
        """The workspace, to read from."""
        return self._service.workspace

    def embed(self, images: Sequence[bytes]) -> list[EmbeddedImage | Exception]:
        """Decode images in the sandbox and embed them; each gives a result or its own error."""
        started: list[Future[tuple[Row, Picture]]] = []
        try:
            for content in images:
                started.append(self._images.start_example(_ACTOR, content))  # noqa: PERF401
        except TooManyImagesError as error:
            for one in started:
                one.cancel()
            raise LearnerBusyError(str(error)) from error
        return [self._wait_for_image(one) for one in started]

    def _wait_for_image(self, started: Future[tuple[Row, Picture]]) -> EmbeddedImage | Exception:
        try:
            return EmbeddedImage(*started.result(self._service.settings.images_seconds))
        except TimeoutError:
            started.cancel()
            return LearnerBusyError("the image was not processed in time")
        # Any error belongs to this image.
        except Exception as error:  # noqa: BLE001
            return error

    def teach(self, example: NewExample) -> TeachResult:
        """Teach an example; it is on disk when this returns."""
        result = _wait(lambda: self._writer.teach(example))
        if not (result.duplicate or result.moved_from):
            self._service.metrics.taught.inc()
        return result

    def change(self, make: Callable[[], Change]) -> Change:
        """Make another change in the thread that makes all of them."""
        return _wait(lambda: self._writer.change(make))


def _wait(start: Callable[[], Future[Result]]) -> Result:
    try:
        return start().result()
    except ProblemError as error:
        raise LearnerBusyError(error.detail) from error
