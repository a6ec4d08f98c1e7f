"""Experiments are run, cached, resumed and written."""

import csv
import dataclasses
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from evergrow.research import (
    Experiment,
    ExperimentContext,
    Finding,
    Source,
    Table,
    find_experiments,
    mixture,
    render_experiment,
    run_experiment,
)
from evergrow.research.experiments.pages import format_page, format_published, write_index
from evergrow.research.experiments.run_cache import RunCache
from evergrow.research.experiments.runner import estimate_seconds
from evergrow.research.experiments.verdicts import Difference, combine_verdicts


class StoppedError(Exception):
    """Stands for a kill in the middle of a run."""


def _measure(context, run):
    rng = np.random.default_rng([run["seed"], run["size"]])
    accuracy = float(rng.random())
    return [{**run, "accuracy": np.float64(accuracy), "seconds": os.times().elapsed}]


def _draw(figure, table):
    axes = figure.add_subplot()
    curve = table.curve("size", "accuracy")
    axes.errorbar(curve.x, curve.mean, curve.deviation, label="ours")
    axes.set_xlabel("size")
    axes.legend()


def _judge(table):
    mean = table.mean("accuracy")
    return [Finding("All is well.", f"It is {mean:.2f}.", mean > 0)]


def made_up(measure=_measure):
    return Experiment(
        name="made-up",
        title="A made-up figure",
        shows="nothing in particular",
        sources={"mixture": Source(None, mixture)},
        runs=lambda context: [
            {"data": "mixture", "seed": seed, "size": size}
            for seed in context.seeds(3, 2)
            for size in (1, 2)
        ],
        measure=measure,
        draw=_draw,
        judge=_judge,
        keys=("data", "seed", "size"),
        exact=("accuracy",),
        timed=("seconds",),
        published=({"size": 1, "accuracy": 0.5}, {"size": 9, "accuracy": 0.25}),
        notes=("Other data.",),
    )


def run(folder, measure=_measure, *, fresh=False, **options):
    experiment = made_up(measure)
    context = ExperimentContext(experiment.sources, **options)
    return run_experiment(experiment, folder, context, fresh=fresh)


@pytest.fixture
def done(tmp_path):
    run(tmp_path)
    return tmp_path


def test_it_writes_table_times_figure_page_and_record(done):
    assert sorted(path.name for path in done.iterdir()) == [
        ".runs",
        "made-up-timings.csv",
        "made-up.csv",
        "made-up.json",
        "made-up.md",
        "made-up.svg",
    ]


def test_the_table_has_a_row_per_run_and_no_times(done):
    with (done / "made-up.csv").open() as file:
        rows = [*csv.DictReader(file)]
    assert len(rows) == 6
    assert set(rows[0]) == {"data", "seed", "size", "accuracy"}


@pytest.mark.parametrize("n_before", range(6))
def test_a_run_that_was_stopped_gives_the_table_of_one_that_was_not(done, tmp_path, n_before):
    calls = []

    def stopping(context, run):
        calls.append(run)
        if len(calls) > n_before:
            raise StoppedError
        return _measure(context, run)

    folder = tmp_path / "again"
    with pytest.raises(StoppedError):
        run(folder, stopping)
    assert run(folder).n_measured == 6 - n_before
    assert (folder / "made-up.csv").read_bytes() == (done / "made-up.csv").read_bytes()


def test_a_line_that_was_cut_short_is_measured_again(done):
    before = (done / "made-up.csv").read_bytes()
    runs = done / ".runs" / "made-up.jsonl"
    runs.write_bytes(runs.read_bytes()[:-20])
    assert run(done).n_measured == 1
    assert (done / "made-up.csv").read_bytes() == before


def test_fresh_measures_all_again(done):
    assert run(done, fresh=True).n_measured == 6


def test_cached_runs_of_other_data_do_not_count(done):
    other = {"mixture": Source(None, lambda: mixture(random_state=1))}
    assert run_experiment(made_up(), done, ExperimentContext(other)).n_measured == 6


def test_cached_quick_runs_do_not_count_for_a_full_one(tmp_path):
    assert run(tmp_path, quick=True).n_measured == 4
    assert run(tmp_path).n_measured == 6


