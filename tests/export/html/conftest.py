"""Pages that were exported from workspaces, in a browser without a network."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from evergrow.export.html.runtime import RuntimeMissingError, load_runtime
from tests.service.browsing import files, write_network
from tests.service.page.conftest import DESKTOP, PATIENCE, chromium  # noqa: F401


@pytest.fixture(scope="session")
def runtime() -> None:
    """Skip unless the runtime was fetched."""
    try:
        load_runtime()
    except RuntimeMissingError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def exported(runtime: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a workspace that knows mugs and bowls, and the page exported from it."""
    for module in ("onnx", "onnxruntime", "PIL"):
        pytest.importorskip(module, reason=f"pictures need {module}")
    from evergrow.workspace import Workspace

    folder = tmp_path_factory.mktemp("exported")
    write_network(folder / "network.onnx")
    for thing in ("mug", "bowl"):
        write_pictures(folder / "photos" / thing, thing, range(12))
    with Workspace.create(folder / "things", features=folder / "network.onnx") as made:
        made.teach_images(folder / "photos")
        made.assess(force=True)
        made.export(folder / "things.html")
    return folder


@pytest.fixture
def workspace(exported: Path, tmp_path: Path) -> Iterator[Any]:
    """A copy of the workspace, to be changed."""
    from evergrow.workspace import Workspace

    shutil.copytree(exported / "things", tmp_path / "things")
    with Workspace.open(tmp_path / "things") as opened:
        yield opened


@pytest.fixture
def page_file(exported: Path) -> Path:
    return exported / "things.html"


def write_pictures(folder: Path, thing: str, seeds: range) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for one in files(thing, seeds):
        path = folder / one["name"]
        path.write_bytes(one["buffer"])
        paths.append(path)
    return paths


@dataclass
class Visit:
    """An exported page that was opened, with its requests and the complaints of the browser."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def watch(self) -> None:
        page = self.page
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        page.on("console", self._hear)
        page.on("request", lambda request: self.requests.append(request.url))

    def _hear(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def open(self, path: Path) -> None:
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("body:not(.outside)")

    def ask(self, pictures: list[dict[str, Any]]) -> str:
        """Try one picture after the other; return what the page says of the last."""
        self.go("try")
        if self.page.is_visible("#try-clear"):
            self.page.click("#try-clear")
        self.page.set_input_files("#try-files", pictures)
        self.page.wait_for_selector(
            "#try-answer .bar:visible, #try-answer .verdict:has-text('only')"
        )
        return str(self.page.inner_text("#try-answer .verdict"))

    def teach(self, thing: str, seeds: range, label: str | None = None) -> None:
        self.teach_files(files(thing, seeds), label or thing)

    def teach_files(self, pictures: list[dict[str, Any]], label: str) -> None:
        """Choose pictures that the page does not have yet, and wait until it has learnt them."""
        before = self.n_lessons()
        self.go("teach")
        self.page.set_input_files("#files", pictures)
        self.page.wait_for_selector("#tray:not([hidden])")
        self.page.fill("#label", label)
        if len(pictures) > 1:
            self.page.click(f"#take-all:has-text('{len(pictures)} as {label}')")
        else:
            self.page.click("#take")
        # Each picture is embedded; on a busy machine that may take a second.
        end = time.monotonic() + PATIENCE / 1000 + len(pictures)
        while self.n_lessons() < before + len(pictures):
            assert time.monotonic() < end, self.n_lessons()
            self.page.wait_for_timeout(20)

    def n_lessons(self) -> int:
        """Pictures that were taught on the page."""
        return int(self.page.evaluate("evergrow.lessons().length"))

    def go(self, view: str) -> None:
        self.page.click(f"#views a[href='#{view}']")
        self.page.wait_for_selector(f"#view-{view}:not([hidden])")

    def counts(self) -> dict[str, int]:
        """Pictures by class, as the page lists them."""
        self.go("classes")
        cards = self.page.locator(".class-card")
        cards.first.wait_for()
        found = {}
        for card in cards.all():
            name = card.locator("strong").inner_text()
            text = card.locator(".row .muted").first.inner_text()
            found[name] = int(text.split()[0])
        return found

    def save(self, title: str, path: Path) -> Path:
        """Save one of the files that the page offers."""
        self.page.click("#save")
        with self.page.expect_download() as saving:
            self.page.click(f"dialog button:has-text({title!r})")
        saving.value.save_as(path)
        self.page.keyboard.press("Escape")
        return path


@pytest.fixture
def opened(chromium: Any) -> Iterator[Callable[..., Visit]]:  # noqa: F811
    """Opens pages without a network; fails if the browser complains, or if a request leaves."""
    contexts, visits = [], []

    def new(path: Path, **options: Any) -> Visit:
        contexts.append(chromium.new_context(**{"viewport": DESKTOP, "offline": True, **options}))
        contexts[-1].set_default_timeout(PATIENCE)
        visits.append(Visit(contexts[-1].new_page()))
        visits[-1].watch()
        visits[-1].open(path)
        return visits[-1]

    yield new
    for context in contexts:
        context.close()
    assert [one for visit in visits for one in visit.complaints] == []
    left = [
        url for visit in visits for url in visit.requests if not url.startswith(("blob:", "data:"))
    ]
    assert all(url.startswith("file:") for url in left)
    assert len(left) == sum(url.endswith(".html") for url in left)
