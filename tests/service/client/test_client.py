"""What a client sends, how it reads responses, and when it repeats a request."""

from __future__ import annotations

import io
import re
import ssl
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from evergrow import Client, InvalidInputError, ServiceError
from evergrow.service import Change
from evergrow.vision import read_image
from tests.service.client.stub import STATUS, TOKEN, Stub, make_example, running
from tests.vision.classifier.pictures import picture

PIXELS = picture("red", 0)


def file_of(image: Any) -> bytes:
    written = io.BytesIO()
    Image.fromarray(image).save(written, format="PNG")
    return written.getvalue()


def sent_image(stub: Stub) -> Any:
    return read_image(dict(stub.seen[-1].parts)["image"])


@pytest.mark.parametrize("kind", ["path", "str", "bytes", "file", "array", "pillow"])
def test_every_form_of_an_image_arrives(
    client: Client, stub: Stub, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "image.png"
    path.write_bytes(file_of(PIXELS))
    forms = {
        "path": path,
        "str": str(path),
        "bytes": path.read_bytes(),
        "file": io.BytesIO(path.read_bytes()),
        "array": PIXELS,
        "pillow": Image.fromarray(PIXELS),
    }
    client.teach(forms[kind], "猫", "grey")
    named = dict(stub.seen[-1].parts)
    assert named["label"].decode() == "猫"
    assert named["fine"] == b"grey"
    assert np.array_equal(sent_image(stub), PIXELS)


def test_a_pillow_image_arrives_upright(client: Client, stub: Stub) -> None:
    image = Image.fromarray(PIXELS)
    image.getexif()[0x0112] = 6
    client.teach(image, "turned")
    assert np.array_equal(sent_image(stub), np.rot90(PIXELS, -1))


@pytest.mark.parametrize("embedding", [[1, 2.5], (1.0, 2.5), np.array([1, 2.5], np.float32)])
def test_an_embedding_is_sent_as_json(client: Client, stub: Stub, embedding: Any) -> None:
    client.teach(embedding, "cup")
    assert stub.seen[-1].json == {"embedding": [1.0, 2.5], "label": "cup"}


@pytest.mark.parametrize(
    "wrong", [None, 3, [], {"a": 1}, np.zeros((4, 4, 2), np.uint8), np.zeros((4, 4, 3)), "text"]
)
def test_a_source_that_is_not_an_image_is_refused_before_sending(
    client: Client, stub: Stub, wrong: Any
) -> None:
    source = io.StringIO("text") if isinstance(wrong, str) else wrong
    with pytest.raises(TypeError, match=r"cannot send|opened as text"):
        client.teach(source, "cup")
    assert stub.seen == []


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_an_embedding_must_be_finite(client: Client, value: float) -> None:
    with pytest.raises(ValueError, match=r"finite values, got (nan|inf) at index 1"):
        client.teach([0.0, value], "cup")


def test_a_label_must_be_text(client: Client) -> None:
    with pytest.raises(TypeError, match="label must be a str, got int"):
        client.teach([0.0], 3)  # type: ignore[arg-type]


def test_many_images_get_predictions_in_their_order(client: Client, stub: Stub) -> None:
    answers = client.predict([f"{i}".encode() for i in range(70)], top=3)
    assert [answer.label for answer in answers] == [f"{i}" for i in range(70)]
    status, *asked = stub.seen
    assert status.path == "/v1/status"
    assert [len(request.parts) for request in asked] == [32, 32, 6]
    assert asked[0].query == {"top": ["3"], "model": ["rls"]}


def test_a_matrix_is_many_embeddings(client: Client, stub: Stub) -> None:
    answers = client.predict(np.arange(6.0).reshape(3, 2))
    assert [answer.label for answer in answers] == ["0.0", "2.0", "4.0"]
    assert stub.seen[-1].json == {"embeddings": [[0, 1], [2, 3], [4, 5]]}


@pytest.mark.slow
def test_large_images_are_sent_in_several_requests(client: Client, stub: Stub) -> None:
    client.predict([b"x" * 7_000_000] * 3)
    assert [len(request.parts) for request in stub.seen[1:]] == [2, 1]


def test_a_service_with_smaller_limits_gets_smaller_requests(client: Client, stub: Stub) -> None:
    stub.most_images = 3
    answers = client.predict([f"{i}".encode() for i in range(10)])
    assert [answer.label for answer in answers] == [f"{i}" for i in range(10)]


def test_the_limits_are_requested_once(client: Client, stub: Stub) -> None:
    client.predict([b"a", b"b"])
    client.predict([b"a", b"b"])
    client.predict(b"a")
    assert [request.path for request in stub.seen].count("/v1/status") == 1


def test_tasks_of_label_studio_are_compared_on_request(client: Client) -> None:
    found = client.sync_label_studio()
    assert (found.n_tasks, found.n_taught, found.problems) == (9, 2, ("task 3: no image",))


def test_listings_are_followed_to_the_end(client: Client) -> None:
    for name in "abcde":
        client.teach([1.0], name)
    assert [entry.name for entry in client.classes()] == list("abcde")
    assert [example.id for example in client.examples()] == [1, 2, 3, 4, 5]


def test_examples_are_loaded_page_by_page(client: Client, stub: Stub) -> None:
    for name in "abcde":
        client.teach([1.0], name)
    before = len(stub.seen)
    examples = client.examples(label="a", guessed=True)
    assert len(stub.seen) == before
    assert next(examples) == make_example(1, "a")
    assert len(stub.seen) == before + 1
    assert stub.seen[-1].query == {"label": ["a"], "guessed": ["true"], "limit": ["200"]}


def test_a_listing_that_repeats_a_page_is_an_error(client: Client, stub: Stub) -> None:
    stub.faults = [(200, {"items": [], "next": "a"})] * 2
    with pytest.raises(ServiceError, match="does not end"):
        client.classes()


@pytest.mark.parametrize(
    ("name", "arguments", "method", "path", "body"),
    [
        ("relabel", {"example": 3, "label": "mug"}, "PATCH", "/v1/examples/3", {"label": "mug"}),
        ("remove", {"example": 3}, "DELETE", "/v1/examples/3", None),
        (
            "relabel",
            {"example": [3, 4], "fine": "red"},
            "POST",
            "/v1/relabel",
            {"examples": [3, 4], "fine": "red"},
        ),
        ("remove", {"example": (3, 4)}, "POST", "/v1/remove", {"examples": [3, 4]}),
        ("undo", {}, "POST", "/v1/undo", {}),
        ("undo", {"event": 4}, "POST", "/v1/undo", {"event": 4}),
        ("forget", {"label": "a"}, "POST", "/v1/forget", {"label": "a", "erase": False}),
        ("relabel", {"example": 3, "clear_fine": True}, "PATCH", "/v1/examples/3", {"fine": None}),
        ("rename", {"label": "a", "to": "b"}, "POST", "/v1/rename", {"label": "a", "to": "b"}),
        ("merge", {"label": "a", "into": "b"}, "POST", "/v1/merge", {"label": "a", "into": "b"}),
        ("split", {"label": "a"}, "POST", "/v1/split", {"label": "a"}),
        ("unsplit", {"label": "a"}, "POST", "/v1/unsplit", {"label": "a"}),
    ],
)
def test_changes_are_sent(
    client: Client, stub: Stub, name: str, arguments: Any, method: str, path: str, body: Any
) -> None:
    change = getattr(client, name)(**arguments)
    assert isinstance(change, Change)
    request = stub.seen[-1]
    assert (request.method, request.path) == (method, path)
    assert (request.json if request.body else None) == body
    assert len(request.headers["Idempotency-Key"]) == 32


def test_reviews_hold_examples(client: Client) -> None:
    (review,) = client.review()
    assert (review.example.label, review.suggestion, review.reason) == ("cup", "mug", "guess")


@pytest.mark.parametrize(
    "body", [b"<html>", {"id": 1}, {**asdict(STATUS), "event": True}, {"id": "w"}, []]
)
def test_an_unexpected_response_is_an_error(client: Client, stub: Stub, body: Any) -> None:
    stub.faults = [(200, body)]
    with pytest.raises(ServiceError, match=r"Evergrow service|not JSON"):
        client.status()


def test_a_refusal_says_why(stub: Stub) -> None:
    with Client(stub.url, "wrong") as client, pytest.raises(ServiceError) as caught:
        client.status()
    assert str(caught.value) == "the token is not known (401)"


def test_redirects_are_not_followed(client: Client, stub: Stub) -> None:
    stub.faults = [(307, b"", {"Location": "http://elsewhere.example/"})]
    with pytest.raises(ServiceError, match=r"elsewhere.example.*not followed"):
        client.status()
    assert len(stub.seen) == 1


def test_the_token_may_come_from_the_environment(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVERGROW_TOKEN", f"{TOKEN}\n")
    with Client(stub.url) as client:
        assert client.status().id == "w"


def test_a_missing_token_is_an_error_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVERGROW_TOKEN", raising=False)
    with pytest.raises(ValueError, match="set EVERGROW_TOKEN"):
        Client("http://127.0.0.1:8080")


def test_a_wrong_token_is_not_repeated() -> None:
    with pytest.raises(ValueError, match="token must be") as caught:
        Client("http://127.0.0.1:8080", "secret\r\nX-Header: 1")
    assert "secret" not in str(caught.value)
    with pytest.raises(ValueError, match="one token, without spaces or line breaks"):
        Client("http://127.0.0.1:8080", "eg_teach_abc\neg_read_abc\n")
    assert "secret" not in repr(Client("http://127.0.0.1:8080", "secret"))


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8080",
        "ftp://host/",
        "http://",
        "http://user:word@host",
        "http://host:99999",
        "http://host/?a=b",
        "http://ho st",
    ],
)
def test_a_url_that_cannot_be_used_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="it must look like"):
        Client(url, TOKEN)


