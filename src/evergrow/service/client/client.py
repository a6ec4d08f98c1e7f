"""A client of the service."""

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
from evergrow.service.client.connecting import Connections, address_of
from evergrow.service.client.reading import value_of
from evergrow.service.client.requesting import batches_of, json_body, prediction_body, teaching_body
from evergrow.service.client.results import (
    Change,
    ClassEntry,
    Example,
    Prediction,
    Review,
    Status,
    Taught,
)
from evergrow.service.client.retrying import LocalError, Retries
from evergrow.service.client.sending import Sender, checked_token, chunks_of
from evergrow.service.client.sources import Item, items_of, one_item

__all__ = ["Client"]

Entry = TypeVar("Entry")

_PAGE = 200


class Client:
    """Teaches and asks a service that ``evergrow serve`` runs.

    A request that got no answer is sent again, and so is one that the service could not take at
    that moment. Each change carries a key of its own that stays the same when it is sent again, and
    the service does no change twice for one key: what was taught is taught once. Redirects are not
    followed, and proxies of the environment are not used.

    Any number of threads may use one client. Connections stay open between requests; use it in a
    ``with`` statement, or :meth:`close` it, to give them back.

    Parameters
    ----------
    url : str
        Where the service is, such as ``"http://127.0.0.1:8080"``.
    token : str, default=None
        What ``evergrow init`` printed; None takes it from the environment, ``EVERGROW_TOKEN``.
    timeout : float, default=30.0
        Seconds to wait for the service at each step of a request. Larger for a slow network and
        large images, smaller where an answer that is late is of no use.
    retries : int, default=5
        How often a request is sent again, with longer and longer pauses or those that the service
        asks for. 0 for an error at once; more where a service may be away for long: 5 wait about
        3 seconds in all, 10 about 40.
    ca_file : path, default=None
        Certificates in PEM form to trust for https instead of the system's: of a service that
        signed its own, its certificate.

    Raises
    ------
    ServiceError
        By every method, if the service refuses (``status`` and ``detail`` say why) or cannot be
        reached (``status`` is 0).

    Examples
    --------
    With a service that runs::

        client = Client("http://127.0.0.1:8080", token)
        client.teach("cup.jpg", "cup")
        print(client.predict("what.jpg").label)

    Without one an error says so:

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
        address = address_of(url)
        self._place = str(address)
        self._connections = Connections(address, timeout, ca_file)
        retrying = Retries(retries, self._place)
        self._sender = Sender(self._connections, retrying, checked_token(token))
        self._limits: Status | None = None
        # Whoever forgets to close it leaves no connection open.
        weakref.finalize(self, self._connections.close)

    def __repr__(self) -> str:
        return f"Client({self._place!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()

    def teach(self, image: Any, label: str, fine: str | None = None) -> Taught:
        """Teach one example.

        Parameters
        ----------
        image : path, bytes, file, array, Pillow image or embedding
            The picture: a file, its bytes, or pixels of shape (height, width), (height, width, 3)
            or (height, width, 4) and type uint8; or its embedding, a vector of floats.
        label : str
            Its class, known or new.
        fine : str, default=None
            A finer name within the class, which counts once the class is split.

        Returns
        -------
        taught : Taught
            It is on the service's disk, and the next prediction knows it.
        """
        body = teaching_body(one_item(image), label, fine)
        return value_of(Taught, self._sender.json("POST", "/v1/examples", body, key=_new_key()))

    def predict(self, images: Any, *, top: int = 5, model: str = "rls") -> Any:
        """Ask what images show.

        Parameters
        ----------
        images : image, or list of images, or matrix of shape (n_images, n_features)
            One or many, each as :meth:`teach` takes it. Many are sent in as many requests as the
            service needs.
        top : int, default=5
            How many classes to name for each.
        model : {"rls", "forest"}, default="rls"
            Who is asked: least squares, which know every example at once, or the forest beside
            them, if the workspace has one.

        Returns
        -------
        answer : Prediction, or list of Prediction
            One for one image, a list for many.
        """
        items, single = items_of(images)
        where = f"/v1/predictions?{urlencode({'top': top, 'model': model})}"
        answers = [one for batch in self._batches(items) for one in self._asked(where, batch)]
        return answers[0] if single else answers

    def classes(self) -> list[ClassEntry]:
        """List all classes, and how well each is known."""
        return list(self._listed("/v1/classes", ClassEntry, {}))

    def examples(
        self, label: str | None = None, fine: str | None = None, *, guessed: bool | None = None
    ) -> Iterator[Example]:
        """Iterate over all examples, page by page as they are needed.

        Parameters
        ----------
        label, fine : str, default=None
            Only those of this class, and of this finer class.
        guessed : bool, default=None
            Only those whose finer class is a guess (True), or only the others (False).
        """
        chosen = {"label": label, "fine": fine}
        if guessed is not None:
            chosen["guessed"] = "true" if guessed else "false"
        return self._listed("/v1/examples", Example, chosen)

    def relabel(
        self,
        example: int | Sequence[int],
        *,
        label: str | None = None,
        fine: str | None = None,
        clear_fine: bool = False,
    ) -> Change:
        """Correct what examples are called.

        Parameters
        ----------
        example : int or sequence of int
            Its number, or the numbers of up to 500: they are one change, undone at once.
        label : str, default=None
            Its class; None to leave it. The class that it has is confirmed, and no longer listed
            for review.
        fine : str, default=None
            Its finer class, also to confirm a guess; None to leave it.
        clear_fine : bool, default=False
            Take its finer class away.
        """
        given = {"label": label, "fine": fine}
        body: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if clear_fine:
            body["fine"] = None
        if isinstance(example, Sequence):
            return self._changed("POST", "/v1/relabel", {"examples": list(example), **body})
        return self._changed("PATCH", f"/v1/examples/{int(example)}", body)

    def remove(self, example: int | Sequence[int]) -> Change:
        """Take an example out, or up to 500 at once."""
        if isinstance(example, Sequence):
            return self._changed("POST", "/v1/remove", {"examples": list(example)})
        return self._changed("DELETE", f"/v1/examples/{int(example)}", None)

    def undo(self, event: int | None = None) -> Change:
        """Take back the newest change that was not taken back yet.

        Parameters
        ----------
        event : int, default=None
            Take back only this one: if something newer came meanwhile, that is an error and nothing
            changes.
        """
        return self._changed("POST", "/v1/undo", {} if event is None else {"event": event})

    def forget(self, label: str, *, erase: bool = False) -> Change:
        """Take a class out with all its examples.

        Parameters
        ----------
        label : str
            The class; to erase also one that was forgotten before.
        erase : bool, default=False
            Delete its pictures and embeddings for good, and those of all examples that were taken
            out before, which cannot be undone.
        """
        return self._changed("POST", "/v1/forget", {"label": label, "erase": erase})

    def rename(self, label: str, to: str) -> Change:
        """Give a class another name, one that no other class has."""
        return self._changed("POST", "/v1/rename", {"label": label, "to": to})

    def merge(self, label: str, into: str) -> Change:
        """Join a class to another, whose name stays."""
        return self._changed("POST", "/v1/merge", {"label": label, "into": into})

    def split(self, label: str) -> Change:
        """Tell the finer classes of a class apart from now on."""
        return self._changed("POST", "/v1/split", {"label": label})

    def unsplit(self, label: str) -> Change:
        """Take a class as one again; finer names that were given are kept."""
        return self._changed("POST", "/v1/unsplit", {"label": label})

    def review(self, limit: int | None = None) -> list[Review]:
        """List the examples that someone should look at, the least certain first."""
        where = "/v1/review" + ("" if limit is None else f"?limit={int(limit)}")
        return [value_of(Review, one) for one in _items(self._sender.json("GET", where))]

    def status(self) -> Status:
        """The workspace at a glance."""
        return value_of(Status, self._sender.json("GET", "/v1/status"))

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that :func:`evergrow.load` reads.

        The file takes its place only when all of it has come.
        """
        from evergrow.foundation.atomic import written_whole

        with written_whole(path) as file:
            self._sender.read("GET", "/v1/model", lambda answer: _write(answer, file))

    def _batches(self, items: Sequence[Item]) -> Iterator[Sequence[Item]]:
        if len(items) <= 1:
            return iter([items] if items else [])
        # Asked once: the service says how much it takes at a time.
        if self._limits is None:
            self._limits = self.status()
        most_items, most_bytes = self._limits.max_images, self._limits.max_request_bytes
        return batches_of(items, most_items=most_items, most_bytes=most_bytes)

    def _asked(self, where: str, batch: Sequence[Item]) -> list[Prediction]:
        body = self._sender.json("POST", where, prediction_body(batch))
        answers = [value_of(Prediction, one) for one in _items(body, "predictions")]
        if len(answers) != len(batch):
            raise ServiceError(0, f"{len(batch)} images got {len(answers)} answers")
        return answers

    def _listed(
        self, path: str, kind: type[Entry], chosen: dict[str, str | None]
    ) -> Iterator[Entry]:
        query = {name: value for name, value in chosen.items() if value is not None}
        after: str | None = None
        while True:
            page = {**query, "limit": _PAGE, **({} if after is None else {"after": after})}
            body = self._sender.json("GET", f"{path}?{urlencode(page)}")
            for one in _items(body):
                yield value_of(kind, one)
            before, after = after, body.get("next")
            if after is None:
                return
            if after == before or not isinstance(after, str):
                raise ServiceError(0, "the listing does not go on: its next page is itself")

    def _changed(self, method: str, path: str, body: dict[str, Any] | None) -> Change:
        sent = None if body is None else json_body(body)
        return value_of(Change, self._sender.json(method, path, sent, key=_new_key()))


def _write(answer: HTTPResponse, file: BinaryIO) -> None:
    # After a lost connection the file comes from its beginning again.
    file.seek(0)
    file.truncate()
    for chunk in chunks_of(answer):
        try:
            file.write(chunk)
        except OSError as error:
            # The disk's fault is not the connection's: asking again would not help.
            raise LocalError(error) from error


def _new_key() -> str:
    # Chosen once per call, so that all attempts of it are one change to the service.
    return secrets.token_hex(16)


def _items(body: Any, name: str = "items") -> list[Any]:
    found = body.get(name) if isinstance(body, dict) else None
    if not isinstance(found, list):
        raise ServiceError(0, f"the answer is none of an Evergrow service: it has no {name}")
    return found
