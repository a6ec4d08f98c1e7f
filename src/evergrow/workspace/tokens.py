"""Access tokens of the service, with a name, a scope and an optional expiry.

Only hashes are stored, in a file that only its owner can read. Tokens can be added and revoked
while a service runs; it reads the file again with the next request. A token has 256 random bits, so
a plain hash is safe and no slow one is needed.

A token that has been expired for an hour is marked in the file, and stays expired when the clock is
set back. The hour is measured by a clock that cannot be set: if the time jumps forward by mistake
and is corrected within the hour, no token has ended.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, get_args

from evergrow.foundation.errors import InvalidInputError, InvalidTypeError, WorkspaceError
from evergrow.foundation.files import atomic_write, open_regular
from evergrow.foundation.locks import lock_or_wait
from evergrow.workspace.names import normalise_name
from evergrow.workspace.records import ConflictError
from evergrow.workspace.store.database import translate_disk_errors
from evergrow.workspace.store.event_log import format_time, now
from evergrow.workspace.store.layout import Layout, require_format

Scope = Literal["teach", "read"]
# Why a token is refused; for logs only, the caller is not told.
Refusal = Literal["unknown", "expired", "revoked"]

_FORMAT = 1
_TOKEN = re.compile(r"eg_(?:teach|read)_[A-Za-z0-9_-]{43}")
_RANDOM_BYTES = 32
# For how long the clock must say that a token is expired until that is final.
_FINAL_AFTER_SECONDS = 3600.0


@dataclass(frozen=True)
class TokenRecord:
    """All that is stored about a token; the token itself is not.

    Attributes
    ----------
    name : str
        Actor of its changes in the audit log; never used twice.
    scope : "teach" or "read"
        "read" allows no changes.
    sha256 : str
        Hash of the token.
    created : str
        Time of creation, in UTC.
    expires : str or None
        When it expires.
    revoked : str or None
        When it was revoked, or found to be expired for good.
    """

    name: str
    scope: Scope
    sha256: str
    created: str
    expires: str | None
    revoked: str | None

    def may(self, scope: Scope) -> bool:
        """Whether it allows a scope; "teach" includes "read"."""
        return self.scope in (scope, "teach")

    def refusal(self, at: str) -> Refusal | None:
        """Why it is refused at a time; None if it is valid."""
        end = at if self.revoked is None else self.revoked
        if self.expires is not None and self.expires <= end:
            return "expired"
        return None if self.revoked is None else "revoked"


# The name under which the token of one run of the service acts; no stored token has it.
SESSION = "session"
# The name under which changes of Label Studio's annotators are recorded; no stored token has it.
LABEL_STUDIO = "Label Studio"


def new_token(scope: Scope) -> str:
    """Return a new random token."""
    return f"eg_{scope}_{secrets.token_urlsafe(_RANDOM_BYTES)}"


class Tokens:
    """The tokens of a workspace; thread-safe, and other processes may change them meanwhile.

    Parameters
    ----------
    folder : path
        Folder of the workspace.
    read_clock : callable
        Returns the current time.
    read_monotonic : callable
        Returns seconds that only ever go forward, at the same rate.

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
        self,
        folder: str | os.PathLike[str],
        *,
        read_clock: Callable[[], datetime] = now,
        read_monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = Layout(folder).tokens
        self._read_clock = read_clock
        self._read_monotonic = read_monotonic
        self._guard = threading.Lock()
        self._seen: tuple[int, int, int] | None = None
        self._records: tuple[TokenRecord, ...] = ()
        # Since when the clock says that a token is expired, by its hash.
        self._expired_since: dict[str, float] = {}
        # When a token was found to be expired for good, in case it cannot be written to the file.
        self._ended: dict[str, str] = {}

    def list(self) -> tuple[TokenRecord, ...]:
        """All tokens, including revoked and expired ones, oldest first."""
        with self._guard, translate_disk_errors(self._path.parent):
            self._refresh()
            self._end_expired()
            return self._records

    def add(self, name: str, scope: Scope, *, expires_in: timedelta | None = None) -> str:
        """Create a token and return it; it is not stored and cannot be shown again.

        Parameters
        ----------
        name : str
            Name of its user.
        scope : "teach" or "read"
            "read" allows no changes.
        expires_in : timedelta, default=None
            How long it is valid; None for until it is revoked.

        Returns
        -------
        token : str
            Sent as ``Authorization: Bearer``.
        """
        if scope not in get_args(Scope):
            raise WorkspaceError(f"scope must be one of ['read', 'teach'], got {scope!r}")
        if expires_in is not None and expires_in <= timedelta(0):
            raise WorkspaceError("expires_in must be positive: a token must expire in the future")
        if name in (SESSION, LABEL_STUDIO):
            raise WorkspaceError(
                f"the name {name!r} is used by 'evergrow serve': choose another one"
            )
        token = new_token(scope)
        moment = self._read_clock()
        record = TokenRecord(
            name=normalise_name(name, "the token's name"),
            scope=scope,
            sha256=_hash(token),
            created=format_time(moment),
            expires=None if expires_in is None else _end(moment, expires_in),
            revoked=None,
        )
        with self._locked():
            if any(known.name == record.name for known in self._records):
                raise ConflictError(
                    f"the name {record.name!r} is or was used by another token: choose a new "
                    "one, so that the audit log stays unambiguous"
                )
            self._write((*self._records, record))
        return token

    def revoke(self, name: str) -> TokenRecord:
        """Revoke a token; revoking it again has no effect."""
        wanted = normalise_name(name, "the token's name")
        with self._locked():
            for place, record in enumerate(self._records):
                if record.name == wanted:
                    ended = replace(
                        record, revoked=record.revoked or format_time(self._read_clock())
                    )
                    self._write((*self._records[:place], ended, *self._records[place + 1 :]))
                    return ended
        known = ", ".join(repr(record.name) for record in self._records) or "none"
        raise WorkspaceError(f"token {wanted!r} does not exist; the tokens are: {known}")

    @property
    def version(self) -> object:
        """Changes whenever the file was read."""
        return self._seen

    def authenticate(self, token: str) -> TokenRecord | Refusal:
        """The record of a valid token, else why it is refused."""
        digest = _hash(token) if _TOKEN.fullmatch(token) else ""
        with self._guard:
            self._refresh()
            at = self._end_expired()
            records = self._records
        found: TokenRecord | None = None
        # Every hash is compared, in constant time.
        for record in records:
            if hmac.compare_digest(record.sha256, digest):
                found = record
        if found is None:
            return "unknown"
        return found.refusal(at) or found

    def _end_expired(self) -> str:
        """Mark tokens that have been expired for long enough; return the time."""
        at, seconds = format_time(self._read_clock()), self._read_monotonic()
        expired = {one.sha256 for one in self._records if one.refusal(at) == "expired"}
        # It starts again if the clock goes back in between.
        self._expired_since = {
            sha256: self._expired_since.get(sha256, seconds) for sha256 in expired
        }
        for sha256, since in self._expired_since.items():
            if seconds - since >= _FINAL_AFTER_SECONDS:
                self._ended.setdefault(sha256, at)
        self._mark_ended()
        return at

    def _mark_ended(self) -> None:
        ended = tuple(
            replace(record, revoked=self._ended[record.sha256])
            if record.revoked is None and record.sha256 in self._ended
            else record
            for record in self._records
        )
        if ended == self._records:
            return
        before = self._records
        self._records = ended
        # On a disk that is full or read-only it holds at least until this process ends.
        with suppress(OSError), lock_or_wait(self._path, lambda: None):
            # Another process may have changed the file since it was read: the next call does it.
            if _read(self._path) == before:
                self._write(ended)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with (
            self._guard,
            translate_disk_errors(self._path.parent),
            lock_or_wait(self._path, lambda: None),
        ):
            self._refresh()
            yield

    def _refresh(self) -> None:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            self._seen, self._records = None, ()
            return
        # The file is replaced atomically, so new content is a new file.
        seen = (found.st_ino, found.st_mtime_ns, found.st_size)
        if seen != self._seen:
            self._records = _read(self._path)
            self._seen = seen

    def _write(self, records: tuple[TokenRecord, ...]) -> None:
        content = {"format": _FORMAT, "tokens": [asdict(record) for record in records]}
        with atomic_write(self._path, private=True) as file:
            file.write((json.dumps(content, indent=2) + "\n").encode())
        self._refresh()


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def _end(moment: datetime, expires_in: timedelta) -> str:
    try:
        return format_time(moment + expires_in)
    except OverflowError:
        # Beyond the last date that can be written.
        return format_time(datetime.max.replace(tzinfo=UTC))


def _read(path: Path) -> tuple[TokenRecord, ...]:
    try:
        with open_regular(path, follow_links=False) as file:
            content = json.loads(file.read())
        version = content["format"]
        entries = content["tokens"] if version == _FORMAT else []
        records = tuple(_record(entry) for entry in entries)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        # Refuse everyone rather than accept a wrong token.
        raise WorkspaceError(
            f"{str(path)!r} is damaged ({error}): delete it and create new tokens with "
            "'evergrow token add'"
        ) from error
    require_format(repr(str(path)), version, _FORMAT)
    return records


def _record(entry: dict[str, Any]) -> TokenRecord:
    record = TokenRecord(**entry)
    texts = (record.name, record.sha256, record.created)
    maybe_texts = (record.expires, record.revoked)
    if not all(type(text) is str for text in texts):
        raise InvalidTypeError("the name, hash or time of a token is not text")
    if not all(text is None or type(text) is str for text in maybe_texts):
        raise InvalidTypeError("the expiry of a token is not text")
    if record.scope not in get_args(Scope) or not re.fullmatch("[0-9a-f]{64}", record.sha256):
        raise InvalidInputError("the scope or hash of a token is not valid")
    return record
