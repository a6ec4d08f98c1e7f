"""Local features inside model files: parameters only."""

from __future__ import annotations

from typing import Any, TypeVar

from evergrow.storage.modelfile import plain_parameters
from evergrow.vision.descriptors.kinds import DESCRIPTORS
from evergrow.vision.descriptors.patches import patches_from_json, patches_to_json

__all__ = ["features_from_json", "features_to_json"]

Kind = TypeVar("Kind")


def features_to_json(features: Any) -> dict[str, Any]:
    """The parameters as a model file holds them."""
    if not isinstance(features.descriptor, str):
        raise TypeError(
            "features with a descriptor of your own cannot be saved: a model file holds no "
            f"functions; use one of {sorted(DESCRIPTORS)}"
        )
    parameters = plain_parameters(features.get_params(deep=False))
    return {**parameters, "patches": patches_to_json(features.patches)}


def features_from_json(kind: type[Kind], parameters: Any) -> Kind:
    """Features with parameters from a file; a ``ValueError`` if one is not allowed."""
    if not isinstance(parameters, dict) or not isinstance(parameters.get("descriptor"), str):
        raise ValueError(f"features must be described by their parameters, got {parameters!r}")  # noqa: TRY004
    patches = patches_from_json(parameters.get("patches"))
    features: Any = kind(**{**parameters, "patches": patches})
    # Fitting checks the parameters and learns nothing.
    features.fit()
    checked: Kind = features
    return checked
