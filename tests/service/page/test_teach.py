"""Teaching with the camera, files and the keyboard, and corrections."""

from __future__ import annotations

from tests.service.browsing import portrait

# A prediction may be pending while the last class is removed.
NOTHING_KNOWN = "the server responded with a status of 409"


def test_the_first_class_is_recognised_by_the_camera(visit):
    page = visit.page
    assert page.locator("#steps li").count() == 3
    page.click("#camera-start")
    page.fill("#label", "mug")
    for number in range(1, 4):
        page.click("#take")
        page.wait_for_selector(f"#progress:has-text('{number} p')")
    page.wait_for_selector("#spoken:has-text('I know only')", state="attached")
    visit.teach("bowl", range(3))
    page.wait_for_selector("#answer .verdict:has-text('This is mug')")
    page.click("#camera-stop")
    page.wait_for_selector("#spoken:empty", state="attached")


def test_a_note_counts_what_was_taught_and_what_the_class_has(visit):
    visit.teach("mug", range(2))
    visit.page.wait_for_selector(".note:has-text('Taught 2 pictures of mug.')")
    visit.teach("mug", range(2, 3))
    visit.page.wait_for_selector(".note:has-text('Taught 1 picture of mug (3 in all).')")


def test_another_camera_can_be_chosen(opened):
    visit = opened(enter=False)
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
    visit = opened(enter=False)
    visit.page.context.add_init_script(
        "Object.defineProperty(navigator, 'mediaDevices', { value: undefined });"
        "Object.defineProperty(window, 'isSecureContext', { value: false });"
    )
    visit.enter()
    visit.page.wait_for_selector("#camera-note:has-text('over https')")
    assert visit.page.is_disabled("#camera-start")


def test_a_wrong_prediction_is_corrected_with_one_click(visit):
    visit.teach("mug", range(2))
    visit.teach("bowl", range(2))
    visit.add("mug", range(10, 11))
    visit.page.click("#answer li:has-text('bowl') button")
    visit.settle()
    assert visit.served.counts() == {"mug": 2, "bowl": 3}


def test_an_unknown_picture_is_offered_as_a_new_class(visit):
    visit.teach("mug", range(2))
    visit.teach("bowl", range(2))

    def doubting(route):
        answer = route.fetch()
        route.fulfill(response=answer, body=answer.text().replace('"known":true', '"known":false'))

    visit.page.route("**/v1/predictions*", doubting)
    visit.add("plant", range(1))
    visit.page.wait_for_selector(".verdict:has-text('know this')")
    visit.page.fill("#label", "plant")
    visit.page.press("#label", "Enter")
    visit.settle()
    assert visit.served.counts()["plant"] == 1


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


def press_until(page, key, selector, most=40):
    for _ in range(most):
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{selector} cannot be reached with {key}")


def test_teaching_works_by_keyboard_alone(opened):
    visit = opened(expected=(NOTHING_KNOWN,), enter=False)
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
    # The camera delivers its frame later: without this, settle() has nothing to wait for.
    page.wait_for_selector("#undo:enabled:has-text('1 picture of mug')")
    visit.settle()
    press_until(page, "Shift+Tab", "#undo")
    page.keyboard.press("Enter")
    # An earlier test may have left "forgot mug" in the history.
    page.wait_for_selector("#undo:not(:has-text('picture of mug'))")
    assert visit.served.counts() == {}


def test_tall_pictures_are_visible_as_a_whole(visit):
    page = visit.page
    page.set_input_files("#files", [portrait()])
    for view in ("teach", "review"):
        visit.go(view)
        shown = page.wait_for_selector(f"#view-{view} .viewer canvas").bounding_box()
        viewer = page.locator(f"#view-{view} .viewer").bounding_box()
        assert shown["height"] <= viewer["height"]
        assert shown["y"] >= viewer["y"]


def test_an_upright_camera_is_visible_as_a_whole(opened):
    visit = opened(enter=False)
    visit.page.context.add_init_script(
        """navigator.mediaDevices.getUserMedia = async () => {
            const canvas = document.createElement("canvas");
            [canvas.width, canvas.height] = [120, 480];
            setInterval(() => canvas.getContext("2d").fillRect(0, 0, 120, 480), 50);
            return canvas.captureStream(20);
        };"""
    )
    visit.enter()
    visit.page.click("#camera-start")
    shown = visit.page.wait_for_selector("#video:visible").bounding_box()
    assert shown["height"] <= visit.page.locator("#viewer").bounding_box()["height"]


def test_the_camera_stays_chosen_while_pictures_wait(visit):
    page = visit.page
    page.click("#camera-start")
    page.wait_for_selector("#video:visible")
    visit.add("bowl", range(3))
    page.wait_for_selector("#still:visible")
    page.click("#camera-back")
    page.wait_for_selector("#video:visible")
    visit.go("classes")
    visit.go("teach")
    page.wait_for_selector("#video:visible")
    page.click("#tray-pictures .tile >> nth=1")
    visit.go("classes")
    visit.go("teach")
    # The camera runs again, and what was looked at is still looked at.
    page.wait_for_selector("#camera-back:visible")
    assert page.get_attribute("#tray-pictures .tile >> nth=1", "aria-pressed") == "true"


COUNT_CAMERAS = """
    window.tracks = [];
    const given = new Promise((resolve) => { window.given = resolve; });
    const asked = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
    const allowed = new Promise((resolve) => {
        window.allow = () => { resolve(); return given; };
    });
    navigator.mediaDevices.getUserMedia = async (wanted) => {
        await allowed;
        const stream = await asked(wanted);
        window.tracks.push(...stream.getTracks());
        setTimeout(window.given);
        return stream;
    };
"""
RUNNING = "window.tracks.filter((track) => track.readyState === 'live').length"


def test_a_camera_that_is_allowed_after_leaving_the_view_stays_off(opened):
    visit = opened(enter=False)
    page = visit.page
    page.context.add_init_script(COUNT_CAMERAS)
    visit.enter()
    page.click("#camera-start")
    assert page.is_disabled("#camera-start")
    visit.go("classes")
    page.evaluate("allow()")
    assert page.evaluate(RUNNING) == 0
    visit.go("teach")
    page.wait_for_selector("#video:visible")
    assert page.evaluate(RUNNING) == 1


def test_a_camera_that_stops_is_reported(opened):
    visit = opened(enter=False)
    page = visit.page
    page.context.add_init_script(COUNT_CAMERAS)
    visit.enter()
    page.evaluate("void allow()")
    page.click("#camera-start")
    page.wait_for_selector("#take:enabled")
    page.evaluate("window.tracks[0].dispatchEvent(new Event('ended'))")
    page.wait_for_selector("#camera-note:has-text('The camera stopped')")
    assert page.is_disabled("#take")
    assert page.is_visible("#camera-start")
