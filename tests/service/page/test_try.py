"""Trying the model: what is shown there is predicted and not kept."""

from __future__ import annotations

from tests.service.browsing import files


def assert_nothing_kept(visit, n_classes=2):
    page = visit.page
    visit.go("teach")
    assert not page.is_visible("#tray")
    assert page.text_content("#review-count") == ""
    assert len(visit.served.counts()) == n_classes
    leaving = "!dispatchEvent(new Event('beforeunload', { cancelable: true }))"
    assert not page.evaluate(leaving)


def taught(visit):
    visit.teach("mug", range(3))
    visit.teach("bowl", range(3))
    visit.go("try")


def test_dropped_and_chosen_pictures_are_answered_and_not_kept(visit):
    page = visit.page
    taught(visit)
    visit.drop(files("mug", range(10, 11)))
    page.wait_for_selector("#try-answer .verdict:has-text('This is mug')")
    page.set_input_files("#try-files", files("bowl", range(10, 12)))
    page.wait_for_selector("#try-answer .verdict:has-text('This is bowl')")
    page.wait_for_selector("#try-pictures li:has-text('bowl') >> nth=1")
    page.click("#try-pictures .tile:has-text('mug')")
    page.wait_for_selector("#try-answer .verdict:has-text('This is mug')")
    assert page.locator("#try-answer button:visible").count() == 0
    assert_nothing_kept(visit)
    visit.go("try")
    page.click("#try-clear")
    page.wait_for_selector("#try-viewer-empty:visible")


def test_a_prediction_that_changes_is_announced_again(visit):
    page = visit.page
    taught(visit)
    page.set_input_files("#try-files", files("mug", range(10, 11)))
    page.wait_for_selector("#spoken:has-text('mug')", state="attached")

    def refuse(route):
        answer = route.fetch().json()
        unknown = [{**one, "known": False, "label": None} for one in answer["predictions"]]
        route.fulfill(json={**answer, "predictions": unknown})

    page.route("**/v1/predictions*", refuse)
    # After a change of the workspace the page asks again.
    visit.served.ask("v1/rename", {"label": "bowl", "to": "dish"})
    visit.settle()
    page.wait_for_selector("#try-answer .verdict:has-text('know this')")
    page.wait_for_selector("#spoken:has-text('know this')", state="attached")


def test_the_camera_is_answered_and_nothing_is_kept(visit):
    page = visit.page
    taught(visit)
    page.click("#try-camera-start")
    page.wait_for_selector("#try-answer .verdict:has-text('This is mug')")
    page.click("#try-camera-stop")
    page.wait_for_selector("#try-camera-start:visible")
    assert_nothing_kept(visit)


def test_a_tried_picture_can_be_taught(visit):
    page = visit.page
    taught(visit)
    visit.drop(files("plant", range(1)))
    page.click("#try-teach")
    page.wait_for_selector("#tray-title:has-text('1 picture')")
    page.wait_for_selector("#label:focus")
    page.keyboard.type("plant")
    page.keyboard.press("Enter")
    visit.settle()
    assert visit.served.counts()["plant"] == 1
