"""Measured numbers in the docs come from result files: docs/measured_numbers.py."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


def _load_tool() -> ModuleType:
    path = ROOT / "docs" / "measured_numbers.py"
    spec = importlib.util.spec_from_file_location("measured_numbers", path)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = tool
    spec.loader.exec_module(tool)
    return tool


numbers = _load_tool()
PAGES = numbers.pages()

# Tables with numbers that no result file provides: how many are under a heading, and the reason.
# This list may only shrink: a new table of measurements names its source in the page.
WITHOUT_SOURCE: dict[str, tuple[int, str]] = {
    "benchmarks.md: Clusters and memory limits": (1, "what is done, not measured"),
    "benchmarks.md: Least squares": (2, "need 16 cores and a GPU"),
    "benchmarks.md: Predicting": (1, "needs a GPU"),
    "benchmarks.md: Scaling": (1, "needs 16 cores"),
    "benchmarks.md: Service": (1, "what is done, not measured"),
    "benchmarks.md: Visual words": (1, "older machine"),
    "clean_data.md: Labels saved": (1, "older machine"),
    "cluster.md: What runs on workers": (1, "sizes of tasks, not measured"),
    "codebooks.md: Settings": (1, "effects, of experiments nips2006"),
    "codebooks.md: Train a classifier": (1, "lengths of descriptors, not measured"),
    "compare.md: The learners": (1, "settings, not measured"),
    "compare.md: What is measured": (1, "settings, not measured"),
    "export_page.md: Inside the file": (1, "sizes of files"),
    "formats.md: Read labelled pictures": (1, "limits, not measured"),
    "getting_started.md: Which parameters of a forest matter": (1, "settings, not measured"),
    "gpu.md: Least squares and class means": (1, "needs a GPU"),
    "gpu.md: Measure the speedup": (1, "needs a GPU"),
    "label_studio.md: Clicks and latency": (1, "needs Label Studio"),
    "licences.md: Installed by pip": (1, "versions, not measured"),
    "method_least_squares.md: When it works well": (1, "by a script, to choose settings"),
    "method_unknown.md: How the settings were chosen": (1, "by a script, to choose settings"),
    "model_files.md: Format versions": (1, "versions, not measured"),
    "not_reproduced.md: Missing data": (1, "sizes of data, not measured"),
    "planning.md: Accuracy of plans": (3, "needs 16 cores"),
    "planning.md: How a plan is computed": (1, "formulas, not measured"),
    "service.md: Limits": (1, "limits, not measured"),
    "subcategories.md: How many labels you need": (1, "measured by examples/subcategories.py"),
}


@pytest.fixture(scope="module")
def results():
    return numbers.Results()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_have_the_numbers_of_the_result_files(page: Path, results) -> None:
    text = page.read_text(encoding="utf-8")
    assert numbers.rewrite(text, results) == text, "run make numbers"


def test_no_result_file_is_of_a_quick_run(results) -> None:
    assert results.benchmarks
    for path in results.benchmarks:
        assert not json.loads(path.read_text(encoding="utf-8"))["quick"], path.name


# A share, a decimal number, a quantity with a unit, or a cell that is a number.
MEASURED = re.compile(
    r"\d ?%|\d\.\d|\d (?:s|ms|us|h|min|points|[kMG]i?B)\b|^[-+*]*\d+(?: / \d+)*\**$"
)
SOURCE = r"(?P<source>^<!-- (?:measured:|machines)[^>]*-->\n)?"
TABLE = re.compile(rf"^#+ (?P<heading>.*)$|{SOURCE}(?P<table>(?:^\|.*\n)+)", re.MULTILINE)


def tables(text: str) -> list[tuple[str, bool]]:
    """The heading over each table of measured numbers, and whether the table has a source."""
    found, heading = [], ""
    for match in TABLE.finditer(re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)):
        heading = match["heading"] or heading
        if match["table"] and is_measured(match["table"]):
            found.append((heading, match["source"] is not None))
    return found


def is_measured(table: str) -> bool:
    rows = [re.sub(r"`[^`]*`", "", row).strip("|").split("|")[1:] for row in table.splitlines()[2:]]
    return any(MEASURED.search(cell.strip()) for row in rows for cell in row)


def test_a_table_of_measured_numbers_is_found_with_its_heading_and_source() -> None:
    table = "| | s |\n|---|---|\n| a | {} |\n"
    text = f"# A\n\n{table.format('1.5')}\n## B\n\n<!-- measured: x: y -->\n{table.format('3')}"
    text += f"## C\n\n{table.format('`1.5` of them')}"
    assert tables(text) == [("A", False), ("B", True)]


def test_every_table_of_measured_numbers_has_a_source_or_a_reason() -> None:
    without = Counter(
        f"{page.name}: {heading}"
        for page in PAGES
        for heading, has_source in tables(page.read_text(encoding="utf-8"))
        if not has_source
    )
    assert without == {place: count for place, (count, _) in WITHOUT_SOURCE.items()}


RESULT = {
    "quick": False,
    "benchmark": "fit",
    "part": "fit",
    "date": "2026-01-02",
    "machine": {
        "processor": "CPU",
        "cores": 2,
        "python": "3.12",
        "scikit-learn": "1.9",
        "numpy": "2.5",
    },
    "tables": [
        {
            "title": "fit: digits",
            "columns": ["", "size", "seconds", "right"],
            "rows": [["forest", 3, 0.0123, "96.5 ± 0.2"], ["forest", 10, 2, "97 / 8"]],
        },
        {"title": "fit: letters", "columns": ["", "seconds"], "rows": [["ridge", 4.5]]},
    ],
    "figures": [
        {"data": data, "figure": "share over all", "value": value, "sense": "at least"}
        | {"bar": 0.5, "met": value >= 0.5}
        for data, value in (("digits", 0.75), ("letters", 0.25))
    ],
}


@pytest.fixture
def two_files(tmp_path: Path):
    for folder in ("benchmarks/results", "docs/results"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "benchmarks/results/fit-fit.json").write_text(json.dumps(RESULT))
    (tmp_path / "docs/results/guide-one.json").write_text('{"quick": false}')
    rows = "learner,seed,accuracy\na,0,0.5\na,1,0.7\nb,0,0.25\n"
    (tmp_path / "docs/results/guide-one.csv").write_text(rows)
    times = "learner,seed,seconds\na,0,1\na,1,1\na,2,9\n"
    (tmp_path / "docs/results/guide-one-timings.csv").write_text(times)
    return numbers.Results(tmp_path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("fit-fit: digits: share over all", 0.75),
        ("fit-fit: let: share over all times 100", 25),
        ("fit-fit: ridge: seconds", 4.5),
        ("fit-fit: fit: letters: ridge: seconds", 4.5),
        ("fit-fit: forest & 10: seconds", 2),
        ("guide-one: learner=a: accuracy", 0.6),
        ("guide-one: learner=a: seconds", 1),
        ("guide-one: learner=a: accuracy minus guide-one: learner=b: accuracy times 100", 35),
        ("fit-fit: ridge: seconds over 2", 2.25),
    ],
)
def test_a_key_names_one_value(key: str, value: float, two_files) -> None:
    assert two_files.measurement(key).value == pytest.approx(value)


@pytest.mark.parametrize(
    "key",
    [
        "fit-other: ridge: seconds",
        "fit-fit: share over all",
        "fit-fit: forest: seconds",
        "fit-fit: tree: seconds",
        "fit-fit: ridge: minutes",
        "guide-one: learner=c: accuracy",
        "guide-one: learner=a: loss",
    ],
)
def test_a_key_without_one_value_is_an_error(key: str, two_files) -> None:
    with pytest.raises(numbers.SourceError):
        two_files.measurement(key)


ROWS = """<!-- measured: fit-fit: fit: digits | seconds times 1000 | right
forest & 3; -; forest & 10 -->
| | ms | right |
|---|---|---|
| `3` | {} ms | **{} ± {}%** |
| by hand | 7 | 8 |
| 10 | {} | {} / {} |
"""
BARS = """<!-- measured: fit-fit
digits: share over all times 100 |
letters: share over all -->
| | target | measured |
|---|---|---|
| two | at least {}%; {} | {}; {} |
"""
MACHINES = """<!-- machines -->
| processor | cores | software | date | benchmarks |
|---|---|---|---|---|
| CPU | 2 | Python 3.12, scikit-learn 1.9, NumPy 2.5 | 2026-01-02 | `fit` |
"""
SENTENCE = "**{}%**<!-- measured: fit-fit: digits: share over all times 100 --> of 3"


@pytest.mark.parametrize(
    ("written", "rewritten"),
    [
        (SENTENCE.format(70), SENTENCE.format(75)),
        (
            ROWS.format("1.0", "1.0", "0.0", "1.0", "1", "1.0"),
            ROWS.format("12.3", "96.5", "0.2", "2000.0", "97", "8.0"),
        ),
        (
            BARS.format(1, 0.1, "**1%**", "+1.00"),
            BARS.format(50, 0.5, "75%", "**+0.25**"),
        ),
        ("<!-- machines -->\n\nEnd", f"{MACHINES}\nEnd"),
    ],
    ids=["sentence", "rows", "bars", "machines"],
)
def test_numbers_are_replaced_and_words_stay(written: str, rewritten: str, two_files) -> None:
    assert numbers.rewrite(written, two_files) == rewritten
    assert numbers.rewrite(rewritten, two_files) == rewritten


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<!-- measured: fit-fit: ridge: seconds -->\n\nText", "no table"),
        ("Far too slow<!-- measured: fit-fit: ridge: seconds -->", "no number"),
        ("<!-- measured: fit-fit | seconds\nridge -->\n| | s |\n|---|---|\n", "1 sources for 0"),
        (
            "<!-- measured: fit-fit | seconds\nridge -->\n| | s |\n|---|---|\n| a | 1 to 2 |\n",
            "2 numbers for 1",
        ),
        (
            "<!-- measured:\nfit-fit: digits: share over all -->\n"
            "| | target | s |\n|---|---|---|\n| a | at most 1 | 2 |\n",
            "must say 'at least'",
        ),
    ],
)
def test_what_does_not_fit_its_source_is_an_error(text: str, message: str, two_files) -> None:
    with pytest.raises(numbers.SourceError, match=message):
        numbers.rewrite(text, two_files)


def test_quick_runs_are_no_source(two_files) -> None:
    path = two_files.root / "benchmarks/results/fit-fit.json"
    path.write_text(json.dumps(RESULT | {"quick": True}))
    with pytest.raises(numbers.SourceError, match="quick run"):
        two_files.measurement("fit-fit: ridge: seconds")
