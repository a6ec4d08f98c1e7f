"""Which output of a network is the embedding, and a module that returns only that.

By the rule "auto" it is the first of these that a network has: the projection into the space that
images share with text, the pooled output if all its weights are there, the class token, the mean of
all patches or positions.
"""

from __future__ import annotations

from typing import Any, Literal

from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.params import Choice, check_parameters
from evergrow.vision.embedding.pretrained.folder import import_library

Output = Literal["auto", "image_embeds", "pooler_output", "class_token", "mean"]
_OUTPUTS = ("auto", "image_embeds", "pooler_output", "class_token", "mean")
# Parameters that become a token in front of the patches.
_CLASS_TOKENS = ("cls_token", "class_token", "class_embedding")
_OTHER_TOKENS = ("distillation_token", "dist_token", "register_tokens", "reg_token")


def check_output(output: str) -> None:
    """Raise an error unless it is an output that can be chosen."""
    check_parameters({"output": output}, {"output": [Choice(_OUTPUTS)]})


def is_transformers_model(module: object) -> bool:
    """Whether a module is of the library transformers; without importing it."""
    return any(kind.__name__ == "PreTrainedModel" for kind in type(module).__mro__)


def is_timm_model(module: object) -> bool:
    """Whether a module is of the library timm; without importing it."""
    return hasattr(module, "forward_features") and hasattr(module, "pretrained_cfg")


def feature_module(module: Any, output: str, *, has_pooler: bool = True) -> Any:
    """Wrap a module of transformers or timm in one from images to a matrix of features.

    ``has_pooler`` says whether the weights of a pooler were trained.
    """
    base: Any = import_library("torch").nn.Module
    of_transformers = is_transformers_model(module)
    choose = _choose_of_transformers if of_transformers else _choose_of_timm
    is_class_token, n_others = _count_tokens(module)

    class FeatureModule(base):  # type: ignore[misc]
        """Returns the embedding of a network that returns more."""

        def __init__(self) -> None:
            super().__init__()
            self.network = module

        def forward(self, images: Any) -> Any:
            tokens = _Tokens(is_class_token, n_others)
            return choose(self.network, images, output, tokens, has_pooler).flatten(1)

    return FeatureModule().eval()


class _Tokens:
    """Tokens in front of the patches: whether there is a class token, and how many others."""

    def __init__(self, is_class_token: bool, n_others: int) -> None:
        self.is_class_token, self.n_others = is_class_token, n_others

    def choose(self, states: Any, output: str) -> Any:
        """The class token, or the mean of patches or of positions of a feature map."""
        if states.ndim == 4:
            if output == "class_token":
                raise InvalidInputError(
                    "output must not be 'class_token': the network has feature maps, not tokens"
                )
            return states.mean((2, 3))
        if output == "class_token" and not self.is_class_token:
            raise InvalidInputError("output must not be 'class_token': the network has none")
        if output != "mean" and self.is_class_token:
            return states[:, 0]
        return states[:, self.is_class_token + self.n_others :].mean(1)


def _choose_of_transformers(
    network: Any, images: Any, output: str, tokens: _Tokens, has_pooler: bool
) -> Any:
    found = network(pixel_values=images)
    for name in ("image_embeds", "pooler_output"):
        value = getattr(found, name, None)
        is_trained = value is not None and (name != "pooler_output" or has_pooler)
        if output == name and not is_trained:
            lacks = "no weights for it" if value is not None else "none"
            raise InvalidInputError(f"output must not be {name!r}: the network has {lacks}")
        if is_trained and output in ("auto", name):
            return value
    return tokens.choose(found.last_hidden_state, output)


def _choose_of_timm(
    network: Any, images: Any, output: str, tokens: _Tokens, _has_pooler: bool
) -> Any:
    if output == "image_embeds":
        raise InvalidInputError("output must not be 'image_embeds': the network has none")
    states = network.forward_features(images)
    if output in ("auto", "pooler_output"):
        return network.forward_head(states, pre_logits=True)
    if states.ndim == 4 and getattr(network, "output_fmt", "NCHW") == "NHWC":
        states = states.permute(0, 3, 1, 2)
    return tokens.choose(states, output)


def _count_tokens(module: Any) -> tuple[bool, int]:
    """Whether there is a class token, and how many tokens follow it before the patches."""
    shapes = {name.rpartition(".")[2]: one.shape for name, one in module.named_parameters()}
    n_others = sum(shapes[name][1] for name in _OTHER_TOKENS if name in shapes)
    return any(name in shapes for name in _CLASS_TOKENS), int(n_others)
