"""An exported page in Chromium, opened from disk without a network."""

from __future__ import annotations

import html
import json
from io import BytesIO

import numpy as np
import pytest

from evergrow.export import to_html
from evergrow.export.html import page_file as page_file_module
from tests.export.html.conftest import write_pictures
from tests.service.browsing import files

UNKNOWN = "I don\u2019t know this."


def test_it_answers_and_says_what_it_does_not_know(opened, page_file, workspace):
    visit = opened(page_file)
    assert visit.ask(files("mug", range(50, 51))) == "This is mug"
    assert visit.ask(files("bowl", range(50, 51))) == "This is bowl"
    assert visit.ask(files("plant", range(50, 51))) == UNKNOWN


def test_it_learns_a_new_class_and_forgets_it_again(opened, page_file):
    visit = opened(page_file)
    visit.teach("plant", range(3))
    assert visit.ask(files("plant", range(50, 51))) == "This is plant"
    assert visit.counts() == {"bowl": 12, "mug": 12, "plant": 3}
    visit.page.click("#undo")
    visit.page.wait_for_selector("#notes:has-text('Undone')")
    assert visit.counts() == {"bowl": 12, "mug": 12}


def test_the_camera_is_answered_and_taught(opened, page_file):
    visit = opened(page_file, permissions=["camera"])
    visit.page.click("#try-camera-start")
    visit.page.wait_for_selector("#try-answer:has-text('This is mug')")
    visit.go("teach")
    visit.page.click("#camera-start")
    visit.page.wait_for_selector("#take:not([disabled])")
    visit.page.fill("#label", "cup")
    visit.page.click("#take")
    visit.page.wait_for_selector("#known-classes:has-text('cup')")
    assert visit.n_lessons() == 1


def test_a_correction_moves_a_picture(opened, page_file):
    visit = opened(page_file)
    visit.teach("plant", range(3), label="mug")
    visit.go("classes")
    visit.page.click(".class-card:has-text('mug')")
    visit.page.wait_for_selector("#class-pictures img[src] >> nth=2")
    visit.page.check("#class-pictures input >> nth=0")
    visit.page.click("#chosen-move")
    visit.page.fill("dialog input", "plant")
    visit.page.click("dialog button:has-text('Move')")
    visit.page.wait_for_selector("#notes:has-text('moved to plant')")
    assert visit.counts() == {"bowl": 12, "mug": 14, "plant": 1}


def test_what_was_taught_is_there_after_a_reload(opened, page_file):
    visit = opened(page_file)
    visit.teach("plant", range(3))
    visit.page.reload()
    visit.page.wait_for_selector("body:not(.outside)")
    assert visit.counts() == {"bowl": 12, "mug": 12, "plant": 3}
    visit.page.click("#undo")
    visit.page.wait_for_selector("#notes:has-text('Undone')")
    assert visit.counts() == {"bowl": 12, "mug": 12}


def test_a_saved_page_goes_on_where_the_first_one_was(opened, page_file, tmp_path):
    visit = opened(page_file)
    visit.teach("plant", range(3))
    saved = visit.save("This page", tmp_path / "saved.html")
    again = opened(saved)
    assert again.ask(files("plant", range(50, 51))) == "This is plant"
    again.teach("plant", range(3, 5))
    assert again.counts() == {"bowl": 12, "mug": 12, "plant": 5}
    # The first page was not changed.
    assert visit.counts() == {"bowl": 12, "mug": 12, "plant": 3}
    third = opened(again.save("This page", tmp_path / "third.html"))
    assert third.counts() == {"bowl": 12, "mug": 12, "plant": 5}
    third.page.click("#undo")
    third.page.wait_for_selector("#notes:has-text('Undone')")
    assert third.counts() == {"bowl": 12, "mug": 12, "plant": 3}


