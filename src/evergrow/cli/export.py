"""``evergrow export``: write a model so that it answers elsewhere, or the pictures it learnt."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import click

from evergrow.cli.models import check_output, find_images, load_model
from evergrow.cli.options import DEFAULT_READING, FORCE, QUIET, command, output_forms
from evergrow.cli.output import FACTS, is_for_people, report, write_fields, write_json, write_table
from evergrow.cli.workspace.access import is_workspace, read_workspace
from evergrow.foundation.formatting import format_count, format_percent

if TYPE_CHECKING:
    from evergrow.export import Comparison
    from evergrow.workspace import Workspace

# As in evergrow.export.onnx.weights, which help must not import.
_WEIGHTS = ("float32", "float16", "int8")


@command(
    "evergrow export model.evergrow -o model.onnx",
    "evergrow export things -o things.onnx --weights int8 --check test_photos/",
    "evergrow export things -o things.html",
    "evergrow export things -o things.evergrow",
    "evergrow export things -o pictures.zip",
    "evergrow export things -o pictures/ --coco",
    "evergrow export things -o labels.csv",
)
@click.argument("thing", metavar="MODEL|DIR", type=click.Path())
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    required=True,
    help="File to write, or folder if it ends in a slash; its ending chooses the format.",
)
@click.option(
    "--weights",
    type=click.Choice(_WEIGHTS),
    help="How the weights of the network are stored: exactly, or in a half or a quarter of the "
    "bytes, which costs some accuracy. By default float32 in .onnx files, float16 in pages.",
)
@click.option(
    "--check",
    "folder",
    metavar="FOLDER",
    type=click.Path(),
    help="Measure what the .onnx file loses, on a folder with one folder of images per class.",
)
@click.option(
    "--coco",
    is_flag=True,
    help="Add annotations.json to the pictures: their labels in the format of COCO.",
)
@output_forms("json", "tsv")
@FORCE
@QUIET
def export(
    thing: str,
    output: str,
    weights: str | None,
    folder: str | None,
    coco: bool,
    form: str | None,
    force: bool,
    quiet: bool,
) -> None:
    """Write MODEL, or the model or the pictures of the workspace DIR, for use elsewhere.

    The file extension chooses the format:

    \b
    .onnx      the model for ONNX Runtime and other software, without Evergrow:
               from an RGB image, or features, to probabilities and "unknown"
    .html      a page that predicts and learns in any browser, offline;
               'evergrow learn' reads what it was taught
    .evergrow  a model file for the other commands and evergrow.load, which can
               be trained further
    .zip       the labelled pictures of DIR in one folder per class, with a
               table, for 'evergrow learn' and 'evergrow fit'; a name that ends
               in a slash writes a folder instead
    .csv       the labels of all examples of DIR, without the pictures
    .jsonl     the audit log of DIR: every change, when, and by whom

    MODEL and DIR are not changed. DIR may be served meanwhile. An .onnx file takes uint8 images of
    shape (n, height, width, 3) as "images". It returns "label_index", "probabilities",
    "unknown_score" and "is_unknown". The class names are in its metadata.

    With --check, the command shows the accuracy of the model and of the file on images that were
    not used for training, the points lost, and how many answers are the same; in a pipe, or with
    --tsv, as tab-separated lines.
    """  # noqa: D301
    from evergrow.export.formats import FORMATS, format_of, save_as

    if _ending(output) not in {*FORMATS, *_CONTENTS}:
        endings = ", ".join([*FORMATS, *(one for one in _CONTENTS if one != "/")])
        raise click.ClickException(
            f"{click.format_filename(output)!r} must end in {endings} or a slash, which chooses "
            "the format"
        )
    write_contents = _CONTENTS.get(_ending(output))
    if coco and write_contents is not _write_pictures:
        raise click.UsageError("--coco goes with pictures: a .zip file, or a folder")
    if write_contents is not None:
        if weights is not None or folder is not None:
            raise click.UsageError("--weights and --check are for models, not for pictures or logs")
        options = {"coco": True} if coco else {}
        write_contents(thing, output, force=force, quiet=quiet, **options)
        return
    kind = format_of(output, weights=weights)
    if folder is not None and not kind.can_be_checked:
        raise click.BadParameter("only .onnx files can be checked", param_hint="'--check'")
    check_output(output, force=force)
    model = _load(thing)
    if output.lower().endswith(".html"):
        _fetch_runtime(quiet=quiet)
    save_as(model, output, weights=weights)  # type: ignore[arg-type]
    size = f"{os.path.getsize(output) / 1e6:.1f} MB"
    report(f"{click.format_filename(output)}: written, {size}.", quiet=quiet)
    if folder is not None:
        _write(_compare(model, output, folder, quiet=quiet), form)


def _ending(output: str) -> str:
    """What chooses the format: the suffix of a file, or the slash of a folder."""
    if output.endswith(("/", os.sep)):
        return "/"
    return os.path.splitext(output)[1].lower()


def _write_pictures(
    folder: str, output: str, *, force: bool, quiet: bool, coco: bool = False
) -> None:
    if _ending(output) != "/":
        check_output(output, force=force)
    with _read_contents(folder) as workspace:
        done = workspace.export_pictures(output, coco=coco)
    pictures = format_count(done.n_pictures, "picture")
    classes = format_count(done.n_classes, "class")
    report(f"{click.format_filename(output)}: {pictures} of {classes}.", quiet=quiet)
    if done.n_without_picture:
        examples = format_count(done.n_without_picture, "example")
        report(f"{examples} taught as embeddings are in labels.csv only.", quiet=quiet)
    if done.n_lost:
        pictures = format_count(done.n_lost, "picture")
        report(
            f"Warning: the files of {pictures} are missing; 'evergrow check' lists them, and a "
            "backup may have them"
        )


def _write_audit_log(folder: str, output: str, *, force: bool, quiet: bool) -> None:
    check_output(output, force=force)
    with _read_contents(folder) as workspace:
        workspace.export_audit_log(output)
        changes = format_count(workspace.version, "change")
    report(f"{click.format_filename(output)}: {changes}.", quiet=quiet)


def _write_labels(folder: str, output: str, *, force: bool, quiet: bool) -> None:
    check_output(output, force=force)
    with _read_contents(folder) as workspace:
        workspace.export_labels(output)
    report(f"{click.format_filename(output)}: labels written.", quiet=quiet)


# What a workspace has and a model does not, by the ending.
_CONTENTS: dict[str, Callable[..., None]] = {
    ".zip": _write_pictures,
    "/": _write_pictures,
    ".csv": _write_labels,
    ".jsonl": _write_audit_log,
}


def _read_contents(path: str) -> AbstractContextManager[Workspace]:
    if not is_workspace(path) and os.path.isfile(path):
        raise click.ClickException(
            f"{click.format_filename(path)!r} is not a workspace: a model file has no pictures, no "
            "labels and no audit log"
        )
    return read_workspace(path)


def _fetch_runtime(*, quiet: bool) -> None:
    """Fetch what runs networks in web pages, if this installation lacks it and npm is there."""
    from evergrow.export.html import runtime

    try:
        runtime.load_runtime()
    except runtime.RuntimeMissingError as missing:
        if not runtime.can_fetch():
            raise click.ClickException(str(missing)) from missing
        package = f"{runtime.PACKAGE} {runtime.VERSION}"
        report(f"Fetching {package} with npm (20 MB), once ...", quiet=quiet)
        try:
            runtime.fetch_runtime()
        except runtime.RuntimeMissingError as failed:
            raise click.ClickException(str(failed)) from failed


def _load(path: str) -> Any:
    """The model of a model file or a workspace."""
    if not is_workspace(path):
        return load_model(path)
    with read_workspace(path) as workspace:
        return workspace.to_estimator()


def _compare(model: Any, output: str, folder: str, *, quiet: bool) -> Comparison:
    """Compare the file with the model on the images of a folder that both can know."""
    from evergrow.export import compare_onnx
    from evergrow.foundation.labels import ClassList
    from evergrow.vision.classifier import ImageClassifier

    if not isinstance(model, ImageClassifier):
        raise click.ClickException(
            f"--check needs a model of images, not {type(model).__name__}, which takes numbers: "
            "use evergrow.export.compare_onnx in Python"
        )
    found = find_images(folder, DEFAULT_READING, split="test", quiet=quiet)
    column_of = ClassList(model.classes_).column_by_text
    known = [i for i, label in enumerate(found.labels.tolist()) if label in column_of]
    if not known:
        raise click.ClickException(
            f"the model knows none of the classes in {click.format_filename(folder)!r}"
        )
    left_out = len(found.sources) - len(known)
    if left_out:
        images = format_count(left_out, "image")
        report(f"{images} of classes that the model does not know left out.", quiet=quiet)
    truth = model.classes_[[column_of[label] for label in found.labels[known].tolist()]]
    return compare_onnx(model, output, [found.sources[i] for i in known], truth)


def _write(found: Comparison, form: str | None) -> None:
    values = {
        "n_images": found.n_inputs,
        "accuracy": found.accuracy,
        "accuracy_exported": found.accuracy_exported,
        "points_lost": found.points_lost,
        "agreement": found.agreement,
        "largest_difference": found.largest_difference,
    }
    if form == "json":
        write_json(values)
    elif not is_for_people(form):
        for name, value in values.items():
            write_fields([name, value if name == "n_images" else f"{value:.6g}"])
    else:
        facts = [
            ("Images", found.n_inputs),
            ("Accuracy of the model", format_percent(found.accuracy)),
            ("Accuracy of the file", format_percent(found.accuracy_exported)),
            ("Points lost", f"{found.points_lost:.2f}"),
            ("Same answers", format_percent(found.agreement)),
            ("Largest difference of a probability", f"{found.largest_difference:.2g}"),
        ]
        write_table(FACTS, facts)
