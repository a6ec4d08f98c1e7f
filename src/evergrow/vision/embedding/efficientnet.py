"""EfficientNet-Lite as an ONNX graph, from its trained weights.

A stem, seven stages of inverted residual blocks, and a head. Every convolution is followed by batch
normalisation, which is folded into it, and mostly by ReLU6. The classifier is left out: the output
is the average of the head over the image. :func:`add_stages` adds averages of the stages.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError
from evergrow.vision.embedding.onnx_file import stage_name
from evergrow.vision.images.sources import import_extra

# Part of the names of converted files: increased when the conversion changes.
CONVERTER_VERSION = 1

_EPSILON = 1e-3
_OPSET = 13
# Supported by every supported version of the runtime.
_IR_VERSION = 8

Weights = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Stage:
    """Blocks with the same settings; only the first one has the stride."""

    n_blocks: int
    kernel: int
    stride: int
    expansion: int
    channels: int


@dataclass(frozen=True)
class Architecture:
    """A network of the family: its name, the side of its images, and its stages."""

    name: str
    side: int
    stages: tuple[Stage, ...]


_STEM_CHANNELS = 32
# Of the smallest network; those of the others are wider and deeper.
_STAGES = (
    Stage(1, kernel=3, stride=1, expansion=1, channels=16),
    Stage(2, kernel=3, stride=2, expansion=6, channels=24),
    Stage(2, kernel=5, stride=2, expansion=6, channels=40),
    Stage(3, kernel=3, stride=2, expansion=6, channels=80),
    Stage(3, kernel=5, stride=1, expansion=6, channels=112),
    Stage(4, kernel=5, stride=2, expansion=6, channels=192),
    Stage(1, kernel=3, stride=1, expansion=6, channels=320),
)
_HEAD_CHANNELS = 1280
# Channels are multiples of this.
_CHANNEL_STEP = 8


def scaled_architecture(name: str, *, width: float, depth: float, side: int) -> Architecture:
    """Scale the channels and the numbers of blocks, as the family is defined.

    Stem and head keep their width, and the first and last stage their single block.
    """
    stages = tuple(
        replace(
            stage,
            n_blocks=stage.n_blocks if place in (0, 6) else math.ceil(stage.n_blocks * depth),
            channels=_round_channels(stage.channels * width),
        )
        for place, stage in enumerate(_STAGES)
    )
    return Architecture(name, side, stages)


def _round_channels(wanted: float) -> int:
    """The nearest multiple of the step, but never less than nine tenths of what was wanted."""
    step = _CHANNEL_STEP
    rounded = max(step, int(wanted + step / 2) // step * step)
    return rounded + step if rounded < 0.9 * wanted else rounded


def fold_batch_norm(
    kernel: npt.NDArray[Any], norm: Mapping[str, npt.NDArray[Any]], epsilon: float = _EPSILON
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Fold batch normalisation into a convolution; return the new kernel and bias.

    ``norm`` has ``weight``, ``bias``, ``running_mean`` and ``running_var``, one per output channel.
    """
    exact = {name: value.astype(np.float64) for name, value in norm.items()}
    scale = exact["weight"] / np.sqrt(exact["running_var"] + epsilon)
    folded = kernel.astype(np.float64) * scale[:, None, None, None]
    bias = exact["bias"] - exact["running_mean"] * scale
    return folded.astype(np.float32), bias.astype(np.float32)


