"""A service that fails on purpose, and a client without pauses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evergrow import Client
from evergrow.service.client import transport
from tests.service.client.stub import TOKEN, Stub, running


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that the client would have made."""
    made: list[float] = []
    monkeypatch.setattr(transport, "pause", made.append)
    return made


@pytest.fixture
def stub() -> Iterator[Stub]:
    with running() as stub:
        yield stub


@pytest.fixture
def client(stub: Stub, pauses: list[float]) -> Iterator[Client]:
    with Client(stub.url, TOKEN) as client:
        yield client
