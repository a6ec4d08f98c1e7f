"""The page, as people use it: a real service and a real browser with a film for a camera."""

from __future__ import annotations

import shutil

import pytest

from tests.service.browsing import Visit, files, serving, write_film

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
for module in ("fastapi", "uvicorn", "prometheus_client", "onnxruntime", "PIL"):
    pytest.importorskip(module, reason=f"the service needs {module}")

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")

DESKTOP = {"width": 1280, "height": 860}
PHONE = {"width": 360, "height": 740}
PATIENCE = 20_000
MARKUP = "<img src=x onerror=alert(1)>"
REFUSED = "the server responded with a status of 401"
# A question may be under way while the last class is taken back.
NOTHING_KNOWN = "the server responded with a status of 409"
UNREACHABLE = "Failed to load resource: net::ERR"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("page")) as running:
        yield running


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    film = tmp_path_factory.mktemp("camera") / "mug.y4m"
    write_film(film, "mug")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(
            executable_path=CHROMIUM,
            args=[
                "--no-sandbox",
                "--use-fake-device-for-media-stream",
                "--use-fake-ui-for-media-stream",
                f"--use-file-for-fake-video-capture={film}",
            ],
        )
        yield started
        started.close()


@pytest.fixture
def opened(chromium, served):
    """Opens visits, and fails if the browser complained about any of them."""
    contexts, visits = [], []

    def new(expected=(), **options):
        options = {"viewport": DESKTOP, "service_workers": "block", **options}
        contexts.append(chromium.new_context(**options))
        contexts[-1].set_default_timeout(PATIENCE)
        visits.append(Visit(contexts[-1].new_page(), served, expected=expected))
        visits[-1].watch()
        return visits[-1]

    served.forget_all()
    yield new
    for context in contexts:
        context.close()
    assert [complaint for visit in visits for complaint in visit.complaints] == []


@pytest.fixture
def visit(opened):
    started = opened()
    started.enter()
    return started


def test_the_first_class_is_recognised_by_the_camera(visit):
    page = visit.page
    assert page.locator("#steps li").count() == 3
    page.click("#camera-start")
    page.fill("#label", "mug")
    for number in range(1, 4):
        page.click("#take")
        page.wait_for_selector(f"#progress:has-text('{number} p')")
    visit.teach("bowl", range(3))
    page.wait_for_selector("#answer .verdict:has-text('This is mug')")


def test_another_camera_can_be_chosen(opened):
    visit = opened()
    page = visit.page
    # A phone: the one camera that there is, twice.
    page.context.add_init_script(
        "const listed = navigator.mediaDevices.enumerateDevices.bind(navigator.mediaDevices);"
        "navigator.mediaDevices.enumerateDevices = async () => {"
        "  const devices = await listed(); return [...devices, ...devices]; };"
    )
    visit.enter()
    page.click("#camera-start")
    page.wait_for_selector("#camera-choice option:text-is('Front camera')", state="attached")
    page.select_option("#camera-choice", "Front camera")
    page.wait_for_selector("#video:visible")
    assert page.text_content("#camera-note") == ""


def test_a_page_that_may_have_no_camera_says_why(opened):
    visit = opened()
    visit.page.context.add_init_script(
        "Object.defineProperty(navigator, 'mediaDevices', { value: undefined });"
        "Object.defineProperty(window, 'isSecureContext', { value: false });"
    )
    visit.enter()
    visit.page.wait_for_selector("#camera-note:has-text('over https')")
    assert visit.page.is_disabled("#camera-start")


def test_a_wrong_answer_is_corrected_with_one_click(visit):
    visit.teach("mug", range(2))
    visit.teach("bowl", range(2))
    visit.add("mug", range(10, 11))
    visit.page.click("#answer .bar:has-text('bowl')")
    visit.settle()
    assert visit.served.counts() == {"mug": 2, "bowl": 3}


def test_what_fits_nothing_is_offered_as_a_new_class(visit):
    visit.teach("mug", range(2))
    visit.teach("bowl", range(2))

    def doubting(route):
        answer = route.fetch()
        route.fulfill(response=answer, body=answer.text().replace('"known":true', '"known":false'))

    visit.page.route("**/v1/predictions*", doubting)
    visit.add("plant", range(1))
    visit.page.wait_for_selector(".verdict:has-text('know this')")
    visit.page.click("text=Teach it as …")
    visit.page.keyboard.type("plant")
    visit.page.keyboard.press("Enter")
    visit.settle()
    assert visit.served.counts()["plant"] == 1


def test_undo_takes_back_what_its_button_says(opened):
    visit = opened(expected=(NOTHING_KNOWN,))
    visit.enter()
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


