"""ONNX files: invalid ones, and those that refer to other folders, are refused with a reason."""

from __future__ import annotations

import sys
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


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
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


def test_weights_next_to_the_model_are_read_and_saved_with_it(tmp_path: Path) -> None:
    (tmp_path / "weights").write_bytes(KERNEL.tobytes())
    onnx.save_model(with_outside_weights("weights"), tmp_path / "model.onnx")
    np.testing.assert_array_equal(embed(tmp_path / "model.onnx"), embed(onnx_model()))
    assert b"weights" not in onnx_file.read_onnx(tmp_path / "model.onnx")


@pytest.mark.parametrize("location", ["../weights", "/etc/hostname", "", "sub/../../weights"])
def test_weights_outside_the_models_folder_are_refused(tmp_path: Path, location: str) -> None:
    (tmp_path / "weights").write_bytes(KERNEL.tobytes())
    (tmp_path / "folder" / "sub").mkdir(parents=True)
    path = tmp_path / "folder" / "model.onnx"
    path.write_bytes(with_outside_weights(location).SerializeToString())
    with pytest.raises(ValueError, match="must lie in the folder of the model"):
        embed(path)


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
def test_a_link_out_of_the_models_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(KERNEL.tobytes())
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "weights").symlink_to(tmp_path / "secret")
    path = tmp_path / "folder" / "model.onnx"
    path.write_bytes(with_outside_weights("weights").SerializeToString())
    with pytest.raises(ValueError, match="must lie in the folder of the model"):
        embed(path)


def test_missing_weights_are_named(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(with_outside_weights("gone").SerializeToString())
    with pytest.raises(ValueError, match=r"gone.*no such file"):
        embed(path)


def test_weights_that_share_the_bytes_of_a_file_are_refused(tmp_path: Path) -> None:
    model = with_outside_weights("weights")
    for number in range(20):
        model.graph.initializer.add().CopyFrom(model.graph.initializer[0])
        model.graph.initializer[-1].name = f"copy{number}"
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    (tmp_path / "weights").write_bytes(KERNEL.tobytes())
    with pytest.raises(ValueError, match="use the same bytes several times"):
        embed(tmp_path / "model.onnx")


def test_weights_beyond_the_limit_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.onnx").write_bytes(with_outside_weights("weights").SerializeToString())
    (tmp_path / "weights").write_bytes(KERNEL.tobytes())
    monkeypatch.setattr(onnx_file, "_MAX_BYTES", KERNEL.nbytes - 1)
    # The limit of the model itself is another test's.
    monkeypatch.setattr(onnx_file, "_limited_bytes", Path.read_bytes)
    with pytest.raises(ValueError, match="are larger than 59 bytes"):
        embed(tmp_path / "model.onnx")


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        ("length", "8", "they need 60 bytes, but it states 8"),
        ("length", "many", "an offset that is not a number"),
        ("offset", "4", "too short"),
        ("offset", "-1", "too short"),
    ],
)
def test_weights_must_be_as_long_as_their_shape_says(
    tmp_path: Path, entry: str, value: str, message: str
) -> None:
    model = with_outside_weights("weights")
    (found,) = (one for one in model.graph.initializer[0].external_data if one.key == entry)
    found.value = value
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    (tmp_path / "weights").write_bytes(KERNEL.tobytes())
    with pytest.raises(ValueError, match=message):
        embed(tmp_path / "model.onnx")


def test_weights_without_a_length_go_to_the_end_of_their_file(tmp_path: Path) -> None:
    model = with_outside_weights("weights")
    del model.graph.initializer[0].external_data[1:]
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    (tmp_path / "weights").write_bytes(KERNEL.tobytes())
    np.testing.assert_array_equal(embed(tmp_path / "model.onnx"), embed(onnx_model()))


def test_weights_hidden_in_the_defaults_of_a_function_are_found() -> None:
    model = onnx_model()
    hidden = with_outside_weights("weights").graph.initializer[0]
    function = model.functions.add(name="leak", domain="mine")
    function.attribute_proto.add().CopyFrom(onnx.helper.make_attribute("value", hidden))
    with pytest.raises(ValueError, match="stores weights in other files"):
        embed(model)


def test_a_batch_that_no_memory_holds_is_refused() -> None:
    with pytest.raises(ValueError, match="export it with a variable batch size"):
        embed(onnx_model((10**6, 3, 224, 224)))


def test_content_without_a_folder_cannot_refer_to_files() -> None:
    with pytest.raises(ValueError, match="stores weights in other files"):
        embed(with_outside_weights("weights"))


def test_weights_hidden_in_an_operation_are_found(tmp_path: Path) -> None:
    model = onnx_model()
    hidden = with_outside_weights("/etc/hostname").graph.initializer[0]
    node = onnx.helper.make_node("Constant", [], ["kernel"], value=hidden)
    model.graph.initializer.remove(model.graph.initializer[0])
    model.graph.node.insert(0, node)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ValueError, match="must lie in the folder of the model"):
        embed(path)
