"""``evergrow predict``: classify images, videos and what a camera sees."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from evergrow.cli.answers import Answer, AnswerWriter, Columns, check_file, open_writer
from evergrow.cli.models import check_output, explain_no_model, load_classifier, predict_images
from evergrow.cli.options import (
    FORCE,
    JOBS,
    NO_FOLLOW_LINKS,
    QUIET,
    command,
    output_forms,
    verbosity,
)
from evergrow.cli.output import report, report_errors
from evergrow.cli.suggestions import suggest_paths
from evergrow.foundation.errors import BadImage, ImageError
from evergrow.foundation.formatting import format_count

if TYPE_CHECKING:
    from evergrow.cli.workspace.predictor import WorkspaceClassifier
    from evergrow.vision.classifier import Answers, ImageClassifier
    from evergrow.vision.images import Frame

# Frames of a video file that are classified together.
_FRAMES_AT_ONCE = 8


def _parse_every(_: click.Context, __: click.Parameter, value: str | None) -> dict[str, Any]:
    """The step between frames: seconds if the text ends in s, else a number of frames."""
    if value is None:
        return {}
    try:
        if value.endswith("s"):
            return {"seconds": float(value[:-1])}
        if int(value) >= 1:
            return {"frames": int(value)}
    except ValueError:
        pass
    raise click.BadParameter(
        "must be a time such as 0.5s, or a number of frames from 1, such as 10"
    )


@command(
    "evergrow predict model.evergrow cat.jpg holiday/",
    "evergrow predict things cat.jpg holiday/",
    'evergrow predict model.evergrow "holiday/**/*.jpg" --top 3',
    "evergrow predict model.evergrow holiday/ --json | jq .label",
    "evergrow predict model.evergrow holiday/ -o answers.csv",
    "evergrow predict model.evergrow holiday/ --sort-into sorted",
    "evergrow predict model.evergrow clip.mp4 --every 0.5s",
    "evergrow predict model.evergrow --camera 0",
)
@click.argument("model", metavar="MODEL|DIR", type=click.Path())
@click.argument("images", metavar="[IMAGES]...", nargs=-1, type=click.Path())
@output_forms("json", "csv", "tsv", each=" per line")
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    help="Write to this file, when all is done: .csv, .tsv, .jsonl, or .json for COCO.",
)
@click.option(
    "--sort-into",
    type=click.Path(),
    metavar="NEW",
    help="Also sort the images into the new folder NEW, with a folder per class.",
)
@click.option(
    "--link",
    type=click.Choice(["copy", "hard", "symbolic"]),
    default="copy",
    help="How --sort-into places images: copies, hard links or symbolic links.",
)
@click.option(
    "--top", type=click.IntRange(1), default=1, help="Number of classes to list per image."
)
@click.option("--camera", type=click.IntRange(0), help="Classify what this camera sees: 0, 1, ...")
@click.option(
    "--every",
    metavar="STEP",
    callback=_parse_every,
    help="Step between frames of videos and cameras: 0.5s, or 10 for every 10th; by default 1s.",
)
@NO_FOLLOW_LINKS
@FORCE
@JOBS
@QUIET
def predict(
    model: str,
    images: tuple[str, ...],
    form: str | None,
    output: str | None,
    sort_into: str | None,
    link: str,
    top: int,
    camera: int | None,
    every: dict[str, Any],
    follow_links: bool,
    force: bool,
    jobs: int,
    quiet: bool,
) -> None:
    """Predict the class of IMAGES: files, folders, patterns, or video files.

    MODEL is a model file, DIR a workspace. The output is a table with the class and the probability
    of each image; in a pipe, or with --tsv, tab-separated lines. Images that cannot be read are
    listed on standard error. The others are classified, and the exit code is 1.

    An image that fits no class is "unknown" and has no probability. Workspaces and models of
    'evergrow fit --unknown' can answer so. In JSON the label is null and "known" is false. A
    workspace also prints the fine class if it is certain.

    One frame per second of a video or a camera is classified; --every sets another step. Ctrl-C
    stops a camera. Each line has the time of the frame in seconds, such as clip.mp4#t=1.500; CSV
    and JSON have it as "time". FFmpeg decodes videos in this process: see the documentation for
    files that you do not trust.

    With -o, names are relative to the folder of the file, and 'evergrow fit' and 'evergrow learn'
    can read .csv and .json files. --sort-into leaves the original images where they are. Images
    that fit no class go to the folder unknown.
    """
    videos = [path for path in images if _is_video_file(path)]
    pictures = tuple(path for path in images if path not in videos)
    is_stream = bool(videos) or camera is not None
    _check_usage(model, images, output, form, sort_into, camera, is_stream=is_stream, every=every)
    if output is not None:
        check_output(output, force=force)
    verbose = 0 if is_stream else verbosity(quiet)
    classifier = load_classifier(model, verbose=verbose, jobs=jobs)
    k = min(top, len(classifier.classes_))
    columns = Columns(k, has_time=is_stream, has_fine=_has_fine(classifier))
    sorted_paths: list[str] = []
    labels: list[str | None] = []
    problems: list[Any] = []
    with open_writer(form, output, columns) as writer:
        if pictures:
            paths, unreadable = _find_images(pictures, follow_links=follow_links)
            answers = predict_images(classifier, paths, k=k)
            for answer in _each(paths, answers):
                writer.add(answer)
                sorted_paths.append(answer.image)
                labels.append(None if answer.label is None else str(answer.label))
            problems += [*unreadable, *answers.problems]
        streams: list[str | int] = [*videos, *([] if camera is None else [camera])]
        n_answers = len(sorted_paths)
        for source in streams:
            n_more, bad = _predict_frames(classifier, source, every, k, writer)
            n_answers += n_more
            problems += bad
        if output is not None and not n_answers:
            # Here, so that no file without answers is left.
            report_errors(problems)
    if sort_into is not None and sorted_paths:
        _sort(sorted_paths, labels, sort_into, link, quiet=quiet)
    report_errors(problems)


def _check_usage(
    model: str,
    images: tuple[str, ...],
    output: str | None,
    form: str | None,
    sort_into: str | None,
    camera: int | None,
    *,
    is_stream: bool,
    every: dict[str, Any],
) -> None:
    """Refuse options that do not go together."""
    if not images and camera is None:
        raise click.UsageError(explain_no_model(model) or "name IMAGES, or a camera with --camera")
    if images and camera is not None:
        raise click.UsageError("--camera takes no IMAGES")
    if every and not is_stream:
        raise click.UsageError("--every is for videos and cameras")
    if sort_into is not None:
        if is_stream:
            raise click.UsageError("--sort-into is for images, not for videos and cameras")
        if os.path.lexists(sort_into) and (not os.path.isdir(sort_into) or os.listdir(sort_into)):
            raise click.ClickException(
                f"{click.format_filename(sort_into)!r} is not empty: choose a new folder"
            )
    if output is not None:
        check_file(output)
        if form is not None:
            raise click.UsageError(f"the ending of --output chooses the form: leave out --{form}")
        if is_stream and output.lower().endswith(".json"):
            raise click.UsageError("frames are not files, which COCO needs: write .csv or .jsonl")


def _is_video_file(path: str) -> bool:
    from evergrow.vision.images.video import is_video

    return is_video(path) and not os.path.isdir(path)


def _predict_frames(
    classifier: ImageClassifier | WorkspaceClassifier,
    source: str | int,
    every: dict[str, Any],
    k: int,
    writer: AnswerWriter,
) -> tuple[int, list[BadImage]]:
    """Write the answers for the frames of a video or a camera; return their number and problems."""
    from evergrow.vision.images import iterate_frames

    is_camera = isinstance(source, int)
    name = f"camera {source}" if isinstance(source, int) else source
    n_answers = 0
    try:
        frames = iterate_frames(source, **every)
        for group in _group(frames, 1 if is_camera else _FRAMES_AT_ONCE):
            for answer in _frame_answers(classifier, name, group, k):
                writer.add(answer)
                n_answers += 1
    except ImageError as error:
        return n_answers, [BadImage(None, error.source, error.reason)]
    except KeyboardInterrupt:
        # The only way to end a camera.
        if not is_camera:
            raise
    return n_answers, []


def _group(frames: Iterable[Frame], size: int) -> Iterator[list[Frame]]:
    """Yield frames in groups; those before an error are yielded too."""
    group: list[Frame] = []
    failure: ImageError | None = None
    try:
        for frame in frames:
            group.append(frame)
            if len(group) == size:
                yield group
                group = []
    except ImageError as error:
        failure = error
    if group:
        yield group
    if failure is not None:
        raise failure


def _frame_answers(
    classifier: ImageClassifier | WorkspaceClassifier, name: str, frames: list[Frame], k: int
) -> Iterator[Answer]:
    answers = predict_images(classifier, [frame.pixels for frame in frames], k=k)
    times = [frames[place].seconds for place in answers.kept.tolist()]
    return _each([name] * len(frames), answers, times)


def _each(
    paths: list[str], answers: Answers, times: Iterable[float] | None = None
) -> Iterator[Answer]:
    from evergrow.cli.workspace.predictor import WorkspaceAnswers

    names, shares = answers.top_labels.tolist(), answers.top_probabilities.tolist()
    told = answers.told if isinstance(answers, WorkspaceAnswers) else None
    known = answers.known.tolist()
    seconds = [None] * len(known) if times is None else list(times)
    for place, label in enumerate(answers.labels.tolist()):
        best = list(zip(names[place], shares[place], strict=True))
        image = paths[answers.kept[place]]
        said = label if known[place] else None
        yield Answer(image, said, best, None if told is None else told[place], seconds[place])


def _has_fine(classifier: ImageClassifier | WorkspaceClassifier) -> bool:
    from evergrow.cli.workspace.predictor import WorkspaceClassifier

    return isinstance(classifier, WorkspaceClassifier)


def _find_images(
    images: tuple[str, ...], *, follow_links: bool
) -> tuple[list[str], tuple[Any, ...]]:
    """Return the images, and the files among them that cannot be read."""
    from evergrow.vision.images.folders import search_images
    from evergrow.vision.images.results import warn_about

    with suggest_paths(*images):
        found = search_images(list(images), follow_links=follow_links)
    warn_about(found.ignored)
    return [os.fspath(path) for path in found.paths], found.unreadable


def _sort(
    paths: list[str], labels: list[str | None], folder: str, link: str, *, quiet: bool
) -> None:
    from evergrow.vision.images import sort_images

    done = sort_images(paths, labels, folder, link=link)  # type: ignore[arg-type]
    sorted_images = format_count(done.n_images, "image")
    classes = format_count(done.n_classes, "class")
    unknown = f", {done.n_unknown} unknown" if done.n_unknown else ""
    name = click.format_filename(folder)
    report(f"{name}: {sorted_images} of {classes}{unknown}.", quiet=quiet)
