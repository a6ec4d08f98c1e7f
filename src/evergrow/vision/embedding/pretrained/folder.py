"""The files of a folder with a trained network, checked before a library reads them.

A folder may come from anyone. Weights are read from safetensors only, configurations are bounded in
size and in the numbers they contain, and what would make a library run code of the folder or look
for further files is an error.
"""

from __future__ import annotations

import json
import math
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.files import open_regular
from evergrow.foundation.formatting import display_name
from evergrow.vision.images.sources import import_extra

_CONFIG, _WEIGHTS = "config.json", "model.safetensors"
_INDEX = "model.safetensors.index.json"
# The names of 21,000 classes take 2 MB.
_MAX_JSON_BYTES, _MAX_JSON_PARTS = 4 << 20, 20_000
# More than any width, length or number of layers; numbers of classes are not used.
_MAX_INTEGER = 1 << 20
_MAX_HEADER_BYTES = 16 << 20
_MAX_FILES = 256
_PLAIN_NAME = re.compile(r"[\w-][\w.-]*\.safetensors")
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
# Weights of formats that are pickles, or that no library here reads.
_OTHER_WEIGHTS = (".bin", ".ckpt", ".h5", ".msgpack", ".npz", ".pickle", ".pkl", ".pt", ".pth")
# Entries that ask a library for code, for weights from elsewhere, or for quantized layers.
_REFUSED = {
    "auto_map": "asks for code of its own, which is never run",
    "backbone": "asks for a network that is not in the folder",
    "use_pretrained_backbone": "asks for a network that is not in the folder",
    "custom_pipelines": "asks for code of its own, which is never run",
    "quantization_config": "has quantized weights, which are not supported",
}
# Entries that do not change the network and may be large.
_LEFT_OUT = ("id2label", "label2id", "label_names", "label_descriptions", "transformers.js_config")


def import_library(name: str, package: str | None = None) -> Any:
    """Import a module that converts networks; the error names the package to install."""
    return import_extra(name, "integrations", "networks in folders", package or name)


@dataclass(frozen=True)
class PretrainedFolder:
    """The checked content of a folder: its configurations, and where its weights are."""

    path: Path
    config: dict[str, Any]
    # How images are prepared; None if the folder does not say.
    processor: dict[str, Any] | None
    weights: tuple[Path, ...]
    # The shapes of all tensors, by name.
    shapes: dict[str, tuple[int, ...]]

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> PretrainedFolder:
        """Read and check a folder; an ``InvalidInputError`` says what is wrong with it."""
        folder = Path(path)
        if not folder.is_dir():
            raise InvalidInputError(
                f"{display_name(folder)} is not a folder: name a folder with {_CONFIG} and "
                f"{_WEIGHTS}, as save_pretrained writes it"
            )
        if not (folder / _CONFIG).exists():
            raise InvalidInputError(f"{display_name(folder)} has no {_CONFIG}")
        config = _read_config(folder / _CONFIG)
        weights = _find_weights(folder)
        shapes: dict[str, tuple[int, ...]] = {}
        for file in weights:
            shapes.update(_read_shapes(file))
        return cls(folder, config, _read_processor(folder), weights, shapes)

    @property
    def name(self) -> str:
        """The folder in messages."""
        return f"the network in {display_name(self.path)}"

    @property
    def n_values(self) -> int:
        """How many numbers all tensors have."""
        return sum(map(math.prod, self.shapes.values()))

    def load_tensors(self) -> dict[str, Any]:
        """The tensors, by name."""
        load = import_library("safetensors.torch", "torch").load_file
        tensors: dict[str, Any] = {}
        for file in self.weights:
            with self.report("cannot be read"):
                tensors.update(load(file))
        return tensors

    @contextmanager
    def report(self, problem: str) -> Iterator[None]:
        """Raise what a library raises as an error of the folder."""
        try:
            yield
        except (InvalidInputError, ImportError, MemoryError):
            raise
        # Libraries raise almost anything for a configuration that they did not write.
        except Exception as error:
            own = _find_own(error)
            if own is not None:
                raise own from error
            reason = " ".join(str(error).split())[:400]
            raise InvalidInputError(f"{self.name} {problem}: {reason}") from error

    @contextmanager
    def bound_parameters(self) -> Iterator[None]:
        """Stop building a module that has more parameters than the weights of the folder.

        A configuration can ask for a network that no memory holds. On the device "meta" it takes no
        memory, and here it takes no more time than a network of the size of the file.
        """
        torch = import_library("torch")
        # Poolers and heads that the file lacks are found later.
        most = 2 * self.n_values + (1 << 22)
        most_tensors = 2 * len(self.shapes) + 64
        here, counts = threading.get_ident(), [0, 0]

        def count(_module: Any, name: str, parameter: Any) -> None:
            if threading.get_ident() != here or parameter is None:
                return
            counts[0] += parameter.numel()
            counts[1] += 1
            if counts[0] > most or counts[1] > most_tensors:
                raise InvalidInputError(
                    f"{self.name} is described as larger than its weights: {_CONFIG} does not fit "
                    f"the {len(self.shapes)} tensors of the folder (at {name!r})"
                )

        hook = torch.nn.modules.module.register_module_parameter_registration_hook(count)
        try:
            with torch.device("meta"):
                yield
        finally:
            hook.remove()


