"""Classes and what can be done with them."""

from __future__ import annotations


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


def test_a_new_name_that_nearly_exists_merges_only_after_asking(visit):
    page = visit.page
    visit.teach("mug", range(2))
    visit.teach("bowl", range(2))
    visit.go("classes")
    page.click(".class-card:has-text('bowl')")
    page.click("#class-rename")
    page.keyboard.type("Mug")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog:has-text('There is a class mug. Merge bowl into it?')")
    page.click("dialog .primary:has-text('Merge into mug')")
    # The class is gone, and so is its page.
    page.wait_for_selector("#view-classes:not([hidden])")
    assert visit.served.counts() == {"mug": 4}


def test_back_closes_a_dialog(visit):
    page = visit.page
    visit.teach("mug", range(2))
    visit.go("classes")
    page.click(".class-card:has-text('mug')")
    page.click("#class-forget")
    page.wait_for_selector("dialog:has-text('Forget class?')")
    page.go_back()
    page.wait_for_selector("#view-classes:not([hidden])")
    assert page.locator("dialog").count() == 0
    assert visit.served.counts() == {"mug": 2}


def test_classes_that_are_mixed_up_are_shown_in_a_table_and_in_words(visit):
    page = visit.page
    # The same thing under two names.
    for seed in range(4):
        visit.teach("mug", range(seed, seed + 1), label=("cup", "mug")[seed % 2])
    visit.go("confusion")
    # Of the pictures of a class, also if some of them would be called unknown.
    page.wait_for_selector("#confusion-pairs li:has-text('mistaken for'):has-text('of 2 pictures')")
    # Two classes; whether pictures are unknown cannot be told from so few.
    assert page.locator("#confusion-table td").count() == 4
    page.click("#confusion-table .wrong .cell >> nth=0")
    page.wait_for_selector("dialog .tiles img[src]")
    page.click("dialog .tiles button >> nth=0")
    page.wait_for_selector(".large-view img[src]")


def test_a_class_is_split_once_kinds_are_given_and_guesses_are_confirmed(visit):
    page = visit.page
    visit.teach("mug", range(3), label="thing")
    visit.teach("plant", range(3), label="thing")
    visit.go("classes")
    page.click(".class-card")
    page.wait_for_selector("#class-pictures li >> nth=5")
    page.click("#class-split")
    page.wait_for_selector("dialog:has-text('kinds need 2 pictures each')")
    page.keyboard.press("Escape")
    for fine, places in {"red": (0, 1), "green": (3, 4)}.items():
        for place in places:
            page.check(f"#class-pictures input >> nth={place}")
        page.fill("#chosen-kind", fine)
        page.click("#chosen-form button")
        page.wait_for_selector("#chosen", state="hidden")
    page.click("#class-split")
    page.wait_for_selector(".caption.guess >> nth=1")
    page.click("#class-pictures .confirm >> nth=0")
    page.wait_for_selector(".caption.guess >> nth=1", state="detached")
    (entry,) = visit.served.ask("v1/classes")["items"]
    assert entry["split"]
    assert {kind["name"]: kind["n_given"] for kind in entry["fine"]} == {"red": 3, "green": 2}


def open_class(visit, name):
    visit.go("classes")
    visit.page.click(f".class-card:has-text('{name}')")
    visit.page.wait_for_selector(f"#class-title:has-text('{name}')")


def test_all_pictures_of_a_class_are_named_by_one_request_and_one_undo(visit):
    page = visit.page
    visit.teach("mug", range(5))
    open_class(visit, "mug")
    page.wait_for_selector("#class-pictures li >> nth=4")
    page.click("#choose-all")
    page.fill("#chosen-kind", "red")
    changes = []
    page.on("request", lambda request: changes.append(request.method))
    page.click("#chosen-form button")
    page.wait_for_selector("#class-title:focus")
    page.wait_for_selector(".note:has-text('5 pictures are now mug · red.')")
    page.wait_for_selector("#undo:has-text('Undo: the kind of 5 pictures of mug')")
    assert changes.count("POST") == 1
    assert changes.count("PATCH") == 0
    page.click("#undo")
    page.wait_for_selector("#kinds", state="hidden")
    assert visit.served.ask("v1/classes")["items"][0]["fine"] == []


def test_a_class_whose_pictures_fail_to_load_shows_none_of_another(opened):
    visit = opened(expected=("status of 500",))
    page = visit.page
    visit.teach("mug", range(2))
    visit.teach("bowl", range(1))
    open_class(visit, "mug")
    page.wait_for_selector("#class-pictures li >> nth=1")
    page.route("**/v1/examples?*", lambda route: route.fulfill(status=500, json={}))
    open_class(visit, "bowl")
    page.wait_for_selector("#class-problem:has-text('cannot be loaded now')")
    assert page.locator("#class-pictures li").count() == 0


_CHANGE_WHILE_LOADING = """async () => {
    const module = (name) => import(new URL(`static/${name}.js`, document.baseURI));
    const { workspace } = await module("workspace");
    const api = await module("api");
    const shown = [];
    workspace.addEventListener("change", () => shown.push(workspace.classes[0].name));
    await api.rename("mug", "beaker");
    const plain = window.fetch;
    let release;
    const renamed = new Promise((resolve) => { release = resolve; });
    let asked;
    const requested = new Promise((resolve) => { asked = resolve; });
    // The answer to the first request for the classes arrives after the next change was made.
    window.fetch = async (url, options) => {
        const response = await plain(url, options);
        if (!String(url).includes("v1/classes")) return response;
        asked();
        await renamed;
        return response;
    };
    const early = workspace.refresh();
    await requested;
    const late = workspace.change(async () => {
        await api.rename("beaker", "jug");
        release();
        await early;
    });
    await late;
    window.fetch = plain;
    return shown;
}"""


def test_a_state_from_before_a_change_is_not_shown_after_it(visit):
    visit.teach("mug", range(2))
    assert visit.page.evaluate(_CHANGE_WHILE_LOADING) == ["jug"]
