"""Summaries of what a command did, on standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from evergrow.vision.classifier import ImageClassifier


def report_training(model: ImageClassifier, path: str) -> None:
    """Print what training did and how long it took."""
    report = model.report_
    if report is not None:
        click.echo(
            f"Learned {pluralize(report.n_images, 'image')}: {report.seconds_features:.1f} s for "
            f"features, {report.seconds_learning:.1f} s for training.",
            err=True,
        )
    report_model(model, path)


def report_model(model: ImageClassifier, path: str) -> None:
    """Print the numbers of classes and images of a model."""
    from evergrow.foundation.naming import printable

    counts = model.class_counts_
    classes, images = pluralize(len(counts), "class"), pluralize(int(counts.sum()), "image")
    click.echo(f"{printable(path)}: {classes}, {images}.", err=True)


def pluralize(number: int, noun: str) -> str:
    """Return a number with its noun in the singular or plural."""
    plural = noun + ("es" if noun.endswith("s") else "s")
    return f"{number} {noun if number == 1 else plural}"
