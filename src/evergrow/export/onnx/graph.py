"""An ONNX graph under construction.

Values are known by their names. Numbers of the head are computed in double precision, in which the
library computes them: of single precision, differences of large numbers would leave too little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError
from evergrow.vision.images.sources import import_extra

# Axes of reductions are an input from this version on; before, they are an attribute.
_AXES_ARE_INPUT = {"ReduceSum": 13}
_AXES_ARE_INPUT_OF_OTHERS = 18
# The first version in which all operators are as they are used here.
MIN_OPSET = 13
# Constants of at most this many numbers are looked up, larger ones hardly ever come twice.
_MAX_SHARED = 64
# A triangular matrix in so many parts takes hardly more than half of its square.
_N_SLABS = 16
# Of what a file may hold; messages and names take some of the two gigabytes.
_MAX_BYTES = 2**31 - (1 << 24)


def import_onnx(module: str = "onnx") -> Any:
    """Import the package of ONNX files, or a part of it; the error says what to install."""
    return import_extra(module, what="exported models")


@dataclass
class Graph:
    """Operators and constants, in the operators of one version of ONNX."""

    opset: int = MIN_OPSET
    nodes: list[Any] = field(default_factory=list)
    constants: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    _outer: Graph | None = None

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator with one output; return the name of the output."""
        name = self._new_name(kind.lower())
        helper = import_onnx().helper
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name, **attributes))
        return name

    def constant(self, value: npt.ArrayLike, dtype: npt.DTypeLike = np.float64) -> str:
        """Add a constant of this type, or find an equal one."""
        root, array = self._root(), np.array(value, dtype=dtype, order="C")
        key = (array.dtype.str, array.shape, array.tobytes() if array.size <= _MAX_SHARED else None)
        if key[2] is not None and key in root._shared:
            return root._shared[key]
        name = root._shared[key] = f"constant_{len(root.constants)}"
        root.constants[name] = array
        if sum(array.nbytes for array in root.constants.values()) > _MAX_BYTES:
            raise InvalidInputError(
                "the model is larger than the two gigabytes that an ONNX file can hold: export a "
                "smaller one, a forest of fewer trees for instance"
            )
        return name

    def rename(self, value: str, name: str) -> None:
        """Give a value a second name, that of an output of the graph."""
        helper = import_onnx().helper
        self.nodes.append(helper.make_node("Identity", [value], [name], name))

    def cast(self, value: str, dtype: npt.DTypeLike) -> str:
        """Convert a value to another type."""
        helper = import_onnx().helper
        return self.add("Cast", value, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def reduce(self, kind: str, value: str, axes: Sequence[int], *, keep: bool = False) -> str:
        """Add a reduction over axes."""
        options: dict[str, Any] = {"keepdims": int(keep)}
        if self.opset >= _AXES_ARE_INPUT.get(kind, _AXES_ARE_INPUT_OF_OTHERS):
            return self.add(kind, value, self.constant(axes, np.int64), **options)
        return self.add(kind, value, axes=list(axes), **options)

    def matrix(self, values: npt.NDArray[Any], dtype: npt.DTypeLike = np.float64) -> str:
        """Add a matrix that is stored in this type, and used in double precision.

        Rows in half precision have a scale each, because it holds numbers of few magnitudes only.
        """
        if np.dtype(dtype) != np.float16:
            stored = self.constant(values, dtype)
            return stored if np.dtype(dtype) == np.float64 else self.cast(stored, np.float64)
        scales, scaled = _scaled_rows(values)
        half = self.cast(self.constant(scaled, np.float16), np.float64)
        return self.add("Mul", half, self.constant(scales))

    def upper_matmul(self, rows: str, values: npt.NDArray[Any], dtype: npt.DTypeLike) -> str:
        """Multiply rows by an upper triangular matrix, a few columns at a time.

        Of these columns only what is above the diagonal is stored and multiplied.
        """
        n, parts = len(values), []
        bounds = np.linspace(0, n, min(n, _N_SLABS) + 1).astype(int).tolist()
        zero, axis = self.constant([0], np.int64), self.constant([1], np.int64)
        for first, end in pairwise(bounds):
            slab = self.matrix(values[:end, first:end], dtype)
            above = self.add("Slice", rows, zero, self.constant([end], np.int64), axis)
            parts.append(self.add("MatMul", above, slab))
        return self.add("Concat", *parts, axis=1)

    def row_sums(self, first: str, second: str) -> str:
        """The sum over each row of the products of two values, of shape (n, 1)."""
        return self.reduce("ReduceSum", self.add("Mul", first, second), [1], keep=True)

    def loop(
        self,
        n_steps: str,
        start: str,
        body: Callable[[Graph, str, str], str],
        *,
        dtype: npt.DTypeLike,
        n_dimensions: int,
    ) -> str:
        """Repeat a body: ``body(graph, step, value)`` adds what turns a value into the next one.

        All values are of one type and number of dimensions.
        """
        onnx = import_onnx()
        helper, kinds = onnx.helper, onnx.TensorProto
        inner = Graph(self.opset, _outer=self._root())
        step, go_on, value = (self._new_name(kind) for kind in ("step", "condition", "state"))
        result = body(inner, step, value)
        same = inner.add("Identity", go_on)
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        states = [
            helper.make_tensor_value_info(name, kind, [None] * n_dimensions)
            for name in (value, result)
        ]
        conditions = [helper.make_tensor_value_info(name, kinds.BOOL, []) for name in (go_on, same)]
        graph = helper.make_graph(
            inner.nodes,
            self._new_name("body"),
            [helper.make_tensor_value_info(step, kinds.INT64, []), conditions[0], states[0]],
            [conditions[1], states[1]],
        )
        return self.add("Loop", n_steps, "", start, body=graph)

    def choose(
        self,
        condition: str,
        bodies: tuple[Callable[[Graph], str], Callable[[Graph], str]],
        *,
        dtype: npt.DTypeLike,
        n_dimensions: int,
    ) -> str:
        """Compute one of two values: the first if a condition holds."""
        helper = import_onnx().helper
        kind, graphs = helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), []
        for body in bodies:
            inner = Graph(self.opset, _outer=self._root())
            result = helper.make_tensor_value_info(body(inner), kind, [None] * n_dimensions)
            graphs.append(helper.make_graph(inner.nodes, self._new_name("branch"), [], [result]))
        return self.add("If", condition, then_branch=graphs[0], else_branch=graphs[1])

    def initializers(self) -> list[Any]:
        """The constants that are used, as tensors."""
        numpy_helper = import_onnx().numpy_helper
        used = set(_used_names(self.nodes))
        return [
            numpy_helper.from_array(value, name)
            for name, value in self.constants.items()
            if name in used
        ]

    def _root(self) -> Graph:
        return self if self._outer is None else self._outer

    def _new_name(self, kind: str) -> str:
        root = self._root()
        root._n_names += 1
        return f"{kind}_{root._n_names}"

    _n_names: int = 0
    # Names of small constants by their type, shape and content.
    _shared: dict[tuple[Any, ...], str] = field(default_factory=dict)


def _used_names(nodes: Iterable[Any]) -> Iterator[str]:
    """The inputs of operators, and of those in their bodies."""
    for node in nodes:
        yield from node.input
        for attribute in node.attribute:
            yield from _used_names(attribute.g.node)


def _scaled_rows(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The largest number of each row, and rows divided by it."""
    largest = np.abs(values).max(axis=1, keepdims=True, initial=0.0)
    scales = np.where(largest > 0, largest, 1.0).astype(np.float64)
    return scales, values / scales
