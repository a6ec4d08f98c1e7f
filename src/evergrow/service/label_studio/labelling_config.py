"""The labelling configuration of a project: which image to look at, and which classes there are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

from evergrow.foundation.errors import InvalidInputError
from evergrow.workspace.names import normalise_name

# Label Studio's own templates have a few kilobytes.
MAX_CONFIG_CHARACTERS = 1_000_000
# A choice of this name is the answer for something that is none of the classes.
UNKNOWN = "unknown"
# Values of the attribute "choice" that allow one choice per picture.
_SINGLE = ("single", "single-radio")
# Tags that only show something; others that have a name are pictures, texts, sounds...
_ONLY_SHOWN = frozenset({"View", "Header", "Style", "Collapse", "Panel", "Filter", "Choice"})


@dataclass(frozen=True)
class LabellingConfig:
    """What a project asks its annotators.

    Attributes
    ----------
    image : str
        Name of the ``<Image>`` tag.
    image_key : str
        Member of a task's data that has the address of the image.
    choices : str
        Name of the ``<Choices>`` tag.
    classes : mapping from str to str
        Choices by the names of their classes, which are in normal form.
    unknown : str or None
        The choice for things of no class, if the configuration has one.
    """

    image: str
    image_key: str
    choices: str
    classes: Mapping[str, str]
    unknown: str | None = None

    def class_of(self, choice: str) -> str | None:
        """Return the class that a choice stands for; None for "unknown" and for other texts."""
        return next((name for name, text in self.classes.items() if text == choice), None)


def parse_labelling_config(text: str) -> LabellingConfig:
    """Read a labelling configuration; raise an ``InvalidInputError`` that says what is not allowed.

    It needs one ``<Image>`` and one ``<Choices>`` of which annotators select one. Tags that only
    show text are allowed.

    >>> config = parse_labelling_config(
    ...     '<View><Image name="photo" value="$image"/><Choices name="kind" toName="photo">'
    ...     '<Choice value="cup"/><Choice value="pen"/><Choice value="Unknown"/></Choices></View>'
    ... )
    >>> config.image_key, list(config.classes), config.unknown
    ('image', ['cup', 'pen'], 'Unknown')
    """
    tags = list(_parse_xml(text))
    controls = [tag for tag in tags if "toName" in tag.attrib]
    shown = [
        tag
        for tag in tags
        if "name" in tag.attrib and "toName" not in tag.attrib and tag.tag not in _ONLY_SHOWN
    ]
    if [tag.tag for tag in controls] != ["Choices"]:
        raise _not_supported("one <Choices> and no other tag with toName", controls)
    if [tag.tag for tag in shown] != ["Image"]:
        raise _not_supported("one <Image> and nothing else to label", shown)
    (choices,), (image,) = controls, shown
    names = (_attribute(image, "name"), _attribute(choices, "name"))
    if _attribute(choices, "toName") != names[0]:
        raise InvalidInputError(
            f'<Choices name="{names[1]}"> must have toName="{names[0]}", the name of the <Image>'
        )
    _check_choices(choices)
    return LabellingConfig(names[0], _image_key(image), names[1], *_read_classes(choices))


def _parse_xml(text: str) -> Iterator[ElementTree.Element]:
    """All tags in their order."""
    if len(text) > MAX_CONFIG_CHARACTERS:
        raise InvalidInputError(
            f"the labelling configuration has {len(text)} characters; the limit is "
            f"{MAX_CONFIG_CHARACTERS}"
        )
    # Definitions of entities can make a short text expand to gigabytes.
    if re.search("<!(doctype|entity)", text, re.IGNORECASE):
        raise InvalidInputError("the labelling configuration must have no <!DOCTYPE or <!ENTITY")
    try:
        return ElementTree.fromstring(text).iter()  # noqa: S314
    except (ElementTree.ParseError, ValueError) as error:
        raise InvalidInputError(f"the labelling configuration is not XML: {error}") from error


def _not_supported(needed: str, found: list[ElementTree.Element]) -> InvalidInputError:
    names = ", ".join(f"<{tag.tag}>"[:100] for tag in found[:5]) or "none"
    return InvalidInputError(f"the labelling configuration must have {needed}, got {names}")


def _attribute(tag: ElementTree.Element, name: str) -> str:
    found = tag.attrib.get(name, "").strip()
    if not found:
        raise InvalidInputError(f"<{tag.tag}> in the labelling configuration needs a {name}")
    return found


def _image_key(image: ElementTree.Element) -> str:
    if "valueList" in image.attrib:
        raise InvalidInputError("an <Image> with valueList has several images: use value instead")
    value = _attribute(image, "value")
    key = value.removeprefix("$")
    if key == value or not key or not key.isidentifier():
        raise InvalidInputError(
            f'the value of <Image> must be "$" and a name in the data of tasks, got {value[:100]!r}'
        )
    return key


def _check_choices(choices: ElementTree.Element) -> None:
    choice = choices.attrib.get("choice", "single")
    if choice not in _SINGLE:
        raise InvalidInputError(
            f'choice="{choice[:100]}" of <Choices> is not supported: an image has one class, so '
            f"use one of {', '.join(_SINGLE)}"
        )
    if "value" in choices.attrib:
        raise InvalidInputError(
            "<Choices> with a value takes its choices from each task: list them as <Choice> tags"
        )
    for name in ("perRegion", "perItem"):
        if choices.attrib.get(name, "false").lower() == "true":
            raise InvalidInputError(f'{name}="true" of <Choices> is not supported')


def _read_classes(choices: ElementTree.Element) -> tuple[dict[str, str], str | None]:
    classes: dict[str, str] = {}
    unknown = None
    for tag in choices:
        if tag.tag != "Choice" or len(tag):
            raise InvalidInputError(
                "<Choices> must contain only <Choice> tags, and those must not contain others"
            )
        # Annotations have the alias where there is one.
        text = tag.attrib.get("alias") or _attribute(tag, "value")
        name = normalise_name(text)
        if name in classes:
            raise InvalidInputError(f"the choices {classes[name]!r} and {text!r} are one class")
        if name.casefold() == UNKNOWN:
            unknown = text
        else:
            classes[name] = text
    if not classes:
        raise InvalidInputError("<Choices> needs at least one <Choice>")
    return classes, unknown
