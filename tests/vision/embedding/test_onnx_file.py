"""ONNX files: invalid ones, and those that refer to other folders, are refused with a reason."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from evergrow import Embedder
from evergrow.vision import OnnxModel, Preprocessing
from evergrow.vision.embedding import onnx_file
from tests.vision.embedding.models import KERNEL, onnx_model, with_outside_weights
from tests.vision.images.drawn import noise

IMAGES = [noise()]


def embed(model: Any, **options: Any) -> Any:
    if isinstance(model, onnx.ModelProto):
        model = OnnxModel(model.SerializeToString())
    return Embedder(model, cache=False, **options).transform(IMAGES)


BROKEN = onnx_model()
BROKEN.graph.node[0].op_type = "NoSuchOperation"

WRONG = [
    (onnx_model(("n", 1, 8, 8), kernel=KERNEL[:, :1]), {}, "no axis of 3 channels"),
    (onnx_model(("n", 3, 64)), {}, "must be FLOAT with 4 dimensions"),
    (onnx_model(kind=TensorProto.DOUBLE), {}, "FLOAT"),
    (onnx_model(extra_input=True), {}, "one input, the images, and one output"),
    (onnx_model(pool=False, flatten=False), {}, "one vector per image"),
    (onnx_model(), {"preprocessing": Preprocessing(size=9)}, "change its size or layout"),
    (onnx_model(), {"preprocessing": Preprocessing(size=8, layout="nhwc")}, "change its size or"),
    (onnx_model(scale=float("nan")), {}, "not finite"),
    (onnx_model(kernel=KERNEL[:, :2]), {}, "cannot be run|not a valid"),
    (BROKEN, {}, "not a valid ONNX model|cannot be run"),
    (OnnxModel(b"garbage" * 10), {}, "is not an ONNX model"),
    (OnnxModel(b""), {}, "is not an ONNX model"),
    (onnx_model((10**6, 3, 224, 224)), {}, "export it with a variable batch size"),
    # Without a folder there are no other files.
    (with_outside_weights("weights"), {}, "stores weights in other files"),
]


@pytest.mark.parametrize(("model", "options", "message"), WRONG)
def test_a_model_that_does_not_fit_is_refused(
    model: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        embed(model, **options)


def test_an_open_size_is_that_of_the_preprocessing() -> None:
    small = Preprocessing(size=16)
    assert embed(onnx_model(("n", 3, "h", "w")), preprocessing=small).shape == (1, 5)
    assert embed(onnx_model(("n", 3, "h", "w"))).shape == (1, 5)


def test_paths_that_are_not_models_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.onnx").mkdir()
    (tmp_path / "text.onnx").write_text("hello")
    for name, reason in [
        ("folder.onnx", "not a regular file"),
        ("missing.onnx", "No such file"),
        ("text.onnx", "is not an ONNX model"),
    ]:
        with pytest.raises(ValueError, match=reason) as caught:
            embed(tmp_path / name)
        assert name in str(caught.value)


def test_a_file_beyond_the_limit_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    onnx.save(onnx_model(), tmp_path / "model.onnx")
    monkeypatch.setattr(onnx_file, "_MAX_BYTES", 10)
    with pytest.raises(ValueError, match="larger than 10 bytes"):
        embed(tmp_path / "model.onnx")


def stored(folder: Path, model: onnx.ModelProto, *, weights: bool = True) -> Path:
    """Write a model, and the file of its weights next to it."""
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    if weights:
        (folder / "weights").write_bytes(KERNEL.tobytes())
    return folder / "model.onnx"


def test_weights_next_to_the_model_are_read_and_saved_with_it(tmp_path: Path) -> None:
    path = stored(tmp_path, with_outside_weights("weights"))
    np.testing.assert_array_equal(embed(path), embed(onnx_model()))
    assert b"weights" not in onnx_file.read_onnx(path)


@pytest.mark.parametrize("location", ["../weights", "/etc/hostname", "", "sub/../../weights"])
def test_weights_outside_the_models_folder_are_refused(tmp_path: Path, location: str) -> None:
    (tmp_path / "weights").write_bytes(KERNEL.tobytes())
    (tmp_path / "folder" / "sub").mkdir(parents=True)
    path = stored(tmp_path / "folder", with_outside_weights(location), weights=False)
    with pytest.raises(ValueError, match="must lie in the folder of the model"):
        embed(path)


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
def test_a_link_out_of_the_models_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(KERNEL.tobytes())
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "weights").symlink_to(tmp_path / "secret")
    path = stored(tmp_path / "folder", with_outside_weights("weights"), weights=False)
    with pytest.raises(ValueError, match="must lie in the folder of the model"):
        embed(path)


def repeated(model: onnx.ModelProto) -> None:
    for number in range(20):
        model.graph.initializer.add().CopyFrom(model.graph.initializer[0])
        model.graph.initializer[-1].name = f"copy{number}"


def entry(key: str, value: str) -> Callable[[onnx.ModelProto], None]:
    def change(model: onnx.ModelProto) -> None:
        (found,) = (one for one in model.graph.initializer[0].external_data if one.key == key)
        found.value = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (entry("location", "gone"), r"gone.*no such file"),
        (repeated, "use the same bytes several times"),
        (entry("length", "8"), "they need 60 bytes, but it states 8"),
        (entry("length", "many"), "an offset that is not a number"),
        (entry("offset", "4"), "too short"),
        (entry("offset", "-1"), "too short"),
    ],
)
def test_weights_that_do_not_fit_are_refused(tmp_path: Path, change: Any, message: str) -> None:
    model = with_outside_weights("weights")
    change(model)
    path = stored(tmp_path, model)
    with pytest.raises(ValueError, match=message):
        embed(path)


def test_weights_beyond_the_limit_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = stored(tmp_path, with_outside_weights("weights"))
    monkeypatch.setattr(onnx_file, "_MAX_BYTES", KERNEL.nbytes - 1)
    # Another test is about the limit of the model itself.
    monkeypatch.setattr(onnx_file, "_limited_bytes", Path.read_bytes)
    with pytest.raises(ValueError, match="are larger than 59 bytes"):
        embed(path)


def test_weights_without_a_length_go_to_the_end_of_their_file(tmp_path: Path) -> None:
    model = with_outside_weights("weights")
    del model.graph.initializer[0].external_data[1:]
    np.testing.assert_array_equal(embed(stored(tmp_path, model)), embed(onnx_model()))


def test_weights_hidden_in_the_defaults_of_a_function_are_found() -> None:
    model = onnx_model()
    hidden = with_outside_weights("weights").graph.initializer[0]
    function = model.functions.add(name="leak", domain="mine")
    function.attribute_proto.add().CopyFrom(onnx.helper.make_attribute("value", hidden))
    with pytest.raises(ValueError, match="stores weights in other files"):
        embed(model)


def test_weights_hidden_in_an_operation_are_found(tmp_path: Path) -> None:
    model = onnx_model()
    hidden = with_outside_weights("/etc/hostname").graph.initializer[0]
    node = onnx.helper.make_node("Constant", [], ["kernel"], value=hidden)
    model.graph.initializer.remove(model.graph.initializer[0])
    model.graph.node.insert(0, node)
    path = stored(tmp_path, model)
    with pytest.raises(ValueError, match="must lie in the folder of the model"):
        embed(path)
