"""Downloads from a local test server, with interruptions and wrong responses."""

from __future__ import annotations

import hashlib
import urllib.request
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner

from evergrow import DatasetError
from evergrow.cli import main
from evergrow.cli.download import download as command
from evergrow.research import datasets, download, load_dataset
from evergrow.research.datasets.downloads import PUBLISHED, PublishedFile, _Redirects
from tests.research.datasets.made import mnist

CONTENT = bytes(range(256)) * 40
HOME = "https://files.test"


class Server:
    """Sends files, records requests, and can simulate faults."""

    def __init__(self, files):
        self.files = files
        self.asked: list[tuple[str, str | None]] = []
        self.ranges = True
        self.stop_after: int | None = None
        self.shift = 0
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                server.answer(self)

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def answer(self, handler):
        name, wanted = handler.path.lstrip("/"), handler.headers.get("Range")
        self.asked.append((name, wanted))
        content = self.files.get(name)
        if content is None:
            handler.send_error(404)
            return
        first = (
            int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.ranges else 0
        )
        handler.send_response(206 if wanted and self.ranges else 200)
        if wanted and self.ranges:
            first += self.shift
            handler.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
        handler.send_header("Content-Length", str(len(content) - first))
        handler.end_headers()
        handler.wfile.write(content[first:][: self.stop_after])

    def open(self, request, *, timeout):
        """Send what goes to the address of the files to this server."""
        assert request.full_url.startswith(HOME)
        here = f"http://127.0.0.1:{self.http.server_port}{request.full_url.removeprefix(HOME)}"
        again = urllib.request.Request(here, headers=dict(request.header_items()))
        # No proxy of the environment may come between.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        return opener.open(again, timeout=timeout)


@contextmanager
def serving(files):
    server = Server(files)
    thread = Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.http.shutdown()
        server.http.server_close()
        thread.join()


@pytest.fixture
def server():
    with serving({"a.bin": CONTENT}) as running:
        yield running


def published(content=CONTENT, name="a.bin", urls=(f"{HOME}/a.bin",)):
    return PublishedFile(name, urls, len(content), hashlib.sha256(content).hexdigest())


def fetch(server, folder, *files):
    return download("some", folder, published={"some": files or (published(),)}, opener=server)


def test_a_file_is_fetched_into_a_new_folder(server, tmp_path):
    (path,) = fetch(server, tmp_path / "new" / "folder")
    assert path == tmp_path / "new" / "folder" / "a.bin"
    assert path.read_bytes() == CONTENT
    assert [one.name for one in path.parent.iterdir()] == ["a.bin"]


def test_a_file_that_is_there_is_not_fetched_again(server, tmp_path):
    fetch(server, tmp_path)
    fetch(server, tmp_path)
    assert len(server.asked) == 1


def test_another_file_that_is_there_is_kept_and_named(server, tmp_path):
    (tmp_path / "a.bin").write_bytes(b"mine")
    with pytest.raises(DatasetError, match=r"a\.bin' exists.*expected .*move it away"):
        fetch(server, tmp_path)
    assert (tmp_path / "a.bin").read_bytes() == b"mine"
    assert not server.asked


def test_an_interrupted_download_goes_on_where_it_stopped(server, tmp_path):
    server.stop_after = 1000
    with pytest.raises(DatasetError, match=r"ended after 1000 bytes.*try again"):
        fetch(server, tmp_path)
    assert (tmp_path / "a.bin.part").read_bytes() == CONTENT[:1000]
    assert not (tmp_path / "a.bin").exists()
    server.stop_after = None
    (path,) = fetch(server, tmp_path)
    assert path.read_bytes() == CONTENT
    assert server.asked == [("a.bin", None), ("a.bin", "bytes=1000-")]
    assert not (tmp_path / "a.bin.part").exists()


def test_a_server_that_cannot_go_on_sends_all_again(server, tmp_path):
    (tmp_path / "a.bin.part").write_bytes(b"wrong" * 20)
    server.ranges = False
    (path,) = fetch(server, tmp_path)
    assert path.read_bytes() == CONTENT


def test_a_different_range_than_requested_is_refused(server, tmp_path):
    (tmp_path / "a.bin.part").write_bytes(CONTENT[:100])
    server.shift = 5
    with pytest.raises(DatasetError, match="a different range than requested"):
        fetch(server, tmp_path)
    assert (tmp_path / "a.bin.part").read_bytes() == CONTENT[:100]


