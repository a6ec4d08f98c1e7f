"""Model files as commands load and change them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evergrow.cli.workspace.access import is_workspace
from evergrow.foundation.locks import locked

if TYPE_CHECKING:
    from evergrow.cli.workspace.predictor import WorkspaceClassifier
    from evergrow.vision.classifier import Answers, ImageClassifier


# Parameters of one command that are not saved to the file.
_TEMPORARY_PARAMETERS = ("n_jobs", "on_error", "verbose")


def load_model(path: str) -> Any:
    """Load any model file; for a folder the error says what to do."""
    import evergrow

    if os.path.isdir(path):
        raise click.ClickException(_folder_message(path))
    return evergrow.load(path)


def _folder_message(path: str) -> str:
    name = click.format_filename(path)
    if is_workspace(path):
        return (
            f"{name!r} is a workspace: use 'evergrow learn' to teach it and 'evergrow status' to "
            "inspect it"
        )
    return f"{name!r} is a folder: name a model file, as written by 'evergrow fit'"


def load_classifier(path: str, *, verbose: int, jobs: int) -> ImageClassifier | WorkspaceClassifier:
    """Load an image classifier or a workspace for prediction."""
    if is_workspace(path):
        from evergrow.cli.workspace.predictor import WorkspaceClassifier

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


def predict_images(
    classifier: ImageClassifier | WorkspaceClassifier, paths: list[Any], *, k: int = 1
) -> Answers:
    """Predict the images that can be read; the others are listed as problems."""
    from evergrow import BadImageWarning

    with warnings.catch_warnings():
        # Commands list all problems; the warning names only the first few.
        warnings.simplefilter("ignore", BadImageWarning)
        return classifier.answer(paths, k=k, on_error="skip")


def check_output(path: str, *, force: bool) -> None:
    """Reject an output path before the work starts."""
    target = Path(os.path.realpath(path))
    name = click.format_filename(path)
    if target.is_dir():
        raise click.ClickException(f"cannot write {name!r}: it is a folder, name a file")
    if target.exists() and not force:
        raise click.ClickException(f"{name!r} exists: use --force to replace it")
    if not target.parent.is_dir():
        raise click.ClickException(
            f"cannot write {name!r}: the folder {str(target.parent)!r} does not exist"
        )
    if not os.access(target.parent, os.W_OK):
        raise click.ClickException(f"cannot write {name!r}: its folder is not writable")


@contextmanager
def edit_model(
    path: str, output: str | None, *, verbose: int, jobs: int = -1
) -> Iterator[ImageClassifier]:
    """Load a model, let the block change it, and save it if the block succeeds.

    A lock makes commands that change the same file wait for each other. If another program wrote
    the file meanwhile, its version stays and an error is raised.
    """
    target = path if output is None else output
    # Without this check a lock file would be created for a file that does not exist.
    if not Path(path).exists():
        raise click.ClickException(f"there is no model file {click.format_filename(path)!r}")

    def on_wait() -> None:
        name = click.format_filename(target)
        click.echo(f"Waiting for another command that changes {name!r}.", err=True)

    if is_workspace(path):
        raise click.ClickException(_folder_message(path))
    with locked(target, on_wait):
        before = _stamp(target)
        model = _checked_classifier(path)
        settings = {name: getattr(model, name) for name in _TEMPORARY_PARAMETERS}
        yield model.set_params(verbose=verbose, n_jobs=jobs)
        model.set_params(**settings)
        if _stamp(target) != before:
            raise click.ClickException(
                f"{click.format_filename(target)!r} was changed by another program meanwhile: "
                "nothing was written, run the command again"
            )
        model.save(target)


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
