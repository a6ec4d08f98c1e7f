"""The client of Label Studio: projects, tasks, predictions, and images of tasks.

It talks to one host only, the configured one, and never follows a redirect: otherwise the address
of an image in a task could make the service read from any host that it can reach.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit

from evergrow.foundation.errors import EvergrowError, InvalidInputError
from evergrow.foundation.formatting import format_size
from evergrow.service.client.connections import Connections, StaleConnectionError, parse_url

PAGE_SIZE = 100
_MAX_JSON_BYTES = 64 << 20
_CHUNK_BYTES = 1 << 18
# For each step of a request, and for a response as a whole.
_STEP_SECONDS = 10.0
_WHOLE_SECONDS = 60.0
# Access tokens are valid for five minutes; one that ends soon is not used any more.
_ACCESS_SECONDS = 240.0
# Addresses of files in cloud storage; Label Studio serves them under an address of its own.
_STORAGE_SCHEMES = ("azure-blob", "azure_spi", "gs", "gcs_wif", "redis", "s3", "s3s")
_MAX_ADDRESS = 4096
# Where Label Studio serves files. A task must not make the service ask for anything else there.
_FILE_PATH = re.compile(
    r"/(?:data|static|storage-data)/.+|/(?:tasks|projects)/[0-9]{1,18}/(?:resolve|presign)/?"
)
_NOT_FOUND = 404


class LabelStudioError(EvergrowError):
    """Label Studio cannot be reached, or refused a request; ``status`` is None without response."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status

    @property
    def is_missing(self) -> bool:
        """Whether the thing that was asked for does not exist."""
        return self.status == _NOT_FOUND


class ForeignImageError(EvergrowError, ValueError):
    """An image is not on the host of Label Studio, and is not fetched."""


@dataclass(frozen=True)
class Project:
    """A project of Label Studio; ``created`` tells it from one of the same id in another database.

    ``ranks`` says whether its next task is chosen by the scores of predictions.
    """

    id: int
    created: int
    label_config: str
    model_version: str
    ranks: bool


