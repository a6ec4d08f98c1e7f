"""The client of Label Studio: tokens, pages, and one host only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from evergrow.foundation.errors import InvalidInputError
from evergrow.service.label_studio.api import (
    PAGE_SIZE,
    ForeignImageError,
    LabelStudioApi,
    LabelStudioError,
    with_ids,
)
from tests.service.label_studio.fake import PERSONAL_TOKEN, TOKEN, FakeLabelStudio


@pytest.fixture
def api(studio: FakeLabelStudio) -> Iterator[LabelStudioApi]:
    with closing(LabelStudioApi(studio.url, TOKEN, max_image_bytes=100_000)) as made:
        yield made


def test_a_project_is_told_from_one_of_the_same_id_elsewhere(
    api: LabelStudioApi, studio: FakeLabelStudio
) -> None:
    before = api.project(1)
    studio.add_project(1, created="2026-11-02T10:00:00Z")
    assert api.project(1).created == before.created + 24 * 3600


def test_tasks_of_all_pages_are_listed(api: LabelStudioApi, studio: FakeLabelStudio) -> None:
    for number in range(1, 2 * PAGE_SIZE + 2):
        studio.add_task(number)
    assert [one["id"] for one in api.tasks(1)] == list(range(1, 2 * PAGE_SIZE + 2))
    assert [one["id"] for one in api.tasks(1, with_ids([7, 999]))] == [7]


def test_a_personal_access_token_is_exchanged_and_renewed(studio: FakeLabelStudio) -> None:
    with closing(LabelStudioApi(studio.url, PERSONAL_TOKEN)) as api:
        api.project(1)
        studio.access = "access-2"
        api.project(1)
    paths = [path for _, path in studio.requests]
    assert paths.count("/api/token/refresh/") == 2


@pytest.mark.parametrize("token", ["wrong", "wrong.personal.token"])
def test_a_refused_token_is_reported_without_the_token(studio: FakeLabelStudio, token: str) -> None:
    with (
        closing(LabelStudioApi(studio.url, token)) as api,
        pytest.raises(LabelStudioError, match="refused its token") as caught,
    ):
        api.project(1)
    assert token not in str(caught.value)
    assert token not in repr(vars(api))


@pytest.mark.parametrize("token", ["", "two words", "new\nline", "naïve"])
def test_what_is_not_a_token_is_refused(token: str) -> None:
    with pytest.raises(InvalidInputError, match="token"):
        LabelStudioApi("http://localhost", token)


@pytest.mark.parametrize(
    "location",
    [
        "http://evil.example/a.jpg",
        "//evil.example/a.jpg",
        "https://127.0.0.1/a.jpg",
        "http://127.0.0.1:1/a.jpg",
        "http://user@127.0.0.1/a.jpg",
        "file:///etc/passwd",
        "data:image/png;base64,AAAA",
        "a.jpg",
        "/data/a\n.jpg",
        "/api/projects/1/",
        "/user/logout",
        "/data/../api/projects/1/",
        "/data/%2e%2e/api/projects/1/",
        "/tasks/1/annotations/",
        "http://[::1",
        "",
    ],
)
def test_images_of_other_hosts_are_not_fetched(
    api: LabelStudioApi, studio: FakeLabelStudio, location: str
) -> None:
    with pytest.raises(ForeignImageError):
        api.image(1, location)
    assert not studio.requests


def test_images_of_the_host_are_fetched_by_any_form_of_its_address(
    api: LabelStudioApi, studio: FakeLabelStudio
) -> None:
    studio.images["/data/upload/1/a%20b.jpg"] = b"picture"
    studio.images["/data/local-files/?d=c/d.jpg"] = b"local"
    assert api.image(1, "/data/upload/1/a b.jpg") == b"picture"
    assert api.image(1, f"{studio.url}/data/upload/1/a%20b.jpg") == b"picture"
    assert api.image(1, "/data/local-files/?d=c/d.jpg") == b"local"


def test_redirects_are_not_followed(api: LabelStudioApi, studio: FakeLabelStudio) -> None:
    studio.redirects["/tasks/1/resolve"] = "https://bucket.example/a.jpg?signature=secret"
    with pytest.raises(LabelStudioError, match="redirects to bucket") as caught:
        api.image(1, "s3://bucket/a.jpg")
    assert "secret" not in str(caught.value)


def test_large_images_are_not_read_to_the_end(api: LabelStudioApi, studio: FakeLabelStudio) -> None:
    studio.images["/data/large.jpg"] = bytes(100_001)
    with pytest.raises(LabelStudioError, match="limit"):
        api.image(1, "/data/large.jpg")


def test_a_label_studio_below_a_path_is_reached() -> None:
    api = LabelStudioApi("https://example.org/tools/studio/", TOKEN)
    assert api.image_path(1, "/data/a.jpg") == "/data/a.jpg"
    assert api.image_path(1, "/tools/studio/data/a.jpg") == "/data/a.jpg"


def test_a_label_studio_that_is_down_is_reported(
    api: LabelStudioApi, studio: FakeLabelStudio
) -> None:
    studio.is_down = True
    with pytest.raises(LabelStudioError, match="cannot be reached") as caught:
        api.project(1)
    assert caught.value.status is None
