"""The parts of a service, and the order in which they start and stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from evergrow.foundation.errors import WorkspaceError
from evergrow.foundation.threads import one_blas_thread
from evergrow.service.decoding.pool import DecoderPool
from evergrow.service.http.downloads import Downloads
from evergrow.service.http.fairness import Actor, FairThreads, Pacer
from evergrow.service.http.images import BatchEmbedder, ImagePipeline, single_threaded_network
from evergrow.service.http.label_studio import open_back_end
from evergrow.service.http.middleware import SCOPES
from evergrow.service.http.monitoring import Metrics
from evergrow.service.http.responses import ProblemError, unavailable
from evergrow.service.http.settings import Settings
from evergrow.service.http.writer import BackgroundThread, WriterThread
from evergrow.service.label_studio.back_end import BackEnd
from evergrow.workspace.model.snapshot import Snapshot
from evergrow.workspace.records import WorkspaceLostError
from evergrow.workspace.tokens import SESSION, Tokens
from evergrow.workspace.workspace import Workspace

Part = TypeVar("Part")
Result = TypeVar("Result")
Phase = Literal["opening", "ready", "stopping", "closed"]

# Database reads are short, so a few threads are enough.
_N_READERS = 4

# Newer models per second for tokens that may not teach, after so many without a limit.
_MODELS_PER_SECOND = 2.0
_MODELS_BURST = 10

# The message tells owners of an old token that they need a new one.
_TOKEN_ERRORS = {
    "unknown": "the token is not valid",
    "expired": "the token has expired",
    "revoked": "the token was revoked",
}

_log = logging.getLogger("evergrow.service")


class Service:
    """A workspace with the threads and processes that serve it.

    Most programs call :func:`serve`. Use this class with :func:`create_app` to run the service in
    your own ASGI server.

    Parameters
    ----------
    folder : path
        The folder of the workspace.
    settings : Settings, default=None
        Limits of the service. None uses the defaults.
    session_token : str, default=None
        A token that may teach while the service runs. It is not stored.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        settings: Settings | None = None,
        session_token: str | None = None,
    ) -> None:
        self.folder = Path(folder)
        self._session_token = session_token
        self.settings = settings or Settings()
        self.metrics = Metrics()
        # Identifies this run of the service: ETags of earlier runs are not valid.
        self.run = secrets.token_hex(8)
        self.phase: Phase = "opening"
        # The error that opening raised.
        self.failure: BaseException | None = None
        self._stack = contextlib.ExitStack()
        self._workspace: Workspace | None = None
        # Finds the owner of a token, or why it is not valid; None while the service is not open.
        self.token_check: Callable[[str], Actor | str] | None = None
        # None if only embeddings are accepted.
        self.images: ImagePipeline | None = None
        self._writer: WriterThread | None = None
        self._background: BackgroundThread | None = None
        self._readers: FairThreads | None = None
        self._downloads: Downloads | None = None
        # None unless it is configured.
        self._label_studio: BackEnd | None = None
        # Programs that the service talks to; they stop before everything that they use.
        self._integrations = contextlib.ExitStack()
        # What tokens that may not teach predict with.
        self._shared_snapshot: Snapshot | None = None
        self._new_models = Pacer(_MODELS_PER_SECOND, _MODELS_BURST, 0.0)
        self._phase_lock = threading.Lock()

    def __enter__(self) -> Self:
        """Open everything."""
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        """Close everything."""
        self.close()

    def open(self) -> None:
        """Open the workspace and start all threads and processes."""
        with self._phase_lock:
            try:
                self._open()
            except BaseException as error:
                self.failure = error
                self.phase = "closed"
                self._integrations.close()
                self._stack.close()
                raise
            if self.phase == "opening":
                self.phase = "ready"

    def _open(self) -> None:
        stack = self._stack
        # Threads of one matrix product would compete with those that serve other requests.
        stack.enter_context(one_blas_thread())
        workspace = stack.enter_context(Workspace.open(self.folder))
        if workspace.embedder is not None:
            self.images = self._open_images(workspace.embedder)
        self._background = BackgroundThread(
            (
                workspace.assess,
                workspace.update_guesses,
                workspace.update_forest,
                partial(workspace.save_snapshot, force=False),
            )
        )
        stack.enter_context(self._background)
        self._writer = writer = stack.enter_context(
            WriterThread(workspace, max_queue=self.settings.max_queue, on_written=self._on_written)
        )
        self._readers = stack.enter_context(FairThreads(_N_READERS, "reader"))
        self._downloads = stack.enter_context(Downloads(workspace))
        self._workspace = workspace
        self.token_check = _token_check(self.folder, self.require_folder, self._session_token)
        self.metrics.add_gauge("queue", "Queued changes.", lambda: float(writer.n_waiting))
        self.metrics.add_workspace(workspace.status)
        # Catch up on tasks that an earlier run did not finish.
        self._background.notify()
        if self.settings.label_studio:
            self._label_studio = open_back_end(self, self._writer, self.images)
            self._integrations.enter_context(self._label_studio)

    def _open_images(self, embedder: Any) -> ImagePipeline:
        network = single_threaded_network(embedder)
        batches = BatchEmbedder.for_device(network, self.settings.n_threads)
        decoders = DecoderPool(
            network.preprocessing,
            n_processes=self.settings.n_decoders,
            limits=self.settings.decoder_limits,
            max_waiting=self.settings.max_waiting_images,
        )
        # Started first, stopped last: images that are decoded still reach the network.
        self._stack.enter_context(batches)
        self._stack.enter_context(decoders)
        return ImagePipeline(
            decoders,
            batches,
            self.metrics,
            self.settings.images_seconds,
            self.settings.max_waiting_images,
        )

    def _on_written(self, n_changes: int) -> None:
        self.metrics.written_together.observe(n_changes)
        if self._background is not None:
            self._background.notify()

    def refuse_changes(self) -> None:
        """Begin the shutdown: refuse changes, continue everything else.

        :meta private:
        """
        if self.phase in ("opening", "ready"):
            self.phase = "stopping"
        if self._writer is not None:
            self._writer.refuse()

    def close(self) -> None:
        """Finish queued changes, save a snapshot, close the workspace."""
        self.refuse_changes()
        with self._phase_lock:
            if self.phase == "closed":
                return
            workspace, writer = self._workspace, self._writer
            self._integrations.close()
            if writer is not None and workspace is not None:
                writer.finish()
                if self._background is not None:
                    # Its tasks may record events, which the snapshot should include.
                    self._background.stop()
                _save_snapshot(workspace)
            self._stack.close()
            self.phase = "closed"

    def has_token(self, token: str) -> bool:
        """Tell whether a token is valid."""
        try:
            return self.token_check is not None and isinstance(self.token_check(token), Actor)
        except (WorkspaceError, ProblemError):
            # The folder is lost, or the file of the tokens damaged: requests report it.
            return False

    def require_folder(self) -> None:
        """Raise a ``ProblemError`` unless the path still names the folder that was opened.

        Otherwise the tokens of another folder would open the data of this one.

        :meta private:
        """
        workspace = self.workspace
        try:
            workspace.prove()
        except (WorkspaceLostError, OSError) as error:
            # Clients without a valid token see this: where the folder is does not concern them.
            place = f" {str(workspace.layout.folder)!r}"
            raise unavailable(str(error).replace(place, "")) from error

    @property
    def workspace(self) -> Workspace:
        """The workspace; raises a ``ProblemError`` while it is not open."""
        return self._require(self._workspace)

    def snapshot_for(self, actor: Actor) -> Snapshot:
        """Return the model that a token predicts with.

        The first prediction after a change solves the equations of the model. Solved after every
        change, they would slow down those who teach. Many changes per second are therefore seen by
        other tokens half a second later.

        :meta private:
        """
        newest = self.workspace.snapshot
        shared = self._shared_snapshot
        if actor.teaches or (shared is not None and shared.event == newest.event):
            return newest
        if shared is None or self._new_models.delay("") == 0:
            self._shared_snapshot = shared = newest
        return shared

    @property
    def writer(self) -> WriterThread:
        """The writer thread; it refuses changes itself once the service is closed.

        :meta private:
        """
        if self._writer is None:
            raise unavailable("the workspace is not open")
        return self._writer

    @property
    def downloads(self) -> Downloads:
        """Files for download.

        :meta private:
        """
        return self._require(self._downloads)

    @property
    def label_studio(self) -> BackEnd:
        """The back end of Label Studio.

        :meta private:
        """
        self._require(self._workspace)
        if self._label_studio is None:
            raise ProblemError(
                HTTPStatus.NOT_FOUND,
                "this service is not connected to Label Studio: start it with "
                "'evergrow serve --label-studio URL'",
            )
        return self._label_studio

    async def read(self, actor: Actor, function: Callable[[], Result]) -> Result:
        """Run a function that may wait for the disk in a thread; tokens take turns.

        :meta private:
        """
        future: Future[Result] = self._require(self._readers).submit(actor, function)
        return await asyncio.wrap_future(future)

    def _require(self, part: Part | None) -> Part:
        if part is None or self.phase == "closed":
            raise unavailable("the workspace is not open")
        return part


def _token_check(
    folder: Path, require_folder: Callable[[], None], session_token: str | None
) -> Callable[[str], Actor | str]:
    tokens = Tokens(folder)

    def check(token: str) -> Actor | str:
        if session_token is not None and secrets.compare_digest(
            token.encode("utf-8", "surrogatepass"), session_token.encode()
        ):
            require_folder()
            return Actor(SESSION, frozenset(SCOPES))
        # Before, because expired tokens are marked in the file; after it was read, because it may
        # have been replaced in between.
        require_folder()
        version = tokens.version
        found = tokens.authenticate(token)
        if tokens.version != version:
            require_folder()
        if isinstance(found, str):
            return _TOKEN_ERRORS[found]
        return Actor(found.name, frozenset(scope for scope in SCOPES if found.may(scope)))

    return check


def _save_snapshot(workspace: Workspace) -> None:
    try:
        workspace.save_snapshot()
    # The examples are stored; only the next start takes longer.
    except Exception:  # noqa: BLE001
        _log.exception("the snapshot could not be saved; the next start trains the model again")