def test_pictures_can_be_pasted_and_dropped(visit):
    page = visit.page
    for kind in ("paste", "drop"):
        page.evaluate(
            """async (kind) => {
                const canvas = new OffscreenCanvas(9, kind.length);
                canvas.getContext("2d");
                const data = new DataTransfer();
                const image = await canvas.convertToBlob();
                data.items.add(new File([image], "one.png", { type: "image/png" }));
                const carried = kind === "paste" ? { clipboardData: data } : { dataTransfer: data };
                const Kind = kind === "paste" ? ClipboardEvent : DragEvent;
                document.body.dispatchEvent(new Kind(kind, { ...carried, bubbles: true }));
            }""",
            kind,
        )
    page.wait_for_selector("#tray-pictures li >> nth=1")


def test_classes_are_renamed_merged_and_forgotten_after_asking(visit):
    page = visit.page

    def open_class(name):
        visit.go("classes")
        page.click(f".class-card:has-text('{name}')")
        page.wait_for_selector(f"#class-title:has-text('{name}')")

    visit.teach("mug", range(2), label="mug")
    visit.teach("mug", range(2, 4), label="cup")
    visit.teach("bowl", range(1))
    open_class("mug")
    page.click("#class-rename")
    page.keyboard.type("beaker")
    page.keyboard.press("Enter")
    page.wait_for_selector("#class-title:has-text('beaker')")
    page.click("#class-merge")
    page.select_option("#ask-into", "cup")
    page.click("dialog .primary")
    page.wait_for_selector("#view-classes:not([hidden])")
    open_class("bowl")
    page.click("#class-forget")
    # Enter must not forget anything: the safe answer has the focus.
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog", state="detached")
    assert visit.served.counts() == {"cup": 4, "bowl": 1}
    page.click("#class-forget")
    page.click("dialog .danger")
    page.wait_for_selector("#view-classes:not([hidden])")
    assert visit.served.counts() == {"cup": 4}


def test_classes_that_are_mixed_up_are_shown_in_a_table_and_in_words(visit):
    # The same thing under two names.
    for seed in range(4):
        visit.teach("mug", range(seed, seed + 1), label=("cup", "mug")[seed % 2])
    visit.go("confusion")
    visit.page.wait_for_selector("#confusion-pairs li:has-text('taken for')")
    assert visit.page.locator("#confusion-table td").count() == 4


def test_a_class_is_split_once_finer_names_are_given_and_guesses_are_confirmed(visit):
    page = visit.page
    visit.teach("mug", range(3), label="thing")
    visit.teach("plant", range(3), label="thing")
    visit.go("classes")
    page.click(".class-card")
    page.wait_for_selector("#class-pictures li >> nth=5")
    page.click("#class-split")
    page.wait_for_selector("dialog:has-text('finer names need 2 pictures each')")
    page.keyboard.press("Escape")
    for fine, places in {"red": (0, 1), "green": (3, 4)}.items():
        for place in places:
            page.check(f"#class-pictures input >> nth={place}")
        page.fill("#chosen-fine", fine)
        page.click("#chosen-form button")
        page.wait_for_selector("#chosen", state="hidden")
    page.click("#class-split")
    page.wait_for_selector(".caption.guess >> nth=1")
    page.click("#class-pictures button >> nth=0")
    page.wait_for_selector(".caption.guess >> nth=1", state="detached")
    (entry,) = visit.served.ask("v1/classes")["items"]
    assert entry["split"]
    assert {kind["name"]: kind["n_given"] for kind in entry["fine"]} == {"red": 3, "green": 2}


def press_until(page, key, selector, most=40):
    for _ in range(most):
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{selector} cannot be reached with {key}")


def test_teaching_works_by_keyboard_alone(opened):
    visit = opened(expected=(NOTHING_KNOWN,))
    page = visit.page
    page.goto(visit.served.url)
    page.wait_for_selector("#token:focus")
    page.keyboard.type(visit.served.teaching)
    page.keyboard.press("Enter")
    page.wait_for_selector("#teach-title:focus")
    press_until(page, "Tab", "#camera-start")
    page.keyboard.press("Enter")
    page.wait_for_selector("#take:enabled")
    press_until(page, "Tab", "#label")
    page.keyboard.type("mug")
    press_until(page, "Tab", "#take")
    page.keyboard.press("Space")
    visit.settle()
    press_until(page, "Shift+Tab", "#undo")
    page.keyboard.press("Enter")
    page.wait_for_selector("#undo:disabled, #undo:not(:has-text('mug'))")
    assert visit.served.counts() == {}


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


