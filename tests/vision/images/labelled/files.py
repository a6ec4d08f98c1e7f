"""Data sets in the formats that labelled images come in, written as other programs write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.vision.classifier.pictures import encode_png, picture

COLOURS = ("red", "green")


def pictures(folder: Path, *colours: str, n: int = 3, seed: int = 0) -> list[tuple[str, str]]:
    """Pictures in one folder without classes: the name and the colour of each."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for colour in colours or COLOURS:
        for i in range(seed, seed + n):
            name = f"{colour[0]}{i}.png"
            (folder / name).write_bytes(encode_png(picture(colour, i)))
            written.append((name, colour))
    return written


def table(folder: Path, *, name: str = "labels.csv", n: int = 3, seed: int = 0) -> Path:
    """Pictures, and a table of paths and labels next to them."""
    rows = pictures(folder / "images", n=n, seed=seed)
    lines = ["path,label", *(f"images/{path},{label}" for path, label in rows)]
    (folder / name).write_text("\n".join(lines) + "\n")
    return folder / name


def coco(folder: Path, *, n: int = 3, seed: int = 0, **changes: Any) -> Path:
    """Pictures, and annotations of one category each next to them."""
    rows = pictures(folder, n=n, seed=seed)
    numbers = {colour: 7 + k for k, colour in enumerate(COLOURS)}
    content = {
        "info": {"description": "drawn"},
        "images": [
            {"id": i, "file_name": name, "width": 32, "height": 24}
            for i, (name, _) in enumerate(rows)
        ],
        "categories": [{"id": number, "name": name} for name, number in numbers.items()],
        "annotations": [
            {"id": 100 + i, "image_id": i, "category_id": numbers[label], "bbox": [0, 0, 16, 12]}
            for i, (_, label) in enumerate(rows)
        ],
    }
    path = folder / "annotations.json"
    path.write_text(json.dumps({**content, **changes}))
    return path


def shard(path: Path, *, n: int = 3, seed: int = 0, label: str = "cls") -> Path:
    """A tar file that the package webdataset writes."""
    import webdataset

    with webdataset.TarWriter(str(path)) as sink:
        for colour in COLOURS:
            for i in range(seed, seed + n):
                value = {"cls": COLOURS.index(colour), "txt": colour, "json": {"label": colour}}
                image = encode_png(picture(colour, i))
                sink.write({"__key__": f"{colour}/{i:04d}", "png": image, label: value[label]})
    return path
