"""Ways into the page: addresses with a token, folders, files."""

from __future__ import annotations

from io import BytesIO

import pytest

from tests.harness.pictures import picture as drawn
from tests.service.browsing import files


def test_an_address_with_a_token_signs_in_and_loses_it_at_once(opened):
    visit = opened(enter=False)
    page = visit.page
    page.goto(f"{visit.served.url}#token={visit.served.reading}")
    page.wait_for_selector("#view-try:not([hidden])")
    assert "token" not in page.url
    assert page.evaluate("history.length") <= 2
    # The same in a tab that is open, with another token.
    page.evaluate("token => { location.hash = `#token=${token}`; }", visit.served.teaching)
    page.wait_for_selector("#view-teach:not([hidden])")
    assert "token" not in page.url
    page.reload()
    page.wait_for_selector("#view-teach:not([hidden])")


def test_a_refused_token_of_an_address_does_not_replace_the_one_in_use(opened):
    visit = opened(expected=("the server responded with a status of 401",))
    page = visit.page
    visit.add("mug", range(2))
    page.evaluate("location.hash = '#token=eg_teach_wrong'")
    page.wait_for_selector(".note:has-text('The token in the address is not used')")
    assert "token" not in page.url
    assert page.locator("#tray-pictures li").count() == 2
    visit.teach("mug", range(2, 4))
    assert visit.served.counts() == {"mug": 4}
    # The same when the address is opened in a tab that has a token.
    page.goto("about:blank")
    page.goto(f"{visit.served.url}#token=eg_teach_wrong")
    page.wait_for_selector(".note:has-text('The token in the address is not used')")
    page.wait_for_selector("#view-teach:not([hidden])")


def test_pictures_of_one_token_are_not_shown_to_the_next(visit):
    page = visit.page
    visit.add("mug", range(2))
    visit.go("try")
    page.set_input_files("#try-files", files("mug", range(2, 4)))
    page.wait_for_selector("#try-pictures li >> nth=1")
    for token in (visit.served.reading, visit.served.teaching):
        page.evaluate("token => { location.hash = `#token=${token}`; }", token)
        page.wait_for_selector(
            "#view-teach:visible" if token == visit.served.teaching else "#read-only:visible"
        )
    assert not page.is_visible("#tray")
    visit.go("try")
    assert page.locator("#try-pictures li").count() == 0


def test_a_response_to_the_token_before_is_not_shown(visit):
    page = visit.page
    held = []

    def hold_first(route):
        if held:
            route.fulfill(json={"items": []})
        held.append(route)

    page.route("**/v1/review", hold_first)
    visit.teach("mug", range(2))
    while not held:
        page.wait_for_timeout(20)
    page.evaluate("token => { location.hash = `#token=${token}`; }", visit.served.reading)
    page.wait_for_selector("#read-only:visible")
    example = {"id": 1, "label": "mug", "fine": None, "image": None}
    doubt = {"reason": "doubt", "example": example, "suggestion": "bowl", "probability": 0.9}
    with page.expect_response("**/v1/review"):
        held[0].fulfill(json={"items": [doubt]})
    while len(held) < 2:
        page.wait_for_timeout(20)
    assert page.text_content("#review-count") == ""


def test_the_workspace_is_named_in_the_header_and_the_title(visit):
    name = visit.served.ask("v1/status")["name"]
    assert visit.page.text_content("#brand-name") == name
    assert visit.page.title() == f"{name} · Teach"
    visit.go("classes")
    assert visit.page.title() == f"{name} · Classes"


def in_folder(folder, thing, seeds):
    return [{**one, "folder": folder} for one in files(thing, seeds)]


def test_dropped_folders_are_taught_as_classes_with_one_question_and_one_undo(visit):
    page = visit.page
    dropped = in_folder("mug", "mug", range(3)) + in_folder("bowl", "bowl", range(2))
    visit.drop(dropped)
    page.wait_for_selector("dialog:has-text('mug: 3 pictures')")
    page.click("dialog .primary:has-text('Teach 5 pictures')")
    page.wait_for_selector("#undo:has-text('5 pictures of 2 classes')")
    visit.settle()
    assert visit.served.counts() == {"mug": 3, "bowl": 2}
    page.reload()
    page.wait_for_selector("#undo:has-text('5 pictures of 2 classes')")
    page.click("#undo")
    page.wait_for_selector(".note:has-text('were removed.')")
    assert visit.served.counts() == {}


