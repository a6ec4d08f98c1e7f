"""The stored results: full runs, reasons, and pages that the code gives for the stored tables."""

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytest.importorskip("evergrow_papers", reason="evergrow-papers is not installed")

from evergrow_papers import frame, page

RESULTS = Path(__file__).parents[2] / "papers" / "results"
EXPERIMENTS = {each.name: each for each in frame.find_experiments(["all"])}


def record(name):
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def test_every_result_is_a_full_run_with_five_seeds():
    for name in EXPERIMENTS:
        found = record(name)
        assert not page.describe_run(found), name
        assert len(found["seeds"]) >= 5, name


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_claims_that_differ_have_a_measured_reason(name):
    notes = page.read_notes(name.partition("-")[0], name)
    for key in notes.reasons:
        assert key.partition(": ")[0] in EXPERIMENTS[name].claims, key
    for found in record(name)["findings"]:
        if found["agrees"] is False:
            reason = notes.reason(frame.Finding(**found))
            # A number, or a link to the page that measured it.
            assert any(c.isdigit() for c in reason) or "](" in reason, found["key"]


@pytest.fixture(scope="module")
def rendered(tmp_path_factory):
    """The results that the code gives for the stored tables."""
    folder = tmp_path_factory.mktemp("results")
    for path in RESULTS.iterdir():
        experiment = EXPERIMENTS.get(path.stem)
        if path.suffix in (".csv", ".json") or (experiment is not None and experiment.drawn):
            shutil.copy(path, folder)
    for experiment in EXPERIMENTS.values():
        frame.render(experiment, folder)
    page.write_index(folder)
    return folder


@pytest.mark.slow
def test_stored_pages_are_those_of_the_stored_tables(rendered):
    names = {path.name for path in RESULTS.iterdir() if path.suffix in (".csv", ".json", ".md")}
    assert names == {p.name for p in rendered.iterdir() if p.suffix in (".csv", ".json", ".md")}
    for name in sorted(names):
        assert (rendered / name).read_text() == (RESULTS / name).read_text(), name


@pytest.mark.slow
def test_every_figure_is_drawn_and_names_its_curves(rendered):
    for name in EXPERIMENTS:
        stored, drawn = ((folder / f"{name}.svg").read_text() for folder in (RESULTS, rendered))
        # Another version of matplotlib may place the same words elsewhere.
        assert _words(drawn) == _words(stored), name


def _words(svg):
    """The texts of a figure, without the numbers of its axes."""
    texts = (each.text or "" for each in ElementTree.fromstring(svg).iter())
    return sorted(text for text in texts if text.strip("\u2212-.0123456789 \n"))


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_quick_run_writes_a_page(name, tmp_path):
    experiment = EXPERIMENTS[name]
    outcome = frame.run(
        experiment, tmp_path, frame.Context(experiment.sources, quick=True, n_seeds=1)
    )
    assert len(outcome.table)
    assert {found.key for found in outcome.findings} <= {*experiment.claims}
    assert (tmp_path / f"{name}.md").read_text().startswith(f"# {experiment.title}\n")
