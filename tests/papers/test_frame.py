"""Experiments are run, cached, continued, stored and read back."""

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

pytest.importorskip("evergrow_papers", reason="evergrow-papers is not installed")

from evergrow_papers import frame, page
from evergrow_papers.claims import Claim, Difference, Finding, Words
from evergrow_papers.data import mixture
from evergrow_papers.figures import Panel, Panels, Style

CLAIM = Claim("All is well.", lambda table: [Difference(table.mean("accuracy"), 0.01, 3).above()])
PANELS = Panels([Panel("size", "accuracy", "data", {"mixture": Style("ours", "#0072b2")})])


class StoppedError(Exception):
    """Stands for a kill in the middle of a run."""


def measure(context, run):
    rng = np.random.default_rng([run["seed"], run["size"]])
    return [{**run, "accuracy": np.float64(rng.random()), "seconds": os.times().elapsed}]


def made_up(measure=measure, **changes):
    given = {
        "name": "guide-made-up",
        "title": "A made-up figure",
        "shows": "nothing in particular",
        "sources": {"mixture": frame.Source(None, mixture)},
        "runs": lambda context: frame.grid(data=["mixture"], seed=context.seeds(3, 2), size=(1, 2)),
        "measure": measure,
        "claims": {"well": CLAIM},
        "figure": PANELS,
        "keys": ("data", "seed", "size"),
        "exact": ("accuracy",),
        "timed": ("seconds",),
        "published": ({"size": 1, "accuracy": 0.5}, {"size": 9, "accuracy": 0.25}),
    }
    return frame.Experiment(**{**given, **changes})


@pytest.fixture(autouse=True)
def paper(monkeypatch):
    """A paper of its own, so that no module of a real one is imported."""
    words = Words(settings={"size": "size {}"}, shares=("accuracy",))
    found = frame.Paper("guide", "Somebody: Something", {"guide-made-up": made_up()}, words)
    monkeypatch.setattr(frame, "load_paper", lambda name: found)
    monkeypatch.setattr(page, "load_paper", lambda name: found)
    monkeypatch.setattr(page, "read_notes", lambda paper, experiment: page.Notes())
    monkeypatch.setattr(frame, "PAPERS", ("guide",))
    monkeypatch.setattr(page, "PAPERS", ("guide",))
    return found


def run(folder, experiment=None, *, fresh=False, **options):
    experiment = experiment or made_up()
    return frame.run(experiment, folder, frame.Context(experiment.sources, **options), fresh=fresh)


def n_cached(folder):
    return len((folder / ".runs" / "guide-made-up.jsonl").read_bytes().splitlines())


@pytest.fixture
def done(tmp_path):
    run(tmp_path / "done")
    return tmp_path / "done"


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def counted(calls):
    def counting(context, run):
        calls.append(run)
        return measure(context, run)

    return made_up(counting)


@pytest.mark.slow
def test_tables_figure_page_and_record_are_written(done):
    names = ("-timings.csv", ".csv", ".json", ".md", ".svg")
    assert {*contents(done)} == {f"guide-made-up{name}" for name in names}
    with (done / "guide-made-up.csv").open() as file:
        rows = [*csv.DictReader(file)]
    assert len(rows) == 6
    assert set(rows[0]) == {"data", "seed", "size", "accuracy"}
    words = [e.text for e in ElementTree.parse(done / "guide-made-up.svg").iter() if e.text]
    assert {"ours", "size", "accuracy, %"} <= {*words}


@pytest.mark.parametrize("n_before", [0, 1, 5])
def test_an_interrupted_run_is_continued(done, tmp_path, n_before):
    calls = []

    def stopping(context, run):
        calls.append(run)
        if len(calls) > n_before:
            raise StoppedError
        return measure(context, run)

    folder = tmp_path / "again"
    with pytest.raises(StoppedError):
        run(folder, made_up(stopping))
    assert not (folder / "guide-made-up.csv").exists()
    calls.clear()
    run(folder, counted(calls))
    assert len(calls) == 6 - n_before
    name = "guide-made-up.csv"
    assert (folder / name).read_bytes() == (done / name).read_bytes()


@pytest.mark.parametrize(
    "damage", [lambda text: text[:-20], lambda text: text[:5] + b"\xff" + text[6:]]
)
def test_a_damaged_line_of_the_cache_costs_one_run(done, damage):
    before, calls = contents(done)["guide-made-up.csv"], []
    runs = done / ".runs" / "guide-made-up.jsonl"
    runs.write_bytes(damage(runs.read_bytes()))
    run(done, counted(calls))
    assert len(calls) == 1
    assert contents(done)["guide-made-up.csv"] == before


