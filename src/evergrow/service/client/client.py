"""The public client of the service."""

from __future__ import annotations

import os
import secrets
import weakref
from collections.abc import Iterator, Sequence
from http.client import HTTPResponse
from typing import Any, BinaryIO, Self, TypeVar
from urllib.parse import urlencode

from evergrow.foundation.errors import ServiceError
from evergrow.foundation.params import Integer, Number, check_parameters
from evergrow.service.client.connections import Connections, parse_url
from evergrow.service.client.requests import (
    Item,
    json_body,
    predict_body,
    split_into_batches,
    teach_body,
    to_item,
    to_items,
)
from evergrow.service.client.transport import (
    LocalError,
    Retries,
    Transport,
    parse_record,
    read_chunks,
    resolve_token,
)
from evergrow.service.wire import LabelStudioSync, Prediction, Status, TeachResult
from evergrow.workspace.records import Change, ClassEntry, Example, Review

Record = TypeVar("Record")

_PAGE_SIZE = 200
# What is downloaded to a file with this suffix; with any other one it is the model.
_EXPORTS = {
    ".onnx": "/v1/model?format=onnx",
    ".html": "/v1/model?format=html",
    ".zip": "/v1/pictures",
    ".csv": "/v1/labels",
    ".jsonl": "/v1/audit-log",
}


