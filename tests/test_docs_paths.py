"""The files, functions and papers that the docs name exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "evergrow"
METHODS = sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("method_*.md"))
PAGES = ("docs/papers.md", "docs/architecture.md", "CONTRIBUTING.md", *METHODS)
TOP = ("benchmarks", "cpp", "docs", "examples", "src", "tests")
TAGGED = ("src", "cpp", "tests/reference")
MADE = ("docs/_build/html",)

CODE = re.compile(r"`([^`\n]+)`")
# A link of Sphinx, not code: {doc}`gallery/index`.
ROLE = re.compile(r"\{\w+\}`[^`]*`")
# Names that lie in a file: `first`, `Class::second` in `folder/file.cpp`.
LOCATED = re.compile(r"((?:`[\w:.]+`,\s+)*`[\w:.]+`)\s+in\s+`([\w/.]+\.\w+)`")
# The file of the last column of the next table: NumPy reference in `file`, or in brackets.
REFERENCE_FILE = re.compile(r"\bNumPy\s+reference\s+(?:in\s+|\()`([\w/.]+\.py)`")
LAST_CELL = re.compile(r"^\|.*\|([^|]*)\|$", re.MULTILINE)
# What follows an equation up to the next one, heading or end of the page.
EQUATION = re.compile(r"^(\$\$.+?\$\$)(.*?)(?=^\$\$|^#|\Z)", re.MULTILINE | re.DOTALL)
IN_THE_CODE = "\nIn the code: "
TAG = re.compile(r"\[([A-Z][A-Za-z]+(?:\d{4}|Report)|\w+(?= (?:Eq|Sec|Alg|Fig)\. ))\b[^\]]*\]")


def read(path: str | Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def is_path(name: str) -> bool:
    """Whether a piece of code in a page is the path of a file or folder of the repository."""
    if not re.fullmatch(r"\w+(/\w+)*(/|\.(py|pyi|cpp|hpp|md))?", name):
        return False
    return "/" in name or "." in name


def found(name: str) -> list[Path]:
    """The files or folders of this name, from the root or from any folder of the package."""
    if (ROOT / name).exists() or name.split("/", maxsplit=1)[0] in TOP:
        return [path for path in (ROOT / name,) if path.exists()]
    folder = ROOT / "cpp" if name.endswith("pp") else PACKAGE
    return [*folder.rglob(name), *folder.rglob(f"{name}.py")]


def paths_on(text: str) -> list[str]:
    return [*filter(is_path, CODE.findall(ROLE.sub("", text)))]


def wrong_paths(text: str) -> list[str]:
    return [path for path in paths_on(text) if path not in MADE and not found(path)]


def wrong_names(text: str) -> list[str]:
    return [
        f"{name} in {path}"
        for names, path in LOCATED.findall(text)
        for name in CODE.findall(names)
        if not is_defined(name, path)
    ]


def wrong_references(text: str) -> list[str]:
    # Paths of files alternate with the text up to the next path, which is about that file.
    parts = REFERENCE_FILE.split(text)[1:]
    return [
        f"{name} in {path}"
        for path, following in zip(parts[::2], parts[1::2], strict=True)
        for cell in LAST_CELL.findall(following.split("\n#", maxsplit=1)[0])
        for name in CODE.findall(cell)
        if not is_path(name) and not is_defined(name, path)
    ]


def unplaced_equations(text: str) -> list[str]:
    """Equations of a method page without a line that says where they are in the code.

    Equations that follow each other in a section may share a line, after the last of them.
    """
    sections = re.split(r"^(?=#)", text, flags=re.MULTILINE)
    return [
        found[-1][0]
        for found in map(EQUATION.findall, sections)
        if found and not LOCATED.search(found[-1][1].partition(IN_THE_CODE)[2])
    ]


def is_defined(name: str, path: str) -> bool:
    content = "".join(file.read_text("utf-8") for file in found(path) if file.is_file())
    return all(re.search(rf"\b{part}\b", content) for part in re.split(r"::|\.", name))


def paper_keys() -> set[str]:
    return set(re.findall(r"^\*\*\[(\w+)\]\*\* ", read("docs/papers.md"), re.MULTILINE))


def tagged_files() -> Iterator[Path]:
    for folder in TAGGED:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".cpp", ".hpp", ".md"):
                yield path


@pytest.mark.parametrize("page", PAGES)
def test_every_path_on_a_page_exists(page: str) -> None:
    text = read(page)
    assert len(paths_on(text)) > (2 if page in METHODS else 10)
    assert wrong_paths(text) == []


@pytest.mark.parametrize("page", PAGES)
def test_every_name_on_a_page_is_in_its_file(page: str) -> None:
    text = read(page)
    assert wrong_names(text) == wrong_references(text) == []


@pytest.mark.parametrize("page", METHODS)
def test_a_method_page_says_where_its_equations_are(page: str) -> None:
    text = read(page)
    assert EQUATION.search(text)
    assert unplaced_equations(text) == []
    # References and the code that they are compared with.
    assert re.search(r"^In the code: (.|\n)*?;\s+NumPy\s+reference:\s+`", text, re.MULTILINE)


def test_every_equation_tag_has_the_key_of_a_listed_paper() -> None:
    tags = {(key, path) for path in tagged_files() for key in TAG.findall(read(path))}
    assert {key for key, _ in tags} == paper_keys(), sorted(tags)


def test_a_wrong_page_is_reported() -> None:
    right = "`Tree::split` in `cpp/tree/tree.cpp`, `linear/solver.py`, `change/growth`, `cpp/bind/`"
    assert wrong_paths(right) == wrong_names(right) == []
    moved = "`cpp/gain.cpp`, `linear/gone.py`, `change/gone`, `gone.cpp`, `tests/gone/`"
    assert len(wrong_paths(moved)) == 5
    assert wrong_names("`Tree::nowhere`, `split` in `cpp/tree/tree.cpp`") == [
        "Tree::nowhere in cpp/tree/tree.cpp"
    ]
    table = (
        "NumPy reference in `tests/reference/updates.py`:\n\n"
        "| core | NumPy reference |\n| a | `TreePass.cut`, `gone` |"
    )
    assert wrong_references(table) == ["gone in tests/reference/updates.py"]


def test_an_equation_without_its_place_in_the_code_is_reported() -> None:
    place = "\nIn the code: `Tree::split` in `cpp/tree/tree.cpp`."
    assert unplaced_equations(f"## A\n\n$$a = b$$\n\nWords.\n{place}\n") == []
    assert unplaced_equations(f"## A\n\n$$a$$\n\n$$b$$\n{place}\n") == []
    assert unplaced_equations(f"## A\n\n$$a$$\n\n## B\n\n$$b$$\n{place}\n") == ["$$a$$"]


def test_a_tag_is_found_by_its_key_or_by_what_follows() -> None:
    text = "[Ristin2014 Eq. 6] [Hayes2020] [GuoReport Sec. 2] [Gone Eq. 3] [a, b] [Any] list[int]"
    assert TAG.findall(text) == ["Ristin2014", "Hayes2020", "GuoReport", "Gone"]
