"""Model files for download are shared, limited and removed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from evergrow.export.html.runtime import RuntimeMissingError
from evergrow.service.http.exports import Exports
from evergrow.service.http.responses import ProblemError


class Model:
    """A model to export."""

    def __init__(self) -> None:
        self.state, self.n_written = 0, 0
        self.folders: list[Path] = []

    def write(self, path: Path) -> None:
        self.n_written += 1
        self.folders.append(path.parent)
        path.write_text(f"{path.suffix} {self.state}")

    @contextmanager
    def exports(self) -> Iterator[Exports]:
        """Its files."""
        with ThreadPoolExecutor(1) as thread:
            exports = Exports("things", self.write, lambda: self.state, thread)
            yield exports
        exports.close()


def test_requests_for_the_same_model_share_a_file_that_is_then_removed() -> None:
    model = Model()

    async def main(exports: Exports) -> None:
        first, second = await asyncio.gather(exports.borrow(".a"), exports.borrow(".a"))
        assert first is second
        exports.release(first)
        assert list(second.read_chunks()) == [b".a 0"]
        exports.release(second)
        assert not model.folders[0].exists()

    with model.exports() as exports:
        asyncio.run(main(exports))
    assert model.n_written == 1


def test_each_version_and_format_is_another_file_and_their_number_is_limited() -> None:
    model = Model()

    async def main(exports: Exports) -> None:
        found = [
            b"".join((await exports.borrow(suffix)).read_chunks())
            for model.state in range(3)
            for suffix in (".a", ".b")
        ]
        assert found == [b".a 0", b".b 0", b".a 1", b".b 1", b".a 2", b".b 2"]
        model.state = 3
        with pytest.raises(ProblemError, match="still being downloaded"):
            await exports.borrow(".a")

    with model.exports() as exports:
        asyncio.run(main(exports))
    # Files that were not released are removed at the end.
    assert not any(folder.exists() for folder in model.folders)


def test_a_request_that_is_cancelled_leaves_the_file_to_others() -> None:
    model, go = Model(), threading.Event()

    async def main(exports: Exports) -> None:
        leaving, staying = (asyncio.ensure_future(exports.borrow(".a")) for _ in range(2))
        await asyncio.sleep(0)
        leaving.cancel()
        go.set()
        export = await staying
        assert (export.n_users, export.n_bytes) == (1, 4)

    write = model.write
    model.write = lambda path: (go.wait(), write(path))[1]  # type: ignore[method-assign]
    with model.exports() as exports:
        asyncio.run(main(exports))


@pytest.mark.parametrize(
    "error",
    [
        ImportError("ONNX files need the module onnx: pip install onnx"),
        RuntimeMissingError("an HTML page needs onnxruntime-web: pip install onnx"),
    ],
)
def test_a_missing_package_is_named_and_leaves_no_file(error: Exception) -> None:
    model = Model()

    def write(path: Path) -> None:
        model.folders.append(path.parent)
        raise error

    with ThreadPoolExecutor(1) as thread:
        exports = Exports("things", write, lambda: 0, thread)
        with pytest.raises(ProblemError, match="pip install onnx") as raised:
            asyncio.run(exports.borrow(".a"))
    assert raised.value.status == 501
    assert not model.folders[0].exists()
