"""Idempotency keys: a repeated request with the same key gets the same answer again."""

from __future__ import annotations

import hashlib
import json
import sqlite3

from evergrow.foundation.errors import WorkspaceError
from evergrow.workspace.records import Change, Example, KeyReusedError, Request, TeachResult

# Of each actor: no token can make the workspace forget the keys of another.
KEPT_KEYS = 100_000
LONGEST_KEY = 255
# Old keys are deleted whenever this part of them was added.
_SURPLUS = 100
_DELETE_OLD_KEYS = """
DELETE FROM request_key WHERE number IN (
    SELECT number FROM (
        SELECT number, row_number() OVER (PARTITION BY actor ORDER BY number DESC) AS place
        FROM request_key
    ) WHERE place > ?
)
"""


def request_digest(request: Request, *parts: object, content: bytes = b"") -> str:
    """The digest of a request: the given one, else one computed over its parts."""
    if request.digest is not None:
        return request.digest
    digest = hashlib.sha256(json.dumps(parts).encode())
    digest.update(content)
    return digest.hexdigest()


def find_answer(
    connection: sqlite3.Connection, request: Request, digest: str
) -> TeachResult | Change | None:
    """The stored answer to a request with this key; None if the key is new.

    A ``KeyReusedError`` is raised if the key was used for a different request.
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
    if not found[1]:
        raise KeyReusedError(
            f"the example that the key {request.key!r} taught was erased: use a new key to teach "
            "it again"
        )
    if found[0] != digest:
        raise key_reused(request)
    return _from_json(found[1])


def key_reused(request: Request) -> KeyReusedError:
    """The error for a key that was used for a different request."""
    return KeyReusedError(
        f"the key {request.key!r} was used for another request before: use a new key for each "
        "new request"
    )


def store_answer(
    connection: sqlite3.Connection, request: Request, digest: str, answer: TeachResult | Change
) -> None:
    """Store the answer to a request with a key, within the transaction of the change."""
    if request.key is None:
        return
    added = connection.execute(
        "INSERT INTO request_key (actor, key, digest, answer) VALUES (?, ?, ?, ?)",
        (request.actor, request.key, digest, _to_json(answer)),
    )
    # Sorting all keys takes a while, so a few more are stored in between.
    if (added.lastrowid or 0) % max(1, KEPT_KEYS // _SURPLUS) == 0:
        connection.execute(_DELETE_OLD_KEYS, (KEPT_KEYS,))


def _to_json(answer: TeachResult | Change) -> str:
    if isinstance(answer, TeachResult):
        return json.dumps(["taught", {**vars(answer), "example": vars(answer.example)}])
    return json.dumps(["change", vars(answer)])


def _from_json(text: str) -> TeachResult | Change:
    kind, values = json.loads(text)
    if kind == "change":
        return Change(**values)
    return TeachResult(**{**values, "example": Example(**values["example"]), "replayed": True})
