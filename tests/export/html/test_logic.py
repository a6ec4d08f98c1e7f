"""Run the tests of the page's logic with Node.js, against values that Python computes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import pytest

from evergrow.vision.embedding.preprocessing import can_be_vertical_first
from tests.export.html.cases import write_cases
from tests.service.page_logic.test_node import find_node

HERE = Path(__file__).parent / "logic"
SIZES = [(31, 17), (5, 300), (224, 224), (640, 480), (97, 1), (1000, 33)]
FILTERS = ["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"]


def write_pictures(folder: Path) -> None:
    """Pictures of odd sizes, and what Pillow makes of them."""
    from evergrow.vision import Preprocessing

    cases, vertical_first = [], can_be_vertical_first()
    for number, (width, height) in enumerate(SIZES):
        random = np.random.default_rng(number)
        image = random.integers(0, 256, (height, width, 3), dtype=np.uint8)
        (folder / f"image{number}.bin").write_bytes(image.tobytes())
        for interpolation in FILTERS:
            for resize in ("crop", "stretch", "torchvision", "transformers"):
                chosen = Preprocessing(
                    size=(32, 48) if resize in ("crop", "stretch") else 32,
                    interpolation=interpolation,
                    resize=resize,
                    layout="nhwc" if resize == "crop" else "nchw",
                    channels="bgr" if interpolation == "box" else "rgb",
                )
                name = f"prepared{len(cases)}.bin"
                (folder / name).write_bytes(chosen(image).tobytes())
                cases.append(
                    {
                        "image": f"image{number}.bin",
                        "width": width,
                        "height": height,
                        "preprocessing": {**chosen.to_json(), "vertical_first": vertical_first},
                        "prepared": name,
                    }
                )
    (folder / "pictures.json").write_text(json.dumps(cases))


@pytest.mark.slow
def test_the_logic_of_the_page(tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="resizing is compared with Pillow")
    for folder in (files("evergrow") / "page", files("evergrow.export.html") / "page"):
        with as_file(folder) as page:
            shutil.copytree(page, tmp_path / "page", dirs_exist_ok=True)
    (tmp_path / "page" / "package.json").write_text('{"type": "module"}')
    tests = tmp_path / "tests"
    shutil.copytree(HERE, tests)
    # The rules of modules are those of the page of a service.
    rules = HERE.parents[2] / "service" / "page_logic" / "modules.test.mjs"
    shutil.copy(rules, tests)
    write_cases(tests)
    write_pictures(tests)
    done = subprocess.run(
        [find_node(), "--test", *sorted(path.name for path in tests.glob("*.mjs"))],
        cwd=tests,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"pass (\d+)", done.stdout)
    assert passed is not None
    assert int(passed.group(1)) >= 40
