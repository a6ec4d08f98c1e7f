"""evergrow shard, by exit code and output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evergrow import open_shards
from tests.cli.conftest import Run
from tests.vision.embedding.models import onnx_model

X = np.random.default_rng(0).normal(size=(20, 5)).astype(np.float32)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    np.savez(tmp_path / "a.npz", X=X, y=np.array(["cat", "dog"] * 10))
    return tmp_path / "a.npz"


def test_a_table_is_appended_once(run: Run, table: Path) -> None:
    first = run("shard", table, "-o", "shards", "--rows-per-shard", 8)
    assert (first.exit_code, first.stdout) == (0, "")
    assert "20 rows added" in first.stderr
    assert "20 rows, 2 classes, 3 shards" in first.stderr
    again = run("shard", table, "-o", "shards")
    assert again.exit_code == 0
    assert "0 rows added, 20 already present" in again.stderr


def test_images_are_embedded(run: Run, photos: Path, tmp_path: Path) -> None:
    (tmp_path / "small.onnx").write_bytes(onnx_model().SerializeToString())
    for expected in ("6 rows added.", "0 rows added, 6 already present."):
        result = run("shard", photos, "-o", "shards", "--network", "small.onnx")
        assert result.exit_code == 0, result.output
        assert expected in result.stderr
    assert open_shards(tmp_path / "shards").classes.tolist() == ["green", "red"]


def test_several_sources_go_into_one_folder(run: Run, table: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "b.npy", X)
    np.save(tmp_path / "labels.npy", np.array(["cow"] * 20))
    assert run("shard", table, "-o", "shards", "--dtype", "float16").exit_code == 0
    arguments = ("b.npy", "--labels", "labels.npy", "-o", "shards", "--dtype", "float16")
    assert run("shard", *arguments).exit_code == 0
    shards = open_shards(tmp_path / "shards")
    assert (len(shards), shards.dtype, len(shards.classes)) == (40, np.float16, 3)


def test_info_says_what_the_folder_holds(run: Run, table: Path) -> None:
    run("shard", table, "-o", "shards")
    lines = run("shard", "--info", "-o", "shards").stdout.splitlines()
    assert "n_rows\t20" in lines
    assert "class\tcat\t10" in lines
    found = json.loads(run("shard", "--info", "--json", "-o", "shards").stdout)
    assert (found["n_features"], found["dtype"], found["n_classes"]) == (5, "float32", 2)


def test_verify_finds_a_damaged_shard(run: Run, table: Path, tmp_path: Path) -> None:
    run("shard", table, "-o", "shards")
    sound = run("shard", "--verify", "-o", "shards")
    assert sound.exit_code == 0
    assert "all checksums correct" in sound.stderr
    file = tmp_path / "shards" / "000000.npy"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    damaged = run("shard", "--verify", "-o", "shards")
    assert damaged.exit_code == 1
    assert "000000.npy" in damaged.stderr


def test_a_damaged_table_is_told_in_one_sentence(run: Run, tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", X=X)
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[len(content) // 2] ^= 0x15
    (tmp_path / "a.npz").write_bytes(content)
    result = run("shard", "a.npz", "-o", "shards")
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert "'X' in 'a.npz' is damaged" in result.stderr


def test_numbers_are_kept_in_the_precision_asked_for(run: Run, table: Path, tmp_path: Path) -> None:
    for name in ("float16", "float32", "float64"):
        assert run("shard", table, "-o", name, "--dtype", name).exit_code == 0
        assert open_shards(tmp_path / name).dtype == name


def test_quiet_says_nothing(run: Run, table: Path) -> None:
    assert run("shard", table, "-o", "shards", "-q").output == ""


WRONG: dict[str, tuple[tuple[Any, ...], int, str]] = {
    "nothing to do": (("-o", "shards"), 2, "name a SOURCE"),
    "no folder": (("a.npz",), 2, "--output"),
    "json alone": (("a.npz", "-o", "shards", "--json"), 2, "--info"),
    "no source": (("nothing.npz", "-o", "shards"), 1, "no file"),
    "no shards": (("--info", "-o", "shards"), 1, "no folder"),
    "a name that is not there": (("a.npz", "-o", "s", "--features-key", "Z"), 1, "no array 'Z'"),
    "no rows per shard": (("a.npz", "-o", "s", "--rows-per-shard", 0), 2, "rows-per-shard"),
    "another type": (("a.npz", "-o", "s", "--dtype", "int8"), 2, "--dtype"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said(name: str, run: Run, table: Path) -> None:
    arguments, code, message = WRONG[name]
    result = run("shard", *arguments)
    assert result.exit_code == code
    assert message in result.stderr
    assert not Path("s").exists()


def test_a_file_in_the_place_of_the_folder_is_left_as_it_is(run: Run, table: Path) -> None:
    before = table.read_bytes()
    result = run("shard", table, "-o", table)
    assert result.exit_code == 2
    assert "must be a folder or a new path" in result.stderr
    assert table.read_bytes() == before


def test_a_folder_that_cannot_be_made_is_said_in_words(run: Run, table: Path) -> None:
    result = run("shard", table, "-o", table / "below" / "shards")
    assert result.exit_code == 2
    assert "cannot be created (Not a directory)" in result.stderr
    assert "Errno" not in result.stderr


def test_a_cluster_is_used_where_one_is_named(
    run: Run, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from contextlib import nullcontext

    asked = []

    def cluster(address: str) -> Any:
        asked.append(address)
        return nullcontext()

    monkeypatch.setattr("evergrow.distributed.cluster", cluster)
    assert run("shard", table, "-o", "shards", "--cluster", "auto").exit_code == 0
    assert asked == ["auto"]
