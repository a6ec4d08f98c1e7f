"""What holds for every view: tokens, phones, names and screen readers."""

from __future__ import annotations

from tests.service.browsing import files
from tests.service.page.conftest import PHONE

MARKUP = "<img src=x onerror=alert(1)>"
REFUSED = "the server responded with a status of 401"


def test_every_view_fits_a_phone_and_can_be_touched(opened):
    visit = opened(viewport=PHONE, has_touch=True, is_mobile=True)
    visit.teach("mug", range(3), label="m" * 200)
    visit.teach("bowl", range(3), label="bowl with a blue rim and no spoon")
    visit.add("bowl", range(10, 12))
    page = visit.page
    for view in ("teach", "try", "review", "classes", "confusion"):
        visit.go(view)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        small = page.evaluate(
            """() => [...document.querySelectorAll("button, .button, .file, #views a, input")]
                .filter((one) => one.checkVisibility() && one.type !== "file")
                .map((one) => [one.id || one.className, one.getBoundingClientRect().height])
                // Heights are rounded to parts of a pixel.
                .filter(([, height]) => height < 43.99)"""
        )
        assert small == []


def test_markup_in_names_stays_text_everywhere(visit):
    page = visit.page
    visit.teach("mug", range(2), label=MARKUP, fine="<script>alert(2)</script>")
    visit.teach("bowl", range(2), label="شاي <b>tea</b>")
    visit.add("mug", range(10, 11))
    page.wait_for_selector(f"#answer .bar:has-text('{MARKUP}')")
    for view in ("review", "classes", "confusion"):
        visit.go(view)
    visit.go("classes")
    page.click(".class-card >> nth=0")
    page.wait_for_selector(f"#class-title:has-text('{MARKUP}')")
    page.click("#class-forget")
    page.wait_for_selector(f"dialog:has-text('{MARKUP}')")
    page.keyboard.press("Escape")
    assert page.locator("main img[src='x'], main b, main script").count() == 0


def test_a_wrong_token_is_reported_and_a_right_one_works_after_it(opened):
    visit = opened(expected=(REFUSED,), enter=False)
    visit.page.goto(visit.served.url)
    visit.page.fill("#token", "wrong")
    visit.page.press("#token", "Enter")
    visit.page.wait_for_selector(
        "#enter-problem:has-text('The token is not valid. Open the address')"
    )
    visit.page.fill("#token", visit.served.teaching)
    visit.page.press("#token", "Enter")
    visit.page.wait_for_selector("#view-teach:not([hidden])")


def test_a_read_token_sees_predictions_but_cannot_teach(opened, visit):
    visit.teach("mug", range(2))
    visit.teach("bowl", range(2))
    reader = opened(enter=False)
    reader.enter(visit.served.reading)
    page = reader.page
    page.wait_for_selector("#read-only:has-text('may read but not teach')")
    page.set_input_files("#try-files", files("mug", range(10, 11)))
    page.wait_for_selector(".verdict:has-text('This is mug')")
    for control in ("#naming", "#undo", "#try-teach", "#views a[href='#teach']", "#review-add"):
        assert not page.is_visible(control)
    reader.go("classes")
    page.click(".class-card >> nth=0")
    page.wait_for_selector("#class-pictures li")
    assert not page.is_visible("#class-tools")


def test_every_control_has_a_name_for_screen_readers(visit):
    visit.teach("mug", range(2))
    visit.teach("bowl", range(2))
    visit.add("mug", range(10, 12))
    visit.page.wait_for_selector("#answer .bar")
    for view in ("teach", "try", "review", "classes", "confusion"):
        visit.go(view)
        nameless = visit.page.evaluate(
            """() => [...document.querySelectorAll("button, a, input, select")]
                .filter((one) => one.checkVisibility())
                .filter((one) => !one.ariaLabel && !one.textContent.trim())
                .filter((one) => !one.labels?.[0]?.textContent.trim())
                .map((one) => one.outerHTML)"""
        )
        assert nameless == []


def test_skipping_to_the_content_survives_a_reload(visit):
    page = visit.page
    visit.go("classes")
    page.evaluate("document.querySelector('.skip').focus()")
    page.keyboard.press("Enter")
    page.wait_for_selector("main:focus")
    page.reload()
    page.wait_for_selector("#view-classes:not([hidden])")
    page.goto(f"{visit.served.url}#main")
    page.reload()
    page.wait_for_selector("#view-teach:not([hidden])")


def test_on_a_phone_the_picture_its_name_and_the_button_are_visible_together(opened):
    visit = opened(viewport=PHONE, has_touch=True, is_mobile=True)
    page = visit.page
    bar = page.locator("#views").bounding_box()["y"]
    for _ in range(2):
        page.tap("#camera-start")
        page.wait_for_selector("#video:visible")
        page.evaluate("scrollTo(0, 0)")
        for part in ("#video", "#label", "#take"):
            box = page.locator(part).bounding_box()
            assert box["y"] >= 0
            assert box["y"] + box["height"] <= bar
        # The same with something known, which is shown below.
        visit.teach("mug", range(2), label="m" * 200)
        page.tap("#camera-stop")


def test_a_reader_of_an_empty_workspace_is_not_asked_to_teach(opened):
    visit = opened(enter=False)
    visit.enter(visit.served.reading)
    visit.page.wait_for_selector("#try-nothing:visible")
    assert not visit.page.is_visible("#steps")


def test_pictures_can_be_removed_by_keyboard(visit):
    page = visit.page
    visit.add("mug", range(3))
    page.focus("#tray-pictures .drop >> nth=1")
    page.keyboard.press("Enter")
    page.wait_for_selector(".drop:focus")
    assert page.evaluate("document.activeElement.ariaLabel") == "Remove mug2.png"
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    page.wait_for_selector("#teach-title:focus")


def test_a_name_of_two_hundred_letters_leaves_room_for_the_others(visit):
    page = visit.page
    # The same thing under two names, so that they are mixed up.
    for seed in range(4):
        visit.teach("mug", range(seed, seed + 1), label=("m" * 200, "mug")[seed % 2])
    visit.add("mug", range(10, 11))
    bar = page.wait_for_selector("#answer .bar:has-text('mmm') .name")
    assert bar.bounding_box()["height"] < 60
    visit.go("confusion")
    page.wait_for_selector("#confusion-pairs li:has-text('mistaken for')")
    assert page.locator("#confusion-table thead").bounding_box()["height"] < 230
