"""An exported page on a phone, in the dark, by keyboard, and for people with disabilities."""

from __future__ import annotations

import pytest

from tests.service.browsing import files
from tests.service.page.conftest import PHONE, SMALL_DESKTOP
from tests.service.page.test_accessibility import STILL, check, every_screen  # noqa: F401


@every_screen
def test_no_screen_has_a_severe_problem(opened, page_file, check, size, scheme):  # noqa: F811
    visit = opened(page_file, viewport=size, color_scheme=scheme, bypass_csp=True)
    page = visit.page
    page.add_style_tag(content=STILL)
    check(page, "try")
    visit.ask(files("bowl", range(50, 52)))
    check(page, "answer")
    visit.teach("plant", range(3))
    page.set_input_files("#files", files("mug", range(60, 62)))
    page.wait_for_selector("#answer .bar:visible")
    check(page, "teach")
    visit.go("review")
    page.wait_for_selector("#review-picture > *")
    check(page, "review")
    visit.go("classes")
    page.wait_for_selector(".class-card img[src]")
    check(page, "classes")
    page.click(".class-card:has-text('plant')")
    page.wait_for_selector("#class-pictures img[src] >> nth=2")
    page.check("#class-pictures input >> nth=0")
    check(page, "class")
    page.click("#save")
    page.wait_for_selector("dialog .downloads")
    check(page, "save")
    page.click("dialog button:has-text('Licences')")
    check(page, "licences")


@pytest.mark.parametrize("size", [SMALL_DESKTOP, PHONE], ids=["desktop", "phone"])
def test_nothing_is_wider_than_the_screen(opened, page_file, size):
    visit = opened(page_file, viewport=size)
    visit.teach("plant", range(2), label="a plant with a rather long name that does not end")
    for view in ("try", "teach", "review", "classes"):
        visit.go(view)
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= size["width"]


def test_what_needs_a_service_is_not_shown(opened, page_file):
    visit = opened(page_file)
    visit.teach("plant", range(2))
    for selector in ("#leave", "#download", "#views a[href='#confusion']", "#add-kind"):
        assert not visit.page.is_visible(selector)
    visit.go("classes")
    visit.page.click(".class-card:has-text('plant')")
    visit.page.wait_for_selector("#class-pictures img[src]")
    for selector in ("#class-rename", "#class-merge", "#class-split", "#class-forget"):
        assert not visit.page.is_visible(selector)


def test_a_class_is_taught_by_keyboard_alone(opened, page_file):
    visit = opened(page_file)
    page = visit.page
    visit.go("teach")
    page.set_input_files("#files", files("plant", range(3)))
    page.wait_for_selector("#tray:not([hidden])")
    page.focus("#label")
    page.keyboard.type("plant")
    page.keyboard.press("Enter")
    page.wait_for_selector("#known-classes:has-text('plant')")
    page.wait_for_selector("#known-classes:has-text('3 pictures')")
    page.focus("#teach-title")
    page.keyboard.press("Control+z")
    page.wait_for_selector("#notes:has-text('Undone')")
    assert visit.counts() == {"bowl": 12, "mug": 12}


def test_signs_say_whether_a_class_has_enough(opened, page_file):
    visit = opened(page_file)
    visit.teach("plant", range(1))
    visit.go("classes")
    visit.page.wait_for_selector(".class-card:has-text('plant') .badge.new")
    visit.page.wait_for_selector(".class-card:has-text('mug'):has-text(' right')")