def test_the_cache_is_of_the_same_data_and_size(done, tmp_path):
    calls = []
    other = {"mixture": frame.Source(None, lambda: mixture(random_state=1))}
    run(done, dataclasses.replace(counted(calls), sources=other))
    assert len(calls) == 6
    run(tmp_path / "sizes", counted(calls), quick=True)
    run(tmp_path / "sizes", counted(calls))
    assert len(calls) == 6 + 4 + 6
    run(done, counted(calls), fresh=True)
    assert len(calls) == 16 + 6


def test_the_number_of_seeds_can_be_chosen(tmp_path):
    assert len(run(tmp_path, n_seeds=5).table) == 10


def test_the_record_does_not_name_the_machine(done):
    text = (done / "guide-made-up.json").read_text()
    record = json.loads(text)
    assert (record["format"], record["seeds"], record["n_runs"]) == (1, [0, 1, 2], 6)
    assert record["data"]["mixture"]["sha256"] == mixture().sha256
    assert {"evergrow", "numpy", "python"} <= set(record["versions"])
    assert str(done) not in text
    assert platform.node() not in text


def test_the_page_has_verdicts_numbers_and_the_command(tmp_path):
    run(tmp_path, n_seeds=2, quick=True)
    text = (tmp_path / "guide-made-up.md").read_text()
    assert "- **Agrees.** All is well.\n  - Decided by: " in text
    assert "| size 1 | accuracy | 50 % | " in text
    assert "Left out: 1 number of the paper for settings that we did not measure." in text
    assert "    evergrow experiment guide-made-up --quick --seeds 2\n" in text


def test_each_data_set_has_a_column_if_the_paper_names_none():
    rows = [
        {"data": data, "seed": seed, "size": 1, "accuracy": accuracy}
        for data, accuracy in (("letters", 0.25), ("digits", 0.75))
        for seed in (0, 1)
    ]
    # Runs that vary a setting do not count.
    rows += [{**row, "varied": "trees", "accuracy": 0.9} for row in rows]
    words = Words(settings={"size": "size {}"}, shares=("accuracy",))
    lines = page.format_published(made_up(), frame.Table(rows), words).splitlines()
    assert lines[0] == "| setting | quantity | paper | here, letters | here, digits |"
    assert lines[2] == "| size 1 | accuracy | 50 % | 25.0 ± 0.0 % | 75.0 ± 0.0 % |"


@pytest.mark.parametrize(
    ("agrees", "n_parts", "n_alike", "text"),
    [
        (True, 1, 1, "Decided by"),
        (True, 2, 2, "Decided by the weakest of 2 comparisons"),
        (False, 2, 1, "Decided by the one of 2 comparisons that is against the claim"),
        (None, 3, 2, "Decided by the least clear of 2 comparisons undecided (3 in all)"),
    ],
)
def test_the_page_says_which_comparison_decides(agrees, n_parts, n_alike, text):
    finding = Finding("key", "Claim.", "", agrees, "a against b", n_parts, n_alike)
    assert page._decided_by(finding) == text


def test_reasons_are_shown_for_stored_full_runs(tmp_path, monkeypatch):
    notes = page.Notes(text="- Other data.", reasons={"well": "Too few samples."})
    monkeypatch.setattr(page, "read_notes", lambda paper, experiment: notes)
    differs = dataclasses.replace(CLAIM, parts=lambda table: [False])
    for quick, n_shown in ((False, 1), (True, 0)):
        folder = tmp_path / str(quick)
        run(folder, made_up(claims={"well": differs}), quick=quick)
        text = (folder / "guide-made-up.md").read_text()
        assert text.count("Why: Too few samples.") == n_shown
        assert "- Other data." in text


def test_the_same_numbers_give_the_same_figure(done, tmp_path):
    run(tmp_path / "again")
    assert contents(tmp_path / "again")["guide-made-up.svg"] == contents(done)["guide-made-up.svg"]


def test_a_folder_that_cannot_be_written_is_reported_first(tmp_path):
    (tmp_path / "file").write_text("in the way")
    calls = []
    with pytest.raises(OSError, match="cannot write to the folder"):
        run(tmp_path / "file" / "results", counted(calls))
    assert calls == []


