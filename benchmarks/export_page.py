"""An exported page in a browser without a network: size, time, and whether it answers as Python."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.codebook.pictures import RGB, as_jpeg, pictures
from benchmarks.measure import Figure, report, show_table
from evergrow import ImageClassifier, RejectingClassifier, RLSClassifier
from evergrow.estimators.linear.solver import solve
from evergrow.estimators.sums.moments import Batch
from evergrow.export import save_html
from evergrow.export.html.runtime import RuntimeMissingError, load_runtime

N_CLASSES, PER_CLASS, N_ASKED, N_LESSONS = 10, 30, 200, 200
# What is not taught: it is unknown, until it becomes the class that the page learns.
OTHER = "background"

# Milliseconds of each answer, from the bytes of a picture on.
_ASK = """async (pictures) => {
    const found = [];
    for (const text of pictures) {
        const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
        const image = new Blob([bytes], { type: "image/jpeg" });
        const began = performance.now();
        const [{ known, top }] = await evergrow.predict([image]);
        found.push([performance.now() - began, known, top[0].name, top[0].probability]);
    }
    return found;
}"""
# Milliseconds until a new class is known, once its pictures are embedded.
_LEARN = """async ([pictures, label]) => {
    const images = pictures.map((text) => {
        const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
        return new Blob([bytes], { type: "image/jpeg" });
    });
    for (const image of images) await evergrow.predict([image]);
    const began = performance.now();
    for (const image of images.slice(1)) await evergrow.teach(image, label);
    const [{ top }] = await evergrow.predict([images[0]]);
    return [performance.now() - began, top.some(({ name }) => name === label)];
}"""
_TEACH = """async ([text, label]) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    await evergrow.teach(new Blob([bytes], { type: "image/jpeg" }), label);
}"""
_WEIGHTS = """async () => ({
    weights: (await evergrow.inspect()).weights.map((row) => [...row]),
    lessons: evergrow.lessons().map(({ label, embedding }) => [label, [...embedding]]),
})"""


def run(quick: bool) -> None:
    """A page of ten classes of photographs; skipped without a browser or the runtime of pages."""
    try:
        load_runtime()
    except RuntimeMissingError as missing:
        print(f"skipped: {missing}")
        return
    if shutil.which("chromium") is None:
        print("skipped: chromium is not installed")
        return
    data = pictures(quick)
    learnt, asked, others = _split(data)
    model = ImageClassifier(
        learner=RejectingClassifier(RLSClassifier(random_state=0), random_state=0), random_state=0
    ).fit([image for image, _ in learnt], [label for _, label in learnt])
    figures, table = [], []
    with tempfile.TemporaryDirectory() as folder, _browser() as browser:
        for weights in ("float16", "int8"):
            path = Path(folder) / f"{weights}.html"
            save_html(model, path, weights=weights)
            size = path.stat().st_size / 1e6
            starts = [_first_answer(browser, path, asked[0][0]) for _ in range(1 if quick else 3)]
            with _opened(browser, path) as page:
                times, same, right = _ask(page, asked, model)
                learning, is_known = page.evaluate(_LEARN, [_texts(others[:4]), "new"])
                figures.append(Figure(f"{weights}: new class is known", float(is_known), 1))
                lessons = [(image, f"thing {i % 4}") for i, image in enumerate(others[4:])]
                difference = _teach(page, lessons[: 20 if quick else N_LESSONS], model)
            start, middle = statistics.median(starts), statistics.median(times)
            table.append((weights, size, start, middle, max(times), learning, same, right))
            figures += [
                Figure(f"{weights}: MB", size, 30 if weights == "float16" else 15, "at most"),
                Figure(f"{weights}: seconds to the first answer", start, 5, "at most"),
                Figure(f"{weights}: ms per answer", middle, 300, "at most"),
                Figure(f"{weights}: ms to know a new class", learning, 100, "at most"),
                Figure(f"{weights}: weights after the lessons", difference, 1e-6, "at most"),
            ]
    columns = ["weights", "MB", "first, s", "answer, ms", "slowest, ms", "new class, ms"]
    show_table(
        f"{len({label for _, label in learnt})} classes, {len(learnt)} pictures",
        [*columns, "same answer", "accuracy"],
        table,
    )
    report("export page", data.name, figures, bars=not quick)


def _split(data: Any) -> tuple[list[tuple[RGB, str]], list[tuple[RGB, str]], list[RGB]]:
    """Pictures to learn, pictures to ask about, and pictures of nothing that is learnt.

    There are fewer than ten classes of photographs, so some classes come upside down as well.
    """
    names = [str(name) for name in np.unique(data.classes) if str(name) != OTHER]
    learnt, asked = [], []
    for number in range(N_CLASSES):
        name, is_flipped = names[number % len(names)], number >= len(names)
        places = np.flatnonzero(data.classes == name)
        images = [data.images[i][::-1] if is_flipped else data.images[i] for i in places]
        label = f"{name}, upside down" if is_flipped else name
        images = [np.ascontiguousarray(image) for image in images]
        n_learnt = min(PER_CLASS, len(images) - 1)
        learnt += [(image, label) for image in images[:n_learnt]]
        asked += [(image, label) for image in images[n_learnt : n_learnt + N_ASKED // N_CLASSES]]
    others = [data.images[i] for i in np.flatnonzero(data.classes == OTHER)]
    return learnt, asked, others or [image[:, ::-1].copy() for image, _ in learnt]


@contextmanager
def _browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        started = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        yield started
        started.close()


@contextmanager
def _opened(browser: Any, path: Path) -> Iterator[Any]:
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("body:not(.outside)")
    yield page
    context.close()


def _first_answer(browser: Any, path: Path, image: RGB) -> float:
    """Seconds from opening the file to the first answer on the screen."""
    file = {"name": "asked.jpg", "mimeType": "image/jpeg", "buffer": as_jpeg(image)}
    context = browser.new_context(offline=True)
    page = context.new_page()
    begin = time.perf_counter()
    page.goto(path.as_uri())
    page.wait_for_selector("body:not(.outside)")
    page.set_input_files("#try-files", [file])
    page.wait_for_selector("#try-answer .bar:visible")
    seconds = time.perf_counter() - begin
    context.close()
    return seconds


def _texts(images: list[RGB]) -> list[str]:
    return [b64encode(as_jpeg(image)).decode() for image in images]


def _ask(
    page: Any, asked: list[tuple[RGB, str]], model: ImageClassifier
) -> tuple[list[float], float, float]:
    """Milliseconds of each answer, the share that Python gives too, and the share that is right."""
    found = page.evaluate(_ASK, _texts([image for image, _ in asked]))
    files = [as_jpeg(image) for image, _ in asked]
    expected = model.predict(files).tolist()
    said = [name if known else "unknown" for _, known, name, _ in found]
    same = float(np.mean([one == other for one, other in zip(said, expected, strict=True)]))
    best = [name for _, _, name, _ in found]
    right = float(np.mean([one == label for one, (_, label) in zip(best, asked, strict=True)]))
    # The first ones warm up the network.
    return [one[0] for one in found][3:], same, right


def _teach(page: Any, lessons: list[tuple[RGB, str]], model: ImageClassifier) -> float:
    """Teach the page; return how far its weights are from those that Python solves for."""
    for image, label in lessons:
        page.evaluate(_TEACH, [_texts([image])[0], label])
    found = page.evaluate(_WEIGHTS)
    inside = model.learner_.estimator_
    names = [*inside.classes_.tolist(), *(label for label, _ in found["lessons"])]
    names = list(dict.fromkeys(names))
    codes = np.array([names.index(label) for label, _ in found["lessons"]], dtype=np.int32)
    rows = np.array([[*row, 1.0] for _, row in found["lessons"]])
    places = np.arange(inside.n_features_in_)[inside._used_features()]
    moments = inside._fitted.moments.with_features(np.append(places, inside.n_features_in_))
    moments = moments.with_classes(len(names)).add_all([Batch.of(rows, codes)])
    expected = solve(moments, replace(inside._ridge(), columns=None)).weights
    return float(np.abs(np.array(found["weights"]) - expected).max())