def test_the_number_of_seeds_can_be_chosen(tmp_path):
    assert len(run(tmp_path, n_seeds=5).table) == 10


def test_the_record_names_versions_seeds_and_data_but_not_the_machine(done):
    text = (done / "made-up.json").read_text()
    record = json.loads(text)
    assert record["seeds"] == [0, 1, 2]
    assert record["data"]["mixture"]["sha256"] == mixture().sha256
    assert {"evergrow", "numpy", "python"} <= set(record["versions"])
    assert record["n_cores"] >= 1
    assert str(done) not in text
    assert platform.node() not in text


def test_the_page_shows_the_papers_numbers_next_to_ours(done):
    text = (done / "made-up.md").read_text()
    assert "| size 1 | accuracy | 50 % | " in text
    assert "| size 9 |" not in text
    assert "Left out: 1 number of the paper for settings that we did not measure." in text


def test_the_page_has_a_column_for_each_data_set_that_the_paper_does_not_name():
    rows = [
        {"data": data, "seed": seed, "size": 1, "accuracy": accuracy}
        for data, accuracy in (("letters", 0.25), ("digits", 0.75))
        for seed in (0, 1)
    ]
    lines = format_published(made_up(), Table(rows)).splitlines()
    assert lines[0] == "| setting | quantity | paper | here, letters | here, digits |"
    assert lines[2] == "| size 1 | accuracy | 50 % | 25.0 ± 0.0 % | 75.0 ± 0.0 % |"


def test_the_page_says_what_agrees(done):
    assert "- **Agrees.** All is well.\n  - It is 0" in (done / "made-up.md").read_text()


@pytest.mark.parametrize(
    ("agrees", "word"), [(True, "**Agrees.**"), (False, "**Differs.**"), (None, "**Not decided.**")]
)
def test_each_verdict_has_its_words(agrees, word):
    record = {"data": {}, "seeds": [], "quick": True, "versions": {}, "processor": "", "n_cores": 1}
    record |= {"own_data": False, "n_jobs": -1, "n_seeds": None}
    text = format_page(made_up(), Table([]), [Finding("Claim.", "Here.", agrees)], record)
    assert f"- {word} Claim.\n  - Here.\n" in text


def test_the_figure_is_the_same_file_for_the_same_numbers(done, tmp_path):
    run(tmp_path / "again")
    assert (tmp_path / "again" / "made-up.svg").read_bytes() == (done / "made-up.svg").read_bytes()


def test_the_figure_keeps_its_words_as_text(done):
    words = [e.text for e in ElementTree.parse(done / "made-up.svg").iter() if e.text]
    assert "ours" in words


def test_a_folder_that_cannot_be_written_is_reported_before_any_work(tmp_path):
    (tmp_path / "file").write_text("in the way")
    calls = []
    with pytest.raises(OSError, match="cannot write to the folder"):
        run(tmp_path / "file" / "results", lambda *arguments: calls.append(arguments))
    assert calls == []


def test_cached_rows_are_read_back_as_they_were_written(tmp_path):
    cache = RunCache(tmp_path / "runs.jsonl")
    rows = [{"accuracy": np.float32(0.1), "n": np.int64(3)}]
    added = cache.add({"seed": 0}, rows, seconds=1.5)
    assert RunCache(tmp_path / "runs.jsonl").get({"seed": 0}) == added
    assert added.rows[0]["n"] == 3


def test_runs_cached_by_earlier_versions_are_still_read(tmp_path):
    (tmp_path / "runs.jsonl").write_text('{"setting": {"seed": 0}, "rows": [{"accuracy": 0.5}]}\n')
    found = RunCache(tmp_path / "runs.jsonl").get({"seed": 0})
    assert (found.rows, found.about) == ([{"accuracy": 0.5}], {})


def test_workers_measure_the_same(tmp_path):
    (experiment,) = find_experiments(["report-fig5"])
    for n_workers in (1, 3):
        context = ExperimentContext(experiment.sources, quick=True, n_seeds=2, n_jobs=2)
        run_experiment(experiment, tmp_path / str(n_workers), context, n_workers=n_workers)
    texts = [(tmp_path / name / "report-fig5.csv").read_bytes() for name in ("1", "3")]
    assert texts[0] == texts[1]