def test_a_prefix_of_a_proxy_is_kept(stub: Stub, pauses: list[float]) -> None:
    with Client(f"{stub.url}/robots/", TOKEN) as client:
        client.undo()
    assert stub.seen[-1].path == "/robots/v1/undo"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    subject = ["-subj", "/CN=robot", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    try:
        subprocess.run([*command.split(), *subject, *files], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    return folder / "cert.pem", folder / "key.pem"


def test_https_is_verified(certificate: tuple[Path, Path], pauses: list[float]) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with running(lambda plain: context.wrap_socket(plain, server_side=True)) as stub:
        with Client(stub.url, TOKEN, ca_file=certificate[0]) as client:
            assert client.status().id == "w"
        with Client(stub.url, TOKEN) as client, pytest.raises(ServiceError, match="ca_file"):
            client.status()
    assert pauses == []


def test_embeddings_cannot_be_moved(client: Client) -> None:
    with pytest.raises(InvalidInputError, match="move needs an image"):
        client.teach([0.0, 1.0], "mug", move=True)


DOCS = Path(__file__).parents[3] / "docs"
ADDRESS = "http://127.0.0.1:8080"


def examples() -> list[str]:
    """The pieces of Python that ask a service at the usual address."""
    texts = [(DOCS / name).read_text(encoding="utf-8") for name in ("workspace.md", "service.md")]
    found = re.findall(r"```python\n(.*?)```", "\n".join(texts), re.DOTALL)
    return [code for code in found if ADDRESS in code]


def test_there_are_examples_on_both_pages() -> None:
    assert len(examples()) == 2


@pytest.mark.parametrize("code", examples())
def test_the_examples_of_the_client_run(
    code: str, stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVERGROW_TOKEN", TOKEN)
    for name in ("cup", "what", "a", "b"):
        (tmp_path / f"{name}.jpg").write_bytes(name.encode())
    exec(compile(code.replace(ADDRESS, stub.url), "docs", "exec"), {"token": TOKEN})
    assert len(stub.taught) == 1


LOST = ["lost before", "lost after", "lost within"]


@pytest.mark.parametrize("fault", LOST)
def test_a_lost_response_does_not_teach_twice(client: Client, stub: Stub, fault: str) -> None:
    stub.faults = [fault, fault]
    assert client.teach([1.0], "cup").example.id == 1
    assert len(stub.taught) == 1


@pytest.mark.parametrize("fault", LOST)
def test_a_lost_change_is_sent_with_the_same_key(client: Client, stub: Stub, fault: str) -> None:
    stub.faults = [fault]
    client.undo()
    assert len({request.headers["Idempotency-Key"] for request in stub.seen}) == 1


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_service_is_retried_after_the_pause_it_asks_for(
    client: Client, stub: Stub, pauses: list[float], status: int
) -> None:
    stub.faults = [(status, {"detail": "busy"}, {"Retry-After": "3"})]
    client.teach([1.0], "cup")
    assert pauses == [3.0]
    assert len(stub.taught) == 1


def test_pauses_grow_exponentially(client: Client, stub: Stub, pauses: list[float]) -> None:
    stub.faults = ["lost before"] * 5
    client.teach([1.0], "cup")
    assert len(pauses) == 5
    assert all(
        0.05 * 2**attempt <= pause <= 0.1 * 2**attempt for attempt, pause in enumerate(pauses)
    )


def test_retries_are_limited(client: Client, stub: Stub) -> None:
    stub.faults = ["lost before"] * 6
    with pytest.raises(ServiceError, match="does not respond after 6 attempts") as caught:
        client.teach([1.0], "cup")
    assert caught.value.status == 0
    assert not stub.taught


def test_a_service_that_stays_busy_is_an_error_with_its_message(client: Client, stub: Stub) -> None:
    stub.faults = [(503, {"detail": "the queue is full"})] * 6
    with pytest.raises(ServiceError, match="the queue is full") as caught:
        client.status()
    assert caught.value.status == 503


def test_a_long_retry_after_is_an_error(client: Client, stub: Stub, pauses: list[float]) -> None:
    stub.faults = [(503, {"detail": "tomorrow"}, {"Retry-After": "86400"})]
    with pytest.raises(ServiceError, match="tomorrow"):
        client.status()
    assert pauses == []


def test_zero_retries_raise_at_once(stub: Stub, pauses: list[float]) -> None:
    stub.faults = ["lost before"]
    with Client(stub.url, TOKEN, retries=0) as client, pytest.raises(ServiceError):
        client.status()
    assert pauses == []


def test_a_connection_closed_while_idle_costs_no_pause(
    client: Client, stub: Stub, pauses: list[float]
) -> None:
    client.status()
    stub.faults = ["lost before"]
    client.teach([1.0], "cup")
    assert pauses == []
    assert len(stub.connections) == 2


@pytest.mark.usefixtures("pauses")
def test_threads_share_a_client(stub: Stub) -> None:
    stub.faults = ["lost after", "lost before", "lost within"] * 5
    # One request may meet all faults.
    with Client(stub.url, TOKEN, retries=len(stub.faults)) as client, ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda _: client.teach([1.0], "cup").example.id, range(100)))
    assert sorted(numbers) == list(range(1, 101))


def test_an_interrupted_export_is_completed(client: Client, stub: Stub, tmp_path: Path) -> None:
    stub.faults = ["lost within"]
    client.export(tmp_path / "model.evergrow")
    assert (tmp_path / "model.evergrow").read_bytes() == b"a model" * 100_000


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("things.evergrow", "/v1/model"),
        ("things", "/v1/model"),
        ("things.onnx", "/v1/model?format=onnx"),
        ("things.html", "/v1/model?format=html"),
        ("Things.ZIP", "/v1/pictures"),
        ("things.csv", "/v1/labels"),
        ("things.jsonl", "/v1/audit-log"),
    ],
)
def test_the_suffix_says_what_is_exported(
    client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, path: str
) -> None:
    sent: list[str] = []
    monkeypatch.setattr(client._transport, "send", lambda _, path, __: sent.append(path))
    client.export(tmp_path / name)
    assert sent == [path]


def test_a_failed_export_leaves_the_old_file(client: Client, stub: Stub, tmp_path: Path) -> None:
    (tmp_path / "model").write_text("old")
    stub.faults = ["lost within"] * 6
    with pytest.raises(ServiceError):
        client.export(tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert (tmp_path / "model").read_text() == "old"


def test_a_full_local_disk_is_not_retried(client: Client, stub: Stub, pauses: list[float]) -> None:
    with pytest.raises(OSError, match="not a regular file"):
        client.export("/dev/full")
    assert pauses == []
