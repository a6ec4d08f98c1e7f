"""Which labelling configurations are supported, and what is said about the others."""

from __future__ import annotations

import pytest

from evergrow.foundation.errors import InvalidInputError
from evergrow.service.label_studio.labelling_config import parse_labelling_config

IMAGE = '<Image name="image" value="$photo"/>'
TWO = '<Choice value="cup"/><Choice value="pen"/>'


def view(*parts: str) -> str:
    return f"<View>{''.join(parts)}</View>"


def choices(content: str = TWO, **attributes: str) -> str:
    more = "".join(f' {name}="{value}"' for name, value in attributes.items())
    return f'<Choices name="class" toName="image"{more}>{content}</Choices>'


def test_choices_are_classes() -> None:
    found = parse_labelling_config(view("<Header value='What is it?'/>", IMAGE, choices()))
    assert (found.image, found.image_key, found.choices) == ("image", "photo", "class")
    assert found.classes == {"cup": "cup", "pen": "pen"}
    assert found.unknown is None


def test_annotations_have_the_alias_of_a_choice() -> None:
    found = parse_labelling_config(view(IMAGE, choices('<Choice value="A cup!" alias="cup"/>')))
    assert found.class_of("cup") == "cup"
    assert found.class_of("A cup!") is None


def test_names_of_classes_are_normalised_and_choices_are_not() -> None:
    found = parse_labelling_config(view(IMAGE, choices('<Choice value="red  cup"/>')))
    assert found.classes == {"red cup": "red  cup"}


def test_unknown_is_a_choice_and_not_a_class() -> None:
    found = parse_labelling_config(view(IMAGE, choices(TWO + '<Choice value="Unknown"/>')))
    assert list(found.classes) == ["cup", "pen"]
    assert found.unknown == "Unknown"
    assert found.class_of("Unknown") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<View>", "not XML"),
        ("", "not XML"),
        (view(IMAGE), "one <Choices>"),
        (view(choices()), "one <Image>"),
        (view(IMAGE, choices(), choices().replace("class", "other")), "one <Choices>"),
        (view(IMAGE, IMAGE.replace('"image"', '"two"'), choices()), "one <Image>"),
        (view(IMAGE, '<Text name="text" value="$text"/>', choices()), "<Text>"),
        (view(IMAGE, '<RectangleLabels name="box" toName="image"/>'), "<RectangleLabels>"),
        (view(IMAGE, choices(choice="multiple")), "an image has one class"),
        (view(IMAGE, choices(value="$options")), "list them"),
        (view(IMAGE, choices(perRegion="true")), "perRegion"),
        (view(IMAGE, choices("")), "at least one"),
        (view(IMAGE, choices('<Choice value="cup"/><Choice value=" cup"/>')), "one class"),
        (view(IMAGE, choices('<Choice value="a"><Choice value="b"/></Choice>')), "only <Choice>"),
        (view(IMAGE, choices('<Choice value="&#8203;"/>')), "hidden"),
        (view(IMAGE.replace("$photo", "photo.jpg"), choices()), "must be"),
        (view('<Image name="image" valueList="$many"/>', choices()), "valueList"),
        (view(IMAGE, choices().replace('"image"', '"other"')), "toName"),
        ('<!DOCTYPE a [<!ENTITY b "c">]>' + view(IMAGE, choices()), "DOCTYPE"),
        (view(IMAGE, choices(), " " * 1_000_000), "limit"),
    ],
)
def test_other_configurations_are_refused_with_a_reason(text: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        parse_labelling_config(text)