class Client:
    """Python client of a service that was started with ``evergrow serve``.

    A request is retried if there is no response or if the service is busy. Each change has an
    idempotency key, so the service makes it only once even if the request is sent several times.
    Redirects are not followed, and proxy settings in the environment are ignored. Any number of
    threads may share a client. Connections stay open between requests. Use a ``with`` statement or
    :meth:`close` to close them. See :doc:`/service`.

    Parameters
    ----------
    url : str
        Address of the service, such as ``"http://127.0.0.1:8080"``.
    token : str, default=None
        The token that ``evergrow init`` printed. None reads the environment variable
        ``EVERGROW_TOKEN``.
    timeout : float, default=30.0
        Timeout of each step of a request, in seconds. Raise it for a slow network or large images.
    retries : int, default=5
        How often a failed request is sent again, with exponential backoff or after the pause that
        the service asks for. 5 retries wait about 3 seconds in total, 10 about 40 seconds. With 0,
        an error is raised at once.
    ca_file : path, default=None
        File of certificates in PEM format to trust for https, such as a self-signed certificate of
        the service. None trusts those of the system.

    Raises
    ------
    ServiceError
        Raised by every method if the service refuses the request or cannot be reached. ``status``
        is the HTTP status, or 0 if there was no response. ``detail`` tells the reason.

    Examples
    --------
    With a running service::

        client = Client("http://127.0.0.1:8080", token)
        client.teach("cup.jpg", "cup")
        print(client.predict("what.jpg").label)

    Without a service, an error is raised:

    >>> from evergrow import Client, ServiceError
    >>> with Client("http://127.0.0.1:9", "eg_read_example", retries=0) as client:
    ...     try:
    ...         client.status()
    ...     except ServiceError as error:
    ...         error.status
    0
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout: float = 30.0,
        retries: int = 5,
        ca_file: str | os.PathLike[str] | None = None,
    ) -> None:
        check_parameters(
            {"timeout": timeout, "retries": retries},
            {"timeout": [Number(0.0, open_low=True)], "retries": [Integer(0, 100)]},
        )
        address = parse_url(url)
        self._url = str(address)
        self._connections = Connections(address, timeout, ca_file)
        self._transport = Transport(
            self._connections, Retries(retries, self._url), resolve_token(token)
        )
        self._limits: Status | None = None
        # A client that is not closed still leaves no connection open.
        weakref.finalize(self, self._connections.close)

    def __repr__(self) -> str:
        return f"Client({self._url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()

    def teach(
        self, image: Any, label: str, fine: str | None = None, *, move: bool = False
    ) -> TeachResult:
        """Teach one example.

        Parameters
        ----------
        image : path, bytes, file, array, Pillow image or embedding
            The picture, as a file, its bytes, or a uint8 array of shape (height, width),
            (height, width, 3) or (height, width, 4). A vector of floats is an embedding.
        label : str
            The class, known or new.
        fine : str, default=None
            A fine class within the class. It is predicted once the class is split.
        move : bool, default=False
            What to do if another class already has the picture: True moves it to this class, False
            raises an error with status 409.

        Returns
        -------
        result : evergrow.service.TeachResult
            What was stored. The example is on the service's disk, and the next prediction uses it.
        """
        body = teach_body(to_item(image), label, fine, move=move)
        response = self._transport.send_json("POST", "/v1/examples", body, key=_new_key())
        return parse_record(TeachResult, response)

    def predict(self, images: Any, *, top: int = 5, model: str = "rls") -> Any:
        """Predict the classes of images.

        Parameters
        ----------
        images : image, or list of images, or matrix of shape (n_images, n_features)
            One image or many, each as in :meth:`teach`. Many images are sent in several requests
            if they exceed the limits of the service.
        top : int, default=5
            Number of classes to return for each image.
        model : {"rls", "forest"}, default="rls"
            The model: least squares, which learns every example immediately, or the forest, if the
            workspace has one.

        Returns
        -------
        prediction : Prediction, or list of Prediction
            One prediction for a single image, a list for many.
        """
        items, is_single = to_items(images)
        path = f"/v1/predictions?{urlencode({'top': top, 'model': model})}"
        found = [one for batch in self._batches(items) for one in self._predict(path, batch)]
        return found[0] if is_single else found

    def classes(self) -> list[ClassEntry]:
        """List all classes, and how well each is recognised.

        Returns
        -------
        classes : list of ClassEntry
            One entry per class.
        """
        return list(self._list_pages("/v1/classes", ClassEntry, {}))

    def examples(
        self, label: str | None = None, fine: str | None = None, *, guessed: bool | None = None
    ) -> Iterator[Example]:
        """Iterate over the stored examples; pages are loaded as needed.

        Parameters
        ----------
        label : str, default=None
            Only examples of this class. None is all classes.
        fine : str, default=None
            Only examples of this fine class.
        guessed : bool, default=None
            Only examples whose fine class is a guess (True), or only the others (False).

        Yields
        ------
        example : Example
            One example.
        """
        filters = {"label": label, "fine": fine}
        if guessed is not None:
            filters["guessed"] = "true" if guessed else "false"
        return self._list_pages("/v1/examples", Example, filters)

    def relabel(
        self,
        example: int | Sequence[int],
        *,
        label: str | None = None,
        fine: str | None = None,
        clear_fine: bool = False,
    ) -> Change:
        """Correct the labels of examples.

        Parameters
        ----------
        example : int or sequence of int
            Id of an example, or up to 500 ids, which are changed and undone together.
        label : str, default=None
            The new class. None leaves it unchanged. Pass the current class to confirm it; the
            example is then no longer listed for review.
        fine : str, default=None
            The new fine class. None leaves it unchanged. Pass the guessed fine class to confirm it.
        clear_fine : bool, default=False
            Whether to remove the fine class.

        Returns
        -------
        change : Change
            The change that was made.
        """
        given = {"label": label, "fine": fine}
        body: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if clear_fine:
            body["fine"] = None
        if isinstance(example, Sequence):
            return self._change("POST", "/v1/relabel", {"examples": list(example), **body})
        return self._change("PATCH", f"/v1/examples/{int(example)}", body)

    def remove(self, example: int | Sequence[int]) -> Change:
        """Remove examples; :meth:`undo` brings them back.

        Parameters
        ----------
        example : int or sequence of int
            Id of an example, or up to 500 ids, which are removed together.

        Returns
        -------
        change : Change
            The change that was made.
        """
        if isinstance(example, Sequence):
            return self._change("POST", "/v1/remove", {"examples": list(example)})
        return self._change("DELETE", f"/v1/examples/{int(example)}", None)

    def undo(self, event: int | None = None) -> Change:
        """Undo the newest step that is not undone yet, such as all pictures of one drop.

        Parameters
        ----------
        event : int, default=None
            The newest change that you know of. If there is a newer one, nothing is undone and an
            error is raised. None undoes the newest step in any case.

        Returns
        -------
        change : Change
            The change that was made.
        """
        return self._change("POST", "/v1/undo", {} if event is None else {"event": event})

    def forget(self, label: str, *, erase: bool = False) -> Change:
        """Remove a class with all its examples.

        Parameters
        ----------
        label : str
            The class. With `erase`, it may have been forgotten before.
        erase : bool, default=False
            Whether to delete its pictures and embeddings permanently, and those of all examples
            that were removed before. This cannot be undone.

        Returns
        -------
        change : Change
            The change that was made.
        """
        return self._change("POST", "/v1/forget", {"label": label, "erase": erase})

    def rename(self, label: str, to: str) -> Change:
        """Rename a class.

        Parameters
        ----------
        label : str
            The class.
        to : str
            The new name, which no other class may have.

        Returns
        -------
        change : Change
            The change that was made.
        """
        return self._change("POST", "/v1/rename", {"label": label, "to": to})

    def merge(self, label: str, into: str) -> Change:
        """Merge a class into another one.

        Parameters
        ----------
        label : str
            The class to merge; it no longer exists afterwards.
        into : str
            The class that gets its examples.

        Returns
        -------
        change : Change
            The change that was made.
        """
        return self._change("POST", "/v1/merge", {"label": label, "into": into})

    def split(self, label: str) -> Change:
        """Start to predict the fine classes of a class.

        Parameters
        ----------
        label : str
            The class. Examples without a fine class get a guess.

        Returns
        -------
        change : Change
            The change that was made.
        """
        return self._change("POST", "/v1/split", {"label": label})

    def unsplit(self, label: str) -> Change:
        """Stop predicting the fine classes of a class; examples keep those they were given.

        Parameters
        ----------
        label : str
            The class.

        Returns
        -------
        change : Change
            The change that was made.
        """
        return self._change("POST", "/v1/unsplit", {"label": label})

    def review(self, limit: int | None = None) -> list[Review]:
        """List the examples that a person should check, the least certain first.

        Parameters
        ----------
        limit : int, default=None
            Maximum number of examples. None uses the default of the service.

        Returns
        -------
        reviews : list of Review
            The examples, each with a reason and a suggestion.
        """
        path = "/v1/review" + ("" if limit is None else f"?limit={int(limit)}")
        return [parse_record(Review, one) for one in _items(self._transport.send_json("GET", path))]

    def status(self) -> Status:
        """Return the state of the workspace and the limits of the service.

        Returns
        -------
        status : evergrow.service.Status
            Number of examples and classes, accuracy, and what the token may do.
        """
        return parse_record(Status, self._transport.send_json("GET", "/v1/status"))

    def sync_label_studio(self) -> LabelStudioSync:
        """Read all annotations of Label Studio, and learn those that are new or have changed.

        The service also does this when it starts and from time to time.

        Returns
        -------
        sync : LabelStudioSync
            How many examples were taught, moved and removed, and what failed.
        """
        found = self._transport.send_json("POST", "/v1/integrations/label-studio/sync")
        return parse_record(LabelStudioSync, found)

    def export(self, path: str | os.PathLike[str]) -> None:
        """Download the model, the pictures or the labels; the file extension says which.

        Parameters
        ----------
        path : path
            File to write. An existing file is replaced only when the new one is complete. The
            extension chooses the content:

            - ``.onnx``: the model for other software;
            - ``.html``: the model as a page that works without a service;
            - ``.zip``: all labelled pictures in class folders;
            - ``.csv``: the labels;
            - ``.jsonl``: the audit log;
            - any other: the model as a file for :func:`evergrow.load`.
        """
        from evergrow.foundation.files import atomic_write

        address = _EXPORTS.get(os.path.splitext(path)[1].lower(), "/v1/model")
        with atomic_write(path) as file:
            self._transport.send("GET", address, lambda response: _write(response, file))

    def _batches(self, items: Sequence[Item]) -> Iterator[Sequence[Item]]:
        if len(items) <= 1:
            return iter([items] if items else [])
        # The limits of the service are requested once.
        if self._limits is None:
            self._limits = self.status()
        limits = self._limits
        return split_into_batches(
            items, max_items=limits.max_images, max_bytes=limits.max_request_bytes
        )

    def _predict(self, path: str, batch: Sequence[Item]) -> list[Prediction]:
        body = self._transport.send_json("POST", path, predict_body(batch))
        found = [parse_record(Prediction, one) for one in _items(body, "predictions")]
        if len(found) != len(batch):
            raise ServiceError(0, f"{len(batch)} images got {len(found)} predictions")
        return found

    def _list_pages(
        self, path: str, kind: type[Record], filters: dict[str, str | None]
    ) -> Iterator[Record]:
        query = {name: value for name, value in filters.items() if value is not None}
        after: str | None = None
        while True:
            page = {**query, "limit": _PAGE_SIZE, **({} if after is None else {"after": after})}
            body = self._transport.send_json("GET", f"{path}?{urlencode(page)}")
            for one in _items(body):
                yield parse_record(kind, one)
            before, after = after, body.get("next")
            if after is None:
                return
            if after == before or not isinstance(after, str):
                raise ServiceError(0, "the listing does not end: a page is followed by itself")

    def _change(self, method: str, path: str, body: dict[str, Any] | None) -> Change:
        encoded = None if body is None else json_body(body)
        response = self._transport.send_json(method, path, encoded, key=_new_key())
        return parse_record(Change, response)


def _write(response: HTTPResponse, file: BinaryIO) -> None:
    # After a lost connection the file is sent from its beginning.
    file.seek(0)
    file.truncate()
    for chunk in read_chunks(response):
        try:
            file.write(chunk)
        except OSError as error:
            # An error of the local disk: retrying the request would not help.
            raise LocalError(error) from error


def _new_key() -> str:
    # Chosen once per call, so that all attempts are one change to the service.
    return secrets.token_hex(16)


def _items(body: Any, name: str = "items") -> list[Any]:
    found = body.get(name) if isinstance(body, dict) else None
    if not isinstance(found, list):
        raise ServiceError(0, f"the response is not from an Evergrow service: it has no {name}")
    return found
