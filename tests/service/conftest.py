"""A service over a small workspace, and functions that send requests to it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra 'service' is not installed")

with warnings.catch_warnings():
    # Starlette warns about a package that older Pythons lack.
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

from evergrow.service.http.app import create_app
from evergrow.service.http.service import Service
from evergrow.service.http.settings import Settings
from evergrow.workspace import Workspace
from evergrow.workspace.tokens import Tokens

N_FEATURES = 4
URL = "http://127.0.0.1"
A, B = [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]


@dataclass
class Served:
    """A running service and the tokens that open it."""

    service: Service
    client: TestClient
    teach: str
    read: str

    def ask(self, method: str, path: str, *, token: str | None = "teach", **options: Any) -> Any:
        """Send a request with the teaching token, or another, or none."""
        headers = dict(options.pop("headers", {}))
        if token is not None:
            headers["Authorization"] = f"Bearer {getattr(self, token, token)}"
        return self.client.request(method, path, headers=headers, **options)

    def get(self, path: str, **options: Any) -> Any:
        return self.ask("GET", path, **options)

    def post(self, path: str, json: Any = None, **options: Any) -> Any:
        return self.ask("POST", path, json=json, **options)

    def teach_one(self, label: str, embedding: Any = A, **options: Any) -> Any:
        """Teach an embedding."""
        body = {"embedding": list(embedding), "label": label, **options.pop("body", {})}
        return self.post("/v1/examples", body, **options)


def make_workspace(folder: Path, **options: Any) -> tuple[str, str]:
    """A workspace with a token to teach and one to read."""
    with Workspace.create(folder, **{"features": None, "n_features": N_FEATURES, **options}):
        pass
    tokens = Tokens(folder)
    return tokens.add("teacher", "teach"), tokens.add("reader", "read")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "things"


@pytest.fixture
def settings() -> Settings:
    """Overridden where limits matter."""
    return Settings()


@pytest.fixture
def served_images(folder: Path, settings: Settings) -> Iterator[Served]:
    """A service that takes images, with a network of a few numbers."""
    from evergrow.vision import Embedder, OnnxModel
    from tests.vision.embedding.models import onnx_model

    model = OnnxModel(onnx_model(("n", 3, 8, 8)).SerializeToString())
    features = Embedder(model, cache=False)
    yield from _served(folder, settings, features=features, n_features=None)


@pytest.fixture
def served_stages(folder: Path, settings: Settings) -> Iterator[Served]:
    """The same with a network of which a stage is offered, of five and three numbers."""
    from evergrow.vision import Embedder, OnnxModel
    from tests.vision.embedding.models import staged_model

    model = OnnxModel(staged_model().SerializeToString())
    features = Embedder(model, stages=(2,), cache=False)
    yield from _served(folder, settings, features=features, n_features=None)


@pytest.fixture
def served(folder: Path, settings: Settings) -> Iterator[Served]:
    """A service that takes embeddings of four numbers."""
    yield from _served(folder, settings)


def _served(folder: Path, settings: Settings, **options: Any) -> Iterator[Served]:
    teach, read = make_workspace(folder, **options)
    with Service(folder, settings) as service, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = TestClient(create_app(service), URL, raise_server_exceptions=False)
        yield Served(service, client, teach, read)


def expired_token(folder: Path) -> str:
    """A token that was valid yesterday."""
    then = datetime.now(UTC) - timedelta(days=1)
    return Tokens(folder, read_clock=lambda: then).add(
        "yesterday", "teach", expires_in=timedelta(hours=1)
    )


def revoked_token(folder: Path) -> str:
    """A token that was revoked."""
    tokens = Tokens(folder)
    token = tokens.add("revoked", "teach")
    tokens.revoke("revoked")
    return token