def test_a_quick_run_does_not_replace_a_full_one(done):
    before = contents(done)
    with pytest.raises(ValueError, match="name another folder"):
        run(done, quick=True)
    assert contents(done) == before


@pytest.fixture
def files(tmp_path, monkeypatch):
    """An experiment on a file of the folder EVERGROW_DATA."""
    folder = tmp_path / "data"
    folder.mkdir()
    data = mixture(3, 4, 20, 5)
    np.savez(folder / "real.npz", X=data.X_train, y=data.y_train)
    monkeypatch.setenv("EVERGROW_DATA", str(folder))
    return made_up(sources={"mixture": frame.Source("real.npz", mixture)})


@pytest.mark.parametrize(
    ("folder_of_data", "options", "what"),
    [
        ("", {}, "without the data real"),
        ("data", {"data": "own.npz"}, "on your own data"),
        ("data", {"n_seeds": 1}, "with 1 seed"),
    ],
)
def test_a_lesser_run_replaces_a_full_one_only_afresh(
    files, tmp_path, monkeypatch, folder_of_data, options, what
):
    folder = tmp_path / "found"
    run(folder, files)
    before = contents(folder)
    np.savez(tmp_path / "own.npz", X=np.eye(8), y=np.repeat([0, 1], 4))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVERGROW_DATA", folder_of_data)
    message = f"from a full run with 3 seeds that a run {what} would replace: name another folder"
    with pytest.raises(ValueError, match=f"{message}, or use --fresh"):
        run(folder, files, **options)
    assert contents(folder) == before
    run(folder, files, fresh=True, **options)
    assert contents(folder) != before


def test_more_seeds_and_real_data_replace_a_full_run(files, tmp_path, monkeypatch):
    monkeypatch.setenv("EVERGROW_DATA", "")
    run(tmp_path / "found", files, n_seeds=4)
    monkeypatch.setenv("EVERGROW_DATA", str(tmp_path / "data"))
    run(tmp_path / "found", files, n_seeds=2)
    assert run(tmp_path / "found", files).record["seeds"] == [0, 1, 2]


