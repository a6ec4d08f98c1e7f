"""``evergrow info``: describe a model file."""

from __future__ import annotations

import os
from typing import Any

import click

from evergrow.cli.models import load_model
from evergrow.cli.options import MODEL, examples
from evergrow.cli.output import write_fields, write_json


@click.command(
    epilog=examples(
        "evergrow info model.evergrow",
        "evergrow info model.evergrow --json | jq .classes",
    )
)
@MODEL
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def info(model: str, as_json: bool) -> None:
    """Describe the model file MODEL.

    Shows estimator, features, classes, size and versions. Reads any model file of Evergrow, not
    only image classifiers.
    """
    found = _described(model)
    if as_json:
        write_json(found)
        return
    classes = found.pop("classes")
    for name, value in found.items():
        write_fields([name, "" if value is None else value])
    for entry in classes or []:
        count = entry["images"]
        write_fields(["class", entry["class"], *([] if count is None else [count])])


def _described(path: str) -> dict[str, Any]:
    model = load_model(path)
    from evergrow.storage.files import read_model
    from evergrow.vision.classifier import ImageClassifier

    header, _ = read_model(path)
    of_images = isinstance(model, ImageClassifier)
    classes = _classes(model)
    return {
        "file": path,
        "estimator": type(model).__name__,
        "features": _named(model.features, model.features_) if of_images else None,
        "learner": _named(model.learner, model.learner_) if of_images else None,
        "n_classes": None if classes is None else len(classes),
        "n_images": int(model.class_counts_.sum()) if of_images else None,
        "size_bytes": os.path.getsize(path),
        "format_version": header["format_version"],
        "library_version": header.get("library_version"),
        "classes": classes,
    }


def _named(choice: Any, fitted: Any) -> str:
    kind = type(fitted).__name__
    return f"{choice} ({kind})" if isinstance(choice, str) else kind


def _classes(model: Any) -> list[dict[str, Any]] | None:
    if not hasattr(model, "classes_"):
        return None
    labels = model.classes_.tolist()
    counts = (
        model.class_counts_.tolist() if hasattr(model, "class_counts_") else [None] * len(labels)
    )
    return [{"class": label, "images": count} for label, count in zip(labels, counts, strict=True)]
