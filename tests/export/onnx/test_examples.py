"""The examples for app developers give the answers of the library, without Evergrow."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from evergrow import Embedder, ImageClassifier, RejectingClassifier, RLSClassifier
from evergrow.export import save_onnx
from evergrow.vision import OnnxModel
from tests.vision.embedding.models import onnx_model

EXAMPLES = Path(__file__).parents[3] / "examples" / "onnx"
COLOURS = {"red": (200, 40, 40), "green": (40, 200, 40), "blue sky": (60, 60, 220)}
# Where libonnxruntime.so and its header are, if not where the compiler looks.
INCLUDE, LIBRARY = "ONNXRUNTIME_INCLUDE", "ONNXRUNTIME_LIB"

pytestmark = pytest.mark.skipif(
    not EXAMPLES.is_dir(), reason="the examples are not part of an installed package"
)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Pictures without losses, so that all decoders give the same pixels; the last is unknown."""
    folder, draw, paths = tmp_path_factory.mktemp("photos"), np.random.default_rng(1), []
    for name, colour in [*COLOURS.items(), ("unknown", (255, 255, 255))]:
        pixels = np.clip(draw.normal(colour, 12, (60, 90, 3)), 0, 255).astype(np.uint8)
        paths.append(folder / f"{name}.png")
        Image.fromarray(pixels).save(paths[-1])
    return paths


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ImageClassifier]:
    draw, labels = np.random.default_rng(0), np.array([*COLOURS] * 20)
    images = [
        np.clip(draw.normal(COLOURS[name], 12, (40, 40, 3)), 0, 255).astype(np.uint8)
        for name in labels
    ]
    learner = RejectingClassifier(RLSClassifier(random_state=0), random_state=0)
    embedder = Embedder(OnnxModel(onnx_model().SerializeToString()), cache=False)
    model = ImageClassifier(embedder, learner).fit(images, labels)
    path = tmp_path_factory.mktemp("exported") / "model.onnx"
    save_onnx(model, path)
    return path, model


def check(output: str, model: ImageClassifier, photos: list[Path], given: list[Path]) -> None:
    """Compare what an example has printed for some files with the library on the photographs."""
    labels = model.predict(photos).tolist()
    shares = model.predict_proba(photos).max(axis=1)
    lines = [line.split("\t") for line in output.splitlines()]
    assert [line[0] for line in lines] == [str(path) for path in given]
    assert [line[1] for line in lines] == labels
    np.testing.assert_allclose([float(line[2]) for line in lines], shares, atol=1e-4)
    assert labels[-1] == "unknown"


def output_of(command: list[Any], **variables: str) -> str:
    environment = {**os.environ, **variables}
    done = subprocess.run(
        [str(one) for one in command], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_python_without_evergrow(exported: Any, photos: list[Path], tmp_path: Path) -> None:
    path, model = exported
    # An import of the library would fail.
    (tmp_path / "evergrow.py").write_text("raise ImportError")
    script = EXAMPLES / "classify.py"
    output = output_of([sys.executable, script, path, *photos], PYTHONPATH=str(tmp_path))
    check(output, model, photos, photos)


@pytest.mark.parametrize("runtime", ["onnxruntime-node", "onnxruntime-web"])
def test_node(runtime: str, exported: Any, photos: list[Path]) -> None:
    node, modules = shutil.which("node"), EXAMPLES / "node_modules"
    if node is None:
        pytest.skip("Node.js is not installed")
    if not (modules / runtime).is_dir() or not (modules / "sharp").is_dir():
        pytest.skip("run npm ci --ignore-scripts in examples/onnx")
    path, model = exported
    output = output_of([node, EXAMPLES / "classify.mjs", path, *photos], ORT=runtime)
    check(output, model, photos, photos)


def test_cpp(exported: Any, photos: list[Path], tmp_path: Path) -> None:
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    folders = _runtime_folders(tmp_path)
    if folders is None:
        pytest.skip(
            "the C header or library of ONNX Runtime is not installed (libonnxruntime-dev), "
            f"or not named by {INCLUDE} and {LIBRARY}"
        )
    include, library = folders
    program = tmp_path / "classify"
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{include}"]
    flags += [f"-L{library}", f"-Wl,-rpath,{library}"] if library else []
    command = [compiler, *flags, EXAMPLES / "classify.cpp", "-o", program]
    output_of([*command, *flags, "-lonnxruntime"])
    path, model = exported
    portable = [tmp_path / f"{photo.stem}.ppm" for photo in photos]
    for photo, target in zip(photos, portable, strict=True):
        Image.open(photo).save(target)
    check(output_of([program, path, *portable]), model, photos, portable)


def _runtime_folders(scratch: Path) -> tuple[Path, Path | None] | None:
    """The folders of the header and of the library; None for one that the linker finds itself."""
    named = os.environ.get(INCLUDE)
    include = Path(named) if named else Path("/usr/include/onnxruntime")
    if not (include / "onnxruntime_c_api.h").is_file():
        return None
    if os.environ.get(LIBRARY):
        return include, Path(os.environ[LIBRARY])
    if not named:
        return include, None
    # The package for Node.js has the library too.
    found = sorted((EXAMPLES / "node_modules").glob("onnxruntime-node/bin/*/linux/x64/*.so.1"))
    if not found:
        return None
    for name in ("libonnxruntime.so", "libonnxruntime.so.1"):
        (scratch / name).symlink_to(found[-1])
    return include, scratch