def test_a_part_that_is_whole_needs_no_request(server, tmp_path):
    (tmp_path / "a.bin.part").write_bytes(CONTENT)
    fetch(server, tmp_path)
    assert not server.asked


def test_other_contents_are_thrown_away(server, tmp_path):
    server.files["a.bin"] = bytes(len(CONTENT))
    with pytest.raises(DatasetError, match=r"SHA-256 [0-9a-f]{64}, expected [0-9a-f]{64}"):
        fetch(server, tmp_path)
    assert not list(tmp_path.iterdir())


def test_no_more_is_fetched_than_the_file_has(server, tmp_path):
    server.files["a.bin"] = CONTENT * 2
    (path,) = fetch(server, tmp_path)
    assert path.read_bytes() == CONTENT


def test_a_second_address_goes_on_where_the_first_failed(server, tmp_path):
    urls = (f"{HOME}/gone.bin", f"{HOME}/a.bin")
    (path,) = fetch(server, tmp_path, published(urls=urls))
    assert path.read_bytes() == CONTENT
    with pytest.raises(DatasetError, match=r"b\.bin could not .*files\.test: HTTP Error 404"):
        fetch(server, tmp_path, published(name="b.bin", urls=urls[:1]))


def test_a_server_that_is_not_there_is_named(tmp_path):
    with serving({}) as server:
        pass
    with pytest.raises(DatasetError, match=r"files\.test: <urlopen error"):
        fetch(server, tmp_path)


@pytest.mark.parametrize("url", ["http://files.test/a.bin", "ftp://files.test/a", "file:///a.bin"])
def test_only_https_is_allowed(server, tmp_path, url):
    with pytest.raises(DatasetError, match="only https addresses"):
        fetch(server, tmp_path, published(urls=(url,)))
    assert not server.asked
    assert not list(tmp_path.iterdir())


def test_a_redirection_from_https_is_refused():
    request = urllib.request.Request(f"{HOME}/a.bin")
    with pytest.raises(DatasetError, match=r"'http://files\.test/a\.bin' is refused"):
        _Redirects().redirect_request(request, None, 302, "", {}, "http://files.test/a.bin")
    again = _Redirects().redirect_request(request, None, 302, "", {}, "https://other.test/a.bin")
    assert again is not None
    assert again.full_url == "https://other.test/a.bin"


def test_what_was_fetched_can_be_loaded(tmp_path):
    mnist(tmp_path / "made", suffix=".gz")
    files = {path.name: path.read_bytes() for path in (tmp_path / "made").iterdir()}
    with serving(files) as server:
        listed = [published(each, name, (f"{HOME}/{name}",)) for name, each in files.items()]
        fetch(server, tmp_path / "fetched", *listed)
    assert len(load_dataset("mnist", path=tmp_path / "fetched").X_train) == 12


def test_unknown_names_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"name must be one of \['cifar10', 'cifar100', 'mnist'\]"):
        download("imagenet", tmp_path)


@pytest.mark.parametrize("file", [file for files in PUBLISHED.values() for file in files])
def test_every_published_file_has_a_hash_and_https_addresses(file):
    assert int(file.sha256, 16).bit_length() <= 256
    assert len(file.sha256) == 64
    assert 0 < file.n_bytes < 200_000_000
    assert all(url.startswith("https://") and url.endswith(file.name) for url in file.urls)


def test_the_command_knows_every_published_data_set():
    (name, _, _) = command.params
    assert list(name.type.choices) == sorted(PUBLISHED)


def test_the_command_says_what_it_fetched(tmp_path, monkeypatch):
    def pretend(name, folder, *, verbose):
        assert (name, verbose) == ("mnist", 0)
        return [Path(folder) / "a.gz"]

    monkeypatch.setattr(datasets, "download", pretend)
    result = CliRunner().invoke(main, ["download", "mnist", str(tmp_path)])
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"{tmp_path / 'a.gz'}: complete.\n"
    assert CliRunner().invoke(main, ["download", "mnist", str(tmp_path), "-q"]).output == ""
    assert CliRunner().invoke(main, ["download", "imagenet", str(tmp_path)]).exit_code == 2
