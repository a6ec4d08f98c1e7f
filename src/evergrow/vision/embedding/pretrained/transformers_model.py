"""Networks in the format of the library transformers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from evergrow.foundation.errors import InvalidInputError
from evergrow.vision.embedding.preprocessing import Preprocessing
from evergrow.vision.embedding.pretrained.folder import PretrainedFolder, import_library

# Networks of images and text, and the class of their part for images.
_IMAGE_PARTS = {
    "clip": "CLIPVisionModelWithProjection",
    "clip_vision_model": "CLIPVisionModelWithProjection",
    "metaclip_2": "MetaClip2VisionModelWithProjection",
    "siglip": "SiglipVisionModel",
}
# Filters by their numbers in Pillow.
_FILTERS = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")
# The class that resizes to a larger size and cuts, or stretches, depending on the size.
_CONVNEXT = "ConvNext"
_CONVNEXT_STRETCHED = 384
# Entries that say how a network is run, not what it is; some name code of others.
_RUN_ENTRIES = ("attn_implementation", "experts_implementation", "dtype", "torch_dtype")


def load_transformers(
    folder: PretrainedFolder, preprocessing: Preprocessing | None
) -> tuple[Any, Preprocessing, bool]:
    """The model, how images are prepared for it, and whether it has the weights of a pooler."""
    if preprocessing is None:
        preprocessing = folder_preprocessing(folder)
    library = import_library("transformers")
    torch = import_library("torch")
    with _quiet(library):
        with folder.report("has a configuration that transformers does not take"):
            config = _make_config(library, folder)
            kind = _model_class(library, folder, config)
            with folder.bound_parameters():
                kind(config)
        with folder.report("cannot be loaded"):
            model, found = kind.from_pretrained(
                None,
                config=config,
                state_dict=folder.load_tensors(),
                output_loading_info=True,
                # The other implementations compute the same, and not all of them can be exported.
                attn_implementation="eager",
                dtype=torch.float32,
            )
    missing = sorted(found["missing_keys"])
    others = [name for name in missing if "pooler." not in name]
    if others:
        raise InvalidInputError(
            f"{folder.name} lacks weights: {', '.join(others[:3])}"
            f"{' and others' if len(others) > 3 else ''} are not in its files"
        )
    return model, preprocessing, not missing


def _make_config(library: Any, folder: PretrainedFolder) -> Any:
    model_type = folder.config.get("model_type")
    if model_type not in library.CONFIG_MAPPING:
        raise InvalidInputError(
            f"{folder.name} is of the type {model_type!r:.60}, which transformers "
            f"{library.__version__} does not have"
        )
    config = library.CONFIG_MAPPING[model_type].from_dict(_without_run_entries(folder.config))
    image_part = getattr(config, "vision_config", None)
    if image_part is None:
        return config
    if model_type not in _IMAGE_PARTS:
        raise InvalidInputError(
            f"{folder.name} is of the type {model_type!r}, whose part for images is not known "
            "here: save that part alone, or use Embedder.from_torch"
        )
    if hasattr(config, "projection_dim"):
        # The part for images has its own entry, which the whole network ignores.
        image_part.projection_dim = config.projection_dim
    return image_part


def _without_run_entries(config: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _without_run_entries(value) if isinstance(value, dict) else value
        for name, value in config.items()
        if name not in _RUN_ENTRIES and not name.startswith("_")
    }


def _model_class(library: Any, folder: PretrainedFolder, config: Any) -> Any:
    name = _IMAGE_PARTS.get(str(folder.config.get("model_type")))
    if name is not None and "Projection" in name and not _has_projection(folder):
        name = name.replace("WithProjection", "")
    kind = getattr(library, name) if name else library.MODEL_MAPPING.get(type(config), None)
    if isinstance(kind, tuple):
        kind = kind[0]
    if kind is None or getattr(kind, "main_input_name", None) != "pixel_values":
        raise InvalidInputError(
            f"{folder.name} is of the type {config.model_type!r}, which does not take images alone"
        )
    return kind


def _has_projection(folder: PretrainedFolder) -> bool:
    return any(name.endswith("visual_projection.weight") for name in folder.shapes)


def folder_preprocessing(folder: PretrainedFolder) -> Preprocessing:
    """How the image processor of a folder prepares images."""
    if folder.processor is None:
        raise InvalidInputError(
            f"{folder.name} does not say how images are prepared: it has no "
            "preprocessor_config.json; give preprocessing"
        )
    with folder.report("has an image processor that is not supported (give preprocessing)"):
        return processor_preprocessing(folder.processor)


def processor_preprocessing(values: dict[str, Any]) -> Preprocessing:
    """The preprocessing of an image processor of transformers, from its entries."""
    for name in ("do_pad", "do_reduce_labels"):
        if values.get(name):
            raise InvalidInputError(f"{name} is not supported")
    if not values.get("do_resize", True) or "size" not in values or "resample" not in values:
        raise InvalidInputError("it must have a size and a filter (resample) to resize images")
    number = values["resample"]
    if not isinstance(number, int) or not 0 <= number < len(_FILTERS):
        raise InvalidInputError(f"resample must be a number from 0 to 5, got {number!r:.40}")
    factor = values.get("rescale_factor", 1 / 255) if values.get("do_rescale", True) else 1.0
    normalize = values.get("do_normalize", True)
    mean, std = (values["image_mean"], values["image_std"]) if normalize else (0.0, 1.0)
    return Preprocessing(
        **_resizing(values),
        interpolation=_FILTERS[number],
        mean=_divided(mean, factor),
        scale=_divided(std, factor),
    )


def _resizing(values: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a preprocessing that say what part of an image is taken."""
    kind = str(values.get("image_processor_type") or values.get("feature_extractor_type") or "")
    is_convnext, cuts = kind.startswith(_CONVNEXT), bool(values.get("do_center_crop"))
    size = values["size"]
    if not isinstance(size, dict):
        size = {"shortest_edge": size} if cuts or is_convnext else {"height": size, "width": size}
    if set(size) == {"height", "width"} and not cuts:
        return {"size": (size["height"], size["width"]), "resize": "stretch"}
    if set(size) != {"shortest_edge"}:
        raise InvalidInputError(
            f"size must be shortest_edge, or height and width; got {size!r:.80}"
        )
    shorter = size["shortest_edge"]
    if is_convnext:
        if shorter >= _CONVNEXT_STRETCHED:
            return {"size": shorter, "resize": "stretch"}
        side, shorter = shorter, int(shorter / values.get("crop_pct", 224 / 256))
    elif cuts:
        crop = values.get("crop_size", shorter)
        sides = {crop["height"], crop["width"]} if isinstance(crop, dict) else {crop}
        if len(sides) != 1:
            raise InvalidInputError(f"crop_size must be a square, got {crop!r:.80}")
        (side,) = sides
    else:
        raise InvalidInputError("it resizes images to different shapes: do_center_crop is off")
    if not side <= shorter:
        raise InvalidInputError(f"crop_size {side} is larger than the resized image, {shorter}")
    return {"size": side, "resize": "transformers", "crop_share": side / shorter}


def _divided(numbers: Any, factor: float) -> Any:
    """Numbers for values from 0 to 1, as numbers for values from 0 to 255."""
    if isinstance(numbers, (list, tuple)):
        return tuple(number / factor for number in numbers)
    return numbers / factor


@contextlib.contextmanager
def _quiet(library: Any) -> Iterator[None]:
    """Without reports of heads that are not used, and without progress bars."""
    logging = library.utils.logging
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