def test_lessons_go_into_a_workspace_once_and_come_back(opened, page_file, workspace, tmp_path):
    visit = opened(page_file)
    visit.teach("plant", range(3))
    path = visit.save("Lessons", tmp_path / "lessons.json")
    results = workspace.teach_lessons(path).results
    assert [one.new_class for one in results] == [True, False, False]
    assert all(one.replayed for one in workspace.teach_lessons(path).results)
    assert {one.name: one.n_examples for one in workspace.classes().items} == {
        "bowl": 12,
        "mug": 12,
        "plant": 3,
    }
    workspace.export(tmp_path / "back.html")
    assert opened(tmp_path / "back.html").counts() == {"bowl": 12, "mug": 12, "plant": 3}


def test_the_page_answers_as_the_workspace_does(opened, page_file, workspace, tmp_path):
    paths = [
        path
        for thing in ("mug", "bowl", "plant")
        for path in write_pictures(tmp_path / "asked", thing, range(80, 84))
    ]
    expected = workspace.snapshot.predict(workspace.embedder.transform(paths), top=1)
    visit = opened(page_file)
    for path, answer in zip(paths, expected, strict=True):
        said = visit.ask([str(path)])
        assert said == (f"This is {answer.label}" if answer.known else UNKNOWN)


def test_names_are_shown_as_text(opened, page_file):
    visit = opened(page_file)
    name = '<img src=x onerror="document.title=1"></script>'
    visit.teach("plant", range(2), label=name)
    assert visit.counts()[name] == 2
    assert visit.page.locator("img[src=x]").count() == 0


def test_hidden_characters_in_a_name_are_refused(opened, page_file):
    visit = opened(page_file)
    visit.go("teach")
    visit.page.set_input_files("#files", files("plant", range(1)))
    visit.page.wait_for_selector("#tray:not([hidden])")
    visit.page.fill("#label", "a\u202eb")
    visit.page.click("#take")
    visit.page.wait_for_selector("#notes:has-text('hidden characters')")
    assert visit.counts() == {"bowl": 12, "mug": 12}


def test_a_file_that_is_not_a_picture_is_refused(opened, page_file):
    visit = opened(page_file)
    visit.go("try")
    broken = {"name": "broken.png", "mimeType": "image/png", "buffer": b"no picture"}
    visit.page.set_input_files("#try-files", [broken])
    visit.page.wait_for_selector("#try-answer:has-text('not a picture')")


def test_the_same_picture_is_not_learnt_twice(opened, page_file):
    visit = opened(page_file)
    visit.teach("plant", range(1))
    visit.page.set_input_files("#files", files("plant", range(1)))
    visit.page.fill("#label", "plant")
    visit.page.click("#take")
    visit.page.wait_for_selector("#notes:has-text('already')")
    assert visit.counts() == {"bowl": 12, "mug": 12, "plant": 1}


def test_pictures_that_are_taught_at_the_same_time_are_all_kept(opened, page_file):
    visit = opened(page_file)
    taught = visit.page.evaluate(
        """async () => {
          const draw = (red) => {
            const canvas = new OffscreenCanvas(16, 16);
            const context = canvas.getContext("2d");
            context.fillStyle = `rgb(${red}, 90, 90)`;
            context.fillRect(0, 0, 16, 16);
            return canvas.convertToBlob();
          };
          const images = await Promise.all([10, 60, 110, 160, 210, 10].map(draw));
          // Known embeddings: the lessons follow each other without a pause.
          await evergrow.predict(images);
          const answers = await Promise.all(images.map((image) => evergrow.teach(image, "plain")));
          return answers.map(({ duplicate }) => duplicate);
        }"""
    )
    assert sorted(taught) == [False] * 5 + [True]
    visit.page.reload()
    visit.page.wait_for_selector("body:not(.outside)")
    assert visit.page.evaluate("evergrow.lessons().length") == 5


