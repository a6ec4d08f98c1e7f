"""The published results: enough seeds, a reason for every claim that differs, written by code."""

import json
import re
import shutil
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

import pytest

from evergrow.research import experiments as ex
from evergrow.research.experiments.pages import write_index

RESULTS = Path(__file__).parents[1] / "docs" / "results"
PAPERS = [paper for paper in ex.PAPERS if not paper.names[0].startswith("guide-")]
NAMES = [name for paper in ex.PAPERS for name in paper.names]
# Figures that cannot be drawn again without measuring, and what they show that no file has.
KEPT_FIGURES = {
    "report-fig2": "maps of the answers and training samples",
    "icra2017-fig1": "the outlines of the boundaries",
    "nips2006-fig2": "images and patches of a leaf",
    "nips2006-fig3": "images and maps of the posterior",
    "nips2006-fig4a": "curves over all thresholds",
}


def _record(name):
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_a_full_run_with_five_seeds(name):
    record = _record(name)
    assert not record["quick"]
    assert not record["own_data"]
    assert len(record["seeds"]) >= 5


@pytest.mark.parametrize("name", NAMES)
def test_claims_that_differ_have_a_measured_reason(name):
    for finding in _record(name)["findings"]:
        if finding["agrees"] is False:
            # A number, or a link to the page that measured it.
            assert re.search(r"\d|\]\(", finding["reason"]), finding["claim"]
        if finding["agrees"] is None:
            assert "seeds" in finding["contrast"], finding["claim"]


def test_at_most_ten_claims_of_the_papers_are_open():
    names = [name for paper in PAPERS for name in paper.names]
    found = [(name, each["claim"]) for name in names for each in _record(name)["findings"]]
    verdicts = [each["agrees"] for name in names for each in _record(name)["findings"]]
    undecided = [claim for claim, agrees in zip(found, verdicts, strict=True) if agrees is None]
    assert len(undecided) <= 10, undecided


@pytest.fixture(scope="module")
def rendered(tmp_path_factory):
    """The results that the code gives for the stored tables: `make results-pages` writes them."""
    folder = tmp_path_factory.mktemp("results")
    for path in RESULTS.iterdir():
        if path.suffix in (".csv", ".json") or path.stem in KEPT_FIGURES:
            shutil.copy(path, folder)
    for experiment in ex.find_experiments(["all"]):
        ex.render_experiment(experiment, folder)
    write_index(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_stored_results_are_those_that_rendering_gives(rendered, name):
    files = [path.name for path in RESULTS.glob(f"{name}*") if path.suffix != ".svg"]
    assert {f"{name}.{kind}" for kind in ("csv", "json", "md")} <= {*files}
    for file in files:
        assert (rendered / file).read_text() == (RESULTS / file).read_text(), file


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name not in KEPT_FIGURES])
def test_stored_figures_are_those_that_rendering_gives(rendered, name):
    stored, drawn = ((folder / f"{name}.svg").read_text() for folder in (RESULTS, rendered))
    # Another version may place the same words and lines elsewhere.
    if f"Matplotlib v{version('matplotlib')}" not in stored:
        pytest.skip("drawn with another version of Matplotlib")
    assert _words(drawn) == _words(stored)
    assert _places(drawn) == pytest.approx(_places(stored), abs=0.01)


def _words(svg):
    return [each.text for each in ElementTree.fromstring(svg).iter() if each.text]


def _places(svg):
    """The numbers of a figure without its identifiers, which depend on the last digits."""
    svg = re.sub(r'(id="|#)[^")]+', "", svg)
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", svg)]


def test_figures_are_kept_only_where_files_lack_what_they_show():
    found = ex.find_experiments(["all"])
    assert [each.name for each in found if not each.can_draw_stored] == [*KEPT_FIGURES]


@pytest.mark.slow
def test_the_index_is_that_of_the_pages(rendered):
    assert (rendered / "index.md").read_text() == (RESULTS / "index.md").read_text()
