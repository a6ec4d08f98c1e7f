"""The view of classes that are mistaken for each other."""

from __future__ import annotations

import pytest


@pytest.fixture
def measured(visit):
    """A page with two classes, and a measurement that the test writes itself."""
    visit.teach("mug", range(3))
    visit.teach("bowl", range(3))

    def show(**confusion):
        sent = {"classes": ["mug", "bowl"], "n_classes": 2, "event": 6, **confusion}
        visit.page.route("**/v1/confusion?*", lambda route: route.fulfill(json=sent))
        visit.go("confusion")
        visit.page.wait_for_selector("#confusion-table td")
        return visit.page

    return show


def test_unknown_pictures_are_counted_once(measured):
    page = measured(counts=[[4, 6], [0, 10]], unknown=[5, 0])
    page.wait_for_selector("#confusion-pairs li:has-text('6 of 10 pictures (60%)')")
    assert page.inner_text("#confusion-table thead").split()[-1] == "unknown"
    page.wait_for_selector("#table-note:has-text('counted in one of the other columns too.')")


def test_an_older_measurement_has_no_column_of_unknown_pictures(measured):
    page = measured(counts=[[4, 6], [0, 10]], unknown=None)
    page.wait_for_selector("#confusion-pairs li:has-text('mug mistaken for bowl')")
    assert page.locator("#confusion-table thead th").count() == 3
    assert page.locator("#confusion-table tbody tr >> nth=0 >> td").count() == 2
    assert not page.is_visible("#table-unknown")


def test_a_cell_says_that_not_all_of_its_pictures_are_listed(measured):
    page = measured(counts=[[4, 6], [0, 10]], unknown=[5, 0])
    page.route("**/v1/confusion/examples?*", lambda route: route.fulfill(json={"items": []}))
    page.click("#confusion-table button:text-is('6')")
    said = "mug mistaken for bowl: 6 pictures. Some of the pictures are not listed."
    page.wait_for_selector(f"dialog:has-text('{said}')")
