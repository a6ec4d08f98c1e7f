"""A PyTorch module as a network, on the device that has its parameters.

PyTorch is never imported here: a module exists only where its caller has imported it.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError
from evergrow.vision.embedding.networks import HEAD, Features, check_vectors, flatten
from evergrow.vision.embedding.preprocessing import Preprocessing


def is_torch_module(model: object) -> bool:
    """Whether a model is a ``torch.nn.Module``."""
    layers = getattr(sys.modules.get("torch"), "nn", None)
    return layers is not None and isinstance(model, layers.Module)


class TorchNetwork:
    """A module from a batch of prepared images to a tensor of shape (n, n_features).

    The module is used as it is at each run: its weights may change and it may move to another
    device in between. So its vectors have no key and are not cached.
    """

    key: str | None = None
    fixed_size = True

    def __init__(self, module: Any, preprocessing: Preprocessing | None) -> None:
        self._module = module
        self._name = f"the torch module {type(module).__name__}"
        # Two threads must not switch the mode of the module at the same time.
        self._lock = threading.Lock()
        self.preprocessing = preprocessing or Preprocessing()
        self.min_side: int | None = self.preprocessing.min_side
        self.n_features = self.run([np.zeros(self.preprocessing.shape, np.float32)]).shape[1]
        self.blocks = {HEAD: self.n_features}

    def prepare(self, image: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        """Prepare one image for the module."""
        return self.preprocessing(image)

    def run(self, prepared: Sequence[npt.NDArray[Any]]) -> Features:
        """Compute the vectors of a batch, in evaluation mode and without gradients."""
        torch = sys.modules["torch"]
        batch = torch.from_numpy(np.stack(prepared))
        weights = [one for one in self._module.parameters() if one.is_floating_point()]
        if weights:
            batch = batch.to(device=weights[0].device, dtype=weights[0].dtype)
        with self._lock, _evaluation_mode(self._module), torch.no_grad():
            try:
                found = self._module(batch)
            # The code of the module can raise anything.
            except Exception as error:
                raise InvalidInputError(f"{self._name} cannot be run: {error}") from error
        if not isinstance(found, torch.Tensor):
            raise InvalidInputError(
                f"{self._name} must return a tensor with one row of features per image, got "
                f"{type(found).__name__}: give a module that returns only the features"
            )
        vectors = flatten(found.float().cpu().numpy(), self._name)
        return check_vectors(vectors, len(prepared), self._name)


@contextlib.contextmanager
def _evaluation_mode(module: Any) -> Iterator[None]:
    """Switch to evaluation mode; afterwards every layer is in the mode it had before."""
    trained = [layer for layer in module.modules() if layer.training]
    if trained:
        module.eval()
    try:
        yield
    finally:
        for layer in trained:
            layer.training = True
