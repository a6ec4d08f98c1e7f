"""Which provider of ONNX Runtime computes; the graphics card is a pretended one."""

from __future__ import annotations

from typing import Any

import pytest

from evergrow import InvalidInputError
from evergrow.vision import Embedder, Preprocessing
from evergrow.vision.embedding.networks import OnnxModel, choose_providers
from tests.vision.embedding.models import onnx_model

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
