"""The download dialog: what is saved, what is said, keys, phones, and other browsers."""

from __future__ import annotations

import csv
import io
import json
import zipfile

import pytest

from evergrow.export.html.runtime import RuntimeMissingError, load_runtime
from tests.service.browsing import files
from tests.service.page.conftest import PHONE

FILES = {
    "Model file": "workspace.evergrow",
    "Web page": "workspace.html",
    "ONNX": "workspace.onnx",
    "Pictures": "workspace-pictures.zip",
    "Labels": "workspace-labels.csv",
    "Audit log": "workspace-audit-log.jsonl",
}


def open_dialog(visit):
    visit.go("classes")
    visit.page.click("#download")
    visit.page.wait_for_selector("dialog .downloads")


def save(visit, title):
    """Press a button, and return the name and the content of what is saved."""
    with visit.page.expect_download() as started:
        visit.page.click(f"dialog button:has(strong:text-is('{title}'))")
    return started.value.suggested_filename, started.value.path().read_bytes()


def hold(page):
    """Hold requests to prepare a file; return the list of them."""
    held = []

    def add(route):
        held.append(route)

    page.route("**/v1/downloads", add)
    return held


def require_runtime():
    try:
        load_runtime()
    except RuntimeMissingError as missing:
        pytest.skip(str(missing))


@pytest.fixture
def taught(visit):
    visit.teach("mug", range(2))
    visit.teach("bowl", range(3), label="left/right <b>")
    open_dialog(visit)
    return visit


@pytest.mark.parametrize("title", FILES)
def test_each_file_is_saved_and_the_page_says_so(taught, title):
    if title == "Web page":
        require_runtime()
    name, content = save(taught, title)
    assert name == FILES[title]
    assert content
    taught.page.wait_for_selector(f"dialog [role=status]:has-text('Your browser saves {name}')")


def test_pictures_are_saved_as_they_came(taught):
    _, content = save(taught, "Pictures")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        rows = list(csv.DictReader(io.StringIO(archive.read("labels.csv").decode(), newline="")))
        found = sorted((row["label"], archive.read(row["path"])) for row in rows)
    sent = [("mug", one["buffer"]) for one in files("mug", range(2))]
    sent += [("left/right <b>", one["buffer"]) for one in files("bowl", range(3))]
    assert found == sorted(sent)


def test_the_audit_log_has_every_change(taught):
    _, content = save(taught, "Audit log")
    events = [json.loads(line) for line in content.splitlines()]
    assert [one["seq"] for one in events] == list(range(1, len(events) + 1))
    # An assessment may have followed.
    assert [one["kind"] for one in events if one["kind"] != "choose"][-5:] == ["teach"] * 5


def test_the_link_is_used_up_and_has_no_token(taught):
    page = taught.page
    with page.expect_response("**/v1/downloads") as prepared:
        save(taught, "Labels")
    ticket = prepared.value.json()["ticket"]
    assert taught.served.teaching not in ticket
    answer = page.request.get(f"{taught.served.url}v1/downloads/{ticket}")
    assert (answer.status, "used already" in answer.text()) == (401, True)


def test_several_files_are_saved_one_after_the_other_by_keyboard(taught):
    require_runtime()
    page = taught.page
    page.focus("dialog .download >> nth=0")
    names = []
    for _ in FILES:
        with page.expect_download() as started:
            page.keyboard.press("Enter")
        names.append(started.value.suggested_filename)
        page.wait_for_selector("dialog .download[aria-busy=true]", state="detached")
        page.keyboard.press("Tab")
    assert names == list(FILES.values())
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")


def test_the_button_is_busy_while_the_file_is_prepared_and_pressed_once(taught):
    page = taught.page
    held = hold(page)
    button = "dialog .download:has(strong:text-is('Model file'))"
    page.click(button)
    page.click(button)
    page.wait_for_selector(f"{button}[aria-busy=true]")
    page.wait_for_selector("dialog [role=status]:has-text('Preparing the file')")
    # The focus stays: a disabled button would lose it.
    assert page.evaluate("document.activeElement.matches('.download')")
    with page.expect_download():
        held[0].continue_()
    page.wait_for_selector(f"{button}[aria-busy=false]")
    assert len(held) == 1


def test_a_refusal_is_shown_next_to_the_button(opened):
    visit = opened(expected=("status of 501",))
    visit.teach("mug", range(2))
    open_dialog(visit)
    detail = "ONNX files need the module onnx: pip install onnx"
    visit.page.route(
        "**/v1/downloads", lambda route: route.fulfill(status=501, json={"detail": detail})
    )
    visit.page.click("dialog .download >> nth=0")
    visit.page.wait_for_selector(f"dialog .problem:has-text('{detail}')")


def test_a_refusal_after_the_dialog_was_closed_is_a_message(opened):
    visit = opened(expected=("status of 503",))
    visit.teach("mug", range(2))
    open_dialog(visit)
    held = hold(visit.page)
    visit.page.click("dialog .download >> nth=0")
    visit.page.wait_for_selector(".download[aria-busy=true]")
    visit.page.keyboard.press("Escape")
    held[0].fulfill(status=503, json={"detail": "too busy"})
    visit.page.wait_for_selector(".note.bad:has-text('Too busy')")


def test_before_anything_is_taught_only_the_audit_log_can_be_saved(visit):
    open_dialog(visit)
    page = visit.page
    assert page.locator("dialog .download:disabled").count() == len(FILES) - 1
    page.wait_for_selector("dialog .download:disabled:has-text('Nothing has been taught yet')")


def test_a_reader_may_download(opened, visit):
    visit.teach("mug", range(2))
    reader = opened(enter=False)
    reader.enter(visit.served.reading)
    open_dialog(reader)
    assert save(reader, "Pictures")[1]


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.nightly)])
def test_the_dialog_fits_a_phone_and_can_be_touched(opened, scheme):
    visit = opened(viewport=PHONE, has_touch=True, is_mobile=True, color_scheme=scheme)
    visit.teach("mug", range(2))
    visit.go("classes")
    visit.page.tap("#download")
    page = visit.page
    page.wait_for_selector("dialog .downloads")
    box = page.locator("dialog").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= PHONE["width"]
    assert page.evaluate("document.querySelector('dialog').scrollWidth") <= box["width"]
    heights = page.evaluate(
        "[...document.querySelectorAll('dialog button')].map((one) => one.offsetHeight)"
    )
    assert min(heights) >= 44
    with page.expect_download():
        page.tap("dialog .download >> nth=0")
