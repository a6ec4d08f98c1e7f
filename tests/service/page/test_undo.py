"""Undo reverts the change that its button names."""

from __future__ import annotations

# A prediction may be pending while the last class is removed.
NOTHING_KNOWN = "the server responded with a status of 409"
UNREACHABLE = "Failed to load resource: net::ERR"


def test_undo_does_what_its_button_says(opened):
    visit = opened(expected=(NOTHING_KNOWN,))
    visit.teach("mug", range(2))
    visit.teach("bowl", range(1))
    visit.page.wait_for_selector("#undo:has-text('Undo: taught bowl')")
    visit.page.click("#undo")
    visit.page.wait_for_selector("#undo:has-text('Undo: taught mug')")
    # The picture is there again, without a name.
    assert visit.page.locator("#tray-pictures li").count() == 1
    visit.page.click("h1:visible")
    visit.page.keyboard.press("Control+z")
    visit.page.keyboard.press("Control+z")
    visit.page.wait_for_selector("#tray-pictures li >> nth=2")
    assert visit.served.counts() == {}


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
    page.wait_for_selector("#undo:has-text('Undo: taught bowl'):not(:has-text('not sent'))")
    page.click("#undo")
    held[0].continue_()
    page.wait_for_selector(".note:has-text('Undone: taught bowl')")
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
    page.wait_for_selector(".note:has-text('Not taught as bowl')")
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
    page.wait_for_selector(".note:has-text('Undone: taught bowl')")
    assert visit.served.counts() == {}
