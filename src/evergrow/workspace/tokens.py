"""Who may use the service: tokens with a name, a scope and perhaps an end.

Only hashes are kept, in a file of its own that only its owner can read: tokens can be added and
revoked while a service runs, which sees it with the next request. A token has 256 random bits, so
that a plain hash of it tells nothing and there is no need for a slow one.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, get_args

from evergrow.foundation.atomic import written_whole
from evergrow.foundation.errors import WorkspaceError
from evergrow.foundation.locks import locked
from evergrow.workspace.errors import ConflictError, NewerWorkspaceError
from evergrow.workspace.names import checked_name
from evergrow.workspace.store.clock import now, text_of
from evergrow.workspace.store.disk_errors import telling_problems
from evergrow.workspace.store.layout import Layout

__all__ = ["Refusal", "Scope", "TokenRecord", "Tokens"]

Scope = Literal["teach", "read"]
# Why a token is not taken; the text is for logs, callers should hear no more than "no".
Refusal = Literal["unknown", "expired", "revoked"]

_FORMAT = 1
_TOKEN = re.compile(r"eg_(?:teach|read)_[A-Za-z0-9_-]{43}")
_RANDOM_BYTES = 32


@dataclass(frozen=True)
class TokenRecord:
    """What is known of a token, all but the token.

    Attributes
    ----------
    name : str
        By which changes name it in the audit log; never used twice.
    scope : "teach" or "read"
        Whether it may change anything.
    sha256 : str
        Hash of the token.
    created : str
        When, in UTC.
    expires, revoked : str or None
        When it ends, and when it was taken back.
    """

    name: str
    scope: Scope
    sha256: str
    created: str
    expires: str | None
    revoked: str | None

    def may(self, scope: Scope) -> bool:
        """Whether it is good for a scope; who may teach may read."""
        return self.scope in (scope, "teach")

    def refusal(self, at: str) -> Refusal | None:
        """Why it is not taken at a time; None if it is."""
        if self.revoked is not None:
            return "revoked"
        if self.expires is not None and self.expires <= at:
            return "expired"
        return None


class Tokens:
    """The tokens of a workspace, from any thread, also while another process changes them.

    Parameters
    ----------
    folder : path
        The workspace.
    read_clock : callable
        Gives the time.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tokens = Tokens(folder)
    ...     token = tokens.add("robot", "read")
    ...     found = tokens.authenticate(token)
    ...     print(found.name, found.may("read"), found.may("teach"))
    ...     ended = tokens.revoke("robot")
    ...     print(tokens.authenticate(token), tokens.authenticate("guess"))
    robot True False
    revoked unknown
    """

    def __init__(
        self, folder: str | os.PathLike[str], *, read_clock: Callable[[], datetime] = now
    ) -> None:
        self._path = Layout(Path(folder)).tokens
        self._read_clock = read_clock
        self._guard = threading.Lock()
        self._seen: tuple[int, int, int] | None = None
        self._records: tuple[TokenRecord, ...] = ()

    def list(self) -> tuple[TokenRecord, ...]:
        """All tokens there ever were, oldest first."""
        with self._guard, telling_problems(self._path.parent):
            self._refresh()
            return self._records

    def add(self, name: str, scope: Scope, *, expires_in: timedelta | None = None) -> str:
        """Make a token and return it; it is not kept and cannot be shown again.

        Parameters
        ----------
        name : str
            Who will use it.
        scope : "teach" or "read"
            Whether it may change anything.
        expires_in : timedelta, default=None
            How long it is good for; None for as long as it is not revoked.

        Returns
        -------
        token : str
            To be sent as ``Authorization: Bearer``.
        """
        if scope not in get_args(Scope):
            raise WorkspaceError(f"scope must be one of ['read', 'teach'], got {scope!r}")
        if expires_in is not None and expires_in <= timedelta(0):
            raise WorkspaceError("a token must end in the future")
        token = f"eg_{scope}_{secrets.token_urlsafe(_RANDOM_BYTES)}"
        moment = self._read_clock()
        record = TokenRecord(
            name=checked_name(name, "the token's name"),
            scope=scope,
            sha256=_hash(token),
            created=text_of(moment),
            expires=None if expires_in is None else _end(moment, expires_in),
            revoked=None,
        )
        with self._changing():
            if any(known.name == record.name for known in self._records):
                raise ConflictError(
                    f"there is or was a token {record.name!r}: the audit log needs another name"
                )
            self._write((*self._records, record))
        return token

    def revoke(self, name: str) -> TokenRecord:
        """Take a token back; one that was taken back stays so."""
        wanted = checked_name(name, "the token's name")
        with self._changing():
            for place, record in enumerate(self._records):
                if record.name == wanted:
                    ended = replace(record, revoked=record.revoked or text_of(self._read_clock()))
                    self._write((*self._records[:place], ended, *self._records[place + 1 :]))
                    return ended
        known = ", ".join(repr(record.name) for record in self._records) or "none"
        raise WorkspaceError(f"there is no token {wanted!r}; there are: {known}")

    def authenticate(self, token: str) -> TokenRecord | Refusal:
        """The record of a token that is good now, else why it is not."""
        digest = _hash(token) if _TOKEN.fullmatch(token) else ""
        with self._guard:
            self._refresh()
            records = self._records
        found: TokenRecord | None = None
        # Every hash is compared, in a time that does not depend on where they differ.
        for record in records:
            if hmac.compare_digest(record.sha256, digest):
                found = record
        if found is None:
            return "unknown"
        return found.refusal(text_of(self._read_clock())) or found

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with self._guard, telling_problems(self._path.parent), locked(self._path, lambda: None):
            self._refresh()
            yield

    def _refresh(self) -> None:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            self._seen, self._records = None, ()
            return
        # Written whole each time, so that another content is another file.
        seen = (found.st_ino, found.st_mtime_ns, found.st_size)
        if seen != self._seen:
            self._records = _read(self._path)
            self._seen = seen

    def _write(self, records: tuple[TokenRecord, ...]) -> None:
        content = {"format": _FORMAT, "tokens": [asdict(record) for record in records]}
        with written_whole(self._path) as file:
            os.chmod(file.name, 0o600)
            file.write((json.dumps(content, indent=2) + "\n").encode())
        self._refresh()


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def _end(moment: datetime, expires_in: timedelta) -> str:
    try:
        return text_of(moment + expires_in)
    except OverflowError:
        # As good as never.
        return text_of(datetime.max.replace(tzinfo=UTC))


def _read(path: Path) -> tuple[TokenRecord, ...]:
    try:
        content = json.loads(path.read_bytes())
        version = content["format"]
        entries = content["tokens"] if version == _FORMAT else []
        records = tuple(_record(entry) for entry in entries)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        # Nobody gets in rather than the wrong one.
        raise WorkspaceError(
            f"{str(path)!r} is damaged ({error}): remove it and make new tokens with "
            "'evergrow token add'"
        ) from error
    if version != _FORMAT:
        raise NewerWorkspaceError(
            f"{str(path)!r} has format {version!r}, made by a newer version of Evergrow; "
            f"this one reads {_FORMAT}: update Evergrow"
        )
    return records


def _record(entry: dict[str, Any]) -> TokenRecord:
    record = TokenRecord(**entry)
    texts = (record.name, record.sha256, record.created)
    maybe_texts = (record.expires, record.revoked)
    if not all(type(text) is str for text in texts):
        raise TypeError("a token's name, hash or time is no text")
    if not all(text is None or type(text) is str for text in maybe_texts):
        raise TypeError("a token's end is no text")
    if record.scope not in get_args(Scope) or not re.fullmatch("[0-9a-f]{64}", record.sha256):
        raise ValueError("a token's scope or hash is not one")
    return record
