"""Downloads: pictures, the model, the audit log, links for browsers, limits."""

from __future__ import annotations

import asyncio
import csv
import errno
import io
import json
import threading
import zipfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evergrow.export.html.runtime import RuntimeMissingError
from evergrow.service.http import downloads as module
from evergrow.service.http.downloads import DownloadResponse, Downloads
from evergrow.service.http.exports import Exports
from evergrow.service.http.fairness import Actor
from evergrow.service.http.responses import ProblemError
from evergrow.workspace import NewExample, Workspace
from tests.harness.pictures import photograph
from tests.service.conftest import A, B, Served
from tests.service.http.test_images import request_of

pytestmark = pytest.mark.slow

HOSTILE = [
    "left/right",
    "../../etc/passwd",
    "C:\\Windows",
    "NUL",
    "...",
    "labels.csv",
    "cup",
    "Cup",
    "=1+1",
    "قهوة ☕",
    "m" * 200,
]


def send_picture(served: Served, label: str, seed: int) -> bytes:
    content = photograph(seed, width=24, height=16)
    answer = served.post("/v1/examples", None, files={"image": content}, data={"label": label})
    assert answer.status_code == HTTPStatus.CREATED, answer.text
    return content


def unzip(answer: Any) -> zipfile.ZipFile:
    assert answer.status_code == HTTPStatus.OK, answer.text
    archive = zipfile.ZipFile(io.BytesIO(answer.content))
    assert archive.testzip() is None
    return archive


def table_of(archive: zipfile.ZipFile) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(archive.read("labels.csv").decode(), newline="")))


def test_pictures_come_as_they_were_sent_in_class_folders(served_images: Served) -> None:
    served = served_images
    sent = {label: send_picture(served, label, n) for n, label in enumerate(("cup", "pen"))}
    answer = served.get("/v1/pictures", token="read")
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert answer.headers["content-type"] == "application/zip"
    assert 'filename="things-pictures.zip"' in answer.headers["content-disposition"]
    archive = unzip(answer)
    rows = table_of(archive)
    assert {row["label"]: archive.read(row["path"]) for row in rows} == sent
    examples = served.get("/v1/examples").json()["items"]
    assert [(row["id"], row["time"], row["image"]) for row in rows] == [
        (str(one["id"]), one["at"], one["image"]) for one in examples
    ]


def test_names_of_classes_never_leave_the_folder(served_images: Served) -> None:
    served = served_images
    for number, label in enumerate(HOSTILE):
        send_picture(served, label, number)
    archive = unzip(served.get("/v1/pictures"))
    paths = [name for name in archive.namelist() if name != "labels.csv"]
    assert all(path.count("/") == 1 and not path.startswith(("/", ".")) for path in paths)
    assert len({path.partition("/")[0].casefold() for path in paths}) == len(HOSTILE)
    assert len(table_of(archive)) == len(HOSTILE)


def test_without_pictures_the_reason_is_said(served: Served) -> None:
    answer = served.get("/v1/pictures")
    assert answer.status_code == HTTPStatus.CONFLICT
    assert "no examples yet" in answer.json()["detail"]
    served.teach_one("mug")
    answer = served.get("/v1/pictures")
    assert "taught as embeddings" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("file_format", "begin"), [("evergrow", b""), ("onnx", b"\x08"), ("html", b"<!doctype html>")]
)
def test_the_model_comes_in_each_format(
    served_images: Served, file_format: str, begin: bytes
) -> None:
    served = served_images
    for number in range(6):
        send_picture(served, ("cup", "pen")[number % 2], number)
    answer = served.get(f"/v1/model?format={file_format}", token="read")
    if answer.status_code == HTTPStatus.NOT_IMPLEMENTED:
        pytest.skip(answer.json()["detail"])
    assert answer.status_code == HTTPStatus.OK, answer.text
    assert answer.content.lower().startswith(begin)
    assert f'filename="things.{file_format}"' in answer.headers["content-disposition"]
    # Released by the thread that read it; what is submitted next waits for that.
    served.service.downloads._read_thread.submit(int).result()
    assert not served.service.downloads.exports._exports
    # Saved, never shown: its scripts would run as those of the service.
    assert answer.headers["content-disposition"].startswith("attachment")


def test_a_page_of_a_workspace_of_embeddings_is_refused(served: Served) -> None:
    served.teach_one("mug", A)
    served.teach_one("pen", B)
    answer = served.post("/v1/downloads", {"file": "html"})
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert "ImageClassifier" in answer.json()["detail"]
    assert served.get("/v1/model?format=onnx").status_code == HTTPStatus.OK
    assert served.get("/v1/model?format=pickle").status_code == HTTPStatus.UNPROCESSABLE_ENTITY


