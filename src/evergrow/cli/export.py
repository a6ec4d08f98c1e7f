"""``evergrow export``: write a model so that it answers elsewhere."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from evergrow.cli.models import check_output, load_model, report_split
from evergrow.cli.options import FORCE, QUIET, command, output_forms
from evergrow.cli.output import FACTS, is_for_people, report, write_fields, write_json, write_table
from evergrow.cli.workspace.access import is_workspace, read_workspace
from evergrow.foundation.formatting import format_count, format_percent

if TYPE_CHECKING:
    from evergrow.export import Comparison

# As in evergrow.export.onnx.weights, which help must not import.
_WEIGHTS = ("float32", "float16", "int8")


@command(
    "evergrow export model.evergrow -o model.onnx",
    "evergrow export things -o things.onnx --weights int8 --check test_photos/",
    "evergrow export things -o things.html",
    "evergrow export things -o things.evergrow",
)
@click.argument("thing", metavar="MODEL|DIR", type=click.Path())
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    required=True,
    help="File to write; its ending chooses the format.",
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
@output_forms("json", "tsv")
@FORCE
@QUIET
def export(
    thing: str,
    output: str,
    weights: str | None,
    folder: str | None,
    form: str | None,
    force: bool,
    quiet: bool,
) -> None:
    """Write MODEL, or the model of the workspace DIR, to a file for use elsewhere.

    The ending of the file chooses the format:

    \b
    .onnx      from an RGB image, or features, to class probabilities and
               "unknown", for ONNX Runtime and other software without Evergrow
    .html      a page that answers and learns in any browser, without a
               network; 'evergrow learn' takes what it was taught
    .evergrow  a model file, which the other commands and evergrow.load read,
               and which can be trained further

    Nothing that is exported changes MODEL or DIR, which may be served meanwhile. An .onnx file
    takes uint8 images of shape (n, height, width, 3) as "images" and returns "label_index",
    "probabilities", "unknown_score" and "is_unknown"; the class names are in its metadata.

    With --check, shows the accuracy of the model and of the file on images that were not used for
    training, the points lost, and how many answers are the same; in a pipe, or with --tsv, as
    tab-separated lines.
    """  # noqa: D301
    from evergrow.export.formats import format_of, save_as

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
    from evergrow.vision.images import find_labelled

    if not isinstance(model, ImageClassifier):
        raise click.ClickException(
            f"--check needs a model of images, not {type(model).__name__}, which takes numbers: "
            "use evergrow.export.compare_onnx in Python"
        )
    found = find_labelled(folder, split="test")
    report_split(found, quiet=quiet)
    column_of = ClassList(model.classes_).column_by_text
    known = [i for i, label in enumerate(found.labels.tolist()) if label in column_of]
    if not known:
        raise click.ClickException(
            f"the model knows none of the classes in {click.format_filename(folder)!r}"
        )
    left_out = len(found.paths) - len(known)
    if left_out:
        images = format_count(left_out, "image")
        report(f"{images} of classes that the model does not know left out.", quiet=quiet)
    truth = model.classes_[[column_of[label] for label in found.labels[known].tolist()]]
    return compare_onnx(model, output, [found.paths[i] for i in known], truth)


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
