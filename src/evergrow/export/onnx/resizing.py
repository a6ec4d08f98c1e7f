"""Resizing as Pillow does it, as operators of ONNX.

Networks are sensitive to how an image was resized, so the pixels are those of the library exactly.
Pillow resizes in two passes, along the width first and then along the height; Pillow 13 takes the
height first if that is cut more. In each pass, a new pixel is a weighted sum of pixels around its
place. The filter is stretched by the ratio of the sizes, so that all pixels count when an image
becomes smaller. Weights are integers in units of 2^-22 and the sum is rounded to 8 bits, after the
first pass too.

The size of the image is known only when the graph runs, so the graph computes the weights. Sums are
added up in a loop over the pixels that a new one depends on: a product with a matrix of weights,
most of which are zero, would take a hundred times as long for a photograph of a camera.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evergrow.export.onnx.graph import Graph
from evergrow.vision.embedding.preprocessing import Preprocessing, can_be_vertical_first

_BITS = 22


def resize_images(graph: Graph, images: str, preprocessing: Preprocessing) -> str:
    """Crop and resize uint8 images of shape (n, height, width, 3), all of one size."""
    vertical, horizontal = _crop(graph, images, preprocessing)
    first, second = horizontal, vertical
    perms = ([1, 0, 2, 3], [2, 0, 1, 3])
    backs = ([1, 2, 0, 3], [1, 0, 2, 3])
    if preprocessing.interpolation == "nearest" or not can_be_vertical_first():
        turn = graph.add("Transpose", images, perm=perms[1])
    else:
        is_vertical = _is_vertical_first(graph, vertical, horizontal)
        first = _choose_side(graph, is_vertical, vertical, horizontal)
        second = _choose_side(graph, is_vertical, horizontal, vertical)
        turn = _choose_order(graph, is_vertical, images, perms)
    make = _take_nearest if preprocessing.interpolation == "nearest" else _weigh
    kernel = preprocessing.interpolation
    # The axis of the pass comes first, where gathering copies whole rows.
    one, other = make(graph, first, kernel), make(graph, second, kernel)
    turn = other.cut(graph, turn, axis=2)
    turn = graph.add("Transpose", one.apply(graph, turn), perm=[2, 1, 0, 3])
    turn = other.moved(graph).apply(graph, turn)
    if first is horizontal:
        return graph.add("Transpose", turn, perm=backs[1])
    return _choose_order(graph, is_vertical, turn, backs)


@dataclass(frozen=True)
class _Side:
    """One side of the image and the part of it that is resized, as values of a graph."""

    length: str
    begin: str
    end: str
    new_length: str
    # What the whole side becomes; it decides which side is resized first.
    whole_length: str


def _crop(graph: Graph, images: str, preprocessing: Preprocessing) -> tuple[_Side, _Side]:
    """The part of the image that is resized, in the arithmetic of ``Preprocessing``."""
    shape = graph.add("Shape", images)
    height, width = (
        graph.cast(graph.add("Gather", shape, graph.constant(axis, np.int64)), np.float64)
        for axis in (1, 2)
    )
    zero = graph.constant(0.0)
    new_height, new_width = (graph.constant(side) for side in preprocessing.height_and_width)
    if preprocessing.resize == "stretch":
        return (
            _Side(height, zero, height, new_height, new_height),
            _Side(width, zero, width, new_width, new_width),
        )
    if preprocessing.resize != "crop":
        return _crop_whole_pixels(graph, (height, width), preprocessing)
    ratios = graph.add("Div", height, new_height), graph.add("Div", width, new_width)
    share = graph.constant(preprocessing.crop_share)
    unit = graph.add("Mul", graph.add("Min", *ratios), share)

    def cut(length: str, new: str) -> _Side:
        part = graph.add("Mul", unit, new)
        begin = graph.add("Div", graph.add("Sub", length, part), graph.constant(2.0))
        end = graph.add("Min", graph.add("Add", begin, part), length)
        return _Side(length, graph.add("Max", begin, zero), end, new, new)

    return cut(height, new_height), cut(width, new_width)


def _crop_whole_pixels(
    graph: Graph, sides: tuple[str, str], preprocessing: Preprocessing
) -> tuple[_Side, _Side]:
    """The part of the image that other libraries leave if they resize it before they cut it."""
    side = preprocessing.height_and_width[0]
    new_shorter = graph.constant(float(round(side / preprocessing.crop_share)))
    shorter, new = graph.add("Min", *sides), graph.constant(float(side))
    round_half = {"torchvision": "Round", "transformers": "Floor"}[preprocessing.resize]

    def cut(length: str) -> _Side:
        resized = graph.add(
            "Floor", graph.add("Div", graph.add("Mul", new_shorter, length), shorter)
        )
        margin = graph.add("Div", graph.add("Sub", resized, new), graph.constant(2.0))
        first = graph.add(round_half, margin)
        last = graph.add("Add", first, new)
        begin, end = (
            graph.add("Div", graph.add("Mul", one, length), resized) for one in (first, last)
        )
        return _Side(length, begin, graph.add("Min", end, length), graph.constant(side), resized)

    return cut(sides[0]), cut(sides[1])


def _is_vertical_first(graph: Graph, vertical: _Side, horizontal: _Side) -> str:
    """Whether the height loses more than twice as many pixels as the width, and loses any."""
    losses = [graph.add("Sub", side.length, side.whole_length) for side in (vertical, horizontal)]
    twice = graph.add("Mul", losses[1], graph.constant(2.0))
    is_more = graph.add("Greater", losses[0], twice)
    return graph.add("And", is_more, graph.add("Greater", losses[0], graph.constant(0.0)))


def _choose_side(graph: Graph, condition: str, yes: _Side, no: _Side) -> _Side:
    names = ("length", "begin", "end", "new_length", "whole_length")
    pairs = [(getattr(yes, name), getattr(no, name)) for name in names]
    return _Side(*(graph.add("Where", condition, *pair) for pair in pairs))


def _choose_order(
    graph: Graph, condition: str, value: str, perms: tuple[list[int], list[int]]
) -> str:
    def transpose(perm: list[int]) -> Callable[[Graph], str]:
        return lambda inner: inner.add("Transpose", value, perm=perm)

    yes, no = (transpose(perm) for perm in perms)
    return graph.choose(condition, (yes, no), dtype=np.uint8, n_dimensions=4)


@dataclass(frozen=True)
class _Pass:
    """New pixels along the first axis of an array: where they are taken from.

    Attributes
    ----------
    sources : str
        Places of pixels, of shape (n_taps, new_length).
    first, end : str
        The first source and the end of the sources, of shape (1,).
    units : str or None
        The weights, in units of 2^-22; None for one tap that is taken as it is.
    """

    sources: str
    first: str
    end: str
    units: str | None = None

    def cut(self, graph: Graph, values: str, axis: int) -> str:
        """Leave out all pixels along an axis that are not used."""
        return graph.add("Slice", values, self.first, self.end, graph.constant([axis], np.int64))

    def moved(self, graph: Graph) -> _Pass:
        """The same for an array of which unused pixels were left out."""
        sources = graph.add("Sub", self.sources, self.first)
        return _Pass(sources, self.first, self.end, self.units)

    def apply(self, graph: Graph, values: str) -> str:
        """Resize uint8 values of four dimensions."""
        if self.units is None:
            only = graph.add("Squeeze", self.sources, graph.constant([0], np.int64))
            return graph.add("Gather", values, only, axis=0)
        return _sum_taps(graph, values, self.sources, self.units)


def _scale(graph: Graph, side: _Side) -> tuple[str, str]:
    """The begin of the part, and the number of pixels per new one.

    Pillow stores the box in single precision, and subtracts its ends in it.
    """
    begin, end = (graph.cast(one, np.float32) for one in (side.begin, side.end))
    length = graph.cast(graph.add("Sub", end, begin), np.float64)
    return graph.cast(begin, np.float64), graph.add("Div", length, side.new_length)


def _take_nearest(graph: Graph, side: _Side, _: str) -> _Pass:
    """Take the pixel at the middle of each new one."""
    begin, scale = _scale(graph, side)
    half, one = graph.constant([0.5]), graph.constant([1], np.int64)
    first = graph.add("Add", begin, graph.add("Mul", scale, half))
    # Added up one after the other, so that rounding errors are the same too.
    n_more = graph.add("Sub", graph.cast(side.new_length, np.int64), one)
    steps = graph.add("Concat", first, graph.add("Expand", scale, n_more), axis=0)
    places = graph.add("CumSum", steps, graph.constant(0, np.int64))
    last = graph.add("Sub", side.length, graph.constant(1.0))
    places = graph.add("Min", graph.add("Max", places, graph.constant(0.0)), last)
    sources = graph.cast(graph.add("Unsqueeze", places, graph.constant([0], np.int64)), np.int64)
    end = graph.add("Reshape", graph.cast(side.length, np.int64), one)
    return _Pass(sources, graph.constant([0], np.int64), end)


def _weigh(graph: Graph, side: _Side, kernel_name: str) -> _Pass:
    """Weigh the pixels around each new one by a filter."""
    kernel = _KERNELS[kernel_name]
    begin, scale = _scale(graph, side)
    one, half, zero = graph.constant(1.0), graph.constant(0.5), graph.constant(0.0)
    stretch = graph.add("Max", scale, one)
    support = graph.add("Mul", stretch, graph.constant(kernel.support))
    number = graph.add("Add", graph.add("Range", zero, side.new_length, one), half)
    centre = graph.add("Add", begin, graph.add("Mul", number, scale))
    low = graph.add("Add", graph.add("Sub", centre, support), half)
    low = graph.add("Floor", graph.add("Max", low, zero))
    high = graph.add("Floor", graph.add("Add", graph.add("Add", centre, support), half))
    high = graph.add("Min", high, side.length)
    # No pixel depends on more than these.
    n_taps = graph.add("Mul", graph.add("Ceil", support), graph.constant(2.0))
    taps = graph.add("Range", zero, graph.add("Add", n_taps, one), one)
    places = graph.add("Add", graph.add("Unsqueeze", taps, graph.constant([1], np.int64)), low)
    distance = graph.add("Add", graph.add("Sub", places, centre), half)
    weights = kernel.weights(graph, graph.add("Mul", distance, graph.add("Div", one, stretch)))
    weights = graph.add("Where", graph.add("Less", places, high), weights, zero)
    total = graph.reduce("ReduceSum", weights, [0], keep=True)
    is_zero = graph.add("Equal", total, zero)
    weights = graph.add("Div", weights, graph.add("Where", is_zero, one, total))
    units = graph.add("Mul", weights, graph.constant(float(1 << _BITS)))
    # Rounded away from zero, as by Pillow: the conversion cuts off what is behind the point.
    units = graph.add("Add", units, graph.add("Mul", graph.add("Sign", units), half))
    sources = graph.cast(graph.add("Min", places, graph.add("Sub", side.length, one)), np.int64)
    bounds = [graph.reduce("ReduceMin", low, [0], keep=True)]
    bounds += [graph.reduce("ReduceMax", high, [0], keep=True)]
    first, end = (graph.cast(bound, np.int64) for bound in bounds)
    # Places without a weight may lie behind the last one that is used.
    sources = graph.add("Min", sources, graph.add("Sub", end, graph.constant([1], np.int64)))
    return _Pass(sources, first, end, graph.cast(units, np.int32))


def _sum_taps(graph: Graph, values: str, sources: str, units: str) -> str:
    """Sum pixels times weights in units of 2^-22, and round to 8 bits."""

    def part(value: str, first: int, end: int) -> str:
        bounds = [graph.constant([bound], np.int64) for bound in (first, end)]
        return graph.add("Slice", graph.add("Shape", value), *bounds)

    new_shape = graph.add("Concat", part(sources, 1, 2), part(values, 1, 4), axis=0)
    # With half a unit of the result, cutting off what is behind the point rounds.
    start = graph.add("Expand", graph.constant(1 << (_BITS - 1), np.int32), new_shape)
    column = graph.constant([-1, 1, 1, 1], np.int64)

    def add_tap(inner: Graph, tap: str, total: str) -> str:
        source = inner.add("Gather", sources, tap, axis=0)
        pixels = inner.cast(inner.add("Gather", values, source, axis=0), np.int32)
        weight = inner.add("Reshape", inner.add("Gather", units, tap, axis=0), column)
        return inner.add("Add", total, inner.add("Mul", pixels, weight))

    n_taps = graph.add("Squeeze", part(sources, 0, 1))
    total = graph.loop(n_taps, start, add_tap, dtype=np.int32, n_dimensions=4)
    total = graph.add("Max", total, graph.constant(0, np.int32))
    total = graph.add("Div", total, graph.constant(1 << _BITS, np.int32))
    return graph.cast(graph.add("Min", total, graph.constant(255, np.int32)), np.uint8)


@dataclass(frozen=True)
class _Kernel:
    """A resampling filter: how far it reaches, and its weights at distances."""

    support: float
    weights: Callable[[Graph, str], str]


def _box(graph: Graph, distance: str) -> str:
    above = graph.add("Greater", distance, graph.constant(-0.5))
    below = graph.add("LessOrEqual", distance, graph.constant(0.5))
    return graph.cast(graph.add("And", above, below), np.float64)


def _bilinear(graph: Graph, distance: str) -> str:
    height = graph.add("Sub", graph.constant(1.0), graph.add("Abs", distance))
    return graph.add("Max", height, graph.constant(0.0))


def _hamming(graph: Graph, distance: str) -> str:
    away = graph.add("Abs", distance)
    angle = graph.add("Mul", away, graph.constant(math.pi))
    window = graph.add("Mul", graph.add("Cos", angle), graph.constant(0.46))
    window = graph.add("Add", window, graph.constant(0.54))
    weights = graph.add("Mul", _sinc(graph, away), window)
    is_inside = graph.add("Less", away, graph.constant(1.0))
    return graph.add("Where", is_inside, weights, graph.constant(0.0))


def _bicubic(graph: Graph, distance: str) -> str:
    away, a = graph.add("Abs", distance), -0.5

    def polynomial(*coefficients: float) -> str:
        value = graph.constant(coefficients[0])
        for coefficient in coefficients[1:]:
            product = graph.add("Mul", value, away)
            value = graph.add("Add", product, graph.constant(coefficient))
        return value

    near = polynomial(a + 2, -(a + 3), 0, 1)
    far = graph.add("Mul", polynomial(1, -5, 8, -4), graph.constant(a))
    is_far = graph.add("Less", away, graph.constant(2.0))
    outer = graph.add("Where", is_far, far, graph.constant(0.0))
    return graph.add("Where", graph.add("Less", away, graph.constant(1.0)), near, outer)


def _lanczos(graph: Graph, distance: str) -> str:
    third = graph.add("Div", distance, graph.constant(3.0))
    weights = graph.add("Mul", _sinc(graph, distance), _sinc(graph, third))
    above = graph.add("GreaterOrEqual", distance, graph.constant(-3.0))
    below = graph.add("Less", distance, graph.constant(3.0))
    is_inside = graph.add("And", above, below)
    return graph.add("Where", is_inside, weights, graph.constant(0.0))


def _sinc(graph: Graph, distance: str) -> str:
    is_zero = graph.add("Equal", distance, graph.constant(0.0))
    angle = graph.add("Mul", distance, graph.constant(math.pi))
    safe = graph.add("Where", is_zero, graph.constant(1.0), angle)
    quotient = graph.add("Div", graph.add("Sin", safe), safe)
    return graph.add("Where", is_zero, graph.constant(1.0), quotient)


_KERNELS = {
    "box": _Kernel(0.5, _box),
    "bilinear": _Kernel(1.0, _bilinear),
    "hamming": _Kernel(1.0, _hamming),
    "bicubic": _Kernel(2.0, _bicubic),
    "lanczos": _Kernel(3.0, _lanczos),
}
