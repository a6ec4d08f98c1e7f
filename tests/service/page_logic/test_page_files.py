"""The files of the page, without a browser."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from importlib.resources import files

import pytest

from evergrow.vision.images.decoder import SUFFIXES

PAGE = files("evergrow") / "page"
OWN = files("evergrow.service") / "page"
STYLE = (PAGE / "style.css").read_text()
# Colours of text, and the grounds on which each is used.
TEXT_ON_GROUND = {
    "ink": "ground surface sunken",
    "muted": "ground surface sunken",
    "accent": "surface ground",
    "bad": "surface ground",
    "on-accent": "accent accent-hover",
    "on-soft": "soft",
    "on-warm": "warm",
    "on-bad": "bad",
    "on-bad-soft": "bad-soft",
    "on-cool": "cool",
}


def colours(scheme):
    light, dark = STYLE.split("@media (prefers-color-scheme: dark)")[:2]
    found = re.compile(r"--([a-z-]+): #([0-9a-f]{6});")
    return dict(found.findall(light)) | (dict(found.findall(dark)) if scheme == "dark" else {})


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(scheme):
    known = colours(scheme)
    weak = {
        (text, ground): round(contrast(known[text], known[ground]), 2)
        for text, grounds in TEXT_ON_GROUND.items()
        for ground in grounds.split()
        if contrast(known[text], known[ground]) < 4.5
    }
    assert weak == {}


def test_the_service_worker_caches_every_file_of_the_page():
    cached = set(re.findall(r'^  "([\w.]+)",$', (OWN / "worker.js").read_text(), re.MULTILINE))
    every = [*PAGE.iterdir(), *OWN.iterdir()]
    there = {entry.name for entry in every} - {"index.html", "worker.js"}
    assert cached == there


def test_the_page_knows_the_endings_of_the_pictures_that_can_be_read():
    (endings,) = re.findall(r"PICTURE = /\\\.\(([a-z|]+)\)\$/i;", (PAGE / "folders.js").read_text())
    assert {f".{ending}" for ending in endings.split("|")} == SUFFIXES


def test_names_are_never_put_into_markup():
    risky = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|srcdoc")
    every = [*PAGE.iterdir(), *OWN.iterdir()]
    found = {entry.name for entry in every if risky.search(entry.read_text())}
    assert found == set()


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.attributes = []

    def handle_starttag(self, tag, attrs):
        self.attributes.extend((tag, *pair) for pair in attrs)


def test_the_page_conforms_to_its_security_policy():
    tags = Tags()
    tags.feed((PAGE / "index.html").read_text())
    forbidden = [
        (tag, name, value)
        for tag, name, value in tags.attributes
        if name == "style"
        or name.startswith("on")
        or (value or "").startswith(("http", "//", "data:"))
    ]
    assert forbidden == []
