"""Reviewing pictures one by one."""

from __future__ import annotations


def test_pictures_are_reviewed_by_keys_least_certain_first(visit):
    page = visit.page
    visit.teach("mug", range(3))
    visit.teach("bowl", range(3))
    visit.add("mug", range(10, 12))
    visit.add("plant", range(1))
    visit.add("bowl", range(10, 12))
    page.wait_for_selector("#tray-pictures li:not(:has(.caption:empty)) >> nth=4")
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


def test_the_last_decision_can_be_undone_by_a_key(visit):
    page = visit.page
    visit.teach("mug", range(2))
    visit.add("mug", range(10, 11))
    visit.go("review")
    page.wait_for_selector("#review-card:focus")
    page.keyboard.press("n")
    page.keyboard.type("cup")
    page.keyboard.press("Enter")
    page.wait_for_selector("#review-empty:not([hidden])")
    visit.settle()
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("u")
    page.wait_for_selector("#review-count:text-is('1')")
    assert visit.served.counts() == {"mug": 2}


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
    page.wait_for_selector("#undo:has-text('kept 1 picture in bowl')")
    (kept,) = before - doubted()
    page.reload()
    page.wait_for_selector("#undo:has-text('kept 1 picture in bowl')")
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
    page.wait_for_selector("#undo:has-text('moved 1 picture to mug')")
    assert visit.served.counts() == {"mug": 7, "bowl": 6}


def test_the_number_to_review_is_right_after_signing_in(opened, visit):
    visit.teach("mug", range(20, 21), label="bowl")
    visit.teach("mug", range(6))
    visit.teach("bowl", range(6))
    visit.page.wait_for_selector("#review-count:not(:empty)")
    other = opened()
    other.page.wait_for_selector("#review-count:not(:empty)")
    n_doubts = len(other.served.ask("v1/review")["items"])
    other.page.wait_for_selector(f"#review-count:text-is('{n_doubts}')")
    assert other.page.is_visible("#view-teach")


def doubting(route):
    answer = route.fetch()
    sent = answer.json()
    for prediction in sent["predictions"]:
        prediction.update(known=False, label=None)
    route.fulfill(response=answer, json=sent)


def test_a_picture_of_no_class_asks_for_a_name(visit):
    page = visit.page
    visit.teach("mug", range(3))
    visit.teach("bowl", range(3))
    page.route("**/v1/predictions*", doubting)
    visit.add("plant", range(1))
    visit.go("review")
    page.wait_for_selector("#review-hint:has-text('look like any class you have taught.')")
    assert "%" not in page.inner_text("#review-card")
    assert page.text_content("#review-accept").split() == ["Type", "a", "name", "Enter"]
    assert "Enter type a name" in page.inner_text("#review-keys")
    assert "N type another name" not in page.inner_text("#review-keys")
    page.keyboard.press("Enter")
    page.wait_for_selector("#review-name:focus")
    page.keyboard.type("plant")
    page.keyboard.press("Enter")
    visit.settle()
    assert visit.served.counts()["plant"] == 1


def test_a_reader_sees_questions_without_answers(opened, visit):
    visit.teach("mug", range(20, 21), label="bowl")
    visit.teach("mug", range(6))
    visit.teach("bowl", range(6))
    visit.page.wait_for_selector("#review-count:not(:empty)")
    reader = opened(enter=False)
    reader.enter(visit.served.reading)
    reader.go("review")
    page = reader.page
    page.wait_for_selector("#review-question:has-text('Is this')")
    for part in ("#review-choices", "#review-accept", "#review-naming", "#review-keys"):
        assert not page.is_visible(part)
    page.click("#review-skip:has-text('Next')")
