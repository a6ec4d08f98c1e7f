"""Run the page's own tests with Node.js: those of modules that do not use the DOM."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib.resources import as_file, files
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# Cases that the command line decides in the same way.
SIMILAR_NAMES = HERE.parents[1] / "workspace" / "similar_names.json"


def find_node() -> str:
    """Path of Node.js 20 or later; older versions lack what the tests use."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True)
    if int(version.stdout.lstrip("v").partition(".")[0]) < 20:
        pytest.skip(f"node 20 or later is needed, found {version.stdout.strip()}")
    return node


@pytest.mark.slow
def test_the_logic_of_the_page(tmp_path: Path) -> None:
    for folder in (files("evergrow") / "page", files("evergrow.service") / "page"):
        with as_file(folder) as page:
            shutil.copytree(page, tmp_path / "page", dirs_exist_ok=True)
    # Browsers load the files as modules; Node needs this file for it.
    (tmp_path / "page" / "package.json").write_text('{"type": "module"}')
    tests = tmp_path / "tests"
    tests.mkdir()
    for source in HERE.glob("*.test.mjs"):
        shutil.copy(source, tests)
    names = sorted(path.name for path in tests.iterdir())
    shutil.copy(SIMILAR_NAMES, tests)
    done = subprocess.run(
        [find_node(), "--test", *names],
        cwd=tests,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"pass (\d+)", done.stdout)
    assert passed is not None
    assert int(passed.group(1)) >= 40
