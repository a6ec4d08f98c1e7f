"""As much of PyTorch as an embedder uses, in NumPy: tests run where PyTorch is not installed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np


class Tensor:
    """An array with the methods of a tensor."""

    def __init__(self, values: Any, device: str = "cpu") -> None:
        self.values, self.device = np.asarray(values), device

    @property
    def dtype(self) -> Any:
        return self.values.dtype

    @property
    def shape(self) -> Any:
        return self.values.shape

    def is_floating_point(self) -> bool:
        return self.values.dtype.kind == "f"

    def to(self, device: str, dtype: Any) -> Tensor:
        return Tensor(self.values.astype(dtype), device)

    def float(self) -> Tensor:
        return Tensor(self.values.astype(np.float32), self.device)

    def cpu(self) -> Tensor:
        return Tensor(self.values)

    def numpy(self) -> Any:
        if self.device != "cpu":
            raise TypeError("the tensor must be copied to the host first")
        return self.values

    def mean(self, dim: Any) -> Tensor:
        return Tensor(self.values.mean(axis=dim), self.device)

    def __mul__(self, other: Any) -> Tensor:
        factor = other.values if isinstance(other, Tensor) else other
        return Tensor(self.values * factor, self.device)

    def __getitem__(self, place: Any) -> Tensor:
        return Tensor(self.values[place], self.device)


class Module:
    """A layer; its parameters and layers are its attributes."""

    def __init__(self) -> None:
        self.training = True

    def parameters(self) -> Iterator[Tensor]:
        for layer in self.modules():
            yield from (one for one in vars(layer).values() if isinstance(one, Tensor))

    def modules(self) -> Iterator[Module]:
        yield self
        for value in vars(self).values():
            if isinstance(value, Module):
                yield from value.modules()

    def eval(self) -> Module:
        for layer in self.modules():
            layer.training = False
        return self

    def __call__(self, batch: Tensor) -> Any:
        return self.forward(batch)

    def forward(self, batch: Tensor) -> Any:
        raise NotImplementedError


def make_torch() -> Any:
    """The module ``torch``."""
    torch: Any = ModuleType("torch")
    torch.nn = ModuleType("torch.nn")
    torch.nn.Module, torch.Tensor = Module, Tensor
    torch.tensor = torch.from_numpy = Tensor
    torch.nn.Parameter = lambda tensor: tensor
    torch.float64 = np.dtype(np.float64)
    gradients = [True]

    @contextlib.contextmanager
    def no_grad() -> Iterator[None]:
        gradients.append(False)
        yield
        gradients.pop()

    torch.no_grad, torch.is_grad_enabled = no_grad, lambda: gradients[-1]
    return torch