def test_pictures_of_a_folder_that_are_known_are_counted(visit):
    visit.teach("mug", range(2))
    visit.drop(in_folder("mug", "mug", range(3)))
    visit.page.click("dialog .primary:has-text('Teach 3 pictures')")
    visit.page.wait_for_selector(".note:has-text('2 of these pictures were taught already.')")


def test_files_that_are_left_out_are_named(opened):
    visit = opened(expected=("status of 415",))
    text = {"buffer": b"no picture", "folder": "mug"}
    bad = {**text, "name": "bad.png", "mimeType": "image/png"}
    notes = {**text, "name": "notes.txt", "mimeType": "text/plain"}
    visit.drop([*in_folder("mug", "mug", range(1)), bad, notes])
    visit.page.wait_for_selector(".note:has-text('notes.txt'):has-text('skipped: not a picture')")
    visit.page.click("dialog .primary:has-text('Teach 2 pictures')")
    visit.page.wait_for_selector(".note:has-text('bad.png'):has-text('not taught as mug')")
    # The other picture is still being taught, which the next test would see.
    visit.settle()


FAKE = {"name": "fake.jpg", "mimeType": "image/jpeg", "buffer": b"no picture"}


def test_a_file_that_is_no_picture_is_named_next_to_its_tile_until_the_others_are_taught(opened):
    visit = opened(expected=("status of 415",))
    page = visit.page
    visit.teach("bowl", range(1))
    page.set_input_files("#files", [*files("mug", range(2)), FAKE])
    page.wait_for_selector("#tray-problem:has-text('fake.jpg'):has-text('is left out')")
    assert "not an image of a known format" in page.inner_text("#tray-problem")
    page.wait_for_selector("#tray-pictures .tile:has-text('No preview'):has-text('Left out')")
    page.click("#tray-pictures .tile:has-text('fake.jpg')")
    assert page.is_disabled("#take")
    page.fill("#label", "mug")
    page.click("#take-all:has-text('Teach all 2 as mug')")
    page.wait_for_selector("#tray", state="hidden")
    visit.settle()
    assert visit.served.counts() == {"bowl": 1, "mug": 2}


def test_a_file_that_is_no_picture_is_left_out_of_the_first_lesson(opened):
    visit = opened(expected=("status of 415",))
    page = visit.page
    page.set_input_files("#files", [*files("mug", range(1)), FAKE])
    page.wait_for_selector("#tray:not([hidden])")
    page.fill("#label", "mug")
    page.click("#take-all")
    page.wait_for_selector(".note:has-text('fake.jpg'):has-text('not taught as mug')")
    visit.settle()
    assert visit.served.counts() == {"mug": 1}
    assert not page.is_visible("#tray")


def test_a_file_that_is_no_picture_is_named_where_it_is_tried(opened):
    visit = opened(expected=("status of 415",))
    page = visit.page
    visit.teach("mug", range(1))
    visit.go("try")
    page.set_input_files("#try-files", [FAKE])
    page.wait_for_selector("#try-answer .verdict.problem:has-text('fake.jpg')")
    assert not page.is_visible("#try-teach")


def test_dropped_folders_can_be_added_without_names(visit):
    page = visit.page
    visit.drop(in_folder("holiday", "mug", range(3)))
    page.click("dialog button:has-text('Add without names')")
    page.wait_for_selector("#tray-title:has-text('3 pictures')")
    assert visit.served.counts() == {}


def test_a_folder_with_nearly_the_name_of_a_class_is_asked_about(visit):
    page = visit.page
    visit.teach("mug", range(2), label="mug")
    visit.drop(in_folder("Mug", "mug", range(2, 4)))
    page.click("dialog .primary:has-text('Teach 2 pictures')")
    page.click("dialog .primary:has-text('Use mug')")
    page.wait_for_selector("#undo:has-text('2 pictures of mug')")
    visit.settle()
    assert visit.served.counts() == {"mug": 4}