def test_every_view_fits_a_phone_and_can_be_touched(opened):
    visit = opened(viewport=PHONE, has_touch=True, is_mobile=True)
    visit.enter()
    visit.teach("mug", range(3), label="m" * 200)
    visit.teach("bowl", range(3), label="bowl with a blue rim and no spoon")
    visit.add("bowl", range(10, 12))
    page = visit.page
    for view in ("teach", "review", "classes", "confusion"):
        visit.go(view)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        small = page.evaluate(
            """() => [...document.querySelectorAll("button, .button, .file, #views a, input")]
                .filter((one) => one.checkVisibility() && one.type !== "file")
                .map((one) => [one.id || one.className, one.getBoundingClientRect().height])
                .filter(([, height]) => height < 44)"""
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


def test_what_is_taught_without_the_service_is_sent_once_when_it_is_back(opened):
    visit = opened(expected=(UNREACHABLE,))
    visit.enter()
    page = visit.page
    visit.add("mug", range(2))
    page.context.set_offline(True)
    page.fill("#label", "mug")
    page.click("#take-all")
    page.wait_for_selector("#offline:has-text('2 pictures kept here')")
    page.wait_for_selector("#undo:has-text('not sent yet')")
    page.context.set_offline(False)
    page.wait_for_selector("#offline", state="hidden")
    visit.settle()
    assert visit.served.counts() == {"mug": 2}


def test_a_lesson_whose_answer_was_lost_is_not_taught_twice(opened):
    visit = opened(expected=(UNREACHABLE,))
    visit.enter()
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


def test_lessons_that_were_not_sent_survive_a_closed_tab(opened):
    visit = opened(expected=(UNREACHABLE,))
    visit.enter()
    visit.add("mug", range(1))
    context = visit.page.context
    context.set_offline(True)
    visit.page.fill("#label", "mug")
    visit.page.click("#take")
    visit.page.wait_for_selector("#offline:has-text('1 picture kept here')")
    visit.page.close()
    context.set_offline(False)
    later = Visit(context.new_page(), visit.served)
    later.enter()
    later.page.wait_for_selector("#known-classes:has-text('mug')")
    assert visit.served.counts() == {"mug": 1}


def test_the_page_opens_and_is_taught_while_the_service_is_away(opened):
    visit = opened(expected=(UNREACHABLE,), service_workers="allow")
    visit.enter()
    page = visit.page
    page.evaluate("navigator.serviceWorker.ready")
    page.context.set_offline(True)
    page.reload()
    page.wait_for_selector("#offline:has-text('cannot be reached')")
    visit.add("mug", range(1))
    page.fill("#label", "mug")
    page.click("#take")
    page.wait_for_selector("#offline:has-text('1 picture kept here')")
    page.context.set_offline(False)
    visit.settle()
    assert visit.served.counts() == {"mug": 1}


def test_a_wrong_token_is_told_and_a_right_one_enters_after_it(opened):
    visit = opened(expected=(REFUSED,))
    visit.page.goto(visit.served.url)
    visit.page.fill("#token", "wrong")
    visit.page.press("#token", "Enter")
    visit.page.wait_for_selector("#enter-problem:has-text('does not take this token')")
    visit.page.fill("#token", visit.served.teaching)
    visit.page.press("#token", "Enter")
    visit.page.wait_for_selector("#view-teach:not([hidden])")


def test_a_token_that_may_only_read_sees_answers_but_cannot_teach(opened, visit):
    visit.teach("mug", range(2))
    visit.teach("bowl", range(2))
    reader = opened()
    reader.enter(visit.served.reading)
    page = reader.page
    page.wait_for_selector("#read-only:has-text('may look but not teach')")
    page.set_input_files("#files", files("mug", range(10, 11)))
    page.wait_for_selector(".verdict:has-text('This is mug')")
    for control in ("#naming", "#undo", "#answer .row"):
        assert not page.is_visible(control)
    reader.go("classes")
    page.click(".class-card >> nth=0")
    page.wait_for_selector("#class-pictures li")
    assert not page.is_visible("#class-tools")


def test_every_control_has_a_name_for_screen_readers(visit):
    visit.teach("mug", range(2))
    visit.add("mug", range(10, 12))
    visit.page.wait_for_selector("#answer .bar")
    for view in ("teach", "review", "classes", "confusion"):
        visit.go(view)
        nameless = visit.page.evaluate(
            """() => [...document.querySelectorAll("button, a, input, select")]
                .filter((one) => one.checkVisibility())
                .filter((one) => !one.ariaLabel && !one.textContent.trim())
                .filter((one) => !one.labels?.[0]?.textContent.trim())
                .map((one) => one.outerHTML)"""
        )
        assert nameless == []
