"""Every command of docs/formats.md runs, with files of the formats that it names."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from evergrow.cli import main
from tests.vision.classifier.pictures import folder_of
from tests.vision.images.labelled.files import coco, shard, table
from tests.vision.images.videos import FakeCamera, write_video

ROOT = Path(__file__).resolve().parents[1]
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
# Commands that the page shows because they fail.
FAILING = ("broken.csv",)


def commands() -> list[str]:
    text = (ROOT / "docs" / "formats.md").read_text("utf-8")
    lines = (line for block in CONSOLE.findall(text) for line in block.splitlines())
    return [line.removeprefix("$ evergrow ") for line in lines if line.startswith("$ evergrow ")]


def prepare(folder: Path) -> None:
    for split, n, seed in (("train", 6, 0), ("val", 3, 50), ("test", 3, 100)):
        folder_of(folder / "photos" / split, "red", "green", n=n, seed=seed)
    folder_of(folder / "holiday", "red", "green", n=3, seed=200)
    table(folder, n=4)
    rows = (folder / "labels.csv").read_text().splitlines()
    own = [line.removeprefix("images/").replace(",", "\t") for line in rows[1:]]
    (folder / "labels.tsv").write_text("\n".join(["picture\tspecies", *own]))
    (folder / "data").symlink_to("images")
    broken = "\n".join([*rows[:2], "images/gone.png,red", "images/r1.png,"])
    (folder / "broken.csv").write_text(broken)
    (folder / "annotations.json").write_bytes(coco(folder / "images").read_bytes())
    (folder / "shards").mkdir()
    for i in range(2):
        shard(folder / "shards" / f"train-{i:06d}.tar", label="txt", seed=10 * i)
    write_video(folder / "clip.mp4", "red", "green")


@pytest.mark.slow
def test_every_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("webdataset")
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)
    camera = FakeCamera("red", n=3, end=KeyboardInterrupt())
    monkeypatch.setattr("evergrow.vision.images.video.open_camera", lambda _: camera)
    setup = ["init things -q --token-file token", "learn things photos/ -q"]
    listed = commands()
    assert len(listed) > 20
    for line in [*setup, *listed]:
        result = CliRunner().invoke(main, shlex.split(line))
        expected = int(any(name in line for name in FAILING))
        assert result.exit_code == expected, f"{line}\n{result.output}"
    assert not (tmp_path / "no.evergrow").exists()


def test_every_option_of_the_page_is_one_of_a_command() -> None:
    text = (ROOT / "docs" / "formats.md").read_text("utf-8")
    known = {name for one in main.commands.values() for param in one.params for name in param.opts}
    assert set(re.findall(r"`(--[a-z-]+)", text)) <= known
