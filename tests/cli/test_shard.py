"""evergrow shard, by exit code and output."""

import json
from pathlib import Path

import numpy as np
import pytest

from evergrow import open_shards
from tests.vision.embedding.models import onnx_model

X = np.random.default_rng(0).normal(size=(20, 5)).astype(np.float32)


@pytest.fixture
def table(tmp_path):
    np.savez(tmp_path / "a.npz", X=X, y=np.array(["cat", "dog"] * 10))
    return tmp_path / "a.npz"


def test_a_table_is_appended_once(run, table):
    first = run(f"shard {table} -o shards --rows-per-shard 8")
    assert (first.exit_code, first.stdout) == (0, "")
    assert "20 rows added" in first.stderr
    assert "20 rows, 2 classes, 3 shards" in first.stderr
    again = run.ok(f"shard {table} -o shards")
    assert "0 rows added, 20 already present" in again.stderr


def test_images_are_embedded(run, photos, tmp_path):
    (tmp_path / "small.onnx").write_bytes(onnx_model().SerializeToString())
    for expected in ("6 rows added.", "0 rows added, 6 already present."):
        result = run.ok(f"shard {photos} -o shards --network small.onnx")
        assert expected in result.stderr
    assert open_shards(tmp_path / "shards").classes.tolist() == ["green", "red"]


def test_several_sources_go_into_one_folder(run, table, tmp_path):
    np.save(tmp_path / "b.npy", X)
    np.save(tmp_path / "labels.npy", np.array(["cow"] * 20))
    run.ok(f"shard {table} -o shards --dtype float16")
    arguments = ("b.npy", "--labels", "labels.npy", "-o", "shards", "--dtype", "float16")
    run.ok("shard", *arguments)
    shards = open_shards(tmp_path / "shards")
    assert (len(shards), shards.dtype, len(shards.classes)) == (40, np.float16, 3)


def test_info_says_what_the_folder_holds(run, table):
    run(f"shard {table} -o shards")
    lines = run("shard --info -o shards").stdout.splitlines()
    assert "n_rows\t20" in lines
    assert "class\tcat\t10" in lines
    found = json.loads(run("shard --info --json -o shards").stdout)
    assert (found["n_features"], found["dtype"], found["n_classes"]) == (5, "float32", 2)


def test_verify_finds_a_damaged_shard(run, table, tmp_path):
    run(f"shard {table} -o shards")
    sound = run.ok("shard --verify -o shards")
    assert "all checksums correct" in sound.stderr
    file = tmp_path / "shards" / "000000.npy"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    run.fails("shard --verify -o shards", says="000000.npy")


def test_numbers_are_stored_in_the_requested_precision(run, table, tmp_path):
    for name in ("float16", "float32", "float64"):
        run.ok(f"shard {table} -o", name, "--dtype", name)
        assert open_shards(tmp_path / name).dtype == name


def test_quiet_says_nothing(run, table):
    assert run(f"shard {table} -o shards -q").output == ""


WRONG = {
    "nothing to do": (("-o", "shards"), 2, "name a SOURCE"),
    "no folder": (("a.npz",), 2, "--output"),
    "json alone": (("a.npz", "-o", "shards", "--json"), 2, "--info"),
    "no source": (("nothing.npz", "-o", "shards"), 1, "no such file"),
    "no shards": (("--info", "-o", "shards"), 1, "no such folder"),
    "a name that is not there": (("a.npz", "-o", "s", "--features-key", "Z"), 1, "no array 'Z'"),
    "no rows per shard": (("a.npz", "-o", "s", "--rows-per-shard", 0), 2, "rows-per-shard"),
    "another type": (("a.npz", "-o", "s", "--dtype", "int8"), 2, "--dtype"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_reported(name, run, table):
    arguments, code, message = WRONG[name]
    result = run("shard", *arguments)
    assert result.exit_code == code
    assert message in result.stderr
    assert not Path("s").exists()


def test_a_file_in_the_place_of_the_folder_is_left_as_it_is(run, table):
    before = table.read_bytes()
    run.fails(f"shard {table} -o {table}", code=2, says="must be a folder or a new path")
    assert table.read_bytes() == before


def test_a_folder_that_cannot_be_created_is_reported(run, table):
    result = run.fails(
        f"shard {table} -o",
        table / "below" / "shards",
        code=2,
        says="cannot be created (Not a directory)",
    )
    assert "Errno" not in result.stderr


def test_a_cluster_is_used_where_one_is_named(run, table, monkeypatch):
    from contextlib import nullcontext

    asked = []

    def cluster(address):
        asked.append(address)
        return nullcontext()

    monkeypatch.setattr("evergrow.distributed.cluster", cluster)
    run.ok(f"shard {table} -o shards --cluster auto")
    assert asked == ["auto"]


@pytest.fixture
def parts(tmp_path):
    """A folder of two Parquet files with several columns."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "parts").mkdir()
    for number, rows in enumerate((X[:12], X[12:])):
        columns = {"vector": list(rows), "other": list(rows[:, :2]), "species": ["ant"] * len(rows)}
        pq.write_table(pa.table(columns), tmp_path / f"parts/{number}.parquet")
    return tmp_path / "parts"


@pytest.mark.parametrize("names", ["--embedding vector --label species", "--features-key vector"])
def test_columns_are_chosen_by_name(run, parts, tmp_path, names):
    run.ok(f"shard parts/0.parquet parts/1.parquet -o shards {names}")
    shards = open_shards(tmp_path / "shards")
    np.testing.assert_array_equal(shards[:], X)
    assert (shards.classes is None) == ("--label" not in names)


def test_shards_become_a_parquet_file(run, table, tmp_path):
    pytest.importorskip("pyarrow")
    run.ok(f"shard {table} -o shards --to-parquet rows.parquet")
    run.ok("shard rows.parquet -o again")
    again = open_shards(tmp_path / "again")
    np.testing.assert_array_equal(again[:], X)
    assert again.labels.tolist() == ["cat", "dog"] * 10
    missing = run("shard -o shards --to-parquet no/such/folder.parquet")
    assert missing.exit_code == 1
    assert "does not exist" in " ".join(missing.stderr.split())
