"""Networks in the format of the library timm."""

from __future__ import annotations

import math
from typing import Any

from evergrow.foundation.errors import InvalidInputError
from evergrow.vision.embedding.preprocessing import Preprocessing
from evergrow.vision.embedding.pretrained.folder import PretrainedFolder, import_library

# What a folder may say of its network; other entries name files and addresses.
_KNOWN = (
    "input_size",
    "interpolation",
    "crop_pct",
    "crop_mode",
    "mean",
    "std",
    "num_classes",
    "pool_size",
    "first_conv",
    "classifier",
    "fixed_input_size",
)
# Arguments of ``create_model`` that are not those of a network.
_NOT_OF_NETWORKS = (
    "cache_dir",
    "checkpoint_path",
    "device",
    "dtype",
    "exportable",
    "features_only",
    "no_jit",
    "pretrained",
    "scriptable",
)


def import_timm() -> Any:
    """Import timm; an ``ImportError`` that says what is missing."""
    try:
        import timm
    except (ImportError, RuntimeError) as error:
        if "torchvision" not in str(error):
            return import_library("timm")
        # The builds of torchvision belong to those of torch; another one cannot be imported.
        raise ImportError(
            f"timm needs a build of torchvision for the installed torch: {error}"
        ) from error
    return timm


def load_timm(
    folder: PretrainedFolder, preprocessing: Preprocessing | None
) -> tuple[Any, Preprocessing, bool]:
    """The model, how images are prepared for it, and that its pooling is trained."""
    timm = import_timm()
    torch = import_library("torch")
    architecture = folder.config.get("architecture")
    if not isinstance(architecture, str) or not timm.is_model(architecture):
        raise InvalidInputError(
            f"{folder.name} has the architecture {architecture!r:.80}, which timm "
            f"{timm.__version__} does not have"
        )
    described = folder.config.get("pretrained_cfg", folder.config)
    arguments = folder.config.get("model_args") or {}
    if not isinstance(described, dict) or not isinstance(arguments, dict):
        raise InvalidInputError(f"{folder.name} has a configuration that is not of timm")
    refused = sorted(set(arguments) & set(_NOT_OF_NETWORKS) | _prefixed(arguments, "pretrained"))
    if refused:
        raise InvalidInputError(f"{folder.name} sets {refused[0]!r}, which a folder may not")
    # The head is left out, whatever its number of classes.
    arguments = {name: value for name, value in arguments.items() if name != "num_classes"}
    known = {name: described[name] for name in _KNOWN if name in described}

    def create() -> Any:
        return timm.create_model(
            architecture, pretrained=False, pretrained_cfg=known, num_classes=0, **arguments
        )

    with folder.report("has a configuration that timm does not take"):
        with folder.bound_parameters():
            create()
        model = create()
        if preprocessing is None:
            preprocessing = timm_preprocessing(timm.data.resolve_data_config({}, model=model))
    tensors, wanted = folder.load_tensors(), model.state_dict()
    missing = sorted(set(wanted) - set(tensors))
    if missing:
        raise InvalidInputError(
            f"{folder.name} lacks weights: {', '.join(missing[:3])}"
            f"{' and others' if len(missing) > 3 else ''} are not in its files"
        )
    with folder.report("cannot be loaded"):
        model.load_state_dict({name: tensors[name].to(torch.float32) for name in wanted})
    return model, preprocessing, True


def set_input_size(model: Any, preprocessing: Preprocessing) -> None:
    """Let a model of timm take images of another size; others do, or refuse them."""
    if hasattr(model, "set_input_size"):
        model.set_input_size(img_size=preprocessing.height_and_width)


def _prefixed(arguments: dict[str, Any], prefix: str) -> set[str]:
    return {name for name in arguments if name.startswith(prefix)}


def timm_preprocessing(values: dict[str, Any]) -> Preprocessing:
    """The preprocessing of a data configuration of timm."""
    channels, height, width = values["input_size"]
    mode, share = values.get("crop_mode", "center"), values.get("crop_pct", 0.875)
    if channels != 3:
        raise InvalidInputError(f"the network takes images of {channels} channels, 3 are supported")
    if not 0 < share <= 1:
        raise InvalidInputError(f"crop_pct must be above 0 and at most 1, got {share!r:.40}")
    common = {
        "interpolation": values["interpolation"],
        "mean": tuple(255 * number for number in values["mean"]),
        "scale": tuple(255 * number for number in values["std"]),
    }
    if mode == "squash" and share == 1:
        return Preprocessing(size=(height, width), resize="stretch", **common)
    if mode != "center" or height != width:
        raise InvalidInputError(
            f"images are prepared by crop_mode {mode!r:.40} for inputs of {height} x {width}: only "
            "'center' for squares and 'squash' are supported; give preprocessing"
        )
    shorter = math.floor(height / share)
    return Preprocessing(size=height, resize="torchvision", crop_share=height / shorter, **common)