@pytest.mark.parametrize(
    ("folder_of_data", "options", "caveat"),
    [
        ("data", {}, ""),
        ("data", {"quick": True}, "a quick run on generated data in place of real.npz"),
        ("", {}, "a run on generated data in place of real.npz"),
        ("data", {"data": "data/real.npz"}, "a run on your own data"),
        ("data", {"data": "data/real.npz", "quick": True}, "a quick run on your own data"),
    ],
)
def test_the_page_says_what_is_no_full_run(
    files, tmp_path, monkeypatch, folder_of_data, options, caveat
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVERGROW_DATA", folder_of_data)
    run(tmp_path / "found", files, **options)
    text = (tmp_path / "found" / "guide-made-up.md").read_text()
    line = text.removeprefix("# A made-up figure\n\n").partition("\n")[0]
    start = f"**This page is about {caveat}. Its verdicts are of this run alone"
    assert line.startswith(start if caveat else "nothing in particular")


def test_time_is_estimated_from_the_last_results(tmp_path):
    experiment = made_up()
    context = frame.Context(experiment.sources, n_seeds=2)
    assert frame.estimate_seconds(experiment, tmp_path / "none", context) is None
    assert not (tmp_path / "none").exists()
    run(tmp_path, n_seeds=2)
    assert frame.estimate_seconds(experiment, tmp_path, context) == 0
    record = tmp_path / "guide-made-up.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "seconds": 8.0}))
    runs = tmp_path / ".runs" / "guide-made-up.jsonl"
    runs.write_bytes(runs.read_bytes() + b'{"damaged')
    before = runs.read_bytes()
    more = frame.Context(experiment.sources, n_seeds=5)
    assert frame.estimate_seconds(experiment, tmp_path, more) == 12.0
    assert runs.read_bytes() == before


def test_rendering_gives_the_files_of_measuring(done):
    before = contents(done)
    outcome = frame.render(made_up(), done)
    assert outcome.findings[0].agrees
    assert {*outcome.table.rows[0]} == {"data", "seed", "size", "accuracy", "seconds"}
    assert contents(done) == before


def test_rendering_takes_new_claims_and_keeps_tables(done):
    before = contents(done)
    changed = made_up(title="Other words", claims={"so": Claim("So.", lambda table: [False])})
    frame.render(changed, done)
    after = contents(done)
    assert b"# Other words\n" in after["guide-made-up.md"]
    assert b"**Differs.** So." in after["guide-made-up.md"]
    old, new = (json.loads(files["guide-made-up.json"]) for files in (before, after))
    assert new.pop("findings")[0]["agrees"] is False
    assert old.items() >= new.items()
    for name in ("guide-made-up.csv", "guide-made-up-timings.csv"):
        assert after[name] == before[name]


def changed(**values):
    return lambda text: json.dumps({**json.loads(text), **values})


def replaced(column, cell):
    """A table whose last row has another cell."""

    def replace(text):
        table = frame.Table.from_csv(text)
        table.rows[-1][column] = cell
        return table.to_csv(text.partition("\n")[0].split(","))

    return replace


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (".json", lambda text: text[:50], "guide-made-up.json is damaged: "),
        (".json", lambda text: "[]", "guide-made-up.json is not the record of guide-made-up"),
        (".json", lambda text: text.replace("-up", "-down"), "is not the record of"),
        (".json", lambda text: text.replace('"seeds"', '"sees"'), "it lacks seeds"),
        (".json", lambda text: text.replace('"format": 1', '"format": 2'), "reads format 1"),
        (".json", changed(versions=3), "guide-made-up.json is damaged: versions must be an object"),
        (".json", changed(versions={"numpy": 2}), "numpy of versions must be text"),
        (".json", changed(seconds="a"), "seconds must be a number"),
        (".json", changed(seconds=float("nan")), "seconds must be a number"),
        (".json", changed(seeds="x"), "seeds must be a list"),
        (".json", changed(seeds=[0, "x"]), "each of seeds must be an integer"),
        (".json", changed(n_rows=True), "n_rows must be an integer"),
        (".json", changed(quick=0), "quick must be true or false"),
        (".json", changed(data={"mixture": {"name": "m"}}), "mixture of data lacks sha256"),
        (
            ".json",
            changed(findings=[{"claim": "So.", "group": ""}]),
            "each of findings lacks agrees",
        ),
        (".csv", lambda text: "", "guide-made-up.csv lacks the columns data, seed, size"),
        (".csv", lambda text: text.replace("accuracy", "x"), "lacks the column accuracy: "),
        (".csv", lambda text: text + "mixture,1\n", "guide-made-up.csv is damaged: "),
        (".csv", lambda text: text.replace("mixture,0,1,", "mixture,0,7,"), "of different "),
        (
            ".csv",
            replaced("accuracy", "high"),
            "guide-made-up.csv is damaged: accuracy must be a num",
        ),
        (".csv", replaced("accuracy", "inf"), "accuracy must be a number"),
        (".csv", replaced("accuracy", "True"), "accuracy must be a number"),
        (".csv", replaced("seed", "x"), "seed must be an integer"),
        ("-timings.csv", replaced("seconds", "9" * 400), "timings.csv is damaged: seconds must be"),
        ("-timings.csv", lambda text: text[:30], "guide-made-up-timings.csv"),
    ],
)
def test_damaged_results_are_refused_and_stay(done, name, change, message):
    path = done / f"guide-made-up{name}"
    path.write_text(change(path.read_text()))
    before = contents(done)
    with pytest.raises(ValueError, match=message):
        frame.render(made_up(), done)
    assert contents(done) == before


def test_tables_and_records_of_different_runs_are_refused(done, tmp_path):
    run(tmp_path / "quick", quick=True)
    for name in ("guide-made-up.csv", "guide-made-up-timings.csv"):
        (done / name).write_bytes((tmp_path / "quick" / name).read_bytes())
    with pytest.raises(ValueError, match=r"such as a quick one.*4 in the table and 6 in the rec"):
        frame.render(made_up(), done)


@pytest.mark.parametrize("name", [".csv", "-timings.csv", ".json"])
def test_a_missing_file_is_named(done, name):
    (done / f"guide-made-up{name}").unlink()
    with pytest.raises(FileNotFoundError, match=f"{name}' does not exist: measure"):
        frame.render(made_up(), done)


def test_a_figure_of_more_than_the_tables_is_kept(tmp_path):
    def draw(figure, table):
        assert {row["picture"] for row in table} == {"pixels"}
        figure.add_subplot()

    def with_picture(context, run):
        return [{**row, "picture": "pixels"} for row in measure(context, run)]

    experiment = made_up(with_picture, figure=draw, drawn=("picture",))
    run(tmp_path, experiment)
    before = contents(tmp_path)
    frame.render(experiment, tmp_path)
    assert contents(tmp_path) == before
    (tmp_path / "guide-made-up.svg").unlink()
    with pytest.raises(FileNotFoundError, match="cannot be drawn without measuring"):
        frame.render(experiment, tmp_path)


