"""The published results: enough seeds, and a reason for every claim that differs."""

import json
import re
import shutil
from pathlib import Path

import pytest

from evergrow.research import experiments as ex
from evergrow.research.experiments.pages import write_index

RESULTS = Path(__file__).parents[1] / "docs" / "results"
PAPERS = [paper for paper in ex.PAPERS if not paper.names[0].startswith("guide-")]
NAMES = [name for paper in ex.PAPERS for name in paper.names]


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


def test_the_index_is_that_of_the_pages(tmp_path):
    for name in NAMES:
        for kind in ("md", "json"):
            shutil.copy(RESULTS / f"{name}.{kind}", tmp_path)
    assert write_index(tmp_path).read_text() == (RESULTS / "index.md").read_text()
