"""Requests that try to overload a service: malicious JSON."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from tests.harness.http_client import Body

JSON = "application/json"
# Just under the longest body of all, and just under the longest of embeddings.
LENGTHS = {"18 MB": 18_000_000, "1.6 MB": 1_600_000}


def _members(n_bytes: int) -> bytes:
    n_members = n_bytes // 12
    return b"{" + b",".join(b'"k%07d":1' % number for number in range(n_members)) + b"}"


def _filled(piece: bytes, n_bytes: int) -> bytes:
    return b'{"embeddings":[' + b",".join([piece] * (n_bytes // (len(piece) + 1))) + b"]}"


@cache
def malicious_json() -> Mapping[str, Body]:
    """Bodies that take much longer to parse than to send, by name."""
    made: dict[str, Body] = {}
    for size, n_bytes in LENGTHS.items():
        numbers = b",".join([b"1"] * (n_bytes // 2))
        made[f"JSON, {size} of members"] = (JSON, _members(n_bytes))
        made[f"JSON, {size} of lists"] = (JSON, _filled(b"[]", n_bytes))
        made[f"JSON, {size} of words"] = (JSON, _filled(b'["a"]', n_bytes))
        made[f"JSON, {size} of numbers"] = (JSON, b'{"embeddings":[[' + numbers + b"]]}")
        made[f"JSON, {size} of one number"] = (JSON, b'{"embeddings":[[' + b"9" * n_bytes + b"]]}")
        made[f"JSON, {size} deep"] = (JSON, b"[" * n_bytes)
    return made
