"""Downloads of published data sets, only on request."""

from __future__ import annotations

import http.client
import os
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol
from urllib.parse import urlsplit

from evergrow.foundation.atomic import sync_folder
from evergrow.foundation.errors import DatasetError
from evergrow.foundation.naming import display_name
from evergrow.foundation.params import Choice, Flag, Integer, check_parameters
from evergrow.foundation.progress import progress_bar
from evergrow.research.datasets.formats.files import digest_of, open_file

_CHUNK_BYTES = 1 << 18
_TIMEOUT_SECONDS = 60
_PARTIAL = 206
_KILO = 1000
_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


@dataclass(frozen=True)
class PublishedFile:
    """A file to download: its addresses, length and SHA-256."""

    name: str
    urls: tuple[str, ...]
    n_bytes: int
    sha256: str


_MNIST = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
_CIFAR = ("https://www.cs.toronto.edu/~kriz/",)
# Name, length and SHA-256. For CIFAR the binary versions, which need no pickle.
_FILES = {
    ("cifar10", _CIFAR): """
        cifar-10-binary.tar.gz 170052171
        c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd""",
    ("cifar100", _CIFAR): """
        cifar-100-binary.tar.gz 168513733
        58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec""",
    ("mnist", _MNIST): """
        train-images-idx3-ubyte.gz 9912422
        440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609
        train-labels-idx1-ubyte.gz 28881
        3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c
        t10k-images-idx3-ubyte.gz 1648877
        8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6
        t10k-labels-idx1-ubyte.gz 4542
        f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6""",
}


def _published_files(hosts: tuple[str, ...], listed: str) -> tuple[PublishedFile, ...]:
    words = listed.split()
    entries = zip(words[::3], words[1::3], words[2::3], strict=True)
    return tuple(
        PublishedFile(name, tuple(host + name for host in hosts), int(length), sha256)
        for name, length, sha256 in entries
    )


PUBLISHED = {name: _published_files(hosts, text) for (name, hosts), text in _FILES.items()}


class Opener(Protocol):
    """Sends requests, like :class:`urllib.request.OpenerDirector`."""

    def open(self, fullurl: urllib.request.Request, *, timeout: float) -> Any:
        """Send a request and return the response."""


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to https addresses only."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        _check_https(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def download(
    name: str,
    folder: str | os.PathLike[str],
    *,
    verbose: int = 0,
    published: Mapping[str, tuple[PublishedFile, ...]] = PUBLISHED,
    opener: Opener | None = None,
) -> list[Path]:
    """Download a published data set.

    Uses only https, and renames a file to its final name only if its length and SHA-256 match. An
    interrupted download stays in a ``.part`` file, and the next call resumes it. Existing files are
    verified and not downloaded again.

    Parameters
    ----------
    name : {"cifar10", "cifar100", "mnist"}
        The data set.
    folder : path
        Target folder; it is created if necessary.
        ``load_dataset(name, path=folder)`` reads them.
    verbose : int, default=0
        Show a progress bar if positive.
    published : mapping of str to tuple of PublishedFile
        Addresses and hashes of the files; pass your own to use a mirror.
    opener : object with ``open``, default=None
        Sends the requests, for example through a proxy; None uses the proxy settings of the
        environment and refuses redirects that leave https.

    Returns
    -------
    paths : list of Path
        The files.

    Examples
    --------
    >>> from evergrow.research import download, load_dataset
    >>> paths = download("mnist", "data/mnist")  # doctest: +SKIP
    >>> data = load_dataset("mnist", path="data/mnist")  # doctest: +SKIP
    """
    check_parameters(
        {"name": name, "verbose": verbose},
        {"name": [Choice(tuple(published))], "verbose": [Integer(0), Flag()]},
    )
    for file in published[name]:
        for url in file.urls:
            _check_https(url)
    sender = urllib.request.build_opener(_Redirects()) if opener is None else opener
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    return [_download_file(file, target, sender, verbose) for file in published[name]]


def _check_https(url: str) -> None:
    if urlsplit(url).scheme != "https":
        raise DatasetError(f"{display_name(url)} is refused: only https addresses are allowed")


def _download_file(file: PublishedFile, folder: Path, sender: Opener, verbose: int) -> Path:
    path, part = folder / file.name, folder / f"{file.name}.part"
    if path.exists():
        digest = _digest(path)
        if digest != file.sha256:
            raise DatasetError(
                f"{display_name(path)} exists, but its SHA-256 is {digest}, expected "
                f"{file.sha256}: move it away to download it again"
            )
        return path
    n_kilobytes = -(-file.n_bytes // _KILO)
    with progress_bar(f"Downloading {file.name} (kB)", n_kilobytes, verbose) as show:
        problems = [
            _problem_at(url, part, file, sender, show)
            for url in file.urls
            if not _is_complete(part, file)
        ]
    if not _is_complete(part, file):
        raise DatasetError(
            f"{file.name} could not be downloaded: {'; '.join(filter(None, problems))}. The part "
            "that arrived is saved: try again to resume"
        )
    digest = _digest(part)
    if digest != file.sha256:
        # Resuming from wrong bytes would fail every time.
        part.unlink()
        raise DatasetError(
            f"the download of {file.name} has the SHA-256 {digest}, expected {file.sha256}: it was "
            "deleted"
        )
    os.replace(part, path)
    sync_folder(folder)
    return path


def _is_complete(part: Path, file: PublishedFile) -> bool:
    return part.exists() and part.stat().st_size >= file.n_bytes


def _digest(path: Path) -> str:
    with open_file(path) as kept:
        return digest_of(kept)


def _problem_at(
    url: str,
    part: Path,
    file: PublishedFile,
    sender: Opener,
    show: Callable[[int], None] | None,
) -> str | None:
    """Download the missing part from one address; return the error message, or None."""
    host = urlsplit(url).netloc
    try:
        with open(part, "ab") as kept:
            _fetch(url, kept, file, sender, show)
            kept.flush()
            os.fsync(kept.fileno())
    except urllib.error.HTTPError as error:
        # The error is also the response and holds the connection.
        error.close()
        return f"{host}: {error}"
    except (urllib.error.URLError, http.client.HTTPException) as error:
        return f"{host}: {error}"
    if not _is_complete(part, file):
        return f"{host}: the connection ended after {part.stat().st_size} bytes"
    return None


def _fetch(
    url: str,
    kept: BinaryIO,
    file: PublishedFile,
    sender: Opener,
    show: Callable[[int], None] | None,
) -> None:
    done = kept.tell()
    headers = {"Range": f"bytes={done}-"} if done else {}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 -- https was checked
    with _network_errors():
        opened = sender.open(request, timeout=_TIMEOUT_SECONDS)
    with opened as response:
        if response.status == _PARTIAL:
            _check_continues(response, done)
        elif done:
            # The server ignored the range and sends the whole file.
            kept.truncate(0)
            done = 0
        while done < file.n_bytes:
            with _network_errors():
                chunk = response.read(min(_CHUNK_BYTES, file.n_bytes - done))
            if not chunk:
                return
            kept.write(chunk)
            done += len(chunk)
            if show is not None:
                show(done // _KILO)


@contextmanager
def _network_errors() -> Iterator[None]:
    """Errors of the network are URLErrors, unlike those of the disk, which stay as they are."""
    try:
        yield
    except urllib.error.URLError:
        raise
    except OSError as error:
        raise urllib.error.URLError(error) from error


def _check_continues(response: Any, done: int) -> None:
    found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if found is None or int(found[1]) != done:
        raise http.client.HTTPException("the server sent a different range than requested")
