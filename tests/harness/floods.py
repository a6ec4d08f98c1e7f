"""Requests that try to overload a service: malicious JSON and very large pictures."""

from __future__ import annotations

import io
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from tests.harness.http_client import LOST, Body, Caller, pictures_body, raw_request
from tests.harness.pictures import photograph

JSON = "application/json"
# Just under the longest body of all, and just under the longest of embeddings.
LENGTHS = {"18 MB": 18_000_000, "1.6 MB": 1_600_000}
SIDE = 7000
N_PICTURES = 32


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


@cache
def _large_picture() -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", (SIDE, SIDE), "green").save(file, "PNG", compress_level=9)
    return file.getvalue()


@dataclass(frozen=True)
class FloodDelay:
    """Time of a prediction while another client floods the service."""

    name: str
    status: int
    seconds: float


def measure_floods(port: int, flooding: str, predicting: str) -> list[FloodDelay]:
    """Flood the service with one token, and predict with another and with the same.

    Parameters
    ----------
    port : int
        Port of the service.
    flooding, predicting : str
        Tokens.
    """
    large = pictures_body([_large_picture()] * N_PICTURES)
    request = raw_request("/v1/predictions", flooding, large)
    for _ in range(2):
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(request)
            # Long enough that its pictures are queued; then the client disconnects.
            time.sleep(1.0)
    held = [_predict("after floods that were abandoned", port, flooding)]
    floods = [threading.Thread(target=_flood, args=(port, flooding, large)) for _ in range(4)]
    for flood in floods:
        flood.start()
    time.sleep(1.0)
    held += [_predict("during a flood of another token", port, predicting) for _ in range(3)]
    for flood in floods:
        flood.join()
    return held


def _predict(name: str, port: int, token: str) -> FloodDelay:
    caller = Caller(port, token, timeout=120)
    begun = time.perf_counter()
    status = caller.predict(pictures_body([photograph(3)])).status
    caller.close()
    return FloodDelay(name, status, time.perf_counter() - begun)


def _flood(port: int, token: str, large: Body) -> None:
    caller = Caller(port, token, timeout=300)
    try:
        caller.predict(large)
    except LOST:
        # Refused or disconnected: only the other client is measured.
        pass
    finally:
        caller.close()
