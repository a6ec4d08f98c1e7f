"""The client and a service that 'evergrow serve' runs, killed and restarted."""

from __future__ import annotations

import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import evergrow
from evergrow import Client, ServiceError
from evergrow.cli import main
from evergrow.workspace import Workspace
from tests.harness.process import ServiceProcess
from tests.vision.classifier.pictures import picture
from tests.vision.embedding.models import onnx_model

pytest.importorskip("fastapi", reason="the extra 'service' is not installed")


def make(folder: Path, *options: str) -> tuple[str, str]:
    """A workspace and its tokens."""
    tokens = folder.with_name("tokens")
    arguments = ["init", str(folder), "--token-file", str(tokens), *options]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    teach, read = tokens.read_text().splitlines()
    return teach, read


def split_and_join(client: Client) -> None:
    with pytest.raises(ServiceError, match="fine classes") as caught:
        client.split("rot")
    assert caught.value.status == 409
    for i in range(4):
        for place, fine in enumerate(("beagle", "poodle")):
            embedding = 9 * np.eye(5)[place] + 0.01 * i
            client.teach(embedding, "dog", fine if i < 3 else None)
    client.split("dog")
    assert client.predict(9 * np.eye(5)[0]).fine in ("beagle", None)
    (entry,) = [one for one in client.classes() if one.name == "dog"]
    assert sum(fine.n_guessed for fine in entry.fine) == 2
    assert len(list(client.examples("dog", guessed=True))) == 2
    assert [one.reason for one in client.review(2)] == ["guess", "guess"]
    client.unsplit("dog")


@pytest.mark.slow
def test_a_user_teaches_predicts_and_corrects(tmp_path: Path) -> None:
    (tmp_path / "network.onnx").write_bytes(onnx_model().SerializeToString())
    teach, read = make(tmp_path / "things", "--features", str(tmp_path / "network.onnx"))
    with ServiceProcess(tmp_path / "things") as service:
        url = f"http://127.0.0.1:{service.port}/"
        with Client(url, teach) as client:
            for seed in range(6):
                for colour in ("red", "green"):
                    taught = client.teach(picture(colour, seed), colour)
            assert (taught.of_class.n_examples, taught.duplicate) == (6, False)
            known = client.teach(picture("red", 0), "red", fine="dark")
            assert (known.duplicate, known.known_fine, known.example.fine) == (
                True,
                "taken",
                "dark",
            )
            known = client.teach(picture("red", 0), "red", fine="pale")
            assert (known.known_fine, known.example.fine) == ("kept", "dark")
            client.undo()
            answers = client.predict([picture("red", 50), picture("green", 50)] * 20)
            assert [answer.label for answer in answers] == ["red", "green"] * 20
            wrong = client.teach(picture("red", 60), "green").example
            assert client.relabel(wrong.id, label="red", fine="dark").kind == "relabel"
            assert [one.fine for one in client.examples("red")][-1] == "dark"
            client.relabel(wrong.id, clear_fine=True)
            client.remove(wrong.id)
            client.undo()
            client.rename("red", "rot")
            merged = client.merge("rot", "green")
            assert [entry.n_examples for entry in client.classes()] == [13]
            assert client.undo(merged.event).n_examples == 7
            client.forget("green")
            split_and_join(client)
            client.export(tmp_path / "model.evergrow")
            client.export(tmp_path / "pictures.zip")
            client.export(tmp_path / "log.jsonl")
            assert client.status().scopes == ("read", "teach")
        with zipfile.ZipFile(tmp_path / "pictures.zip") as archive:
            assert archive.testzip() is None
            assert sum(name.startswith("rot/") for name in archive.namelist()) == 7
        assert '"kind": "forget"' in (tmp_path / "log.jsonl").read_text()
        assert evergrow.load(tmp_path / "model.evergrow").predict([picture("red", 7)]) == ["rot"]
        with Client(url, read) as reader, pytest.raises(ServiceError) as caught:
            reader.undo()
        assert caught.value.status == 403
        service.stop()
        assert f"serving at {url}" in service.log.read_text()


@pytest.mark.slow
def test_a_killed_service_loses_and_duplicates_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Patient enough for a service that starts, without waiting long after it has.
    monkeypatch.setattr("evergrow.service.client.transport._MAX_SECONDS", 0.5)
    teach, _ = make(tmp_path / "things", "--features", "none", "--n-features", "4")
    taught: list[Any] = []
    enough = threading.Event()
    with (
        ServiceProcess(tmp_path / "things") as service,
        Client(f"http://127.0.0.1:{service.port}", teach, retries=100) as client,
        ThreadPoolExecutor(4) as pool,
    ):

        def go(number: int) -> None:
            taught.append(client.teach(np.random.default_rng(number).normal(size=4), "noise"))
            if len(taught) == 50:
                enough.set()

        futures = [pool.submit(go, number) for number in range(200)]
        assert enough.wait(60)
        service.kill()
        service.start()
        for future in futures:
            future.result()
        assert client.status().n_examples == 200
        stored = {example.id for example in client.examples()}
    assert stored == {one.example.id for one in taught}


def test_a_second_service_is_refused(tmp_path: Path) -> None:
    make(tmp_path / "things", "--features", "none")
    with Workspace.open(tmp_path / "things"):
        arguments = ["serve", str(tmp_path / "things"), "--port", "0"]
        result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1
    assert "is in use by process" in result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--host", "0.0.0.0"], "--certfile"),
        (["--certfile", "nowhere.pem"], "together"),
        (["--host", "no.such.host.invalid"], "not known"),
    ],
)
def test_unsafe_options_are_refused(tmp_path: Path, options: list[str], message: str) -> None:
    make(tmp_path / "things", "--features", "none")
    result = CliRunner().invoke(main, ["serve", str(tmp_path / "things"), *options])
    assert result.exit_code == 1
    assert message in result.stderr
