"""Folders of the real formats with small networks of random weights, written by the libraries."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

TOWER = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}
VISION = {**TOWER, "image_size": 32, "patch_size": 8}
TEXT = {**TOWER, "vocab_size": 100, "bos_token_id": 1, "eos_token_id": 2}
STAGES = {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 2, 1]}
SQUARE = {"height": 32, "width": 32}
# Where the Makefile puts it.
TORCHVISION = Path(__file__).resolve().parents[4] / "build" / "torchvision"


def vit(library: Any) -> Any:
    return library.ViTModel(library.ViTConfig(**VISION)), library.ViTImageProcessor(size=SQUARE)


def vit_classifier(library: Any) -> Any:
    model = library.ViTForImageClassification(library.ViTConfig(**VISION))
    return model, library.ViTImageProcessor(size=SQUARE)


def dinov2(library: Any) -> Any:
    config = library.Dinov2Config(**{**VISION, "patch_size": 14, "image_size": 56})
    crop = {"height": 42, "width": 42}
    processor = library.BitImageProcessor(size={"shortest_edge": 49}, crop_size=crop)
    return library.Dinov2Model(config), processor


def clip(library: Any) -> Any:
    config = library.CLIPConfig(vision_config=VISION, text_config=TEXT, projection_dim=24)
    processor = library.CLIPImageProcessor(size={"shortest_edge": 32}, crop_size=SQUARE)
    return library.CLIPModel(config), processor


def siglip(library: Any) -> Any:
    config = library.SiglipConfig(vision_config=VISION, text_config=TEXT)
    return library.SiglipModel(config), library.SiglipImageProcessor(size=SQUARE)


def convnext(library: Any) -> Any:
    model = library.ConvNextForImageClassification(library.ConvNextConfig(**STAGES))
    return model, library.ConvNextImageProcessor(size={"shortest_edge": 64}, crop_pct=0.875)


def resnet(library: Any) -> Any:
    config = library.ResNetConfig(embedding_size=8, layer_type="bottleneck", **STAGES)
    processor = library.ConvNextImageProcessor(size={"shortest_edge": 64}, crop_pct=0.8)
    return library.ResNetForImageClassification(config), processor


FAMILIES: dict[str, Callable[[Any], Any]] = {
    one.__name__: one for one in (vit, vit_classifier, dinov2, clip, siglip, convnext, resnet)
}


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """The libraries warn of missing packages and of their own future."""
    logging.getLogger("transformers").setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def import_transformers() -> Any:
    """The library, or skip."""
    pytest.importorskip("torch", reason="networks of transformers run in torch")
    pytest.importorskip("onnxscript", reason="networks are converted by onnxscript")
    with quiet():
        import_torchvision()
        library = pytest.importorskip("transformers", reason="folders are written by transformers")
        library.utils.logging.set_verbosity(50)
        library.utils.logging.disable_progress_bar()
    return library


def import_timm() -> Any:
    """The library, or skip."""
    pytest.importorskip("torch", reason="networks of timm run in torch")
    pytest.importorskip("onnxscript", reason="networks are converted by onnxscript")
    if importlib.util.find_spec("timm") is None:
        pytest.skip("folders are written by timm")
    with quiet():
        if not import_torchvision():
            pytest.skip("timm needs torchvision")
        return importlib.import_module("timm")


def import_torchvision() -> bool:
    """Import torchvision, if it is installed or in the folder of `make`.

    Where its build is for another torch, its operators are not there, but its transforms are
    Python, and work once the operators that it describes exist.
    """
    if importlib.util.find_spec("torchvision") is None:
        if not TORCHVISION.is_dir():
            return False
        sys.path.append(str(TORCHVISION))
    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        import torch

        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float threshold) -> Tensor")
        _declared.append(library)
        for name in [one for one in sys.modules if one.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        importlib.import_module("torchvision")
    return True


# A library of operators is removed with its object.
_declared: list[Any] = []


def write_folder(family: str, folder: Path) -> Path:
    """Write a network and its image processor."""
    library = import_transformers()
    import torch

    torch.manual_seed(0)
    with quiet():
        model, processor = FAMILIES[family](library)
        for parameter in model.parameters():
            # Fresh norms and scales are zeros and ones, which hide mistakes.
            torch.nn.init.normal_(parameter, std=0.2 if parameter.ndim > 1 else 0.05)
        model.save_pretrained(folder)
        processor.save_pretrained(folder)
    return folder


def pictures() -> list[np.ndarray[Any, Any]]:
    """Smooth pictures of odd sizes, as photographs are."""
    from PIL import Image

    random = np.random.default_rng(0)
    sizes = [(77, 50), (51, 133), (64, 64), (300, 201), (45, 46)]
    coarse = [random.integers(0, 256, (9, 7, 3), dtype=np.uint8) for _ in sizes]
    return [
        np.asarray(Image.fromarray(one).resize((width, height), Image.Resampling.BICUBIC))
        for one, (height, width) in zip(coarse, sizes, strict=True)
    ]
