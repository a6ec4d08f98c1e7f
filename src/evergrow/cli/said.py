"""A word about what was done, on standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from evergrow.imaging import ImageClassifier

__all__ = ["say_learnt", "say_size"]


def say_learnt(model: ImageClassifier, path: str) -> None:
    """What training did and how long it took."""
    report = model.report_
    if report is not None:
        click.echo(
            f"Learnt {_several(report.n_images, 'image')}: {report.seconds_features:.1f} s for "
            f"features, {report.seconds_learning:.1f} s for learning.",
            err=True,
        )
    say_size(model, path)


def say_size(model: ImageClassifier, path: str) -> None:
    """What the model knows now."""
    from evergrow.naming import printable

    counts = model.class_counts_
    classes, images = _several(len(counts), "class"), _several(int(counts.sum()), "image")
    click.echo(f"{printable(path)}: {classes}, {images}.", err=True)


def _several(number: int, what: str) -> str:
    plural = what + ("es" if what.endswith("s") else "s")
    return f"{number} {what if number == 1 else plural}"