def test_the_audit_log_comes_as_json_lines_oldest_first(served: Served) -> None:
    served.teach_one("mug")
    served.post("/v1/rename", {"label": "mug", "to": "cup"})
    served.post("/v1/undo", {})
    answer = served.get("/v1/audit-log", token="read")
    events = [json.loads(line) for line in answer.text.splitlines()]
    # An assessment may follow at any time.
    made = [one for one in events if one["kind"] != "choose"]
    assert [one["kind"] for one in made] == ["teach", "rename", "undo"]
    listed = served.get("/v1/events").json()["items"][::-1]
    assert made == [one for one in listed if one["kind"] != "choose"]


def test_a_long_audit_log_is_complete(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evergrow.workspace.reader._EVENTS_AT_ONCE", 3)
    for _ in range(10):
        served.teach_one("mug")
    lines = served.get("/v1/audit-log").text.splitlines()
    assert len(lines) >= 10
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, len(lines) + 1))


def test_what_is_taught_meanwhile_is_left_out(served_images: Served) -> None:
    served = served_images
    for number in range(3):
        send_picture(served, "cup", number)
    workspace = served.service.workspace
    archive = workspace.picture_archive()
    chunks = archive.zip_chunks()
    first = next(chunks)
    send_picture(served, "pen", 7)
    served.post("/v1/rename", {"label": "cup", "to": "mug"})
    served.ask("DELETE", "/v1/examples/1")
    content = first + b"".join(chunks)
    archive.close()
    assert len(content) == archive.n_bytes
    rows = table_of(zipfile.ZipFile(io.BytesIO(content)))
    assert Counter(row["label"] for row in rows) == {"cup": 3}


def test_downloads_while_others_teach_are_whole(served_images: Served) -> None:
    served = served_images
    send_picture(served, "cup", 0)
    stop = threading.Event()

    def teach() -> None:
        number = 1
        while not stop.is_set():
            send_picture(served, f"class {number % 5}", number)
            number += 1

    thread = threading.Thread(target=teach)
    thread.start()
    try:
        for _ in range(5):
            archive = unzip(served.get("/v1/pictures"))
            rows = table_of(archive)
            assert sorted(archive.namelist()) == sorted(["labels.csv", *(r["path"] for r in rows)])
    finally:
        stop.set()
        thread.join()


def erase(served: Served, label: str) -> None:
    assert served.post("/v1/forget", {"label": label, "erase": True}).status_code == HTTPStatus.OK


def test_an_erasure_breaks_off_a_download(
    served_images: Served, caplog: pytest.LogCaptureFixture
) -> None:
    served = served_images
    for number in range(2):
        send_picture(served, f"class {number}", number)
    ticket = served.post("/v1/downloads", {"file": "pictures"}).json()["ticket"]
    erase(served, "class 1")
    answer = served.get(f"/v1/downloads/{ticket}", token=None)
    assert len(answer.content) < int(answer.headers["content-length"])
    assert "broken off: pictures were erased" in caplog.text
    archive = unzip(served.get("/v1/pictures"))
    assert [row["label"] for row in table_of(archive)] == ["class 0"]


def test_a_link_is_valid_once_and_without_a_token(served: Served) -> None:
    served.teach_one("mug")
    answer = served.post("/v1/downloads", {"file": "model"}, token="read")
    assert answer.status_code == HTTPStatus.CREATED
    link = answer.json()
    assert (link["name"], link["seconds"]) == ("things.evergrow", 60)
    path = f"/v1/downloads/{link['ticket']}"
    sent = served.get(path, token=None)
    assert len(sent.content) == link["n_bytes"]
    again = served.get(path, token=None)
    assert again.status_code == HTTPStatus.UNAUTHORIZED
    assert "start the download again" in again.json()["detail"]
    assert served.get(path).status_code == HTTPStatus.NOT_FOUND


def test_a_link_ends_with_its_token(served: Served) -> None:
    from evergrow.workspace.tokens import Tokens

    served.teach_one("mug")
    ticket = served.post("/v1/downloads", {"file": "labels"}, token="read").json()["ticket"]
    Tokens(served.service.folder).revoke("reader")
    answer = served.get(f"/v1/downloads/{ticket}", token=None)
    assert answer.status_code == HTTPStatus.UNAUTHORIZED


@pytest.mark.parametrize("file", ["model", "labels", "audit-log"])
def test_every_file_has_a_link(served: Served, file: str) -> None:
    served.teach_one("mug")
    ticket = served.post("/v1/downloads", {"file": file}).json()["ticket"]
    assert served.get(f"/v1/downloads/{ticket}", token=None).content


def test_a_link_to_a_file_that_cannot_be_made_is_refused(served: Served) -> None:
    answer = served.post("/v1/downloads", {"file": "model"})
    assert answer.status_code == HTTPStatus.CONFLICT
    answer = served.post("/v1/downloads", {"file": "passwords"})
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert served.service.downloads._at_once._used == 0


