"""The images of tasks and their embeddings, fetched from Label Studio several at a time."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from evergrow.foundation.errors import EvergrowError, InvalidInputError
from evergrow.service.label_studio.annotations import Task
from evergrow.service.label_studio.api import LabelStudioApi
from evergrow.service.label_studio.learner import EmbeddedImage, Learner, Row

# Label Studio answers while it waits for predictions, so a few requests at a time are enough.
_N_FETCHING = 4
# Images that are held in memory at a time.
_BATCH = 16
# Embeddings of tasks are asked for after every lesson; files in a folder may change.
_CACHE_BYTES = 64 << 20
_CACHE_SECONDS = 3600.0


class TaskImages:
    """Fetches images of tasks and embeds them; a context manager."""

    def __init__(self, api: LabelStudioApi, learner: Learner) -> None:
        self._api = api
        self._learner = learner
        self._threads = ThreadPoolExecutor(_N_FETCHING, thread_name_prefix="label-studio-image")
        # By the path of the image: the row, and when it was computed.
        self._rows: OrderedDict[str, tuple[Row, float]] = OrderedDict()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Stop fetching; images that are being fetched are finished."""
        self._threads.shutdown(cancel_futures=True)

    def embed(self, tasks: Sequence[Task]) -> dict[int, EmbeddedImage | Exception]:
        """Fetch and embed the images of tasks; each gives a result or its own error, by id."""
        found: dict[int, EmbeddedImage | Exception] = {}
        for first in range(0, len(tasks), _BATCH):
            found.update(self._embed_batch(tasks[first : first + _BATCH]))
        return found

    def rows(self, tasks: Sequence[Task], deadline: float) -> dict[int, Row | Exception]:
        """Return the embeddings of tasks, by id, from memory where they are known.

        Images that were not reached at the ``deadline`` of the monotonic clock have an error.
        """
        found: dict[int, Row | Exception] = {}
        missing = []
        for task in tasks:
            row = self._known(task)
            if row is None:
                missing.append(task)
            else:
                found[task.id] = row
        for first in range(0, len(missing), _BATCH):
            batch = missing[first : first + _BATCH]
            if time.monotonic() > deadline:
                late = TimeoutError("there was no time left to fetch the image")
                found.update(dict.fromkeys((task.id for task in missing[first:]), late))
                break
            for number, one in self._embed_batch(batch).items():
                found[number] = one.row if isinstance(one, EmbeddedImage) else one
        return found

    def _known(self, task: Task) -> Row | None:
        with self._lock:
            known = self._rows.get(task.image or "")
            if known is None or time.monotonic() > known[1] + _CACHE_SECONDS:
                return None
            self._rows.move_to_end(task.image or "")
            return known[0]

    def _embed_batch(self, tasks: Sequence[Task]) -> dict[int, EmbeddedImage | Exception]:
        fetched = list(self._threads.map(self._fetch, tasks))
        images = [one for one in fetched if isinstance(one, bytes)]
        embedded = iter(self._learner.embed(images) if images else ())
        found = {
            task.id: next(embedded) if isinstance(one, bytes) else one
            for task, one in zip(tasks, fetched, strict=True)
        }
        self._remember(tasks, found.values())
        return found

    def _fetch(self, task: Task) -> bytes | Exception:
        if task.image is None:
            return InvalidInputError(f"task {task.id} has no image")
        try:
            return self._api.image(task.id, task.image)
        except EvergrowError as error:
            return error

    def _remember(
        self, tasks: Iterable[Task], results: Iterable[EmbeddedImage | Exception]
    ) -> None:
        now = time.monotonic()
        with self._lock:
            for task, one in zip(tasks, results, strict=True):
                if task.image is not None and isinstance(one, EmbeddedImage):
                    self._rows[task.image] = (one.row, now)
                    self._rows.move_to_end(task.image)
                    while len(self._rows) * one.row.nbytes > _CACHE_BYTES:
                        self._rows.popitem(last=False)
