"""Each taught example reaches the service once, despite failures."""

from __future__ import annotations

from tests.service.browsing import Visit

UNREACHABLE = "Failed to load resource: net::ERR"


def test_examples_taught_offline_are_sent_once_when_the_service_is_back(opened):
    visit = opened(expected=(UNREACHABLE,))
    page = visit.page
    visit.add("mug", range(2))
    page.context.set_offline(True)
    page.fill("#label", "mug")
    page.click("#take-all")
    page.wait_for_selector("#offline:has-text('2 pictures stored here')")
    page.wait_for_selector("#undo:has-text('not sent yet')")
    page.wait_for_selector(".note:has-text('to be sent as soon as possible')")
    page.context.set_offline(False)
    page.wait_for_selector("#offline", state="hidden")
    visit.settle()
    # Nothing waits any more, and nothing says so.
    assert page.locator(".note:has-text('to be sent')").count() == 0
    assert visit.served.counts() == {"mug": 2}


def test_an_example_whose_response_was_lost_is_not_taught_twice(opened):
    visit = opened(expected=(UNREACHABLE,))
    keys = []

    def losing(route):
        keys.append(route.request.headers["idempotency-key"])
        if len(keys) > 1:
            route.continue_()
            return
        route.fetch()
        route.abort()

    visit.page.route("**/v1/examples", losing)
    visit.add("mug", range(1))
    visit.page.fill("#label", "mug")
    visit.page.click("#take")
    visit.settle()
    assert len(keys) == 2
    assert len(set(keys)) == 1
    assert visit.served.counts() == {"mug": 1}


def test_unsent_examples_survive_a_closed_tab(opened):
    visit = opened(expected=(UNREACHABLE,))
    visit.add("mug", range(1))
    context = visit.page.context
    context.set_offline(True)
    visit.page.fill("#label", "mug")
    visit.page.click("#take")
    visit.page.wait_for_selector("#offline:has-text('1 picture stored here')")
    visit.page.close()
    context.set_offline(False)
    later = Visit(context.new_page(), visit.served)
    later.enter()
    later.page.wait_for_selector("#known-classes:has-text('mug')")
    assert visit.served.counts() == {"mug": 1}


def test_pictures_that_wait_for_another_token_are_counted(opened):
    visit = opened(expected=(UNREACHABLE, "status of 401"))
    page = visit.page
    visit.add("mug", range(1))
    page.context.set_offline(True)
    page.fill("#label", "mug")
    page.click("#take")
    page.wait_for_selector("#offline:has-text('1 picture stored here')")
    # As a service that was started again, with another token.
    refusal = {"status": 401, "json": {"detail": "the token is not valid"}}
    page.route("**/v1/**", lambda route: route.fulfill(**refusal))
    page.context.set_offline(False)
    said = "1 picture stored here will be sent when you have entered."
    page.wait_for_selector(f"#enter-problem:has-text('{said}')")
    page.unroute("**/v1/**")
    visit.enter()
    visit.settle()
    assert visit.served.counts() == {"mug": 1}


def test_the_page_opens_and_teaches_offline(opened):
    visit = opened(expected=(UNREACHABLE,), service_workers="allow")
    page = visit.page
    page.evaluate("navigator.serviceWorker.ready")
    page.context.set_offline(True)
    page.reload()
    page.wait_for_selector("#offline:has-text('cannot be reached')")
    visit.add("mug", range(1))
    page.fill("#label", "mug")
    page.click("#take")
    page.wait_for_selector("#offline:has-text('1 picture stored here')")
    page.context.set_offline(False)
    visit.settle()
    assert visit.served.counts() == {"mug": 1}


def test_pictures_that_the_browser_cannot_store_are_reported(opened):
    visit = opened(expected=(UNREACHABLE,), enter=False)
    visit.page.context.add_init_script(
        "IDBObjectStore.prototype.put = () => { throw new DOMException('full'); };"
    )
    visit.enter()
    page = visit.page
    visit.add("mug", range(1))
    page.context.set_offline(True)
    page.fill("#label", "mug")
    page.click("#take")
    page.wait_for_selector("#offline:has-text('Leave this tab open')")
    leaving = page.evaluate(
        "!dispatchEvent(new Event('beforeunload', { cancelable: true }))",
    )
    assert leaving
    page.context.set_offline(False)
    visit.settle()
    assert visit.served.counts() == {"mug": 1}


def test_an_example_sent_by_another_window_is_not_reported_as_withdrawn(opened):
    visit = opened(expected=(UNREACHABLE,))
    page = visit.page
    visit.add("mug", range(1))
    # Only this window is without the service.
    page.route("**/*", lambda route: route.abort())
    page.evaluate("dispatchEvent(new Event('offline'))")
    page.fill("#label", "mug")
    page.click("#take")
    page.wait_for_selector("#offline:has-text('1 picture stored here')")
    other = Visit(page.context.new_page(), visit.served)
    other.enter()
    other.page.wait_for_selector("#known-classes:has-text('mug')")
    page.click("#undo")
    page.wait_for_selector(".note:has-text('Another window of this page')")
    assert visit.served.counts() == {"mug": 1}