def test_the_index_counts_verdicts(done):
    text = page.write_index(done).read_text()
    assert "Of 1 verdicts on claims of our own guide, 1 agree, 0 differ and 0 are not" in text
    assert "| [A made-up figure](guide-made-up.md) | 3 | 0.0 | 1 | 0 | 0 |" in text
    assert "| [guide-made-up](guide-made-up.md) | All is well. | agrees |" in text
    assert "We repeated every table and figure" in text


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (".json", lambda text: "{", "guide-made-up.json is damaged"),
        (".json", changed(format=2), "guide-made-up.json has format 2"),
        (".json", changed(findings=3), "findings must be a list"),
        (".md", None, "guide-made-up.md does not exist: write it with --render"),
        (".json", None, "guide-made-up.json' does not exist: measure"),
    ],
)
def test_the_index_warns_of_what_it_leaves_out(done, name, change, message):
    path = done / f"guide-made-up{name}"
    if change is None:
        path.unlink()
    else:
        path.write_text(change(path.read_text()))
    with pytest.warns(UserWarning, match=f"the index leaves out guide-made-up: .*{message}"):
        text = page.write_index(done).read_text()
    assert "guide-made-up" not in text
    assert "full\nruns of 0 of the 1 experiments" in text


def test_the_index_names_quick_runs(tmp_path):
    run(tmp_path, quick=True)
    text = page.write_index(tmp_path).read_text()
    assert "guide-made-up.md), **a quick run** |" in text
    assert "We repeated every table and figure" not in text


def test_data_of_a_user_replace_all_sources(tmp_path):
    data = mixture(3, 4, 20, 5)
    np.savez(tmp_path / "own.npz", X=data.X_train, y=data.y_train)
    sources = {name: frame.Source("no.npz", mixture) for name in ("one", "other")}
    context = frame.Context(sources, data=tmp_path / "own.npz")
    assert context.names == ("one",)
    assert len(context.dataset("one").classes) == 3
    with pytest.raises(ValueError, match="generates its own data"):
        frame.Context({}, data=tmp_path / "own.npz")


def test_data_of_one_class_are_refused(tmp_path):
    np.savez(tmp_path / "own.npz", X=np.ones((8, 2)), y=np.zeros(8))
    context = frame.Context({"a": frame.Source(None, mixture)}, data=tmp_path / "own.npz")
    with pytest.raises(ValueError, match="at least 2 are needed"):
        context.dataset("a")


def test_images_are_refused_where_features_are_needed(monkeypatch):
    paths = np.array(["one.png"] * 100)
    monkeypatch.setattr(
        frame, "load_dataset", lambda _: dataclasses.replace(mixture(2), X_train=paths)
    )
    for images in (True, False):
        source = frame.Source(None, mixture, images=images)
        context = frame.Context({"a": source}, data="folder")
        if images:
            assert context.dataset("a").X_train is paths
        else:
            with pytest.raises(ValueError, match="not a table of features"):
                context.dataset("a")


def test_missing_files_are_named_and_replaced(tmp_path, monkeypatch):
    context = frame.Context({"a": frame.Source("a.npz", mixture)})
    monkeypatch.setenv("EVERGROW_DATA", str(tmp_path))
    assert context.missing_files == ("a.npz",)
    assert context.dataset("a").name == "mixture"
    monkeypatch.setenv("EVERGROW_DATA", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError, match=r"EVERGROW_DATA names .*, which is not a folder"):
        context.is_built_in("a")


def wait_until(is_so):
    end = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.1)


def workers_of(parent):
    """Numbers of the worker processes that a process started."""
    listed = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [pid for pid in listed if is_worker(pid)]


def is_worker(pid):
    try:
        return "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False


@pytest.mark.slow
def test_workers_end_with_their_parent(tmp_path):
    command = [sys.executable, "-m", "evergrow", "experiment", "report-table1", "--quick"]
    options = ["--out", str(tmp_path), "--workers", "2"]
    parent = subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: len(workers_of(parent.pid)) == 2)
        workers = workers_of(parent.pid)
    finally:
        parent.kill()
        parent.wait()
    wait_until(lambda: not any(is_worker(pid) for pid in workers))
