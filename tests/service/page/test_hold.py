"""Holding the button takes pictures until it is released, whatever moves."""

from __future__ import annotations

import pytest

from tests.service.page.conftest import PHONE, SMALL_DESKTOP

MANY = 4


@pytest.mark.parametrize("size", [SMALL_DESKTOP, PHONE])
def test_holding_takes_pictures_of_a_new_class_as_one_step(opened, size):
    visit = opened(viewport=size)
    page = visit.page
    visit.teach("bowl", range(3))
    page.click("#camera-start")
    page.fill("#label", "mug")
    page.wait_for_selector("#take:enabled:has-text('Teach as mug')")
    # The first answer of the camera changes the layout as well.
    page.wait_for_selector("#answer .verdict:not(.muted)")
    box = page.locator("#take").bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 20)
    page.mouse.down()
    page.wait_for_selector("#progress:has-text('2 p')")
    # Leaving the button does not end it.
    page.mouse.move(5, 5)
    page.wait_for_function(
        "n => parseInt(document.querySelector('#progress').textContent.match(/\\d+ pic/)) >= n",
        arg=MANY,
    )
    assert page.locator("#take").bounding_box()["y"] == pytest.approx(box["y"], abs=1)
    page.mouse.up()
    visit.settle()
    taken = visit.served.counts()["mug"]
    assert taken >= MANY
    page.wait_for_timeout(800)
    assert visit.served.counts()["mug"] == taken
    page.wait_for_selector(f"#undo:has-text('{taken} pictures of mug')", state="attached")
    page.click("#undo")
    page.wait_for_selector(f".note:has-text('Undone: {taken} pictures of mug were removed.')")
    assert visit.served.counts() == {"bowl": 3}
