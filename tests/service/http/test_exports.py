"""Model files for download are shared, limited and removed."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from evergrow.service.http.exports import Exports
from evergrow.service.http.responses import ProblemError
from tests.service.conftest import A, Served
from tests.service.http.test_images import request_of


class Model:
    """A model to export."""

    def __init__(self) -> None:
        self.state, self.n_written = 0, 0
        self.folders: list[Path] = []

    def write(self, path: Path) -> None:
        self.n_written += 1
        self.folders.append(path.parent)
        path.write_text(str(self.state))


def test_requests_for_the_same_model_share_a_file_that_is_then_removed() -> None:
    model = Model()

    async def main(exports: Exports) -> None:
        first, second = await asyncio.gather(exports.borrow(), exports.borrow())
        assert first is second
        exports.release(first)
        assert [piece async for piece in exports.read_chunks(second)] == [b"0"]
        exports.release(second)
        assert not model.folders[0].exists()

    with Exports(model.write, lambda: model.state) as exports:
        asyncio.run(main(exports))
    assert model.n_written == 1


def test_each_version_is_another_file_and_their_number_is_limited() -> None:
    model = Model()

    async def main(exports: Exports) -> None:
        for model.state in range(4):
            await exports.borrow()
        model.state = 4
        with pytest.raises(ProblemError, match="still being downloaded"):
            await exports.borrow()

    with Exports(model.write, lambda: model.state) as exports:
        asyncio.run(main(exports))
    # Files that were not released are removed at the end.
    assert not any(folder.exists() for folder in model.folders)


def test_a_request_that_is_cancelled_leaves_the_file_to_others() -> None:
    model, go = Model(), threading.Event()

    def write(path: Path) -> None:
        go.wait()
        model.write(path)

    async def main(exports: Exports) -> None:
        leaving, staying = (asyncio.ensure_future(exports.borrow()) for _ in range(2))
        await asyncio.sleep(0)
        leaving.cancel()
        go.set()
        export = await staying
        assert (export.n_users, export.n_bytes) == (1, 1)

    with Exports(write, lambda: 0) as exports:
        asyncio.run(main(exports))


def test_a_client_that_disconnects_before_the_first_byte_leaves_no_file(served: Served) -> None:
    served.teach_one("mug", A)
    exports = served.service.exports

    async def never(message: Any) -> None:
        raise OSError("gone")

    app: Any = served.client.app
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": "GET",
        "path": "/v1/model",
        "raw_path": b"/v1/model",
        "query_string": b"",
        "headers": [(b"authorization", f"Bearer {served.read}".encode())],
    }
    asyncio.run(app(scope, request_of().receive, never))
    assert not exports._exports
