"""Modules become one script that does the same, or an error says why not."""

from __future__ import annotations

import subprocess
from importlib.resources import files

import pytest

from evergrow.export.html.bundle import bundle
from tests.service.page_logic.test_node import find_node

FOLDERS = (files("evergrow.export.html") / "page", files("evergrow") / "page")


def write(folder, **sources):
    for name, source in sources.items():
        (folder / f"{name}.js").write_text(source)
    return (folder,)


def run(script, tmp_path):
    path = tmp_path / "script.cjs"
    path.write_text(script)
    done = subprocess.run([find_node(), str(path)], capture_output=True, text=True, check=True)
    return done.stdout.strip()


PARTS = """export const one = globalThis.order;
export function two() {
  return 2;
}
export class Three {
  value = 3;
}
export const four = 4;
"""
MAIN = """import "./first.js";
import { one, two as second } from "./parts.js";
import * as parts from "./parts.js";
import { four } from "./middle.js";
console.log(one, second(), new parts.Three().value, four);
"""


@pytest.mark.slow
def test_all_forms_of_imports_are_joined(tmp_path):
    folders = write(
        tmp_path,
        main=MAIN,
        first='globalThis.order = "first";\n',
        parts=PARTS,
        middle='export { four } from "./parts.js";\n',
    )
    assert run(bundle("main.js", folders), tmp_path) == "first 2 3 4"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ('import value from "./part.js";\n', "cannot be joined"),
        ("export default 1;\n", "cannot be joined"),
        ('import { value } from "./missing.js";\n', "module not found: missing.js"),
        ('import { value } from "./main.js";\n', "import each other"),
        ('const text = "</script>";\n', "end the script"),
    ],
)
def test_other_forms_are_refused(tmp_path, source, reason):
    with pytest.raises(ValueError, match=reason):
        bundle("main.js", write(tmp_path, main=source, part="export const value = 1;\n"))


@pytest.mark.parametrize("entry", ["main.js", "head_worker.js", "network_worker.js"])
def test_the_scripts_of_the_page_are_always_the_same(entry):
    assert bundle(entry, FOLDERS) == bundle(entry, FOLDERS)
