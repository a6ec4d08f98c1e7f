"""ONNX files: what is refused, what bounds their runs, and which provider computes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import evergrow
from evergrow import Embedder, InvalidInputError, ModelFileError, NCMClassifier
from evergrow.vision import OnnxModel, Preprocessing
from evergrow.vision.embedding import networks, onnx_file
from evergrow.vision.embedding.networks import choose_providers
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


SQUARES = [np.full((8, 8, 3), value, np.uint8) for value in (0, 50, 250)]


def _with_nodes(nodes: list[Any], constants: dict[str, Any]) -> onnx.ModelProto:
    """The small network, and operations that it does not need."""
    model = onnx_model()
    model.graph.node.extend(nodes)
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()
    )
    # Unused results would be left out, so one of them is added to the features.
    model.graph.node.append(helper.make_node("ReduceMax", ["big"], ["most"], keepdims=0))
    model.graph.node.append(helper.make_node("Mul", ["most", "zero"], ["nothing"]))
    model.graph.initializer.append(numpy_helper.from_array(np.float32(0), "zero"))
    model.graph.node.append(helper.make_node("Add", ["features", "nothing"], ["sum"]))
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("sum", TensorProto.FLOAT, ["n", 5]))
    return model


def _huge() -> onnx.ModelProto:
    fill = helper.make_node("ConstantOfShape", ["shape"], ["big"])
    return _with_nodes([fill], {"shape": np.array([1 << 30], np.int64)})


def _endless() -> onnx.ModelProto:
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["again"]),
            helper.make_node("Add", ["x", "x"], ["y"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("x", TensorProto.FLOAT, []),
        ],
        [
            helper.make_tensor_value_info("again", TensorProto.BOOL, []),
            helper.make_tensor_value_info("y", TensorProto.FLOAT, []),
        ],
    )
    loop = helper.make_node("Loop", ["times", "true", "scale"], ["big"], body=body)
    return _with_nodes([loop], {"times": np.int64(1 << 62), "true": np.bool_(True)})


def _by_value() -> onnx.ModelProto:
    """The size of an array follows from the pixels."""
    nodes = [
        helper.make_node("ReduceMax", ["images"], ["most_of_all"], keepdims=0),
        helper.make_node("Cast", ["most_of_all"], ["size"], to=TensorProto.INT64),
        helper.make_node("Range", ["none", "size", "one"], ["steps"]),
        helper.make_node("Cast", ["steps"], ["big"], to=TensorProto.FLOAT),
    ]
    return _with_nodes(nodes, {"none": np.int64(0), "one": np.int64(1)})


@pytest.mark.parametrize(
    ("model", "message"),
    [(_huge, "a model file may take"), (_endless, "uses Loop"), (_by_value, "not known before")],
    ids=["huge array", "endless loop", "size by value"],
)
def test_networks_from_files_may_neither_loop_nor_grow(model: Any, message: str) -> None:
    content = model().SerializeToString()
    with pytest.raises(InvalidInputError, match=message):
        Embedder(OnnxModel(content, bounded=True)).fit(SQUARES)


def test_other_domains_are_refused() -> None:
    model = _with_nodes([helper.make_node("Gelu", ["scale"], ["big"], domain="com.microsoft")], {})
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    with pytest.raises(InvalidInputError, match=r"com\.microsoft\.Gelu"):
        Embedder(OnnxModel(model.SerializeToString(), bounded=True)).fit(SQUARES)


def test_a_network_that_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "_MAX_SECONDS", 0.05)
    monkeypatch.setattr(networks, "_MAX_SECONDS_PER_IMAGE", 0.0)
    side = 2048
    nodes = [helper.make_node("MatMul", ["square", "square"], ["square0"])]
    nodes += [
        helper.make_node("MatMul", [f"square{i}", "square"], [f"square{i + 1}"]) for i in range(60)
    ]
    nodes.append(helper.make_node("Mul", ["square60", "depends"], ["big"]))
    nodes.insert(0, helper.make_node("ReduceMax", ["images"], ["depends"], keepdims=0))
    nodes[1] = helper.make_node("MatMul", ["first", "square"], ["square0"])
    nodes.insert(1, helper.make_node("Mul", ["square", "depends"], ["first"]))
    model = _with_nodes(nodes, {"square": np.zeros((side, side), np.float32)})
    with pytest.raises(InvalidInputError, match="cannot be run"):
        Embedder(OnnxModel(model.SerializeToString(), bounded=True)).fit(SQUARES)


def test_a_network_inside_a_file_is_bounded_and_can_be_refused(tmp_path: Path) -> None:
    network, path = tmp_path / "small.onnx", tmp_path / "model.evergrow"
    network.write_bytes(onnx_model().SerializeToString())
    embedder = Embedder(network).fit(SQUARES)
    evergrow.save(embedder, path)
    loaded = evergrow.load(path, expect=Embedder)
    assert loaded.model.bounded
    np.testing.assert_array_equal(loaded.transform(SQUARES), embedder.transform(SQUARES))
    with pytest.raises(ModelFileError, match="networks=False"):
        evergrow.load(path, networks=False)


def test_a_model_without_a_network_loads_with_networks_false(tmp_path: Path) -> None:
    path = tmp_path / "model.evergrow"
    NCMClassifier().fit([[0.0], [1.0]], [0, 1]).save(path)
    assert evergrow.load(path, networks=False).predict([[0.1]]) == [0]


CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
BOTH = ["TensorrtExecutionProvider", CUDA, CPU]
ON_CARD = (CUDA, {"use_tf32": "0"})


@pytest.mark.parametrize(
    ("device", "present", "expected"),
    [
        ("auto", BOTH, [ON_CARD, CPU]),
        ("auto", [CPU], [CPU]),
        ("cpu", BOTH, [CPU]),
        ("cuda", BOTH, [ON_CARD, CPU]),
    ],
)
def test_a_graphics_card_is_used_where_there_is_one(
    device: str, present: list[str], expected: list[Any]
) -> None:
    assert choose_providers(device, present) == expected


@pytest.mark.parametrize(
    ("device", "present", "message"),
    [("cuda", [CPU], "install onnxruntime-gpu"), ("gpu", BOTH, "must be one of")],
)
def test_a_device_that_cannot_be_used_is_an_error(
    device: str, present: list[str], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        choose_providers(device, present)


class Runtime:
    """Pretends that ONNX Runtime has a provider for graphics cards, and computes without."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, has_card: bool) -> None:
        import onnxruntime

        self.asked: list[Any] = []
        real = onnxruntime.InferenceSession

        def start(content: bytes, options: Any, providers: Any) -> Any:
            self.asked = providers
            session = real(content, options, providers=[CPU])
            if has_card and providers != [CPU]:
                session.get_providers = lambda: [CUDA, CPU]
            return session

        monkeypatch.setattr(onnxruntime, "InferenceSession", start)
        monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: BOTH)


def network() -> Any:
    model = OnnxModel(onnx_model(("n", 3, 32, 32)).SerializeToString())
    return Embedder(model, preprocessing=Preprocessing(size=32), cache=False).network()


def test_a_network_says_whether_a_graphics_card_runs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Runtime(monkeypatch, has_card=True)
    assert network().on_gpu
    assert runtime.asked == [ON_CARD, CPU]
    monkeypatch.setenv("EVERGROW_DEVICE", "cpu")
    assert not network().on_gpu
    assert runtime.asked == [CPU]


def test_without_a_card_the_processor_computes_unless_the_card_was_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Runtime(monkeypatch, has_card=False)
    assert not network().on_gpu
    monkeypatch.setenv("EVERGROW_DEVICE", "cuda")
    with pytest.raises(InvalidInputError, match="cannot use the graphics card"):
        network()