def _find_own(error: BaseException | None) -> InvalidInputError | None:
    """The error of Evergrow that led to an error of a library, if there is one."""
    for _ in range(10):
        if error is None or isinstance(error, InvalidInputError):
            return error
        error = error.__cause__ or error.__context__
    return None


def find_folder(name: str | os.PathLike[str]) -> Path:
    """The folder of a path, or of a name such as "facebook/dinov2-small" in the cache of the Hub.

    Nothing is downloaded.
    """
    if os.path.exists(name) or not (isinstance(name, str) and _HUB_NAME.fullmatch(name)):
        return Path(name)
    hub = import_library("huggingface_hub", "transformers")
    try:
        return Path(hub.snapshot_download(name, local_files_only=True))
    # The errors of the cache have no other common class.
    except Exception as error:
        raise InvalidInputError(
            f"{name!r} is neither a folder nor in the cache of the Hugging Face Hub. Nothing is "
            f"downloaded here: use 'hf download {name}' first"
        ) from error


def _read_json(path: Path) -> dict[str, Any]:
    """Read an object from a file of limited size and depth."""
    try:
        with open_regular(path) as file:
            content = file.read(_MAX_JSON_BYTES + 1)
    except OSError as error:
        raise InvalidInputError(f"{display_name(path)} cannot be read: {error.strerror}") from error
    except InvalidInputError as error:
        raise InvalidInputError(f"{display_name(path)} cannot be read: {error}") from error
    if len(content) > _MAX_JSON_BYTES:
        raise InvalidInputError(f"{display_name(path)} is larger than {_MAX_JSON_BYTES} bytes")
    if content.count(b"[") + content.count(b"{") > _MAX_JSON_PARTS:
        raise InvalidInputError(f"{display_name(path)} has too many lists and objects")
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{display_name(path)} is not valid JSON: {error}") from error
    if not isinstance(found, dict):
        raise InvalidInputError(f"{display_name(path)} must contain an object")
    return found


def _read_config(path: Path) -> dict[str, Any]:
    config = _read_json(path)
    kept = {name: value for name, value in config.items() if name not in _LEFT_OUT}
    _check_values(kept, display_name(path))
    return kept


def _check_values(value: Any, name: str, depth: int = 0) -> None:
    """Raise an error for entries that are refused, numbers that are too large, and deep nesting."""
    if depth > 16:
        raise InvalidInputError(f"{name} is nested too deeply")
    if isinstance(value, dict):
        for key, problem in _REFUSED.items():
            if value.get(key):
                raise InvalidInputError(f"{name} {problem} ({key!r})")
        for key, inner in value.items():
            if key not in _LEFT_OUT:
                _check_values(inner, name, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _check_values(inner, name, depth + 1)
    elif isinstance(value, (int, float)) and not abs(value) <= (
        _MAX_INTEGER if isinstance(value, int) else 1e30
    ):
        raise InvalidInputError(f"{name} contains {value!r:.40}, larger than any network needs")


def _read_processor(folder: Path) -> dict[str, Any] | None:
    """The configuration of the image processor; newer files have it inside that of a processor."""
    for name in ("preprocessor_config.json", "processor_config.json"):
        if (folder / name).exists():
            found = _read_config(folder / name)
            inner = found.get("image_processor")
            if isinstance(inner, dict):
                return inner
            if "image_mean" in found or "size" in found:
                return found
    return None


def _find_weights(folder: Path) -> tuple[Path, ...]:
    if (folder / _WEIGHTS).exists():
        return (folder / _WEIGHTS,)
    if (folder / _INDEX).exists():
        table = _read_json(folder / _INDEX).get("weight_map")
        # As text, for what is not a name of a file is refused below.
        names = {*map(str, table.values())} if isinstance(table, dict) else set()
        if not names or len(names) > _MAX_FILES:
            raise InvalidInputError(f"{display_name(folder / _INDEX)} does not list its files")
        for name in names:
            # Never a path: the index must not decide which other files are read.
            if not _PLAIN_NAME.fullmatch(name):
                raise InvalidInputError(
                    f"{display_name(folder / _INDEX)} lists {name!r:.80}: weights must be files of "
                    "the folder that end in .safetensors"
                )
            if not (folder / name).exists():
                raise InvalidInputError(f"{display_name(folder)} lacks {name}, which it lists")
        return tuple(folder / name for name in sorted(names))
    others = sorted(one.name for one in folder.iterdir() if one.suffix in _OTHER_WEIGHTS)
    if others:
        raise InvalidInputError(
            f"{display_name(folder)} has weights only in {others[0]!r}, which may contain code: "
            f"only {_WEIGHTS} is read. Load the network where you trust the file, and save it "
            "again with save_pretrained"
        )
    raise InvalidInputError(f"{display_name(folder)} has no {_WEIGHTS}")


def _read_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shapes of the tensors of a file, from its header."""
    name = display_name(path)
    try:
        with open_regular(path) as file:
            n_bytes = int.from_bytes(file.read(8), "little")
    except (OSError, InvalidInputError) as error:
        raise InvalidInputError(f"{name} cannot be read: {error}") from error
    if n_bytes > _MAX_HEADER_BYTES:
        raise InvalidInputError(f"{name} has a header of more than {_MAX_HEADER_BYTES} bytes")
    try:
        with safe_open(path, framework="numpy") as tensors:
            names = list(tensors.keys())
            return {one: tuple(tensors.get_slice(one).get_shape()) for one in names}
    except (OSError, SafetensorError) as error:
        raise InvalidInputError(f"{name} is not a safetensors file: {error}") from error
