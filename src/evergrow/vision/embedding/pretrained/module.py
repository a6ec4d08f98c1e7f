"""Modules of transformers and timm that are already in memory."""

from __future__ import annotations

from typing import Any

from evergrow.foundation.errors import InvalidInputError, InvalidTypeError
from evergrow.vision.embedding.preprocessing import Preprocessing
from evergrow.vision.embedding.pretrained.features import (
    check_output,
    feature_module,
    is_timm_model,
    is_transformers_model,
)
from evergrow.vision.embedding.pretrained.timm_model import import_timm, timm_preprocessing
from evergrow.vision.embedding.pretrained.transformers_model import processor_preprocessing
from evergrow.vision.embedding.torch_module import is_torch_module


def prepare_module(
    module: Any, preprocessing: Any, output: str
) -> tuple[Any, Preprocessing | None]:
    """A module from images to features, and how images are prepared for it."""
    check_output(output)
    if not is_torch_module(module):
        raise InvalidTypeError(f"module must be a torch module, got {type(module).__name__}")
    of_transformers, of_timm = is_transformers_model(module), is_timm_model(module)
    if of_transformers and getattr(module, "main_input_name", None) != "pixel_values":
        raise InvalidInputError(
            f"{type(module).__name__} does not take images alone: give its part for images, such "
            "as CLIPVisionModelWithProjection"
        )
    if preprocessing is None and of_transformers:
        raise InvalidInputError(
            "preprocessing must be given for a module of transformers: a Preprocessing, or the "
            "image processor that belongs to it"
        )
    if preprocessing is None and of_timm:
        config = import_timm().data.resolve_data_config({}, model=module)
        preprocessing = timm_preprocessing(config)
    if preprocessing is not None and not isinstance(preprocessing, Preprocessing):
        preprocessing = _processor_preprocessing(preprocessing)
    if of_transformers or of_timm:
        return feature_module(module, output), preprocessing
    if output != "auto":
        raise InvalidInputError(
            f"output must be 'auto' for modules of other libraries than transformers and timm, got "
            f"{output!r}"
        )
    return module, preprocessing


def _processor_preprocessing(processor: Any) -> Preprocessing:
    # A processor of images and text has one of images inside.
    processor = getattr(processor, "image_processor", processor)
    if not hasattr(processor, "to_dict"):
        raise InvalidTypeError(
            "preprocessing must be a Preprocessing, or an image processor of transformers, got "
            f"{type(processor).__name__}"
        )
    return processor_preprocessing(
        {"image_processor_type": type(processor).__name__, **processor.to_dict()}
    )