class LabelStudioApi:
    """Requests to one Label Studio; any number of threads may use it.

    Parameters
    ----------
    url : str
        Where Label Studio is, such as ``"http://localhost:8081"``.
    token : str
        A personal access token, or a legacy token.
    max_image_bytes : int
        Largest image that is fetched.
    """

    def __init__(self, url: str, token: str, *, max_image_bytes: int = 20_000_000) -> None:
        self.address = parse_url(url)
        self._credentials = _Credentials(token)
        self._connections = Connections(self.address, _STEP_SECONDS, None)
        self._max_image_bytes = max_image_bytes

    def close(self) -> None:
        """Close idle connections."""
        self._connections.close()

    def project(self, number: int) -> Project:
        """Return a project."""
        found = self._ask("GET", f"/api/projects/{number}/")
        try:
            created = datetime.fromisoformat(found["created_at"])
            return Project(
                int(found["id"]),
                int(created.timestamp()),
                str(found["label_config"]),
                str(found.get("model_version") or ""),
                found.get("sampling") == "Uncertainty sampling",
            )
        except (KeyError, TypeError, ValueError) as error:
            raise _not_understood(f"project {number}") from error

    def has_webhook(self, project: int, path: str) -> bool:
        """Whether a project sends webhooks to an address that ends in ``path``."""
        found = self._ask("GET", f"/api/webhooks/?{urlencode({'project': project})}")
        return isinstance(found, list) and any(
            isinstance(one, Mapping)
            and one.get("is_active") is True
            and str(one.get("url")).rstrip("/").endswith(path)
            for one in found
        )

    def tasks(self, project: int, query: Mapping[str, Any] | None = None) -> Iterator[Any]:
        """List tasks of a project with their annotations, as JSON values.

        Parameters
        ----------
        project : int
            Id of the project.
        query : mapping, optional
            Filters, as the data manager of Label Studio has them; see :func:`with_ids` and
            :func:`updated_since`.
        """
        # A task that is deleted meanwhile moves those of later pages forward, so a task that is not
        # listed may exist; callers check.
        values = {"ordering": ["tasks:id"], **(query or {})}
        page = n_seen = 0
        while True:
            page += 1
            parameters = {
                "project": project,
                "fields": "all",
                "page": page,
                "page_size": PAGE_SIZE,
                "query": json.dumps(values),
            }
            try:
                found = self._ask("GET", f"/api/tasks?{urlencode(parameters, quote_via=quote)}")
            except LabelStudioError as error:
                if error.is_missing and page > 1:
                    return
                raise
            try:
                tasks, total = found["tasks"], int(found["total"])
            except (KeyError, TypeError, ValueError) as error:
                raise _not_understood("the list of tasks") from error
            yield from tasks
            n_seen += len(tasks)
            if not tasks or n_seen >= total:
                return

    def add_predictions(self, project: int, predictions: Sequence[Mapping[str, Any]]) -> None:
        """Store predictions of several tasks."""
        self._ask("POST", f"/api/projects/{project}/import/predictions", list(predictions))

    def change_prediction(self, number: int, values: Mapping[str, Any]) -> None:
        """Change a stored prediction."""
        self._ask("PATCH", f"/api/predictions/{number}/", dict(values))

    def image(self, task: int, location: str) -> bytes:
        """Fetch the image of a task.

        Raises
        ------
        ForeignImageError
            If it is on another host.
        LabelStudioError
            If Label Studio does not send it.
        """
        path = self.image_path(task, location)
        return self._send("GET", path, None, partial(_read, limit=self._max_image_bytes))

    def image_path(self, task: int, location: str) -> str:
        """Return the path of an image on the host of Label Studio.

        >>> api = LabelStudioApi("http://localhost:8081", "token")
        >>> api.image_path(7, "/data/upload/1/a.jpg")
        '/data/upload/1/a.jpg'
        >>> api.image_path(7, "s3://bucket/a.jpg")
        '/tasks/7/resolve/?fileuri=czM6Ly9idWNrZXQvYS5qcGc='
        """
        try:
            parts = urlsplit(location)
        except ValueError:
            parts = None
        if parts is None or len(location) > _MAX_ADDRESS or not location.isprintable():
            raise ForeignImageError(f"task {task}: the address of its image is not valid")
        if parts.scheme in _STORAGE_SCHEMES:
            encoded = base64.urlsafe_b64encode(location.encode()).decode()
            return f"/tasks/{task}/resolve/?fileuri={encoded}"
        if parts.scheme or parts.netloc:
            self._require_same_host(task, location)
        path = quote(parts.path, safe="/%:@!$&'()*+,;=~-._")
        prefix = self.address.prefix
        if prefix and path.startswith(f"{prefix}/"):
            path = path.removeprefix(prefix)
        if not _FILE_PATH.fullmatch(path) or ".." in unquote(path).split("/"):
            raise ForeignImageError(
                f"task {task}: its image is not a file that Label Studio serves, such as /data/..."
            )
        query = quote(parts.query, safe="/%:@!$&'()*+,;=~-._?")
        return f"{path}?{query}" if query else path

    def _require_same_host(self, task: int, location: str) -> None:
        try:
            found = parse_url(location.partition("?")[0].partition("#")[0])
        except InvalidInputError:
            found = None
        own = self.address
        if found is None or (found.secure, found.host, found.port) != (
            own.secure,
            own.host,
            own.port,
        ):
            raise ForeignImageError(
                f"task {task}: its image is not on {own}, and images of other hosts are not "
                "fetched: upload it to Label Studio, or connect its storage there"
            )

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        content = None if body is None else json.dumps(body).encode()
        sent = self._send(method, path, content, partial(_read, limit=_MAX_JSON_BYTES))
        try:
            return json.loads(sent) if sent else None
        except (ValueError, RecursionError) as error:
            raise _not_understood("a response") from error

    def _send(self, method: str, path: str, body: bytes | None, read: Any) -> bytes:
        """Send a request; once more with a new access token if the old one was refused."""
        try:
            return self._send_once(method, path, body, read)
        except LabelStudioError as error:
            if error.status != http.HTTPStatus.UNAUTHORIZED or not self._credentials.forget():
                raise
        return self._send_once(method, path, body, read)

    def _send_once(self, method: str, path: str, body: bytes | None, read: Any) -> bytes:
        headers = {"Authorization": self._credentials.header(self._exchange)}
        return self._transfer(method, path, body, headers, read)

    def _exchange(self, token: str) -> str:
        """Exchange a personal access token for an access token."""
        body = json.dumps({"refresh": token}).encode()
        read = partial(_read, limit=_MAX_JSON_BYTES)
        sent = self._transfer("POST", "/api/token/refresh/", body, {}, read)
        try:
            return str(json.loads(sent)["access"])
        except (KeyError, TypeError, ValueError) as error:
            raise _not_understood("an access token") from error

    def _transfer(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], read: Any
    ) -> bytes:
        if body is not None:
            headers = {**headers, "Content-Type": "application/json"}
        while True:
            try:
                found: bytes = self._connections.request(method, path, body, headers, read)
            except StaleConnectionError:
                continue
            except (OSError, http.client.HTTPException) as error:
                reason = str(error) or type(error).__name__
                raise LabelStudioError(
                    f"Label Studio at {self.address} cannot be reached: {reason}"
                ) from error
            return found


