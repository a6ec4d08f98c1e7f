"""WebDataset: tar files in which the members of a sample have the same name before the dot."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evergrow.foundation.errors import BadImage, InvalidInputError
from evergrow.foundation.formatting import display_name, format_size
from evergrow.vision.images.decoder import SUFFIXES as IMAGE_SUFFIXES
from evergrow.vision.images.labelled.labelled_images import (
    LabelledImages,
    check_label,
    label_array,
    require_images,
)
from evergrow.vision.images.labelled.tar_file import Member, TarFile
from evergrow.vision.images.sources import ReadLimits, StoredImage

SUFFIXES = (".tar", ".tar.gz", ".tgz")

# Where the class of a sample is, the first of them that it has.
_LABEL_ENDINGS = ("cls", "json", "txt")
# Entries of JSON members, the first of them that is there.
_JSON_KEYS = ("label", "class", "cls", "category", "class_name")
_MAX_LABEL_BYTES = 1 << 20
_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(\d+)\.\.(\d+)")
_MAX_FILES = 100_000


@dataclass(frozen=True, slots=True)
class TarImage(StoredImage):
    """An image in a tar file, read in place."""

    archive: TarFile
    member: Member

    @property
    def name(self) -> str:
        """The tar file, and the member."""
        return f"{self.archive.path}/{self.member.name}"

    def read_bytes(self, limits: ReadLimits) -> bytes:
        """The content of the member."""
        limits.check_bytes(self.member.n_bytes)
        return self.archive.read(self.member)


@dataclass
class _Sample:
    """Consecutive members with the same key, by what follows the first dot of their names."""

    key: str
    members: dict[str, Member] = field(default_factory=dict)
    twice: str | None = None


def read_webdataset(paths: Sequence[Path], where: Path) -> LabelledImages:
    """List the images of tar files with their classes; nothing is extracted."""
    images: list[TarImage] = []
    labels: list[str] = []
    unreadable: list[BadImage] = []
    for path in paths:
        archive = TarFile(path)
        for sample in _samples(archive):
            try:
                member = _image_of(sample)
                label = _label_of(sample, archive)
            except InvalidInputError as error:
                name = f"{display_name(path)} sample {sample.key!r}"
                unreadable.append(BadImage(None, name, str(error)))
                continue
            images.append(TarImage(archive, member))
            labels.append(label)
    require_images(images, unreadable, where, "labelled images")
    return LabelledImages(
        images, label_array(labels, where), tuple(unreadable), tuple(unreadable), root=where
    )


def _samples(archive: TarFile) -> Iterator[_Sample]:
    sample = _Sample("")
    for member in archive.members():
        folder, _, name = member.name.rpartition("/")
        stem, dot, ending = name.partition(".")
        # Hidden files are no samples; Macs add some with the names of the others.
        if not stem or not dot:
            continue
        key = f"{folder}/{stem}" if folder else stem
        if key != sample.key:
            if sample.members:
                yield sample
            sample = _Sample(key)
        if ending.lower() in sample.members:
            sample.twice = ending
        sample.members[ending.lower()] = member
    if sample.members:
        yield sample


def _image_of(sample: _Sample) -> Member:
    if sample.twice is not None:
        raise InvalidInputError(f"it has two members .{sample.twice}")
    found = [name for name in sample.members if f".{name}" in IMAGE_SUFFIXES]
    if len(found) != 1:
        has = ", ".join(f".{name}" for name in sample.members)
        raise InvalidInputError(f"it has {len(found)} images instead of one ({has})")
    return sample.members[found[0]]


def _label_of(sample: _Sample, archive: TarFile) -> str:
    ending = next((one for one in _LABEL_ENDINGS if one in sample.members), None)
    if ending is None:
        raise InvalidInputError("it has no label: no member .cls, .json or .txt")
    member = sample.members[ending]
    if member.n_bytes > _MAX_LABEL_BYTES:
        raise InvalidInputError(f"its label .{ending} has {format_size(member.n_bytes)}")
    try:
        text = archive.read(member).decode("utf-8-sig")
        label = _label_in_json(text) if ending == "json" else text.strip()
    except (ValueError, RecursionError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(f"its label .{ending} cannot be read: {error}") from error
    fault = check_label(label)
    if fault is not None:
        raise InvalidInputError(fault)
    return label


def _label_in_json(text: str) -> str:
    found = json.loads(text)
    for key in _JSON_KEYS if isinstance(found, dict) else ():
        value = found.get(key)
        if isinstance(value, (str, int)) and not isinstance(value, bool):
            return str(value).strip()
    keys = ", ".join(_JSON_KEYS)
    raise InvalidInputError(f"its .json has no entry of text or a whole number among {keys}")


def expand_braces(pattern: str) -> list[str]:
    """The names that a pattern with braces stands for.

    >>> expand_braces("a-{000..002}.tar"), expand_braces("{x,y}.tar")
    (['a-000.tar', 'a-001.tar', 'a-002.tar'], ['x.tar', 'y.tar'])
    """
    names = [pattern]
    while any(_BRACES.search(name) for name in names):
        names = [one for name in names for one in _expand_first(name)]
        if len(names) > _MAX_FILES:
            raise InvalidInputError(f"{pattern!r} stands for more than {_MAX_FILES} files")
    return names


def _expand_first(name: str) -> Iterator[str]:
    found = _BRACES.search(name)
    if found is None:
        yield name
        return
    before, after = name[: found.start()], name[found.end() :]
    numbers = _RANGE.fullmatch(found[1])
    if numbers is None:
        yield from (f"{before}{choice}{after}" for choice in found[1].split(","))
        return
    first, last = numbers[1], numbers[2]
    if int(last) - int(first) >= _MAX_FILES:
        raise InvalidInputError(f"{name!r} stands for more than {_MAX_FILES} files")
    for number in range(int(first), int(last) + 1):
        yield f"{before}{number:0{len(first)}d}{after}"
