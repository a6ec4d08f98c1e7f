"""No serious problem for people with disabilities, as axe finds them, on any screen."""

from __future__ import annotations

import pytest

from tests.service.browsing import files
from tests.service.page.conftest import PHONE, SMALL_DESKTOP

axe_playwright = pytest.importorskip(
    "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
)

SEVERE = ("serious", "critical")
# Movement would be measured half way between two colours.
STILL = "*, *::before, *::after { animation: none !important; transition: none !important; }"


@pytest.fixture
def check():
    axe = axe_playwright.Axe()

    def run(page, screen):
        found = axe.run(page).response["violations"]
        severe = [
            (screen, violation["id"], node["html"][:200], node["failureSummary"])
            for violation in found
            if violation["impact"] in SEVERE
            for node in violation["nodes"]
        ]
        assert severe == []

    return run


# Each size and each scheme once; the other two every night.
every_screen = pytest.mark.parametrize(
    ("size", "scheme"),
    [
        pytest.param(SMALL_DESKTOP, "light", id="desktop-light"),
        pytest.param(PHONE, "dark", id="phone-dark"),
        pytest.param(SMALL_DESKTOP, "dark", id="desktop-dark", marks=pytest.mark.nightly),
        pytest.param(PHONE, "light", id="phone-light", marks=pytest.mark.nightly),
    ],
)


@pytest.fixture(params=[SMALL_DESKTOP, PHONE], ids=["desktop", "phone"])
def size(request):
    return request.param


@every_screen
def test_no_screen_has_a_severe_problem(opened, check, size, scheme):
    # The style of the test is not the page's own, so its policy must not forbid it.
    visit = opened(enter=False, viewport=size, color_scheme=scheme, bypass_csp=True)
    page = visit.page
    page.goto(visit.served.url)
    page.add_style_tag(content=STILL)
    check(page, "token")
    page.fill("#token", visit.served.teaching)
    page.press("#token", "Enter")
    page.wait_for_selector("#view-teach:not([hidden])")
    check(page, "first teach")
    # The same thing under two names, so that there are mix-ups and doubts.
    for seed in range(4):
        visit.teach("mug", range(seed, seed + 1), label=("cup", "mug")[seed % 2])
    visit.teach("bowl", range(4), fine="blue")
    visit.add("mug", range(10, 13))
    page.wait_for_selector("#answer .bar")
    check(page, "teach")
    visit.go("try")
    page.set_input_files("#try-files", files("bowl", range(10, 12)))
    page.wait_for_selector("#try-answer .bar")
    check(page, "try")
    visit.go("review")
    page.wait_for_selector("#review-picture > *")
    check(page, "review")
    visit.go("classes")
    page.wait_for_selector(".class-card img[src] >> nth=2")
    check(page, "classes")
    check_dialogs(page, check)
    visit.go("confusion")
    page.wait_for_selector("#confusion-table .cell")
    check(page, "mix-ups")
    page.click("#confusion-table .cell >> nth=0")
    page.wait_for_selector("dialog .tiles img[src]")
    check(page, "pictures of a mix-up")


def check_dialogs(page, check):
    page.click("#download")
    page.wait_for_selector("dialog")
    check(page, "download")
    page.keyboard.press("Escape")
    page.click(".class-card:has-text('mug')")
    page.wait_for_selector("#class-pictures img[src] >> nth=1")
    check(page, "class")
    page.check("#class-pictures input >> nth=0")
    check(page, "selected pictures")
    for button in ("#class-rename", "#class-merge", "#class-split", "#class-forget", "#help"):
        page.click(button)
        page.wait_for_selector("dialog")
        check(page, button)
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog", state="detached")
    page.click("#class-pictures .open >> nth=0")
    page.wait_for_selector(".large-view img[src]")
    check(page, "large picture")
    page.keyboard.press("Escape")


def test_no_screen_of_a_reader_has_a_severe_problem(opened, check, size):
    visit = opened(enter=False, viewport=size, bypass_csp=True)
    visit.enter(visit.served.reading)
    page = visit.page
    page.add_style_tag(content=STILL)
    check(page, "try")
    visit.go("review")
    check(page, "review")


def test_the_check_finds_a_button_without_a_name(visit, check):
    visit.page.evaluate("document.querySelector('main').append(document.createElement('button'))")
    with pytest.raises(AssertionError, match="button-name"):
        check(visit.page, "teach")
