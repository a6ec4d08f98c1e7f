"""A service's parts and the order in which they begin and end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from evergrow.foundation.threads import one_blas_thread
from evergrow.service.decoding.pool import DecoderPool
from evergrow.service.http.access import SCOPES, Actor, TokenCheck
from evergrow.service.http.background import Background
from evergrow.service.http.embedding import BatchEmbedder, embedding_network
from evergrow.service.http.exports import Exports
from evergrow.service.http.images import Images
from evergrow.service.http.metrics import Metrics
from evergrow.service.http.problems import ProblemError
from evergrow.service.http.settings import Settings
from evergrow.service.http.writing import Writer
from evergrow.workspace.tokens import Tokens
from evergrow.workspace.workspace import Workspace

__all__ = ["Service"]

Result = TypeVar("Result")
Phase = Literal["opening", "ready", "stopping", "closed"]

# Reads of the database; short ones, so few threads do.
_READING_THREADS = 4

# That a token was good once tells whoever has it to ask for a new one.
_WHY_NOT = {
    "unknown": "the token is not valid",
    "expired": "the token has expired",
    "revoked": "the token was revoked",
}

_log = logging.getLogger("evergrow.service")


class Service:
    """A workspace and all that serves it.

    Parameters
    ----------
    folder : path
        The workspace.
    settings : Settings
        Limits.
    """

    def __init__(self, folder: str | os.PathLike[str], settings: Settings | None = None) -> None:
        self.folder = Path(folder)
        self.settings = settings or Settings()
        self.metrics = Metrics()
        # Differs from that of every other service, earlier ones of this folder too.
        self.run = secrets.token_hex(8)
        self.phase: Phase = "opening"
        # What went wrong on opening.
        self.failure: BaseException | None = None
        self._stack = contextlib.ExitStack()
        self._workspace: Workspace | None = None
        self._tokens: TokenCheck | None = None
        self._images: Images | None = None
        self._writer: Writer | None = None
        self._background: Background | None = None
        self._readers: ThreadPoolExecutor | None = None
        self._exports: Exports | None = None
        self._moving = threading.Lock()

    def __enter__(self) -> Self:
        """Open everything."""
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        """Close everything."""
        self.close()

    def open(self) -> None:
        """Open the workspace and start all threads and processes."""
        with self._moving:
            try:
                self._open()
            except BaseException as error:
                self.failure = error
                self.phase = "closed"
                self._stack.close()
                raise
            if self.phase == "opening":
                self.phase = "ready"

    def _open(self) -> None:
        stack = self._stack
        # Threads of one product would compete with those that serve other requests.
        stack.enter_context(one_blas_thread())
        workspace = stack.enter_context(Workspace.open(self.folder))
        if workspace.embedder is not None:
            self._images = self._open_images(workspace.embedder)
        self._background = Background(
            (
                workspace.assess,
                workspace.update_guesses,
                workspace.update_forest,
                partial(workspace.save_snapshot, force=False),
            )
        )
        stack.enter_context(self._background)
        self._writer = stack.enter_context(
            Writer(workspace, max_queue=self.settings.max_queue, written=self._written)
        )
        self._readers = stack.enter_context(ThreadPoolExecutor(_READING_THREADS, "reader"))
        self._exports = stack.enter_context(
            Exports(workspace.export, partial(_model_of, workspace))
        )
        self._workspace = workspace
        self._tokens = _token_check(self.folder)
        self.metrics.watch("queue", "Changes that wait.", self._n_queued)
        self.metrics.watch_workspace(workspace.status)
        # What an earlier run did not come to.
        self._background.tell()

    def _open_images(self, embedder: Any) -> Images:
        network = embedding_network(embedder)
        batches = BatchEmbedder(network, n_threads=self.settings.n_threads)
        decoders = DecoderPool(
            network.preprocessing,
            n_processes=self.settings.n_decoders,
            limits=self.settings.decoder_limits,
            max_waiting=self.settings.max_waiting_images,
        )
        # Entered first, ended last: images that are decoded still reach the network.
        self._stack.enter_context(batches)
        self._stack.enter_context(decoders)
        return Images(decoders, batches, self.metrics, self.settings.images_seconds)

    def _n_queued(self) -> float:
        return 0.0 if self._writer is None else float(self._writer.n_waiting)

    def _written(self, n_changes: int) -> None:
        self.metrics.written_together.observe(n_changes)
        if self._background is not None:
            self._background.tell()

    def refuse_changes(self) -> None:
        """Begin to stop: nothing new is taught, everything else goes on."""
        if self.phase in ("opening", "ready"):
            self.phase = "stopping"
        if self._writer is not None:
            self._writer.refuse()

    def close(self) -> None:
        """Finish what was taken, save what was learnt, close the workspace."""
        self.refuse_changes()
        with self._moving:
            if self.phase == "closed":
                return
            workspace, writer = self._workspace, self._writer
            if writer is not None and workspace is not None:
                writer.finish()
                _save(workspace)
            self._stack.close()
            self.phase = "closed"

    @property
    def token_check(self) -> TokenCheck | None:
        """Tells whose a token is; None as long as nothing is open."""
        return self._tokens

    @property
    def workspace(self) -> Workspace:
        """The workspace; a ``ProblemError`` as long as it is not open."""
        if self._workspace is None or self.phase == "closed":
            raise ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, "the workspace is not open")
        return self._workspace

    @property
    def writer(self) -> Writer:
        """The one who writes."""
        if self._writer is None:
            raise ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, "the workspace is not open")
        return self._writer

    @property
    def images(self) -> Images | None:
        """What makes vectors of images; None where only embeddings are taken."""
        return self._images

    @property
    def exports(self) -> Exports:
        """Files of the model."""
        if self._exports is None or self.phase == "closed":
            raise ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, "the workspace is not open")
        return self._exports

    async def read(self, ask: Callable[[], Result]) -> Result:
        """Ask something that may wait for the disk, without holding up other requests."""
        if self._readers is None or self.phase == "closed":
            raise ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, "the workspace is not open")
        future: Future[Result] = self._readers.submit(ask)
        return await asyncio.wrap_future(future)


def _token_check(folder: Path) -> TokenCheck:
    tokens = Tokens(folder)

    def check(token: str) -> Actor | str:
        found = tokens.authenticate(token)
        if isinstance(found, str):
            return _WHY_NOT[found]
        return Actor(found.name, frozenset(scope for scope in SCOPES if found.may(scope)))

    return check


def _model_of(workspace: Workspace) -> object:
    """What a file of the model depends on."""
    assessment = workspace.assessment
    return workspace.snapshot.event, None if assessment is None else assessment.event


def _save(workspace: Workspace) -> None:
    try:
        workspace.save_snapshot()
    # The examples are safe; the next start only takes longer.
    except Exception:  # noqa: BLE001
        _log.exception("what was learnt could not be saved; it will be learnt again")