def test_the_time_is_estimated_from_the_last_results(tmp_path):
    experiment = made_up()
    context = ExperimentContext(experiment.sources, n_seeds=2)
    assert estimate_seconds(experiment, tmp_path, context) is None
    run(tmp_path, n_seeds=2)
    assert estimate_seconds(experiment, tmp_path, context) == 0
    record = json.loads((tmp_path / "made-up.json").read_text())
    assert record["n_runs"] == 4
    (tmp_path / "made-up.json").write_text(json.dumps({**record, "seconds": 8.0}))
    more = ExperimentContext(experiment.sources, n_seeds=5)
    assert estimate_seconds(experiment, tmp_path, more) == 12.0


def test_means_and_deviations_are_over_seeds():
    table = Table([{"x": x, "seed": s, "y": x + s} for x in (1, 2) for s in (0, 2)])
    curve = table.curve("x", "y")
    assert curve.x.tolist() == [1, 2]
    assert curve.mean.tolist() == [2, 3]
    assert curve.deviation == pytest.approx([np.sqrt(2)] * 2)


def test_what_is_missing_is_left_empty():
    text = Table([{"a": None, "b": float("nan"), "c": 0.1}]).to_csv(("a", "b", "c"))
    assert text == "a,b,c\n,,0.1\n"


def test_a_quick_run_does_not_take_the_place_of_a_full_one(done):
    before = (done / "made-up.csv").read_bytes()
    with pytest.raises(ValueError, match="name another folder"):
        run(done, quick=True)
    assert (done / "made-up.csv").read_bytes() == before


def test_the_page_shows_the_command(tmp_path):
    run(tmp_path, n_seeds=2, quick=True)
    text = (tmp_path / "made-up.md").read_text()
    assert "    evergrow experiment made-up --quick --seeds 2\n" in text


def test_a_missing_matplotlib_is_reported_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    calls = []
    with pytest.raises(ImportError, match='pip install "matplotlib'):
        run(tmp_path, lambda *arguments: calls.append(arguments))
    assert calls == []


def test_a_damaged_record_is_left_out_of_the_index(done):
    (done / "made-up.json").write_text("{")
    assert "made-up" not in write_index(done).read_text()


def test_a_byte_that_is_not_text_costs_one_run(done):
    runs = done / ".runs" / "made-up.jsonl"
    content = bytearray(runs.read_bytes())
    content[5] = 0xFF
    runs.write_bytes(content)
    assert run(done).n_measured == 1


def test_the_index_says_which_runs_are_quick(tmp_path):
    (tmp_path / "icra2017-fig1.md").write_text("# Boundaries\n")
    record = {"findings": [], "quick": True, "own_data": True}
    (tmp_path / "icra2017-fig1.json").write_text(json.dumps(record))
    assert "**a quick run**, on your own data" in write_index(tmp_path).read_text()


def test_the_index_counts_what_agrees(tmp_path):
    (tmp_path / "icra2017-fig1.md").write_text("# Boundaries\n")
    verdicts = (True, True, False, None)
    findings = [{"claim": "So.", "agrees": v} for v in verdicts]
    record = {"findings": findings, "seeds": [0, 1, 2], "seconds": 90.0}
    (tmp_path / "icra2017-fig1.json").write_text(json.dumps(record))
    text = write_index(tmp_path).read_text()
    assert "| [Boundaries](icra2017-fig1.md) | 3 | 1.5 | 2 | 1 | 1 |" in text
    assert "| [icra2017-fig1](icra2017-fig1.md) | So. | **differs** |" in text


@pytest.mark.slow
def test_workers_end_with_the_process_that_started_them(tmp_path):
    command = [sys.executable, "-c", "from evergrow.cli import main; main()", "experiment"]
    options = ["report-table1", "--quick", "--out", str(tmp_path), "--workers", "2"]
    parent = subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL)
    try:
        _wait_until(lambda: len(_workers_of(parent.pid)) == 2)
        workers = _workers_of(parent.pid)
    finally:
        parent.kill()
        parent.wait()
    _wait_until(lambda: not any(_is_worker(pid) for pid in workers))


