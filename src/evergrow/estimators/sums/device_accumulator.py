"""Blocks of inputs added to sums on a GPU.

The Gram matrix stays there, in double precision; sums per class go back to the processor. Products
are computed in double precision, or with ``precision="tf32"`` in single precision with mantissas of
ten bits, of which the sums over blocks are added up in double precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.sums.core_accumulator import (
    LARGEST,
    FeatureRule,
    too_large,
    with_added,
)
from evergrow.estimators.sums.gram import copy_columns
from evergrow.estimators.sums.moments import Moments
from evergrow.foundation.device import Device, Precision, Tensor, import_torch, to_host
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.threads import SharedSetting
from evergrow.storage.device_rows import Uploader

Floats = npt.NDArray[np.float64]

# Bytes of features computed at once, and of inputs that are copied to the device at once.
_FEATURE_BYTES = 1 << 30
_COPY_BYTES = 64 << 20
# The Gram matrix is computed in this many horizontal strips, each from its diagonal on: half of a
# square would be lost on the lower triangle.
_STRIPS, _NARROWEST_STRIP = 8, 512


def _set_products(value: str) -> str:
    """Set the precision of products of the whole process and return the one before."""
    torch = import_torch()
    products = torch.backends.cuda.matmul
    if hasattr(products, "fp32_precision"):
        before, products.fp32_precision = products.fp32_precision, value
        return str(before)
    # Before torch 2.9; it refuses to mix both ways.
    before, products.allow_tf32 = products.allow_tf32, value == "tf32"
    return "tf32" if before else "ieee"


_TF32 = SharedSetting(lambda: _set_products("tf32"), _set_products)


@contextmanager
def products_in(precision: Precision) -> Iterator[Any]:
    """Context manager: the type of numbers to compute products with; tf32 is allowed inside."""
    torch = import_torch()
    if precision == "double":
        yield torch.float64
        return
    with _TF32.hold():
        yield torch.float32


class DeviceFeatures:
    """The map from inputs to features, without the constant one and the shift, on a device."""

    def __init__(
        self, rule: FeatureRule, device: Device, dtype: Any, shift: Floats | None = None
    ) -> None:
        self._rule, self._dtype, self.n_features = rule, dtype, rule.n_copied + rule.n_random
        self._directions = device.tensor(rule.directions, dtype)
        self._shift = None if shift is None else device.tensor(shift[: self.n_features])

    def __call__(self, rows: Tensor) -> Tensor:
        """Compute the features of some rows."""
        torch, rule = import_torch(), self._rule
        inputs = copied = rows.to(self._dtype)
        if self._shift is not None and rule.n_copied:
            # In double precision: in single it may be all that tells rows far from zero apart.
            copied = (rows.double() - self._shift[: rule.n_copied]).to(self._dtype)
        if not rule.n_random:
            return copied
        found = inputs.new_empty((len(inputs), self.n_features))
        random = found[:, rule.n_copied :]
        found[:, : rule.n_copied] = copied[:, : rule.n_copied]
        if rule.kind == "relu":
            torch.mm(inputs, self._directions.T, out=random)
            random.clamp_(min=0)
        else:
            phases, n_cosines = inputs @ self._directions.T, len(self._directions)
            random[:, :n_cosines] = phases.cos()
            random[:, n_cosines:] = phases[:, : rule.n_random - n_cosines].sin()
            random *= (2 / rule.n_random) ** 0.5
        if self._shift is not None:
            random -= self._shift[rule.n_copied :].to(self._dtype)
        return found


class DeviceAccumulator:
    """Sums that blocks of inputs, arrays or tensors, are added to on a GPU."""

    def __init__(self, moments: Moments, rule: FeatureRule, device: Device) -> None:
        torch = import_torch()
        self._moments, self._rule, self._device = moments, rule, device
        gram, class_grams = moments.settle()
        n_classes, width = moments.n_classes, rule.n_copied + rule.n_random
        self._class_grams = copy_columns(class_grams, range(n_classes))
        # A new matrix, which is not shared until it is complete.
        self._gram = None if gram is None else device.tensor(gram, torch.float64)
        if gram is not None and gram is moments.settled and _share(self._gram, gram):
            self._gram = torch.clone(self._gram)
        options = {"dtype": torch.float64, "device": device.name}
        self._sums = torch.zeros((n_classes, width), **options)
        self._squares = torch.zeros(n_classes, **options)
        self._weights = np.zeros(n_classes)
        self._examples = np.zeros(n_classes, dtype=np.int64)
        with products_in(device.precision) as dtype:
            self._features = DeviceFeatures(rule, device, dtype, moments.shift)
        self._uploader, self._code_uploader = Uploader(device), Uploader(device)
        self.max_rows = max(1, _COPY_BYTES // (8 * rule.n_inputs))

    def add(
        self,
        block: npt.NDArray[Any] | Tensor,
        codes: npt.NDArray[np.int32],
        weights: Floats,
    ) -> None:
        """Add examples; a ``ValueError`` for numbers that are too large."""
        torch, n_classes = import_torch(), len(self._weights)
        is_array = isinstance(block, np.ndarray)
        rows = self._uploader.upload(block) if is_array else self._device.tensor(block)
        if rows.dtype == torch.float64 and len(rows) and bool(rows.abs().max() > LARGEST):
            raise too_large()
        places = self._code_uploader.upload(codes.astype(np.int64))
        is_weighted = not (weights == 1.0).all()
        roots = self._device.tensor(np.sqrt(weights)) if is_weighted else None
        width = self._features.n_features
        with products_in(self._device.precision) as dtype:
            step = max(256, _FEATURE_BYTES // (dtype.itemsize * width))
            for first in range(0, len(rows), step):
                part = slice(first, first + step)
                features = self._features(rows[part])
                mine = None if roots is None else roots[part].to(dtype)[:, None]
                self._add_features(features, places[part], mine)
        self._weights += np.bincount(codes, weights, n_classes)
        self._examples += np.bincount(codes, minlength=n_classes)

    def _add_features(self, features: Tensor, codes: Tensor, roots: Tensor | None) -> None:
        torch = import_torch()
        if roots is not None:
            features = features * roots
        squares = torch.linalg.vector_norm(features, dim=1).double().square_()
        self._squares.index_add_(0, codes, squares)
        terms = features if roots is None else features * roots
        if terms.dtype == torch.float64:
            self._sums.index_add_(0, codes, terms)
        else:
            block_sums = torch.zeros(self._sums.shape, dtype=terms.dtype, device=terms.device)
            self._sums += block_sums.index_add_(0, codes, terms)
        if self._gram is not None:
            _add_upper(self._gram, features)
        if self._class_grams is not None:
            for column in torch.unique(codes).tolist():
                mine = codes == column
                self._add_class_gram(column, features[mine], terms[mine])

    def _add_class_gram(self, column: int, features: Tensor, terms: Tensor) -> None:
        """Add the products of one class to its matrix, which stays on the processor."""
        torch, d = import_torch(), self._rule.n_features
        products = torch.zeros((d, d), dtype=torch.float64, device=features.device)
        _add_upper(products, features)
        if self._rule.constant:
            products[:-1, -1] = terms.sum(axis=0)
        if self._class_grams is not None:
            self._class_grams[column][...] += to_host(products)

    def finish(self) -> Moments:
        """Return the sums; their Gram matrix lies on the device."""
        sums = to_host(self._sums)
        squares, weights = to_host(self._squares), self._weights
        if self._device.precision == "tf32" and not np.isfinite(squares).all():
            raise InvalidInputError(
                "the examples are too large to add up in single precision: use precision='double'"
            )
        if self._rule.constant:
            sums = np.column_stack([sums, weights])
            squares = squares + weights
        if self._gram is not None and self._rule.constant:
            # Products with the constant feature are sums of the others.
            self._gram[:, -1] += self._device.tensor(sums.sum(axis=0))
            for gram, weight in zip(self._class_grams or (), weights, strict=False):
                gram[-1, -1] += weight
        return with_added(
            replace(self._moments, settled=self._gram, class_settled=self._class_grams),
            sums,
            weights,
            self._examples,
            squares,
        )


def _share(tensor: Tensor, other: Any) -> bool:
    """Whether a tensor that was made of another one, or of an array, may lie in its memory."""
    return tensor is other or tensor.device.type == "cpu"


def _add_upper(gram: Tensor, features: Tensor) -> None:
    """Add products of features to the upper triangle of a matrix, which may be wider."""
    torch, width = import_torch(), features.shape[1]
    strip = max(_NARROWEST_STRIP, -(-width // _STRIPS))
    for first in range(0, width, strip):
        rows = features[:, first : first + strip].T
        target = gram[first : min(first + strip, width), first:width]
        if features.dtype == torch.float64:
            target.addmm_(rows, features[:, first:])
        else:
            target += rows @ features[:, first:]