def test_a_link_that_is_not_used_frees_its_file(served: Served) -> None:
    now = 0.0
    workspace = served.service.workspace
    served.teach_one("mug")

    async def main(downloads: Downloads) -> None:
        nonlocal now
        actor = served.service.token_check(served.read)  # type: ignore[misc]
        link = downloads.make_link("token", await downloads.prepare(actor, "model"))
        assert downloads.token_of(link.ticket) == "token"
        now = 60.0
        assert downloads.token_of(link.ticket) is None
        assert downloads.follow_link(link.ticket) is None
        assert downloads._at_once._used == 0

    with Downloads(workspace, clock=lambda: now) as downloads:
        asyncio.run(main(downloads))
        exports = downloads.exports
    assert not exports._exports


def test_a_token_has_few_downloads_at_a_time(served: Served) -> None:
    served.teach_one("mug")
    for _ in range(module._MAX_EACH):
        assert served.post("/v1/downloads", {"file": "labels"}).status_code == HTTPStatus.CREATED
    answer = served.post("/v1/downloads", {"file": "labels"})
    assert answer.status_code == HTTPStatus.TOO_MANY_REQUESTS
    assert answer.headers["retry-after"] == "1"
    assert served.get("/v1/labels", token="read").status_code == HTTPStatus.OK


def test_head_reads_no_picture(served_images: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    send_picture(served_images, "cup", 0)
    monkeypatch.setattr(Downloads, "read", lambda *_: None)
    answer = served_images.ask("HEAD", "/v1/pictures")
    assert (answer.status_code, answer.content) == (HTTPStatus.OK, b"")
    assert int(answer.headers["content-length"]) > 0
    assert served_images.service.downloads._at_once._used == 0


@pytest.mark.parametrize("file", ["model", "pictures"])
@pytest.mark.parametrize("n_sent", [0, 2])
def test_a_client_that_disconnects_leaves_no_file(
    served_images: Served, file: str, n_sent: int
) -> None:
    """Before the first byte, or after the head and some of the body."""
    served = served_images
    send_picture(served, "cup", 0)
    send_picture(served, "pen", 1)
    sent: list[Any] = []

    async def send(message: Any) -> None:
        if len(sent) == n_sent:
            raise OSError("gone")
        sent.append(message)

    app: Any = served.client.app
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": "GET",
        "path": f"/v1/{file}",
        "raw_path": f"/v1/{file}".encode(),
        "query_string": b"",
        "headers": [(b"authorization", f"Bearer {served.read}".encode())],
    }
    asyncio.run(app(scope, request_of().receive, send))
    downloads = served.service.downloads
    # Files are closed in the thread that reads them.
    downloads._read_thread.submit(lambda: None).result()
    assert not downloads.exports._exports
    assert downloads._at_once._used == 0


@pytest.mark.parametrize(
    ("name", "plain", "encoded"),
    [
        ("things", "things", "things"),
        ("cups ☕", "cups _", "cups%20%E2%98%95"),
        ('my "things"\\', "my _things__", "my%20_things__"),
        ("line\r\nSet-Cookie: x", "line__Set-Cookie_ x", "line__Set-Cookie_%20x"),
        ("x" * 240, "x" * 100, "x" * 100),
    ],
)
def test_a_workspace_may_have_any_name(tmp_path: Path, name: str, plain: str, encoded: str) -> None:
    with Workspace.create(tmp_path / name, features=None) as workspace:
        workspace.teach([NewExample(np.ones(3), "cup"), NewExample(np.zeros(3), "pen")])
        with Downloads(workspace) as downloads:
            actor = Actor("reader", frozenset({"read"}))
            download = asyncio.run(downloads.prepare(actor, "model"))
            headers = DownloadResponse(downloads, download).headers
    assert headers["content-disposition"] == (
        f"attachment; filename=\"{plain}.evergrow\"; filename*=UTF-8''{encoded}.evergrow"
    )


def test_a_disk_that_fails_breaks_off_a_download(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    served.teach_one("mug")

    def fail(*_: object) -> Iterator[bytes]:
        yield b"some"
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("evergrow.service.http.exports.Export.read_chunks", fail)
    answer = served.get("/v1/model")
    assert answer.content == b"some"
    assert "a download was broken off: a file cannot be read" in caplog.text
    assert served.service.downloads._at_once._used == 0


def test_downloads_are_paced_by_token(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    delays: list[float] = []
    monkeypatch.setattr(module, "_BURST_BYTES", 1)

    async def sleep(seconds: float) -> None:
        delays.append(seconds)

    served.teach_one("mug", A)
    served.teach_one("pen", B)

    async def main(downloads: Downloads) -> None:
        actor = served.service.token_check(served.read)  # type: ignore[misc]
        download = await downloads.prepare(actor, "model")
        monkeypatch.setattr(asyncio, "sleep", sleep)
        n_bytes = sum([len(chunk) async for chunk in downloads.read(download)])
        downloads.release(download)
        assert delays[-1] == pytest.approx(n_bytes / module._BYTES_PER_SECOND, rel=0.2)

    with Downloads(served.service.workspace, clock=lambda: 0.0) as downloads:
        asyncio.run(main(downloads))


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
