"""Local features and patches as JSON values of a model file."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

from evergrow.foundation.errors import InvalidInputError, InvalidTypeError
from evergrow.storage.modelfile import plain_parameters
from evergrow.vision.descriptors.kinds import DESCRIPTORS
from evergrow.vision.descriptors.patches import PATCHES, Patches

if TYPE_CHECKING:
    from evergrow.vision.descriptors.local_features import LocalFeatures

Kind = TypeVar("Kind", bound="LocalFeatures")


def features_to_json(features: LocalFeatures) -> dict[str, Any]:
    """The parameters of local features; a ``TypeError`` for a custom descriptor."""
    if not isinstance(features.descriptor, str):
        raise InvalidTypeError(
            "features with a custom descriptor cannot be saved, because a model file contains no "
            f"functions; use one of {sorted(DESCRIPTORS)}"
        )
    parameters = plain_parameters(features.get_params(deep=False))
    return {**parameters, "patches": patches_to_json(features.patches)}


def features_from_json(kind: type[Kind], parameters: Any) -> Kind:
    """Rebuild local features; a ``ValueError`` if a parameter is invalid."""
    if not isinstance(parameters, dict) or not isinstance(parameters.get("descriptor"), str):
        raise InvalidInputError(
            f"features must be described by their parameters, got {parameters!r}"
        )
    patches = patches_from_json(parameters.get("patches"))
    # fit only checks the parameters.
    return kind(**{**parameters, "patches": patches}).fit()


def patches_to_json(patches: Patches) -> dict[str, Any]:
    """The class and parameters of patches."""
    return {"kind": type(patches).__name__, **plain_parameters(asdict(patches))}


def patches_from_json(entry: Any) -> Patches:
    """Rebuild patches; a ``ValueError`` for anything else."""
    if not isinstance(entry, dict) or entry.get("kind") not in PATCHES:
        raise InvalidInputError(f"patches must be one of {sorted(PATCHES)}, got {entry!r}")
    options = {name: value for name, value in entry.items() if name != "kind"}
    if isinstance(options.get("size"), list):
        options["size"] = tuple(options["size"])
    patches = PATCHES[entry["kind"]](**options)
    patches.check()
    return patches
