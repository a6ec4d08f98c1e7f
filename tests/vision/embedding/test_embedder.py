"""The embedder: correct, in order, cached, and the same in every process."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from sklearn.pipeline import make_pipeline

import evergrow
from evergrow import CacheWarning, Embedder, ImageError
from evergrow.vision import OnnxModel, Preprocessing, ReadLimits
from evergrow.vision.embedding import networks, pipeline
from tests.estimators import model_files
from tests.vision.embedding.models import KERNEL, channels_last_model, onnx_model
from tests.vision.images.drawn import encoded, noise

IMAGES = [noise(seed=i) for i in range(7)]
FILES = [encoded(image) for image in IMAGES]
PLAIN = Preprocessing(size=8, mean=127, scale=128)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERGROW_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    onnx.save(onnx_model(), tmp_path / "small.onnx")
    return tmp_path / "small.onnx"


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the batches that networks run, without the one that finds the number of features."""
    sizes: list[int] = []
    run = networks.OnnxNetwork.run

    def counting(self: Any, prepared: Any) -> Any:
        if hasattr(self, "n_features"):
            sizes.append(len(prepared))
        return run(self, prepared)

    monkeypatch.setattr(networks.OnnxNetwork, "run", counting)
    return sizes


def mean_colours(images: list[Any]) -> Any:
    return [image.mean(axis=(0, 1)) for image in images]


def expected(images: list[Any]) -> np.ndarray[Any, Any]:
    prepared = np.stack([PLAIN(image) for image in images])
    return np.einsum("nchw,fc->nf", prepared, KERNEL[:, :, 0, 0]) / 64


OPTIONS: list[dict[str, Any]] = [{"batch_size": size} for size in (1, 3, 100)]


@pytest.mark.parametrize("n", ["n", 2], ids=["any batch", "batches of two"])
@pytest.mark.parametrize("options", [*OPTIONS, {"n_jobs": 2}], ids=str)
def test_vectors_equal_the_output_of_the_network(n: Any, options: dict[str, Any]) -> None:
    network = OnnxModel(onnx_model((n, 3, 8, 8)).SerializeToString())
    found = Embedder(network, preprocessing=PLAIN, cache=False, **options).fit_transform(FILES)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected(IMAGES), atol=1e-5)


def test_an_output_with_sides_of_one_pixel_is_flattened(tmp_path: Path) -> None:
    onnx.save(onnx_model(flatten=False), tmp_path / "pooled.onnx")
    assert Embedder(tmp_path / "pooled.onnx").transform(IMAGES).shape == (7, 5)


def test_channels_last_and_reversed_are_obeyed(tmp_path: Path) -> None:
    onnx.save(channels_last_model(), tmp_path / "last.onnx")
    forward = Preprocessing(size=8, layout="nhwc", mean=0, scale=1)
    backward = Preprocessing(size=8, layout="nhwc", mean=0, scale=1, channels="bgr")
    red = np.zeros((8, 8, 3), np.uint8)
    red[..., 0] = 255
    for preprocessing, place in ((forward, 0), (backward, 2)):
        found = Embedder(tmp_path / "last.onnx", preprocessing=preprocessing).transform([red])
        assert found[0].argmax() == place


def test_size_and_layout_are_concluded_from_the_input(tmp_path: Path) -> None:
    onnx.save(channels_last_model(16), tmp_path / "last.onnx")
    embedder = Embedder(tmp_path / "last.onnx")
    assert embedder.network().preprocessing == Preprocessing(size=(16, 16), layout="nhwc")
    assert embedder.transform(IMAGES).shape == (7, 3)


def test_a_callable_gets_images_and_gives_vectors() -> None:
    found = Embedder(mean_colours, batch_size=2).transform(FILES)
    np.testing.assert_allclose(found, mean_colours(IMAGES), rtol=1e-6)


BAD_CALLABLES: list[tuple[Callable[..., Any], str]] = [
    (lambda images: np.zeros(3), "matrix of numbers"),
    (lambda images: np.zeros((len(images) + 1, 2)), "one row per image"),
    (lambda images: [["a"] for _ in images], "matrix of numbers"),
    (lambda images: np.full((len(images), 2), np.nan), "not finite"),
    (lambda images: np.zeros((len(images), len(images[0]))), "features at first"),
]


