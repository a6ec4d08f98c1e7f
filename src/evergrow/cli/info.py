"""``evergrow info``: describe a model file."""

from __future__ import annotations

import os
from typing import Any

from evergrow.cli.models import load_model, too_few_to_reject
from evergrow.cli.options import MODEL, command, output_forms
from evergrow.cli.output import format_blocks, write_description
from evergrow.foundation.formatting import format_size


@command(
    "evergrow info model.evergrow",
    "evergrow info model.evergrow --json | jq .classes",
)
@MODEL
@output_forms("json", "tsv")
def info(model: str, form: str | None) -> None:
    """Describe the model file MODEL.

    Shows estimator, features, classes, size and versions. Reads any model file of Evergrow, not
    only image classifiers.
    """
    found = _described(model)
    write_description(found, _facts(found), form)


def _facts(found: dict[str, Any]) -> list[tuple[str, Any]]:
    """Names and values for people."""
    return [
        ("File", found["file"]),
        ("Estimator", found["estimator"]),
        ("Features", found["features"]),
        ("Learner", found["learner"]),
        ("Feature blocks", ", ".join(format_blocks(found["blocks"])) or None),
        ("Classes", found["n_classes"]),
        ("Images", found["n_images"]),
        ("Size", format_size(found["size_bytes"])),
        ("Written by", f"Evergrow {found['library_version']}, format {found['format_version']}"),
    ]


def _described(path: str) -> dict[str, Any]:
    model = load_model(path)
    from evergrow.storage.models.format import read_model
    from evergrow.vision.classifier import ImageClassifier

    header, _ = read_model(path)
    of_images = isinstance(model, ImageClassifier)
    classes = _classes(model)
    return {
        "file": path,
        "estimator": type(model).__name__,
        "features": _named(model.features, model.features_) if of_images else None,
        "learner": _named(model.learner, model.learner_) if of_images else None,
        "blocks": _blocks(model) if of_images else None,
        "n_classes": None if classes is None else len(classes),
        "n_images": int(model.class_counts_.sum()) if of_images else None,
        "size_bytes": os.path.getsize(path),
        "format_version": header["format_version"],
        "library_version": header.get("library_version"),
        "classes": classes,
    }


def _blocks(model: Any) -> list[dict[str, Any]]:
    """Blocks of features, if the learner chooses among them; the network is not loaded."""
    from evergrow.vision.embedding.networks import HEAD
    from evergrow.vision.embedding.onnx_file import stage_name

    learner = getattr(model.learner_, "estimator_", model.learner_)
    widths = getattr(learner, "blocks", None) or ()
    names = [HEAD, *map(stage_name, getattr(model.features_, "stages", ()))]
    if len(names) != len(widths):
        # Several networks have the same stages.
        names = [str(number) for number in range(len(widths))]
    return [
        {"name": name, "width": int(width), "used": number in learner.used_blocks_}
        for number, (name, width) in enumerate(zip(names, widths, strict=True))
    ]


def _named(choice: Any, fitted: Any) -> str:
    kind = type(fitted).__name__
    if hasattr(fitted, "unknown_label"):
        few = too_few_to_reject(fitted)
        from_when = "" if few is None else f" with {few[1]} images or more, not with {few[0]}"
        return f'{type(fitted.estimator_).__name__}, answers "unknown"{from_when} ({kind})'
    return f"{choice} ({kind})" if isinstance(choice, str) else kind


def _classes(model: Any) -> list[dict[str, Any]] | None:
    if not hasattr(model, "classes_"):
        return None
    labels = model.classes_.tolist()
    counts = (
        model.class_counts_.tolist() if hasattr(model, "class_counts_") else [None] * len(labels)
    )
    return [{"class": label, "images": count} for label, count in zip(labels, counts, strict=True)]
