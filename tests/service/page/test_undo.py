"""Undo reverts the change that its button names."""

from __future__ import annotations

from tests.service.page.conftest import PHONE

# A prediction may be pending while the last class is removed.
NOTHING_KNOWN = "the server responded with a status of 409"
UNREACHABLE = "Failed to load resource: net::ERR"


def test_undo_does_what_its_button_says(opened):
    visit = opened(expected=(NOTHING_KNOWN,))
    visit.teach("mug", range(2))
    visit.teach("bowl", range(1))
    visit.page.wait_for_selector("#undo:has-text('Undo: 1 picture of bowl')")
    visit.page.click("#undo")
    visit.page.wait_for_selector("#undo:has-text('Undo: 2 pictures of mug')")
    # The picture is there again, without a name.
    assert visit.page.locator("#tray-pictures li").count() == 1
    visit.page.click("h1:visible")
    visit.page.keyboard.press("Control+z")
    visit.page.wait_for_selector("#tray-pictures li >> nth=2")
    assert visit.served.counts() == {}


def test_the_button_names_the_classes_of_a_step_after_a_reload_and_an_undo(opened):
    visit = opened(expected=(NOTHING_KNOWN,))
    visit.teach("mug", range(2))
    visit.teach("bowl", range(3))
    visit.page.reload()
    visit.page.wait_for_selector("#undo:has-text('Undo: 3 pictures of bowl')")
    visit.page.click("#undo")
    visit.page.wait_for_selector("#undo:has-text('Undo: 2 pictures of mug')")
    assert visit.page.inner_text("#undo") == "Undo: 2 pictures of mug"


def test_a_phone_shows_what_is_undone_below_the_word(opened):
    visit = opened(viewport=PHONE, has_touch=True, is_mobile=True)
    visit.teach("mug", range(2))
    page = visit.page
    page.get_by_role("button", name="Undo 2 pictures of mug", exact=True).wait_for()
    shown = page.locator("#undo-what")
    assert shown.evaluate("one => one.scrollWidth <= one.clientWidth")
    assert shown.bounding_box()["height"] > 10


def slow_teaching(page):
    """Lessons wait on their way until they are released."""
    held = []

    def hold(route):
        held.append(route)

    page.route("**/v1/examples", hold)
    return held


def test_undo_waits_for_the_example_that_is_being_sent_and_undoes_just_that(opened):
    visit = opened(expected=(NOTHING_KNOWN,))
    page = visit.page
    visit.teach("mug", range(1))
    held = slow_teaching(page)
    visit.add("bowl", range(1))
    page.fill("#label", "bowl")
    with page.expect_request("**/v1/examples"):
        page.click("#take")
    page.wait_for_selector("#undo:has-text('Undo: 1 picture of bowl'):not(:has-text('not sent'))")
    page.click("#undo")
    held[0].continue_()
    page.wait_for_selector(".note:has-text('Undone: 1 picture of bowl was removed.')")
    assert visit.served.counts() == {"mug": 1}


def test_undo_of_an_example_that_is_refused_undoes_nothing(opened):
    visit = opened(expected=("status of 422",))
    page = visit.page
    visit.teach("mug", range(1))
    held = slow_teaching(page)
    visit.add("bowl", range(1))
    page.fill("#label", "bowl")
    with page.expect_request("**/v1/examples"):
        page.click("#take")
    page.click("#undo")
    held[0].fulfill(status=422, json={"detail": "no such thing"})
    page.wait_for_selector(".note:has-text('bowl0.png'):has-text('not taught as bowl')")
    visit.settle()
    assert visit.served.counts() == {"mug": 1}


def test_an_example_that_may_have_been_learnt_is_not_reported_as_withdrawn(opened):
    visit = opened(expected=(UNREACHABLE, NOTHING_KNOWN))
    page = visit.page
    page.route("**/v1/examples", lambda route: (route.fetch(), route.abort()))
    page.route("**/healthz", lambda route: route.abort())
    visit.add("bowl", range(1))
    page.fill("#label", "bowl")
    page.click("#take")
    page.wait_for_selector("#undo:has-text('not sent yet')")
    page.click("#undo")
    page.wait_for_selector(".note:has-text('is not known yet')")
    page.unroute("**/v1/examples")
    page.unroute("**/healthz")
    visit.settle()
    page.click("#undo")
    page.wait_for_selector(".note:has-text('Undone: 1 picture of bowl was removed.')")
    assert visit.served.counts() == {}


def test_what_was_taught_together_is_undone_together(opened):
    visit = opened(expected=(NOTHING_KNOWN,))
    page = visit.page
    visit.teach("mug", range(2))
    visit.teach("bowl", range(6), label="passion flower")
    page.wait_for_selector("#undo:has-text('Undo: 6 pictures of passion flower')")
    page.click("#undo")
    said = "Undone: 6 pictures of passion flower were removed."
    page.wait_for_selector(f".note:has-text('{said}')")
    assert visit.served.counts() == {"mug": 2}
    assert page.locator("#tray-pictures li").count() == 6
    page.wait_for_selector("#undo:has-text('Undo: 2 pictures of mug')")


def test_undo_while_pictures_are_sent_takes_back_all_of_them(opened):
    visit = opened(expected=(NOTHING_KNOWN,))
    page = visit.page
    held = slow_teaching(page)
    visit.add("mug", range(4))
    page.fill("#label", "mug")
    with page.expect_request("**/v1/examples"):
        page.click("#take-all")
    # The request is seen before it is held.
    while not held:
        page.wait_for_timeout(20)
    held[0].continue_()
    page.wait_for_function("document.querySelector('#undo').title.includes('4 pictures of mug')")
    while len(held) < 2:
        page.wait_for_timeout(20)
    page.click("#undo")
    held[1].continue_()
    page.wait_for_selector(".note:has-text('Undone: 2 pictures of mug were removed.')")
    assert visit.served.counts() == {}
    assert page.locator("#tray-pictures li").count() == 4


def test_a_long_name_in_the_undo_button_leaves_the_tabs_as_they_are(visit):
    page = visit.page
    before = page.locator("#views").bounding_box()
    visit.teach("mug", range(1), label="a name of a class that is much too long for a button")
    page.wait_for_selector("#undo:enabled")
    after = page.locator("#views").bounding_box()
    assert (after["height"], after["width"]) == (before["height"], before["width"])
    assert "much too long" in page.get_attribute("#undo", "title")
