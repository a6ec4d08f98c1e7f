"""The name of a picture: empty for new ones, on the button, and asked about in case of doubt."""

from __future__ import annotations

import pytest

from tests.service.browsing import files
from tests.service.page.conftest import PHONE, SMALL_DESKTOP

# The service answers so if another class has the picture; the page then asks.
TAKEN = "the server responded with a status of 409"

MAIN_BUTTONS = """() => [...document.querySelectorAll("button.primary:enabled, .file.primary span")]
    .filter((one) => one.checkVisibility())
    .map((one) => one.textContent)"""


def main_buttons(page):
    return page.evaluate(MAIN_BUTTONS)


@pytest.mark.parametrize("way", ["drop", "choose"])
def test_the_name_is_empty_for_new_pictures_and_stands_on_the_button(visit, way):
    page = visit.page
    visit.teach("mug", range(3))
    assert page.input_value("#label") == "mug"
    if way == "drop":
        visit.drop(files("bowl", range(6)))
    else:
        visit.add("bowl", range(6))
    page.wait_for_selector("#take-all:has-text('Teach all 6 pictures')")
    assert page.input_value("#label") == ""
    page.fill("#label", "bowl")
    page.wait_for_selector("#take-all:has-text('Teach all 6 as bowl')")
    page.press("#label", "Enter")
    visit.settle()
    assert visit.served.counts() == {"mug": 3, "bowl": 6}


def test_the_name_of_one_picture_is_not_used_for_the_next(visit):
    page = visit.page
    visit.add("mug", range(2))
    page.fill("#label", "mug")
    page.click("#take")
    page.wait_for_selector("#tray-title:has-text('1 picture')")
    assert page.input_value("#label") == ""
    page.fill("#label", "cup")
    page.wait_for_selector("#take:has-text('Teach as cup')")


def test_a_screen_has_one_main_button(visit):
    page = visit.page
    assert main_buttons(page) == ["Use the camera"]
    visit.teach("mug", range(3))
    visit.teach("bowl", range(3))
    visit.add("mug", range(10, 11))
    page.wait_for_selector("#answer .verdict:has-text('This is mug')")
    assert main_buttons(page) == ["Yes, it is mug"]
    page.fill("#label", "cup")
    assert main_buttons(page) == ["Teach as cup"]
    visit.add("mug", range(11, 13))
    assert main_buttons(page) == ["Teach all 3 pictures"]
    page.fill("#label", "mug")
    assert main_buttons(page) == ["Teach all 3 as mug"]
    visit.go("review")
    page.wait_for_selector("#review-accept:has-text('Teach as mug')")
    assert len(main_buttons(page)) == 1
    visit.go("try")
    assert main_buttons(page) == ["Use the camera"]


def test_choosing_pictures_is_the_main_button_where_there_is_no_camera(opened):
    visit = opened(enter=False)
    visit.page.context.add_init_script(
        "Object.defineProperty(navigator, 'mediaDevices', { value: undefined });"
    )
    visit.enter()
    assert main_buttons(visit.page) == ["Choose pictures"]


@pytest.mark.parametrize("size", [SMALL_DESKTOP, PHONE])
@pytest.mark.parametrize("view", ["teach", "try"])
def test_the_ways_in_are_always_visible(opened, size, view):
    visit = opened(viewport=size)
    page = visit.page
    prefix = "" if view == "teach" else "try-"
    visit.go(view)

    def check():
        page.evaluate("scrollTo(0, 0)")
        bottom = page.locator("#views").bounding_box()["y"] if size == PHONE else size["height"]
        cameras = [f"#{prefix}camera-{state}" for state in ("start", "back", "stop")]
        (camera,) = (one for one in cameras if page.is_visible(one))
        for part in (camera, f"label:has(#{prefix}files)"):
            box = page.locator(part).bounding_box()
            assert box["y"] >= 0
            assert box["y"] + box["height"] <= bottom

    check()
    page.set_input_files(f"#{prefix}files", files("mug", range(6)))
    page.wait_for_selector(f"#{prefix}still canvas")
    check()
    tiles = page.locator("#tray-pictures" if view == "teach" else "#try-pictures").bounding_box()
    bottom = page.locator("#views").bounding_box()["y"] if size == PHONE else size["height"]
    assert tiles["y"] + min(tiles["height"], 88) <= bottom
    page.click(f"#{prefix}camera-start")
    page.wait_for_selector(f"#{prefix}video:visible")
    check()


