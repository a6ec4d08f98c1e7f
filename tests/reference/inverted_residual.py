"""An inverted residual block in plain NumPy, with batch normalisation as its own step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def convolve(image: Array, kernel: Array, stride: int) -> Array:
    """Convolve (channels, side, side) so that ``ceil(side / stride)`` pixels come out.

    A kernel of shape (out, in, k, k); with one channel in, each channel has a kernel of its own.
    """
    n_out, n_in, size, _ = kernel.shape
    side = image.shape[1]
    n_steps = -(-side // stride)
    total = max((n_steps - 1) * stride + size - side, 0)
    before = total // 2
    padded = np.pad(image, [(0, 0), (before, total - before), (before, total - before)])
    result = np.zeros((n_out, n_steps, n_steps))
    for row in range(n_steps):
        for column in range(n_steps):
            top, left = row * stride, column * stride
            patch = padded[:, top : top + size, left : left + size]
            if n_in == 1:
                result[:, row, column] = (patch * kernel[:, 0]).sum(axis=(1, 2))
            else:
                result[:, row, column] = (patch[None] * kernel).sum(axis=(1, 2, 3))
    return result


def normalise(image: Array, norm: Mapping[str, Array], epsilon: float = 1e-3) -> Array:
    """Batch normalisation with the statistics of training."""

    def each(name: str) -> Array:
        return norm[name].astype(np.float64)[:, None, None]

    scaled = (image - each("running_mean")) / np.sqrt(each("running_var") + epsilon)
    return scaled * each("weight") + each("bias")


def relu6(image: Array) -> Array:
    """Between 0 and 6."""
    return np.clip(image, 0, 6)


def inverted_residual(image: Array, weights: Mapping[str, Array], name: str, stride: int) -> Array:
    """Widen, filter each channel, narrow, and add what came in where that fits."""

    def layer(inner: Array, kind: str, norm: str, step: int = 1) -> Array:
        parts = ("weight", "bias", "running_mean", "running_var")
        statistics = {part: weights[f"{name}.{norm}.{part}"] for part in parts}
        return normalise(convolve(inner, weights[f"{name}.{kind}.weight"], step), statistics)

    inner = image
    if f"{name}._expand_conv.weight" in weights:
        inner = relu6(layer(inner, "_expand_conv", "_bn0"))
    inner = relu6(layer(inner, "_depthwise_conv", "_bn1", stride))
    inner = layer(inner, "_project_conv", "_bn2")
    return inner + image if inner.shape == image.shape else inner