def test_pictures_are_added_on_the_page_of_a_class(visit):
    page = visit.page
    visit.teach("mug", range(2))
    visit.go("classes")
    page.click(".class-card")
    page.wait_for_selector("#class-title:has-text('mug')")
    page.set_input_files("#class-files", files("mug", range(2, 5)))
    page.wait_for_selector("#class-pictures li >> nth=4")
    page.wait_for_selector("#undo:has-text('Undo: 3 pictures of mug')")
    visit.drop(files("mug", range(5, 7)))
    page.click("dialog:has-text('2 pictures will be taught as mug') .primary")
    page.wait_for_selector("#class-pictures li >> nth=6")
    assert visit.served.counts() == {"mug": 7}


def test_pictures_for_a_class_that_was_forgotten_are_not_taught(visit):
    page = visit.page
    visit.teach("mug", range(2))
    visit.teach("bowl", range(2))
    visit.go("classes")
    page.click(".class-card:has-text('mug')")
    page.wait_for_selector("#class-title:has-text('mug')")
    visit.served.ask("v1/forget", {"label": "mug"})
    page.wait_for_selector("#class-gone:visible")
    page.set_input_files("#class-files", files("mug", range(2, 5)))
    page.wait_for_selector(".note:has-text('This class no longer exists.')")
    visit.settle()
    assert visit.served.counts() == {"bowl": 2}


def test_a_picture_is_seen_large_and_selected_by_its_box(visit):
    page = visit.page
    visit.teach("mug", range(3))
    visit.go("classes")
    page.click(".class-card")
    page.wait_for_selector("#class-pictures img[src] >> nth=2")
    page.click("#class-pictures .open >> nth=0")
    page.wait_for_selector(".large-view img[src]")
    assert not page.is_visible("#chosen")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector(".large-view:has-text('2 of 3')")
    page.keyboard.press("Escape")
    page.wait_for_selector(".large-view", state="detached")
    page.check("#class-pictures input >> nth=0")
    page.wait_for_selector("#chosen-count:text-is('1 selected')")


def test_a_photograph_that_the_browser_cannot_read_is_sent_as_it_is(visit):
    content = drawn("HEIF", size=(40, 30))
    photograph = {"name": "IMG_1.HEIC", "mimeType": "image/heic", "buffer": content}
    page = visit.page
    page.set_input_files("#files", [photograph])
    page.wait_for_selector("#tray:not([hidden])")
    page.fill("#label", "mug")
    page.click("#take")
    visit.settle()
    assert visit.served.counts() == {"mug": 1}


def test_a_picture_that_only_the_browser_can_read_is_drawn_again(visit):
    from PIL import Image, features

    if not features.check("avif"):
        pytest.skip("this Pillow cannot write AVIF")
    content = BytesIO()
    Image.new("RGB", (40, 30), (190, 60, 40)).save(content, "AVIF")
    picture = {"name": "a.avif", "mimeType": "image/avif", "buffer": content.getvalue()}
    page = visit.page
    page.set_input_files("#files", [picture])
    page.wait_for_selector("#tray:not([hidden])")
    page.fill("#label", "mug")
    page.click("#take")
    visit.settle()
    assert visit.served.counts() == {"mug": 1}


def test_dragged_pictures_are_welcomed_with_words(visit):
    page = visit.page

    def drag(kind):
        page.evaluate(
            """(kind) => {
                const dataTransfer = new DataTransfer();
                dataTransfer.items.add(new File([], "a.png", { type: "image/png" }));
                document.body.dispatchEvent(new DragEvent(kind, { dataTransfer, bubbles: true }));
            }""",
            kind,
        )

    drag("dragenter")
    page.wait_for_selector("#drop:has-text('Drop pictures to add them')")
    drag("dragleave")
    page.wait_for_selector("#drop", state="hidden")
    visit.go("try")
    drag("dragenter")
    page.wait_for_selector("#drop:has-text('Drop pictures to try them')")
