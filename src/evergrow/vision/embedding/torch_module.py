"""A PyTorch module as a network, on the device of its parameters or that of the open block.

PyTorch is never imported here: a module exists only where its caller has imported it.

A GPU computes one batch while the next one is copied to it from pinned memory, on a stream of its
own: :meth:`TorchNetwork.start` returns as soon as the work is queued.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.device import Device, chosen_device, to_host
from evergrow.foundation.errors import EvergrowError, InvalidInputError
from evergrow.vision.embedding.networks import HEAD, Features, check_vectors, flatten
from evergrow.vision.embedding.preprocessing import Preprocessing


def is_torch_module(model: object) -> bool:
    """Whether a model is a ``torch.nn.Module``."""
    layers = getattr(sys.modules.get("torch"), "nn", None)
    return layers is not None and isinstance(model, layers.Module)


class TorchNetwork:
    """A module from a batch of prepared images to a tensor of shape (n, n_features).

    The module is used as it is at each run: its weights may change and it may move to another
    device in between. So its vectors have no key and are not cached. In a block of
    :func:`evergrow.device` it is moved there before each run, and stays there.
    """

    key: str | None = None
    fixed_size = True

    def __init__(self, module: Any, preprocessing: Preprocessing | None) -> None:
        self._module = module
        self._name = f"the torch module {type(module).__name__}"
        # Two threads must not switch the mode of the module at the same time.
        self._lock = threading.Lock()
        self._copying: dict[str, Any] = {}
        self.preprocessing = preprocessing or Preprocessing()
        self.min_side: int | None = self.preprocessing.min_side
        self.n_features = self.run([np.zeros(self.preprocessing.shape, np.float32)]).shape[1]
        self.blocks = {HEAD: self.n_features}

    def prepare(self, image: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        """Prepare one image for the module."""
        return self.preprocessing(image)

    def run(self, prepared: Sequence[npt.NDArray[Any]]) -> Features:
        """Compute the vectors of a batch, in evaluation mode and without gradients."""
        return self.start(prepared)()

    def start(self, prepared: Sequence[npt.NDArray[Any]]) -> Callable[[], Features]:
        """Begin to compute the vectors of a batch; the result of the call waits for them."""
        torch = sys.modules["torch"]
        images = torch.from_numpy(np.stack(prepared))
        with self._lock, _evaluation_mode(self._module), torch.no_grad():
            device = self._place_module()
            with self._report(device):
                found = self._module(self._copy(images, device))
        if not isinstance(found, torch.Tensor):
            raise InvalidInputError(
                f"{self._name} must return a tensor with one row of features per image, got "
                f"{type(found).__name__}: give a module that returns only the features"
            )
        with self._report(device):
            fetch = _fetch(found.detach())

        def finish() -> Features:
            # Faults of a GPU are reported when its results are fetched.
            with self._report(device):
                vectors = fetch()
            return check_vectors(flatten(vectors, self._name), len(prepared), self._name)

        return finish

    def _weights(self) -> list[Any]:
        return [one for one in self._module.parameters() if one.is_floating_point()]

    def _place_module(self) -> Device:
        """Move the module to the device of the open block, if any; return where it is."""
        chosen = chosen_device()
        if chosen is not None:
            with chosen.report_full("use a smaller module"):
                self._module.to(chosen.name)
            return chosen
        weights = self._weights()
        return Device(str(weights[0].device) if weights else "cpu")

    def _copy(self, images: Any, device: Device) -> Any:
        """Images on the device, in the precision of the parameters; half precision stays half."""
        weights = self._weights()
        dtype = weights[0].dtype if weights else images.dtype
        if not device.name.startswith("cuda"):
            return images.to(device=device.name, dtype=dtype)
        cuda = sys.modules["torch"].cuda
        stream = self._copying.setdefault(device.name, cuda.Stream(device.name))
        with cuda.stream(stream):
            batch = images.pin_memory().to(device.name, non_blocking=True)
        current = cuda.current_stream(device.name)
        current.wait_stream(stream)
        # Its memory must not be used for another batch before this one is computed.
        batch.record_stream(current)
        return batch.to(dtype)

    @contextlib.contextmanager
    def _report(self, device: Device) -> Iterator[None]:
        """Raise what the module raises as an error of the input, or of the device's memory."""
        try:
            with device.report_full("use a smaller batch_size"):
                yield
        except EvergrowError:
            raise
        # The code of the module can raise anything.
        except Exception as error:
            raise InvalidInputError(f"{self._name} cannot be run: {error}") from error


def _fetch(found: Any) -> Callable[[], npt.NDArray[np.float32]]:
    """Begin to copy a tensor to the processor; the result of the call waits for the copy."""
    single = found.float()
    if single.device.type != "cuda":
        return lambda: to_host(single)
    cuda = sys.modules["torch"].cuda
    # Into pinned memory, so that the next batch can be queued meanwhile.
    copied = sys.modules["torch"].empty(single.shape, dtype=single.dtype, pin_memory=True)
    copied.copy_(single, non_blocking=True)
    done = cuda.Event()
    done.record(cuda.current_stream(single.device))

    def fetch() -> npt.NDArray[np.float32]:
        done.synchronize()
        return to_host(copied)

    return fetch


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
