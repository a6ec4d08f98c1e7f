"""A browser that opens the page of a service, with a video file as camera."""

from __future__ import annotations

import shutil

import pytest

from tests.service.browsing import Visit, serving, write_film

CHROMIUM = shutil.which("chromium")
DESKTOP = {"width": 1280, "height": 860}
SMALL_DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 360, "height": 740}
PATIENCE = 20_000


@pytest.fixture(scope="package")
def served(tmp_path_factory):
    for module in ("fastapi", "uvicorn", "prometheus_client", "onnxruntime", "PIL"):
        pytest.importorskip(module, reason=f"the service needs {module}")
    with serving(tmp_path_factory.mktemp("page")) as running:
        yield running


@pytest.fixture(scope="package")
def chromium(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    film = tmp_path_factory.mktemp("camera") / "mug.y4m"
    write_film(film, "mug")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(
            executable_path=CHROMIUM,
            args=[
                "--no-sandbox",
                "--use-fake-device-for-media-stream",
                "--use-fake-ui-for-media-stream",
                f"--use-file-for-fake-video-capture={film}",
            ],
        )
        yield started
        started.close()


@pytest.fixture
def opened(chromium, served):
    """Opens the page, with a token unless ``enter`` is false; fails if the browser complains."""
    contexts, visits = [], []

    def new(expected=(), *, enter=True, **options):
        options = {"viewport": DESKTOP, "service_workers": "block", **options}
        contexts.append(chromium.new_context(**options))
        contexts[-1].set_default_timeout(PATIENCE)
        visits.append(Visit(contexts[-1].new_page(), served, expected=expected))
        visits[-1].watch()
        if enter:
            visits[-1].enter()
        return visits[-1]

    served.forget_all()
    yield new
    for context in contexts:
        context.close()
    assert [complaint for visit in visits for complaint in visit.complaints] == []


@pytest.fixture
def visit(opened):
    return opened()
