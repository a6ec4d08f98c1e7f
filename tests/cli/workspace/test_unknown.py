"""A picture that fits no class: every way to ask says the same."""

from __future__ import annotations

import csv
import io
import json
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from PIL import Image

import evergrow
from evergrow import Client
from evergrow.workspace import Workspace
from evergrow.workspace.tokens import Tokens
from tests.harness.http_client import Caller, pictures_body
from tests.harness.process import ServiceProcess
from tests.vision.classifier.pictures import encode_png, picture

KNOWN, STRANGE = "known.png", "strange.png"


class Said(NamedTuple):
    """What is said of a picture: its class or None, and the names of the best classes."""

    label: str | None
    known: bool
    best: list[str]


@pytest.fixture
def pictures(tmp_path: Path) -> list[str]:
    """A red picture, and one of something that was never taught."""
    (tmp_path / KNOWN).write_bytes(encode_png(picture("red", 100)))
    Image.fromarray(np.full((24, 32, 3), (0, 0, 255), np.uint8)).save(tmp_path / STRANGE)
    return [str(tmp_path / KNOWN), str(tmp_path / STRANGE)]


def asked_in_text(run: Any, model: Any, pictures: list[str]) -> list[tuple[str, bool]]:
    """The word for each picture, and whether there is a probability."""
    lines = run.ok(f"predict {model}", *pictures).stdout.split("\n")[:2]
    fields = [line.split("\t") for line in lines]
    return [(label, share != "") for _, label, share, *_ in fields]


def asked_in_csv(run: Any, model: Any, pictures: list[str]) -> list[tuple[str, str]]:
    written = run.ok(f"predict {model} --csv", *pictures).stdout
    return [(row["label"], row["known"]) for row in csv.DictReader(io.StringIO(written))]


def asked_in_json(run: Any, model: Any, pictures: list[str]) -> list[Said]:
    lines = run.ok(f"predict {model} --json --top 2", *pictures).stdout.splitlines()
    return [read(json.loads(line)) for line in lines]


def read(answer: dict[str, Any]) -> Said:
    return Said(answer["label"], answer["known"], [one["name"] for one in answer["top"]])


def asked_over_http(folder: Path, pictures: list[str]) -> tuple[list[Said], list[Said]]:
    """What the service and the client say."""
    token = Tokens(folder).add("reader", "read")
    with ServiceProcess(folder) as service:
        with Client(f"http://127.0.0.1:{service.port}", token) as client:
            answers = client.predict(pictures)
        contents = [Path(one).read_bytes() for one in pictures]
        with closing(Caller(service.port, token)) as caller:
            body = caller.predict(pictures_body(contents)).json()
    told = [Said(one.label, one.known, [name.name for name in one.top]) for one in answers]
    return [read(one) for one in body["predictions"]], told


@pytest.mark.slow
def test_an_unknown_picture_is_the_same_everywhere(
    run: Any, things: Path, pictures: list[str]
) -> None:
    expected = [Said("red", True, ["red", "green"]), Said(None, False, ["green", "red"])]
    run.ok(f"export {things} -o exported.evergrow")
    with Workspace.open(things, read_only=True) as workspace:
        assert workspace.embedder is not None
        rows = workspace.embedder.transform(pictures)
        answers = workspace.predict(rows, top=2)
        assert [Said(one.label, one.known, [name for name, _ in one.top]) for one in answers] == (
            expected
        )
    for model in (things, "exported.evergrow"):
        assert asked_in_text(run, model, pictures) == [("red", True), ("unknown", False)]
        assert asked_in_csv(run, model, pictures) == [("red", "true"), ("unknown", "false")]
        assert asked_in_json(run, model, pictures) == expected
    said = run.ok("info exported.evergrow").stdout
    assert 'learner\tRLSClassifier, answers "unknown" (RejectingClassifier)\n' in said
    exported = evergrow.load("exported.evergrow")
    assert exported.predict(pictures).tolist() == ["red", "unknown"]
    assert exported.answer(pictures).known.tolist() == [True, False]
    assert exported.learner_.is_known(rows).tolist() == [True, False]
    assert exported.learner_.predict(rows).tolist() == ["red", "unknown"]
    assert asked_over_http(things, pictures) == (expected, expected)


def test_the_best_class_of_an_unknown_picture_is_listed(
    run: Any, things: Path, pictures: list[str]
) -> None:
    shares = [
        one["probability"]
        for one in json.loads(run.ok(f"predict {things} --json --top 2", pictures[1]).stdout)["top"]
    ]
    (fields,) = csv.reader(
        run.ok(f"predict {things} --top 2", pictures[1]).stdout.splitlines(), delimiter="\t"
    )
    assert fields[1:] == ["unknown", "", "green", f"{shares[0]:.4f}"]
    (row,) = csv.DictReader(
        io.StringIO(run.ok(f"predict {things} --csv --top 2", pictures[1]).stdout)
    )
    assert (row["label"], row["label_2"]) == ("unknown", "green")


def test_a_class_may_be_called_unknown(run: Any, things: Path, pictures: list[str]) -> None:
    run.ok(f"rename {things} red unknown -q")
    run.ok(f"export {things} -o exported.evergrow")
    for model in (things, "exported.evergrow"):
        assert asked_in_text(run, model, pictures) == [("unknown", True), ("unknown", False)]
        assert asked_in_csv(run, model, pictures) == [("unknown", "true"), ("unknown", "false")]
        answers = asked_in_json(run, model, pictures)
        assert [(one.label, one.known) for one in answers] == [("unknown", True), (None, False)]


def test_a_class_may_be_called_unknown_where_it_is_measured(
    run: Any, things: Path, pictures: list[str], tmp_path: Path
) -> None:
    run.ok(f"rename {things} red unknown -q")
    for path in pictures:
        target = tmp_path / "test" / "unknown" / Path(path).name
        target.parent.mkdir(parents=True, exist_ok=True)
        Path(path).rename(target)
    found = json.loads(run.ok(f"evaluate {things} test --json").stdout)
    assert (found["n_right"], found["n_rejected"]) == (1, 1)