def same_padding(side: int, kernel: int, stride: int) -> tuple[int, int]:
    """Padding before and after for an output of ``ceil(side / stride)``; the odd pixel comes after.

    >>> same_padding(224, kernel=3, stride=2), same_padding(56, kernel=5, stride=1)
    ((0, 1), (2, 2))
    """
    n_out = -(-side // stride)
    total = max((n_out - 1) * stride + kernel - side, 0)
    return total // 2, total - total // 2


@dataclass
class _Graph:
    """An ONNX graph under construction; tracks the image size, which shrinks with each stride."""

    weights: Weights
    helper: Any
    side: int
    nodes: list[Any] = field(default_factory=list)
    constants: dict[str, npt.NDArray[np.float32]] = field(default_factory=dict)

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(self.helper.make_node(kind, list(inputs), [name], name, **attributes))
        return name

    def constant(self, name: str, value: npt.NDArray[np.float32]) -> str:
        self.constants[name] = value
        return name

    def convolution(
        self, source: str, layer: tuple[str, str], shape: tuple[int, ...], *, stride: int = 1
    ) -> str:
        """Add a convolution with its normalisation; depthwise if the kernel has one channel."""
        name, norm = layer
        parts = ("weight", "bias", "running_mean", "running_var")
        statistics = {part: self._weight(f"{norm}.{part}", shape[:1]) for part in parts}
        kernel, bias = fold_batch_norm(self._weight(f"{name}.weight", shape), statistics)
        before, after = same_padding(self.side, shape[2], stride)
        self.side = -(-self.side // stride)
        return self.add(
            "Conv",
            source,
            self.constant(f"{name}.weight", kernel),
            self.constant(f"{name}.bias", bias),
            group=shape[0] if shape[1] == 1 else 1,
            kernel_shape=list(shape[2:]),
            pads=[before, before, after, after],
            strides=[stride, stride],
        )

    def relu6(self, source: str) -> str:
        low = self.constant("zero", np.array(0, np.float32))
        return self.add("Clip", source, low, self.constant("six", np.array(6, np.float32)))

    def _weight(self, name: str, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        found = self.weights.get(name)
        if found is None or found.shape != shape or found.dtype.kind != "f":
            what = "nothing" if found is None else f"{found.dtype} of shape {found.shape}"
            raise InvalidInputError(f"the weights must have {name} of shape {shape}, got {what}")
        if not np.isfinite(found).all():
            raise InvalidInputError(f"the weights {name} are not finite")
        return found


def _blocks(stages: tuple[Stage, ...], channels: int) -> Iterator[tuple[Stage, int, int]]:
    """Yield the stage, input channels and stride of every block."""
    for stage in stages:
        for number in range(stage.n_blocks):
            yield stage, channels, stage.stride if number == 0 else 1
            channels = stage.channels


def _block(graph: _Graph, source: str, name: str, stage: Stage, channels: int, stride: int) -> str:
    """Add an inverted residual block: expand, filter each channel, project, and add the input."""
    wide, inner, norms = channels * stage.expansion, source, iter(range(3))

    def layer(kind: str) -> tuple[str, str]:
        return f"{name}.{kind}", f"{name}._bn{next(norms)}"

    if stage.expansion == 1:
        next(norms)
    else:
        inner = graph.convolution(inner, layer("_expand_conv"), (wide, channels, 1, 1))
        inner = graph.relu6(inner)
    depthwise = (wide, 1, stage.kernel, stage.kernel)
    inner = graph.convolution(inner, layer("_depthwise_conv"), depthwise, stride=stride)
    inner = graph.relu6(inner)
    inner = graph.convolution(inner, layer("_project_conv"), (stage.channels, wide, 1, 1))
    same = stride == 1 and channels == stage.channels
    return graph.add("Add", inner, source) if same else inner


def efficientnet_onnx(architecture: Architecture, weights: Weights) -> bytes:
    """Build the ONNX file: from images of shape (n, 3, side, side) to vectors of shape (n, 1280).

    The weights are named by their PyTorch modules.
    """
    onnx = import_extra("onnx")
    side, stages = architecture.side, architecture.stages
    helper, graph = onnx.helper, _Graph(weights, onnx.helper, side)
    stem = (_STEM_CHANNELS, 3, 3, 3)
    current = graph.convolution("images", ("_conv_stem", "_bn0"), stem, stride=2)
    current = graph.relu6(current)
    for number, (stage, channels, stride) in enumerate(_blocks(stages, _STEM_CHANNELS)):
        current = _block(graph, current, f"_blocks.{number}", stage, channels, stride)
    head = (_HEAD_CHANNELS, stages[-1].channels, 1, 1)
    current = graph.relu6(graph.convolution(current, ("_conv_head", "_bn1"), head))
    current = graph.add("Flatten", graph.add("GlobalAveragePool", current), axis=1)
    kind = onnx.TensorProto.FLOAT
    made = helper.make_graph(
        graph.nodes,
        architecture.name,
        [helper.make_tensor_value_info("images", kind, ["n", 3, side, side])],
        [helper.make_tensor_value_info(current, kind, ["n", _HEAD_CHANNELS])],
        [onnx.numpy_helper.from_array(value, name) for name, value in graph.constants.items()],
    )
    opset = helper.make_opsetid("", _OPSET)
    model = helper.make_model(
        made, opset_imports=[opset], ir_version=_IR_VERSION, producer_name="evergrow"
    )
    return cast("bytes", model.SerializeToString(deterministic=True))


def add_stages(architecture: Architecture, content: bytes, stages: Sequence[int]) -> bytes:
    """Add outputs to a file of :func:`efficientnet_onnx`: the averages of stages over the image.

    Added to the finished file, so that the cache needs one file per network and not one per choice
    of stages.
    """
    known = range(1, len(architecture.stages) + 1)
    missing = [stage for stage in stages if stage not in known]
    if missing:
        raise InvalidInputError(
            f"{architecture.name} has no stage {missing[0]}: it has the stages "
            f"{', '.join(map(str, known))}"
        )
    onnx = import_extra("onnx")
    model, helper = onnx.load_model_from_string(content), onnx.helper
    layers = {name: node for node in model.graph.node for name in node.input}
    for stage in stages:
        # The output of a stage is the input of the layer after it.
        source = layers[_layer_after(architecture, stage)].input[0]
        average, name = f"average_{stage}", stage_name(stage)
        model.graph.node.extend(
            [
                helper.make_node("GlobalAveragePool", [source], [average], average),
                helper.make_node("Flatten", [average], [name], name, axis=1),
            ]
        )
        shape = ["n", architecture.stages[stage - 1].channels]
        output = helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        model.graph.output.append(output)
    return cast("bytes", model.SerializeToString(deterministic=True))


def _layer_after(architecture: Architecture, stage: int) -> str:
    """The weights of the first layer after a stage."""
    if stage == len(architecture.stages):
        return "_conv_head.weight"
    n_before = sum(one.n_blocks for one in architecture.stages[:stage])
    return f"_blocks.{n_before}._expand_conv.weight"
