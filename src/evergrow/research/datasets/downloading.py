"""Downloading published data sets, for people who are online and ask for it; nothing else does."""

from __future__ import annotations

import http.client
import os
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Protocol
from urllib.parse import urlsplit

from evergrow.foundation.atomic import sync_folder
from evergrow.foundation.errors import DatasetError
from evergrow.foundation.naming import name_of
from evergrow.foundation.params import Choice, Flag, Integer, check_parameters
from evergrow.foundation.progress import progress_bar
from evergrow.research.datasets.published import PUBLISHED, PublishedFile
from evergrow.research.datasets.reading.opening import digest_of, open_regular

__all__ = ["Opener", "download"]

_CHUNK_BYTES = 1 << 18
_TIMEOUT_SECONDS = 60
_PARTIAL = 206
_KILO = 1000
_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


class Opener(Protocol):
    """What sends requests, as :class:`urllib.request.OpenerDirector` does."""

    def open(self, fullurl: urllib.request.Request, *, timeout: float) -> Any:
        """Send a request and give the answer."""


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows no server to an address where others could listen or answer."""

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

    Only over https, and only what has the expected length and SHA-256 gets its name. What was
    interrupted is kept in a file that ends in ``.part``, and the next call goes on from there.
    Files that are there already are compared and not downloaded again.

    Parameters
    ----------
    name : {"cifar10", "cifar100", "mnist"}
        The data set.
    folder : path
        Where to put its files; it is made if it is not there.
        ``load_dataset(name, path=folder)`` reads them.
    verbose : int, default=0
        Show a progress bar when positive.
    published : mapping of str to tuple of PublishedFile
        Where to find which files; give your own to use a mirror.
    opener : object with ``open``, default=None
        Sends the requests, for those who need a proxy of their own; None makes one that follows
        the environment's and refuses to be redirected from https.

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
    return [_one_file(file, target, sender, verbose) for file in published[name]]


def _check_https(url: str) -> None:
    if urlsplit(url).scheme != "https":
        raise DatasetError(f"{name_of(url)} is refused: only https addresses are allowed")


def _one_file(file: PublishedFile, folder: Path, sender: Opener, verbose: int) -> Path:
    path, part = folder / file.name, folder / f"{file.name}.part"
    if path.exists():
        _check_kept(path, file)
        return path
    n_kilobytes = -(-file.n_bytes // _KILO)
    with progress_bar(f"{file.name} (kB)", n_kilobytes, verbose) as show:
        problems = [
            _problem_at(url, part, file, sender, show)
            for url in file.urls
            if not _whole(part, file)
        ]
    if not _whole(part, file):
        raise DatasetError(
            f"{file.name} could not be downloaded: {'; '.join(filter(None, problems))}. What came "
            "is kept: try again to go on from there"
        )
    _check_whole(part, file)
    os.replace(part, path)
    sync_folder(folder)
    return path


def _whole(part: Path, file: PublishedFile) -> bool:
    return part.exists() and part.stat().st_size >= file.n_bytes


def _check_kept(path: Path, file: PublishedFile) -> None:
    with open_regular(path) as kept:
        digest = digest_of(kept)
    if digest != file.sha256:
        raise DatasetError(
            f"{name_of(path)} is there already, but its SHA-256 is {digest}, expected "
            f"{file.sha256}: move it away to download it again"
        )


def _check_whole(part: Path, file: PublishedFile) -> None:
    with open_regular(part) as kept:
        digest = digest_of(kept)
    if digest != file.sha256:
        # To go on from wrong bytes would never end well.
        part.unlink()
        raise DatasetError(
            f"what came for {file.name} has the SHA-256 {digest}, expected {file.sha256}: it was "
            "thrown away"
        )


def _problem_at(
    url: str,
    part: Path,
    file: PublishedFile,
    sender: Opener,
    show: Callable[[int], None] | None,
) -> str | None:
    """Fetch what is missing from one address; say what went wrong, if anything did."""
    host = urlsplit(url).netloc
    try:
        with open(part, "ab") as kept:
            _fetch(url, kept, file, sender, show)
            kept.flush()
            os.fsync(kept.fileno())
    except urllib.error.HTTPError as error:
        # It is the server's answer too, and holds the connection.
        error.close()
        return f"{host}: {error}"
    except (urllib.error.URLError, http.client.HTTPException) as error:
        return f"{host}: {error}"
    if not _whole(part, file):
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
    with _answer(sender, request) as answer:
        if answer.status == _PARTIAL:
            _check_continues(answer, done)
        elif done:
            # The server sends all of it, whatever was asked.
            kept.truncate(0)
            done = 0
        while done < file.n_bytes:
            chunk = _read(answer, min(_CHUNK_BYTES, file.n_bytes - done))
            if not chunk:
                return
            kept.write(chunk)
            done += len(chunk)
            if show is not None:
                show(done // _KILO)


# Errors of the network are told from those of the disk, which no other address would mend.
def _answer(sender: Opener, request: urllib.request.Request) -> Any:
    try:
        return sender.open(request, timeout=_TIMEOUT_SECONDS)
    except (urllib.error.URLError, http.client.HTTPException):
        raise
    except OSError as error:
        raise urllib.error.URLError(error) from error


def _read(answer: Any, n_bytes: int) -> bytes:
    try:
        content: bytes = answer.read(n_bytes)
    except OSError as error:
        raise urllib.error.URLError(error) from error
    return content


def _check_continues(answer: Any, done: int) -> None:
    found = _CONTENT_RANGE.fullmatch(answer.headers.get("Content-Range", ""))
    if found is None or int(found[1]) != done:
        raise http.client.HTTPException("the server sent another part than was asked for")