def _wait_until(is_so):
    end = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.1)


def _workers_of(parent):
    """Numbers of the worker processes that a process started."""
    listed = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [pid for pid in listed if _is_worker(pid)]


def _is_worker(pid):
    try:
        return "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False


def test_pages_and_records_tell_the_interval_and_where_a_claim_differs_the_reason(tmp_path):
    verdicts = [Difference(mean, 0.01, 5).verdict for mean in (0.1, -0.1)]

    def judge(table):
        return [
            Finding("It is so.", "Seen.", verdict, printed="7 %", reason="Too few samples.")
            for verdict in verdicts
        ]

    experiment = dataclasses.replace(made_up(), judge=judge)
    run_experiment(experiment, tmp_path, ExperimentContext(experiment.sources))
    page = (tmp_path / "made-up.md").read_text()
    assert "Decided by: +10.0 points (+9.0 to +11.0, 5 seeds); the claim needs" in page
    assert page.count("Printed in the paper: 7 %.") == 2
    assert page.count("Why: Too few samples.") == 1
    agrees, differs = json.loads((tmp_path / "made-up.json").read_text())["findings"]
    assert (agrees["printed"], agrees["reason"]) == ("7 %", "")
    assert differs["reason"] == "Too few samples."


def test_published_numbers_stand_beside_runs_of_the_paper_alone():
    rows = [{"size": 1, "seed": s, "accuracy": 0.5} for s in range(3)]
    rows += [{"size": 1, "seed": s, "varied": "trees", "accuracy": 0.9} for s in range(3)]
    assert "| 50 % | 50.0 ± 0.0 % |" in format_published(made_up(), Table(rows))


def _contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_rendering_gives_the_files_that_measuring_gave(done):
    before = _contents(done)
    outcome = render_experiment(made_up(), done)
    assert outcome.n_measured == 0
    assert outcome.findings[0].agrees
    assert _contents(done) == before


def test_rendering_takes_new_words_and_a_new_rule_and_keeps_what_was_measured(done):
    before = _contents(done)
    changed = dataclasses.replace(
        made_up(), title="Other words", judge=lambda table: [Finding("It is so.", "", False)]
    )
    render_experiment(changed, done)
    after = _contents(done)
    assert (done / "made-up.md").read_text().startswith("# Other words\n")
    assert "**Differs.** It is so." in (done / "made-up.md").read_text()
    old, new = (json.loads(files["made-up.json"]) for files in (before, after))
    assert new.pop("findings")[0]["agrees"] is False
    assert old.items() >= new.items()
    for name in ("made-up.csv", "made-up-timings.csv", "made-up.svg"):
        assert after[name] == before[name]


def test_times_are_read_back_beside_the_rest(done):
    rows = render_experiment(made_up(), done).table.rows
    assert {*rows[0]} == {"data", "seed", "size", "accuracy", "seconds"}


def _damage(folder, name, change):
    path = folder / name
    path.write_text(change(path.read_text()))


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("made-up.json", lambda text: text[:50], "made-up.json is damaged: "),
        ("made-up.json", lambda text: "[]", "made-up.json is damaged: it is not a record"),
        ("made-up.json", lambda text: text.replace("seeds", "sees"), "it lacks n_seeds, seeds"),
        ("made-up.json", lambda text: text.replace("made-up", "other"), "is the record of other"),
        ("made-up.csv", lambda text: "", "made-up.csv lacks the columns data, seed, size"),
        ("made-up.csv", lambda text: text.replace("accuracy", "x"), "lacks the column accuracy: "),
        ("made-up.csv", lambda text: text + "mixture,1\n", "made-up.csv is damaged: "),
        ("made-up.csv", lambda text: text.replace("mixture,0,1,", "mixture,0,7,"), "of different "),
        ("made-up-timings.csv", lambda text: text[:30], "made-up-timings.csv"),
    ],
)
def test_results_that_are_damaged_are_refused_and_stay(done, name, change, message):
    _damage(done, name, change)
    before = _contents(done)
    with pytest.raises(ValueError, match=message):
        render_experiment(made_up(), done)
    assert _contents(done) == before