def test_a_first_class_is_not_taken_for_an_answer(visit):
    page = visit.page
    visit.teach("mug", range(3))
    visit.add("bowl", range(1))
    page.wait_for_selector("#answer .verdict:has-text('I know only mug so far.')")
    assert "%" not in page.inner_text("#view-teach")
    visit.go("review")
    page.wait_for_selector("#review-hint:has-text('I know only')")
    assert "%" not in page.inner_text("#view-review")


def test_a_name_that_nearly_exists_is_asked_about(visit):
    page = visit.page
    visit.teach("mug", range(2), label="sunflower")
    visit.add("mug", range(2, 3))
    page.fill("#label", "Sun flower ")
    page.press("#label", "Enter")
    page.wait_for_selector("dialog:has-text('There is a class sunflower. Use it?')")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    assert page.locator("#tray-pictures li").count() == 1
    page.click("#take")
    page.click("dialog .primary:has-text('Use sunflower')")
    visit.settle()
    assert visit.served.counts() == {"sunflower": 3}
    visit.add("bowl", range(1))
    page.fill("#label", "Sunflower")
    page.press("#label", "Enter")
    page.click("dialog button:has-text('New class Sunflower')")
    visit.settle()
    assert visit.served.counts() == {"sunflower": 3, "Sunflower": 1}


def test_a_picture_of_another_class_is_moved_after_asking(opened):
    visit = opened(expected=(TAKEN,))
    page = visit.page
    visit.teach("mug", range(3), label="sunflower")
    visit.teach("bowl", range(2), label="rose")
    visit.add("mug", range(2))
    page.fill("#label", "rose")
    page.click("#take-all")
    page.wait_for_selector("dialog:has-text('2 of these pictures are already taught (sunflower)')")
    # The question comes by itself: Enter, typed for something else, changes nothing.
    page.wait_for_selector("dialog button:focus:has-text('Leave them')")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog", state="detached")
    visit.settle()
    assert visit.served.counts() == {"sunflower": 3, "rose": 2}
    assert not page.is_visible("#tray")
    visit.add("mug", range(1))
    page.fill("#label", "rose")
    page.click("#take")
    page.wait_for_selector("dialog:has-text('This picture is already sunflower. Move it to rose?')")
    page.click("dialog .primary")
    page.wait_for_selector(".note:has-text('Moved 1 picture to rose (3 in all).')")
    visit.settle()
    assert visit.served.counts() == {"sunflower": 2, "rose": 3}
    page.wait_for_selector("#undo:has-text('Undo: moved 1 picture to rose')")
    page.click("#undo")
    page.wait_for_selector(".note:has-text('Undone: moved 1 picture to rose.')")
    assert not page.is_visible("#tray")
    assert visit.served.counts() == {"sunflower": 3, "rose": 2}


def test_undo_of_taught_and_moved_pictures_restores_only_the_taught_ones(opened):
    visit = opened(expected=(TAKEN,))
    page = visit.page
    visit.teach("mug", range(3), label="sunflower")
    visit.teach("bowl", range(2), label="rose")
    visit.add("mug", range(1))
    visit.add("bowl", range(2, 4))
    page.fill("#label", "rose")
    page.click("#take-all")
    page.click("dialog .primary:has-text('Move it')")
    page.wait_for_selector("#undo:has-text('Undo: 3 changes')")
    visit.settle()
    assert visit.served.counts() == {"sunflower": 2, "rose": 5}
    page.click("#undo")
    page.wait_for_selector(".note:has-text('Undone: 3 changes.')")
    assert visit.served.counts() == {"sunflower": 3, "rose": 2}
    assert page.locator("#tray-pictures li").count() == 2


def test_the_kind_is_asked_for_only_after_the_first_class(visit):
    page = visit.page
    for part in ("#add-kind", "#kind"):
        assert not page.is_visible(part)
    visit.teach("mug", range(2))
    visit.add("mug", range(2, 3))
    page.click("#add-kind")
    page.wait_for_selector("#kind:focus")
    page.keyboard.type("red")
    page.fill("#label", "mug")
    page.press("#label", "Enter")
    visit.settle()
    (entry,) = visit.served.ask("v1/classes")["items"]
    assert [kind["name"] for kind in entry["fine"]] == ["red"]
