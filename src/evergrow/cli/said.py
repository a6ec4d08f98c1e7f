"""A word about what was done, on standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from evergrow.vision.classifier import ImageClassifier

__all__ = ["say_learnt", "say_size", "several"]


def say_learnt(model: ImageClassifier, path: str) -> None:
    """What training did and how long it took."""
    report = model.report_
    if report is not None:
        click.echo(
            f"Learnt {several(report.n_images, 'image')}: {report.seconds_features:.1f} s for "
            f"features, {report.seconds_learning:.1f} s for learning.",
            err=True,
        )
    say_size(model, path)


def say_size(model: ImageClassifier, path: str) -> None:
    """What the model knows now."""
    from evergrow.foundation.naming import printable

    counts = model.class_counts_
    classes, images = several(len(counts), "class"), several(int(counts.sum()), "image")
    click.echo(f"{printable(path)}: {classes}, {images}.", err=True)


def several(number: int, what: str) -> str:
    """A number and the word for what it counts."""
    plural = what + ("es" if what.endswith("s") else "s")
    return f"{number} {what if number == 1 else plural}"
