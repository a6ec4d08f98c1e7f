"""A workspace learns every format, and gives pictures and labels back in each."""

import json
from pathlib import Path

from evergrow.vision import find_labelled
from tests.cli.test_formats import SOURCES, rows_of, source
from tests.vision.images.videos import write_video


def test_a_workspace_learns_every_format_and_gives_it_back(run, things, tmp_path):
    before = json.loads(run.ok(f"status {things} --json").stdout)["n_examples"]
    for k, kind in enumerate(SOURCES):
        path, more = source(kind, tmp_path / kind, seed=200 + 10 * k)
        assert "Taught 6 images" in run.ok(f"learn {things} {path}{more}").stderr
    run.ok(f"export {things} -o pictures/ --coco")
    run.ok(f"export {things} -o labels.csv")
    expected = find_labelled("pictures")
    assert len(expected.sources) == before + 6 * len(SOURCES)
    for name in ("labels.csv", "annotations.json"):
        found = find_labelled(f"pictures/{name}")
        assert sorted(found.paths) == sorted(expected.paths)
        run.ok(f"evaluate {things} pictures/{name}")
    assert len(rows_of(Path("labels.csv").read_text())) == len(expected.sources)
    run.fails(f"export {things} -o x.evergrow --coco", code=2, says="--coco goes with pictures")
    run.fails(f"export {things} -o labels.csv", says="use --force")


def test_a_workspace_answers_frames(run, trained_workspace, tmp_path):
    write_video(tmp_path / "clip.avi", "red", "green")
    result = run.ok(f"predict {trained_workspace} clip.avi --csv")
    assert len(rows_of(result.stdout)) == 4
    assert [row["label"] for row in rows_of(result.stdout)] == ["red"] * 2 + ["green"] * 2