@pytest.mark.parametrize(("function", "message"), BAD_CALLABLES)
def test_a_callable_must_return_a_matrix(function: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Embedder(function).transform(IMAGES)


@pytest.mark.parametrize(
    ("images", "options", "error", "message"),
    [
        ([FILES[0], b"text"], {}, ImageError, "cannot read <4 bytes>"),
        (FILES, {"limits": ReadLimits(max_pixels=9)}, ImageError, "limit of 9"),
        ("folder", {}, TypeError, "find_images"),
        (noise(), {}, TypeError, "put it into a list"),
    ],
)
def test_wrong_images_are_refused(
    model: Path, images: Any, options: dict[str, Any], error: Any, message: str
) -> None:
    with pytest.raises(error, match=message):
        Embedder(model, **options).transform(images)


def test_limits_also_apply_to_cached_images(model: Path) -> None:
    Embedder(model).transform(FILES)
    with pytest.raises(ImageError, match="limit of 9"):
        Embedder(model, limits=ReadLimits(max_pixels=9)).transform(FILES)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_few_images_are_read_ahead_for_a_callable(
    n_jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    ahead: list[int] = []
    pixels = pipeline.to_rgb

    def counting(*arguments: Any, **options: Any) -> Any:
        read.append(1)
        return pixels(*arguments, **options)

    def mean(images: list[Any]) -> Any:
        ahead.append(len(read) - sum(done))
        done.append(len(images))
        return mean_colours(images)

    done: list[int] = []
    monkeypatch.setattr(pipeline, "to_rgb", counting)
    Embedder(mean, batch_size=4, n_jobs=n_jobs).transform(FILES * 8)
    assert max(ahead) <= 4 + 1 + 2 * n_jobs


def test_known_images_are_neither_decoded_nor_computed_again(
    model: Path, counted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Embedder(model).transform([*FILES, IMAGES[0]])
    assert counted == [8]
    monkeypatch.setattr("evergrow.vision.images.reader.decode_image", None)
    again = Embedder(model).transform([*FILES, IMAGES[0]])
    assert counted == [8]
    np.testing.assert_array_equal(again, first)


def test_another_preprocessing_or_network_does_not_share_the_cache(
    model: Path, counted: list[int], tmp_path: Path
) -> None:
    onnx.save(onnx_model(scale=2.0), tmp_path / "other.onnx")
    first = Embedder(model).transform(FILES)
    Embedder(model, preprocessing=PLAIN).transform(FILES)
    other = Embedder(tmp_path / "other.onnx").transform(FILES)
    assert counted == [7, 7, 7]
    np.testing.assert_allclose(other, 2 * first, rtol=1e-5)


def test_an_interrupted_run_goes_on_where_it_stopped(model: Path, counted: list[int]) -> None:
    with pytest.raises(ImageError):
        Embedder(model, batch_size=2).transform([*FILES[:4], b"text"])
    Embedder(model, batch_size=7).transform(FILES)
    assert counted == [2, 2, 3]


def test_without_a_cache_nothing_is_written(model: Path, tmp_path: Path) -> None:
    Embedder(model, cache=False).transform(FILES)
    assert not (tmp_path / "cache").exists()


def test_a_cache_can_have_a_folder_of_its_own(model: Path, tmp_path: Path) -> None:
    Embedder(model, cache=tmp_path / "mine").transform(FILES)
    assert [path.suffix for path in (tmp_path / "mine").iterdir()] == [".sqlite"]
    assert not (tmp_path / "cache").exists()


def test_a_cache_that_cannot_be_written_warns_once_and_does_no_harm(
    model: Path, tmp_path: Path
) -> None:
    (tmp_path / "cache").write_text("in the way")
    with pytest.warns(CacheWarning, match="nothing is cached there") as caught:
        first = Embedder(model).transform(FILES)
    assert len(caught) == 1
    # Warnings are errors here: a second one would be raised.
    np.testing.assert_array_equal(Embedder(model).transform(FILES), first)


def cache_file(tmp_path: Path) -> Path:
    return next((tmp_path / "cache").glob("*.sqlite"))


def garbage(path: Path) -> None:
    path.write_bytes(b"garbage " * 1000)


def replaced(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE embeddings (key BLOB PRIMARY KEY, vector BLOB)")
    connection.close()


@pytest.mark.parametrize("damage_file", [garbage, replaced])
def test_a_damaged_cache_is_renamed_and_computed_again(
    model: Path, tmp_path: Path, damage_file: Callable[[Path], None]
) -> None:
    first = Embedder(model).transform(FILES)
    damage_file(cache_file(tmp_path))
    with pytest.warns(CacheWarning, match="renamed"):
        np.testing.assert_array_equal(Embedder(model).transform(FILES), first)
    assert len(list((tmp_path / "cache").glob("*.damaged-*"))) == 1
    np.testing.assert_array_equal(Embedder(model).transform(FILES), first)


@pytest.mark.parametrize(
    "content", [b"short", np.full(5, np.nan, np.float32).tobytes(), "text" * 5, None]
)
def test_a_damaged_entry_is_computed_again(
    model: Path, tmp_path: Path, counted: list[int], content: Any
) -> None:
    first = Embedder(model).transform(FILES)
    with sqlite3.connect(cache_file(tmp_path)) as connection:
        connection.execute("UPDATE embeddings SET vector = ?", (content,))
    connection.close()
    with pytest.warns(CacheWarning, match="damaged entries"):
        np.testing.assert_array_equal(Embedder(model).transform(FILES), first)
    np.testing.assert_array_equal(Embedder(model).transform(FILES), first)
    assert counted == [7, 7]


def in_child(embedder: Embedder, pipe: Any) -> None:
    pipe.send(embedder.transform(FILES))


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_process_makes_a_network_of_its_own(model: Path) -> None:
    embedder = Embedder(model, cache=False, n_jobs=2)
    first = embedder.transform(FILES)
    mine, theirs = multiprocessing.get_context("fork").Pipe()
    child = multiprocessing.get_context("fork").Process(target=in_child, args=(embedder, theirs))
    child.start()
    try:
        assert mine.poll(30)
        np.testing.assert_array_equal(mine.recv(), first)
    finally:
        child.kill()
        child.join()


def fill(model: str, start: Any) -> None:
    start.wait()
    Embedder(model, batch_size=1).transform(FILES)


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_processes_that_begin_one_cache_together_do_no_harm(model: Path, tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    start = context.Barrier(3)
    children = [context.Process(target=fill, args=(str(model), start)) for _ in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join(30)
        child.kill()
    assert [child.exitcode for child in children] == [0, 0, 0]
    with sqlite3.connect(cache_file(tmp_path)) as connection:
        assert connection.execute("SELECT COUNT(*) FROM embeddings").fetchone() == (7,)
    connection.close()


def test_features_are_named_and_pipelines_work(model: Path) -> None:
    embedder = Embedder(model)
    assert embedder.n_features_out_ == 5
    assert embedder.get_feature_names_out().tolist() == [f"embedder{i}" for i in range(5)]
    table = embedder.set_output(transform="pandas").transform(FILES)
    assert table.columns.tolist() == [f"embedder{i}" for i in range(5)]
    assert len(table) == 7
    pipeline = make_pipeline(Embedder(model), evergrow.NCMClassifier())
    assert pipeline.fit(FILES[:3], list("abc")).predict(FILES[:3]).tolist() == list("abc")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "resnet"}, r"model must be one of \['efficientnet-lite0', 'efficientnet-lite1'"),
        ({"model": 3}, "model must be"),
        ({"model": []}, "model must be"),
        ({"model": [len, 3]}, "model must be"),
        ({"model": [len, len], "preprocessing": PLAIN}, "one Preprocessing or None per network, 2"),
        ({"preprocessing": [PLAIN, None]}, "one Preprocessing or None per network, 1"),
        ({"model": len, "preprocessing": PLAIN}, "preprocessing must be None"),
        ({"preprocessing": 3}, "preprocessing must be None or a Preprocessing or a list"),
        ({"batch_size": 0}, "batch_size must be"),
        ({"cache": None}, "cache must be"),
        ({"cache": ""}, "cache must be"),
        ({"limits": 3}, "limits must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"verbose": -1}, "verbose must be"),
    ],
)
def test_wrong_parameters_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Embedder(**options).fit()


def test_a_saved_embedder_carries_its_network(model: Path, tmp_path: Path) -> None:
    limits = ReadLimits(max_pixels=5000)
    embedder = Embedder(model, preprocessing=PLAIN, cache=tmp_path / "mine", limits=limits)
    first = embedder.transform(FILES)
    embedder.save(tmp_path / "model.evergrow")
    model.unlink()
    loaded = evergrow.load(tmp_path / "model.evergrow")
    np.testing.assert_array_equal(loaded.transform(FILES), first)
    assert (loaded.preprocessing, loaded.limits) == (PLAIN, limits)
    # The folder of one computer means nothing on another.
    assert loaded.cache is True
    loaded.save(tmp_path / "again.evergrow")
    assert evergrow.load(tmp_path / "again.evergrow").model == loaded.model
    assert len(repr(loaded.model)) < 100


@pytest.mark.parametrize("way", ["saved", "pickled", "in another thread pool"])
def test_a_network_that_was_used_stays_whatever_becomes_of_its_file(
    model: Path, tmp_path: Path, way: str
) -> None:
    embedder = Embedder(model, cache=False)
    first = embedder.transform(FILES)
    onnx.save(onnx_model(scale=2.0), model)
    if way == "saved":
        embedder.save(tmp_path / "model.evergrow")
        embedder = evergrow.load(tmp_path / "model.evergrow")
    elif way == "pickled":
        embedder = pickle.loads(pickle.dumps(embedder))
    else:
        embedder.set_params(n_jobs=2)
    np.testing.assert_array_equal(embedder.transform(FILES), first)


def test_fit_reads_the_file_again(model: Path) -> None:
    embedder = Embedder(model, cache=False)
    first = embedder.transform(FILES)
    onnx.save(onnx_model(scale=2.0), model)
    np.testing.assert_allclose(embedder.fit().transform(FILES), 2 * first, rtol=1e-5)


def test_a_file_chooses_neither_threads_nor_wider_limits(model: Path, tmp_path: Path) -> None:
    Embedder(model).save(tmp_path / "good.evergrow")
    wide = {"max_pixels": 10**15, "max_bytes": 5}
    given = {"n_jobs": 300, "verbose": 1, "limits": wide}
    forged = model_files.forge("parameters", lambda parameters: parameters | given)
    loaded = evergrow.load(model_files.rewritten(tmp_path / "good.evergrow", forged))
    assert (loaded.n_jobs, loaded.verbose) == (None, 0)
    assert loaded.limits == ReadLimits(max_bytes=5)


@pytest.mark.parametrize(
    "change",
    [
        model_files.forge("onnx", lambda onnx: onnx[:-1]),
        model_files.forge("onnx", None),
        model_files.forge("parameters/model", "/etc/passwd.onnx"),
        model_files.forge("parameters/model", "efficientnet-lite0"),
        model_files.forge("parameters/model", None),
        model_files.forge("parameters/cache", "/tmp"),
        model_files.forge("parameters/preprocessing", {"size": 3}),
        model_files.forge("parameters/preprocessing", []),
        model_files.forge("parameters/limits", {"max_pixels": -1}),
        model_files.forge("parameters/limits", 3),
        model_files.forge("parameters/batch_size", 0),
        model_files.forge("parameters/unknown", 0),
    ],
)
def test_a_hostile_file_is_refused(model: Path, tmp_path: Path, change: model_files.Change) -> None:
    Embedder(model, preprocessing=PLAIN).save(tmp_path / "good.evergrow")
    model_files.check_refused(tmp_path / "good.evergrow", change)


def test_importing_evergrow_does_not_import_what_only_images_need() -> None:
    heavy = "{'PIL', 'onnx', 'onnxruntime', 'cv2', 'torch'}"
    code = f"import sys, evergrow, evergrow.vision; sys.exit(bool({heavy} & set(sys.modules)))"
    assert os.spawnl(os.P_WAIT, sys.executable, sys.executable, "-c", code) == 0


@pytest.mark.slow
def test_the_runtime_sends_no_telemetry(tmp_path: Path) -> None:
    (tmp_path / "network.onnx").write_bytes(onnx_model().SerializeToString())
    code = (
        "import numpy as np; from evergrow.vision import Embedder;"
        "Embedder('network.onnx', cache=False).transform([np.zeros((8, 8), np.uint8)])"
    )
    unset = {"XDG_CACHE_HOME", "XDG_DATA_HOME", "ORT_DISABLE_TELEMETRY"}
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    home = tmp_path / "home"
    home.mkdir()
    subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        cwd=tmp_path,
        env={**environment, "HOME": str(home)},
    )
    # Before it reports anything it stores a number that identifies the computer.
    assert list(home.rglob("*deviceid*")) == []
