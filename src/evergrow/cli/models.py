"""Model files as commands read and replace them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evergrow.cli.workspace.opening import is_workspace
from evergrow.foundation.locks import locked

if TYPE_CHECKING:
    from evergrow.cli.workspace.asking import WorkspaceClassifier
    from evergrow.vision.classifier import Answers, ImageClassifier

__all__ = ["answers_of", "changed_model", "check_output", "load_classifier", "load_model"]

# How one command works is no part of what the file keeps.
_OF_THE_MOMENT = ("n_jobs", "on_error", "verbose")


def load_model(path: str) -> Any:
    """Read any model file; an error that says what to do for a folder."""
    import evergrow

    if os.path.isdir(path):
        raise click.ClickException(_why_no_file(path))
    return evergrow.load(path)


def _why_no_file(path: str) -> str:
    name = click.format_filename(path)
    if is_workspace(path):
        return (
            f"{name!r} is a workspace: 'evergrow learn' teaches it and 'evergrow status' tells "
            "what it holds"
        )
    return f"{name!r} is a folder: name a model file, as written by 'evergrow fit'"


def load_classifier(path: str, *, verbose: int, jobs: int) -> ImageClassifier | WorkspaceClassifier:
    """Read a classifier of images, or a workspace, to ask it."""
    if is_workspace(path):
        from evergrow.cli.workspace.asking import WorkspaceClassifier

        return WorkspaceClassifier(path, verbose=verbose, jobs=jobs)
    model: ImageClassifier = _checked_classifier(path).set_params(verbose=verbose, n_jobs=jobs)
    return model


def _checked_classifier(path: str) -> ImageClassifier:
    model = load_model(path)
    from evergrow.vision.classifier import ImageClassifier

    if not isinstance(model, ImageClassifier):
        raise click.ClickException(
            f"{click.format_filename(path)!r} holds a {type(model).__name__}, which takes numbers, "
            "not images: use it in Python with evergrow.load"
        )
    return model


def answers_of(
    classifier: ImageClassifier | WorkspaceClassifier, paths: list[Any], *, k: int = 1
) -> Answers:
    """Answers to the images that can be read; the others are among the problems."""
    from evergrow import BadImageWarning

    with warnings.catch_warnings():
        # Commands name all of them, a warning the first few.
        warnings.simplefilter("ignore", BadImageWarning)
        return classifier.answer(paths, k=k, on_error="skip")


def check_output(path: str, *, force: bool) -> None:
    """Refuse an output before minutes of work for it."""
    target = Path(os.path.realpath(path))
    name = click.format_filename(path)
    if target.is_dir():
        raise click.ClickException(f"cannot write {name!r}: it is a folder, name a file")
    if target.exists() and not force:
        raise click.ClickException(f"{name!r} is there already: --force replaces it")
    if not target.parent.is_dir():
        raise click.ClickException(
            f"cannot write {name!r}: the folder {str(target.parent)!r} does not exist"
        )
    if not os.access(target.parent, os.W_OK):
        raise click.ClickException(f"cannot write {name!r}: its folder is not writable")


@contextmanager
def changed_model(
    path: str, output: str | None, *, verbose: int, jobs: int = -1
) -> Iterator[ImageClassifier]:
    """Read a model, let the block change it, and write it if all went well.

    Commands that change one file take turns. If something else wrote the file meanwhile, what it
    wrote stays, and an error says so.
    """
    target = path if output is None else output
    # A lock beside a file that is not there would be all that is left.
    if not Path(path).exists():
        raise click.ClickException(f"there is no model file {click.format_filename(path)!r}")

    def say_waiting() -> None:
        name = click.format_filename(target)
        click.echo(f"Waiting for another command that changes {name!r}.", err=True)

    if is_workspace(path):
        raise click.ClickException(_why_no_file(path))
    with locked(target, say_waiting):
        before = _stamp(target)
        model = _checked_classifier(path)
        settings = {name: getattr(model, name) for name in _OF_THE_MOMENT}
        yield model.set_params(verbose=verbose, n_jobs=jobs)
        model.set_params(**settings)
        if _stamp(target) != before:
            raise click.ClickException(
                f"{click.format_filename(target)!r} was changed by something else meanwhile: "
                "nothing was written, run the command again"
            )
        model.save(target)


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
