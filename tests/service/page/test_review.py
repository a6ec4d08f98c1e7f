"""Reviewing pictures one by one."""

from __future__ import annotations


def test_pictures_are_reviewed_by_keys_least_certain_first(visit):
    page = visit.page
    visit.teach("mug", range(3))
    visit.teach("bowl", range(3))
    visit.add("mug", range(10, 12))
    visit.add("plant", range(1))
    visit.add("bowl", range(10, 12))
    page.wait_for_selector("#tray-pictures:not(:has-text('…'))")
    visit.go("review")

    def pressed(key, left):
        page.keyboard.press(key)
        page.wait_for_selector(f"#review-count:text-is('{left}')")

    page.wait_for_selector("#review-card:focus")
    # The plant is neither, so it comes first.
    page.keyboard.press("n")
    page.keyboard.type("plant")
    pressed("Enter", "4")
    pressed("s", "3")
    pressed("1", "2")
    visit.settle()
    page.wait_for_selector("#undo:not(:has-text('plant'))")
    pressed("u", "3")
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open]")
    page.keyboard.press("Escape")
    visit.settle()
    assert visit.served.counts() == {"mug": 3, "bowl": 3, "plant": 1}


def test_enter_keeps_the_taught_name_and_the_picture_is_not_shown_again(visit):
    page = visit.page
    # A bowl by a mistake of the hand; everything else goes by its looks.
    visit.teach("mug", range(20, 21), label="bowl")
    visit.teach("mug", range(6))
    visit.teach("bowl", range(6))

    def doubted():
        return {item["example"]["id"] for item in visit.served.ask("v1/review")["items"]}

    visit.go("review")
    page.wait_for_selector("#review-question:has-text('bowl')")
    assert page.text_content("#review-accept-what") == "Keep bowl"
    page.wait_for_selector(".choice:has-text('Move to mug')")
    before = doubted()
    page.keyboard.press("Enter")
    page.wait_for_selector("#undo:has-text('kept a picture in bowl')")
    (kept,) = before - doubted()
    page.reload()
    page.wait_for_selector("#undo:has-text('kept a picture in bowl')")
    page.click("#undo")
    page.wait_for_selector(".note:has-text('Undone: kept')")
    assert kept in doubted()


def test_a_doubtful_picture_is_moved_by_a_number_key(visit):
    page = visit.page
    visit.teach("mug", range(20, 21), label="bowl")
    visit.teach("mug", range(6))
    visit.teach("bowl", range(6))
    visit.go("review")
    page.wait_for_selector("#review-question:has-text('bowl')")
    page.wait_for_selector(".choice:has-text('Move to mug')")
    page.keyboard.press("2")
    page.wait_for_selector("#undo:has-text('moved a picture to mug')")
    assert visit.served.counts() == {"mug": 7, "bowl": 6}