class _Credentials:
    """The header of the configured token; personal access tokens are exchanged first."""

    def __init__(self, token: str) -> None:
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise InvalidInputError("the token of Label Studio is empty or not a token")
        self._token = token
        # A personal access token is a JSON web token, which has three parts.
        self._is_personal = token.count(".") == 2
        self._access: tuple[str, float] | None = None
        self._lock = threading.Lock()

    def header(self, exchange: Any) -> str:
        """Return the value of the header "Authorization"."""
        if not self._is_personal:
            return f"Token {self._token}"
        with self._lock:
            now = time.monotonic()
            if self._access is None or now > self._access[1]:
                self._access = (exchange(self._token), now + _ACCESS_SECONDS)
            return f"Bearer {self._access[0]}"

    def forget(self) -> bool:
        """Forget the access token, if there is one: Label Studio may have been restarted."""
        with self._lock:
            known, self._access = self._access, None
            return known is not None


def _read(response: http.client.HTTPResponse, limit: int) -> bytes:
    """Read a response; raise a ``LabelStudioError`` unless it has the status 2xx."""
    deadline = time.monotonic() + _WHOLE_SECONDS
    pieces, n_bytes = [], 0
    # Its connection is not used again after an error.
    with closing(response):
        if 300 <= response.status < 400:
            raise LabelStudioError(_redirected(response), response.status)
        while piece := response.read(_CHUNK_BYTES):
            n_bytes += len(piece)
            if n_bytes > limit:
                raise LabelStudioError(
                    f"Label Studio sent more than the limit of {format_size(limit)}",
                    response.status,
                )
            if time.monotonic() > deadline:
                raise LabelStudioError(
                    f"Label Studio did not send all of a response in {_WHOLE_SECONDS:g} seconds"
                )
            pieces.append(piece)
    if response.status >= 300:
        raise LabelStudioError(_refused(response.status), response.status)
    return b"".join(pieces)


def _redirected(response: http.client.HTTPResponse) -> str:
    target = urlsplit(response.headers.get("Location", ""))
    if "/user/login" in target.path:
        return "Label Studio asks to log in: its token is not valid"
    host = target.hostname or "another address"
    return (
        f"Label Studio redirects to {host[:253]}, which is not followed: turn off pre-signed "
        "URLs in the settings of the storage, so that Label Studio sends the files itself"
    )


def _refused(status: int) -> str:
    if status in (http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN):
        return f"Label Studio refused its token (status {status})"
    return f"Label Studio responded with status {status}"


def _not_understood(what: str) -> LabelStudioError:
    return LabelStudioError(f"Label Studio sent {what} in an unknown form")


def with_ids(tasks: Sequence[int]) -> dict[str, Any]:
    """Return the query for tasks of these ids."""
    return {"selectedItems": {"all": False, "included": list(tasks)}}


def updated_since(time_stamp: str) -> dict[str, Any]:
    """Return the query for tasks that changed since then, or whose annotations did."""
    item = {
        "filter": "filter:tasks:updated_at",
        "operator": "greater_or_equal",
        "type": "Datetime",
        "value": time_stamp,
    }
    return {"filters": {"conjunction": "and", "items": [item]}}
