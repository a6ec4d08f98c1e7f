"""Keys that stand for one request each: asking twice with one is answered, not done, twice."""

from __future__ import annotations

import hashlib
import json
import sqlite3

from evergrow.foundation.errors import WorkspaceError
from evergrow.workspace.errors import KeyReusedError
from evergrow.workspace.records import Change, Example, Request, Taught

__all__ = ["KEPT_KEYS", "LONGEST_KEY", "digest_of", "known_answer", "remember"]

KEPT_KEYS = 100_000
LONGEST_KEY = 255


def digest_of(request: Request, *parts: object, content: bytes = b"") -> str:
    """What was asked for, in short: the digest given, else one over all of its parts."""
    if request.digest is not None:
        return request.digest
    digest = hashlib.sha256(json.dumps(parts).encode())
    digest.update(content)
    return digest.hexdigest()


def known_answer(
    connection: sqlite3.Connection, request: Request, digest: str
) -> Taught | Change | None:
    """The answer that this request got before; None if it is new.

    Raises
    ------
    KeyReusedError
        If the key came with something else before.
    """
    if request.key is None:
        return None
    if not 1 <= len(request.key) <= LONGEST_KEY:
        raise WorkspaceError(
            f"a key must have 1 to {LONGEST_KEY} characters, got {len(request.key)}"
        )
    found = connection.execute(
        "SELECT digest, answer FROM request_key WHERE actor = ? AND key = ?",
        (request.actor, request.key),
    ).fetchone()
    if found is None:
        return None
    if found[0] != digest:
        raise KeyReusedError(
            f"the key {request.key!r} came with another request before: take a new key for each "
            "new request"
        )
    return _from_json(found[1])


def remember(
    connection: sqlite3.Connection, request: Request, digest: str, answer: Taught | Change
) -> None:
    """Keep an answer, within the transaction that makes it true."""
    if request.key is None:
        return
    connection.execute(
        "INSERT INTO request_key (actor, key, digest, answer) VALUES (?, ?, ?, ?)",
        (request.actor, request.key, digest, _to_json(answer)),
    )
    connection.execute(
        "DELETE FROM request_key WHERE number <= last_insert_rowid() - ?", (KEPT_KEYS,)
    )


def _to_json(answer: Taught | Change) -> str:
    if isinstance(answer, Taught):
        return json.dumps(["taught", {**vars(answer), "example": vars(answer.example)}])
    return json.dumps(["change", vars(answer)])


def _from_json(text: str) -> Taught | Change:
    kind, values = json.loads(text)
    if kind == "change":
        return Change(**values)
    return Taught(**{**values, "example": Example(**values["example"]), "replayed": True})