def test_tables_of_a_quick_run_beside_the_record_of_a_full_one_are_refused(done, tmp_path):
    run(tmp_path / "quick", quick=True)
    for name in ("made-up.csv", "made-up-timings.csv"):
        (done / name).write_bytes((tmp_path / "quick" / name).read_bytes())
    with pytest.raises(ValueError, match=r"such as a quick one.*4 in the table and 6 in the rec"):
        render_experiment(made_up(), done)


@pytest.mark.parametrize("name", ["made-up.csv", "made-up-timings.csv", "made-up.json"])
def test_a_missing_file_is_named(done, name):
    (done / name).unlink()
    with pytest.raises(FileNotFoundError, match=f"{name}' does not exist: measure"):
        render_experiment(made_up(), done)


def test_a_figure_of_more_than_the_tables_hold_is_kept(tmp_path):
    def measure(context, run):
        return [{**row, "picture": "pixels"} for row in _measure(context, run)]

    def draw(figure, table):
        assert {row["picture"] for row in table} == {"pixels"}
        _draw(figure, table)

    experiment = dataclasses.replace(made_up(measure), draw=draw, drawn=("picture",))
    run_experiment(experiment, tmp_path, ExperimentContext(experiment.sources))
    before = _contents(tmp_path)
    render_experiment(experiment, tmp_path)
    assert _contents(tmp_path) == before
    (tmp_path / "made-up.svg").unlink()
    with pytest.raises(FileNotFoundError, match="cannot be drawn without measuring"):
        render_experiment(experiment, tmp_path)


def test_values_are_read_back_as_they_were_written():
    rows = [
        {"a": 1, "b": 0.1, "c": "0.10", "d": True, "e": None, "f": 1e9 / 7, "g": 'x, "y"\n'},
        {"a": -3, "b": 12.0, "c": "007", "d": False, "e": "e", "f": 1e-9, "g": "nan"},
    ]
    text = Table(rows).to_csv("abcdefg")
    first, second = Table.from_csv(text)
    assert first == {**{k: v for k, v in rows[0].items() if k != "e"}, "f": 1.42857e8}
    assert second == rows[1]
    assert Table.from_csv(text).to_csv("abcdefg") == text


@pytest.mark.parametrize(
    ("verdicts", "text"),
    [
        ((0.1,), "Decided by: "),
        ((0.1, 0.2), "Decided by the weakest of 2 comparisons: "),
        ((0.1, -0.2), "Decided by the one comparison of 2 that is against the claim: "),
        ((0.1, 0.005), "Decided by the one comparison of 2 that is undecided: "),
        ((-0.1, -0.2), "Decided by the clearest of 2 comparisons against the claim (2 in all): "),
        (
            (0.1, 0.005, 0.006),
            "Decided by the least clear of 2 undecided comparisons (3 in all): ",
        ),
    ],
)
def test_the_page_says_which_of_several_comparisons_it_shows(tmp_path, verdicts, text):
    decision = combine_verdicts(Difference(mean, 0.01, 5).verdict for mean in verdicts)
    experiment = dataclasses.replace(
        made_up(), judge=lambda table: [Finding("It is so.", "Seen.", decision, reason="7.")]
    )
    run_experiment(experiment, tmp_path, ExperimentContext(experiment.sources))
    assert f"  - {text}" in (tmp_path / "made-up.md").read_text()


def test_a_page_explains_words_of_its_figure(tmp_path):
    (experiment,) = find_experiments(["guide-nightly"])
    figure = tmp_path / "figure.svg"
    figure.write_text("<svg><text x='1'>streaming</text><text>LDA</text></svg>")
    record = {"data": {}, "seeds": [], "quick": True, "versions": {}, "processor": "", "n_cores": 1}
    record |= {"own_data": False, "n_jobs": 1, "n_seeds": None, "n_workers": 2}
    text = format_page(experiment, Table([]), [], record, figure)
    assert "- **streaming LDA**: " in text
    assert "- **class means**: " not in text
    assert "2 runs at the same time, one thread each." in text