def test_a_browser_without_storage_says_so(opened, page_file):
    visit = opened(page_file)
    visit.page.add_init_script(
        "delete Object.getPrototypeOf(window).indexedDB; delete window.indexedDB;"
    )
    visit.page.reload()
    visit.page.wait_for_selector("#not-stored:visible")
    visit.teach("plant", range(2))
    assert visit.counts() == {"bowl": 12, "mug": 12, "plant": 2}


def noisy_files(seeds):
    """Small pictures that differ from each other."""
    from PIL import Image

    made = []
    for seed in seeds:
        pixels = np.random.default_rng(seed).integers(0, 256, (12, 12, 3), dtype=np.uint8)
        content = BytesIO()
        Image.fromarray(pixels + np.uint8(seed // 50)).save(content, "PNG")
        made.append({"name": f"{seed}.png", "mimeType": "image/png", "buffer": content.getvalue()})
    return made


def test_the_weights_are_those_of_python_after_two_hundred_lessons(opened, page_file, workspace):
    visit = opened(page_file)
    for number, label in enumerate(("plant", "mug", "bowl", "pen")):
        visit.teach_files(noisy_files(range(50 * number, 50 * number + 50)), label)
    found = visit.page.evaluate(
        """async () => ({
            lessons: evergrow.lessons().map(({ label, embedding }) => [label, [...embedding]]),
            weights: (await evergrow.inspect()).weights.map((row) => [...row]),
        })"""
    )
    assert len(found["lessons"]) == 200
    model = workspace.to_estimator()._require_fitted("test").learner.estimator_
    for label, row in found["lessons"]:
        model.partial_fit(np.array([row], dtype=np.float32), [label])
    with model._fitted.solution(model._ridge(), with_held_out=True) as solution:
        difference = np.abs(np.array(found["weights"]) - solution.weights)
    assert difference.max() < 1e-6


@pytest.mark.slow
def test_the_file_has_a_strict_policy_and_no_address(page_file):
    text = page_file.read_text()
    policy = text.split('http-equiv="Content-Security-Policy" content="')[1].split('"')[0]
    assert "default-src &#x27;none&#x27;" in policy
    assert "connect-src &#x27;none&#x27;" in policy
    assert "unsafe-inline" not in policy
    markup = text.split('<script type="application/json"')[0]
    assert "http://" not in markup.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in markup


def test_the_licences_are_in_the_page(opened, page_file):
    visit = opened(page_file)
    visit.page.click("#save")
    visit.page.click("dialog button:has-text('Licences')")
    text = visit.page.inner_text("dialog .licences")
    assert "Microsoft Corporation" in text
    assert "Evergrow developers" in text
    assert "Third-party notices of ONNX Runtime" in text
    assert "Eigen" in text


def test_equal_models_give_equal_files(runtime, workspace):
    model = workspace.to_estimator()
    assert to_html(model, name="things") == to_html(model, name="things")


@pytest.mark.parametrize("name", ["static/x", "</title><script>alert(1)</script>", "caf\udce9", ""])
def test_any_name_can_be_that_of_a_page(runtime, workspace, name):
    content = to_html(workspace.to_estimator(), name=name).decode()
    title = html.escape(name.encode(errors="replace").decode())
    assert content.count(f"<title>{title}</title>") == 1
    assert "<script>alert" not in content


def test_the_runtime_is_compressed_once(runtime, workspace):
    model = workspace.to_estimator()
    to_html(model)
    before = page_file_module._pack_once.cache_info()
    to_html(model, weights="int8")
    after = page_file_module._pack_once.cache_info()
    assert (after.hits - before.hits, after.misses - before.misses) == (3, 0)


def test_lessons_are_json_with_the_pictures(opened, page_file, tmp_path):
    visit = opened(page_file)
    visit.teach("plant", range(2))
    found = json.loads(visit.save("Lessons", tmp_path / "lessons.json").read_text())
    assert set(found) == {"format", "version", "page", "lessons"}
    assert [one["label"] for one in found["lessons"]] == ["plant", "plant"]
