"""Model files as commands load, change and report them."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evergrow.cli.output import report
from evergrow.cli.suggestions import suggest_paths
from evergrow.cli.workspace.access import is_workspace
from evergrow.foundation.formatting import format_count, printable
from evergrow.foundation.locks import lock_or_wait

if TYPE_CHECKING:
    from evergrow.cli.workspace.predictor import WorkspaceClassifier
    from evergrow.vision.classifier import Answers, ImageClassifier
    from evergrow.vision.images import LabelledImages


# Parameters of one command that are not saved to the file.
_TEMPORARY_PARAMETERS = ("n_jobs", "on_error", "verbose")


def load_model(path: str) -> Any:
    """Load any model file; for a folder the error says what to do."""
    import evergrow

    if is_workspace(path):
        raise click.ClickException(
            f"{click.format_filename(path)!r} is a workspace: use 'evergrow learn' to teach it and "
            "'evergrow status' to inspect it"
        )
    why_not = explain_no_model(path)
    if why_not:
        raise click.ClickException(why_not)
    with suggest_paths(path):
        return evergrow.load(path)


def explain_no_model(path: str) -> str:
    """Explain why a path is not a model, such as an image or a folder; empty if it may be one."""
    name = click.format_filename(path)
    if is_workspace(path):
        return ""
    if os.path.isdir(path):
        return (
            f"{name!r} is a folder: first name a model file, as written by 'evergrow fit', or a "
            "workspace, as made by 'evergrow init'"
        )
    if _is_picture_file(path):
        return f"{name!r} is an image or a video: the model file comes first"
    return ""


def _is_picture_file(path: str) -> bool:
    from evergrow.vision.images.decoder import SUFFIXES
    from evergrow.vision.images.video import is_video

    is_picture = is_video(path) or os.path.splitext(path)[1].lower() in SUFFIXES
    return is_picture and os.path.isfile(path)


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
            f"{click.format_filename(path)!r} holds the estimator {type(model).__name__}, which "
            "takes numbers, not images: use it in Python with evergrow.load"
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


def is_zip_file(path: str) -> bool:
    """Whether a path is a zip file of class folders."""
    return path.lower().endswith(".zip") and os.path.isfile(path)


def find_images(
    source: str, reading: Mapping[str, Any], *, split: str, quiet: bool
) -> LabelledImages:
    """List the labelled images of a source, and say which split is used.

    ``reading`` are the options of ``reads_labelled``, and ``split`` what to take if they name none.
    A zip file of class folders is unpacked until the command ends.
    """
    from evergrow.vision.images import find_labelled
    from evergrow.vision.images.zip_files import unpack_images

    place: str | Path = source
    if is_zip_file(source):
        place = click.get_current_context().with_resource(unpack_images(source))
    asked = reading["split"]
    wanted = None if asked == "none" else asked or split
    with suggest_paths(source):
        found = find_labelled(place, **{**reading, "split": wanted})
    if asked not in (None, "none") and found.split is None:
        raise click.ClickException(
            f"{click.format_filename(source)!r} has no splits: it needs folders train, val or test "
            "with class folders, or a column 'split' in a table"
        )
    _report_split(found, quiet=quiet)
    return found


def find_to_learn(
    source: str,
    reading: Mapping[str, Any],
    *,
    yes: bool,
    quiet: bool,
    may_be_one_class: bool = False,
    nested: bool = False,
) -> LabelledImages:
    """List the images of a source to learn from; ask if its folders are probably not classes.

    With ``nested``, folders within the class folders are expected; with ``may_be_one_class``, one
    class is enough.
    """
    found = find_images(source, reading, split="train", quiet=quiet)
    doubts = [
        None if nested else found.doubt_about_depth,
        None if may_be_one_class else found.doubt_about_number,
    ]
    for doubt in doubts:
        if doubt is not None and not yes:
            _confirm(doubt)
    return found


def _report_split(found: LabelledImages, *, quiet: bool) -> None:
    """Say which split is used, and what to do if folders of that name are classes."""
    if found.split is None:
        return
    others = " If it is a class, use '--split none'." if found.by_folder else ""
    report(f"Using the split {click.format_filename(found.split)!r}.{others}", quiet=quiet)


def _confirm(doubt: str) -> None:
    if not sys.stdin.isatty():
        raise click.ClickException(
            f"{doubt}: name the folder that has the class folders, or use --yes to go on"
        )
    click.echo(f"Warning: {printable(doubt)}.", err=True)
    click.confirm("Go on?", abort=True, err=True)


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
    # Fails before the lock, whose file would be created for a model that does not exist.
    if not Path(path).is_file():
        load_model(path)

    def on_wait() -> None:
        name = click.format_filename(target)
        report(f"Waiting for another command that changes {name!r}.")

    with lock_or_wait(target, on_wait):
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


def report_training(model: ImageClassifier, path: str, *, quiet: bool) -> None:
    """Print what training did and how long it took, unless ``quiet``."""
    done = model.report_
    if done is not None:
        images = format_count(done.n_images, "image")
        features = f"{done.seconds_features:.1f} s for features"
        training = f"{done.seconds_learning:.1f} s for training"
        report(f"Learned {images}: {features}, {training}.", quiet=quiet)
        if done.n_known_images:
            known = format_count(done.n_known_images, "image")
            report(f"Skipped {known} that the model knows already.", quiet=quiet)
        if done.n_copies:
            are = "is a copy" if done.n_copies == 1 else "are copies"
            copies = format_count(done.n_copies, "image")
            report(f"Warning: {copies} {are} of others in the same class; each copy counts")
    report_model(model, path, quiet=quiet)


def report_model(model: ImageClassifier, path: str, *, quiet: bool) -> None:
    """Print the numbers of classes and images of a model, unless ``quiet``.

    A warning says if there are too few images to answer "unknown".
    """
    counts = model.class_counts_
    classes, images = format_count(len(counts), "class"), format_count(int(counts.sum()), "image")
    report(f"{path}: {classes}, {images}.", quiet=quiet)
    few = too_few_to_reject(model.learner_)
    if few is not None:
        n_stored, n_needed = few
        stored = format_count(n_stored, "image" if n_stored == counts.sum() else "stored image")
        are = "is" if n_stored == 1 else "are"
        report(f"Warning: {stored} {are} too few to tell unknown things: it takes {n_needed}")


def too_few_to_reject(learner: Any) -> tuple[int, int] | None:
    """How many examples a learner stores and needs to answer "unknown"; None if it has enough.

    None as well if it never answers so.
    """
    from evergrow.estimators.novelty.calibration import MIN_HELD_OUT
    from evergrow.estimators.novelty.rejecting import RejectingClassifier

    if not isinstance(learner, RejectingClassifier):
        return None
    n_stored = int(learner.n_held_out_.sum())
    # The level of a workspace is measured on other examples. It takes time with many of them.
    is_calibrated = n_stored >= MIN_HELD_OUT or learner.level_ < float("inf")
    return None if is_calibrated else (n_stored, MIN_HELD_OUT)
