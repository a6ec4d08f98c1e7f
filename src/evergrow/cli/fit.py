"""``evergrow fit``: train a new model file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from evergrow.cli.models import check_output, find_to_learn, predict_images, report_training
from evergrow.cli.options import (
    FORCE,
    JOBS,
    ON_ERROR,
    QUIET,
    SOURCE,
    YES,
    command,
    make_embedder,
    reads_labelled,
    verbosity,
)
from evergrow.cli.output import report
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.formatting import format_count, format_percent

if TYPE_CHECKING:
    from evergrow.vision.classifier import ImageClassifier
    from evergrow.vision.images import LabelledImages


@command(
    "evergrow fit photos/ -o model.evergrow",
    "evergrow fit textures/ -o textures.evergrow --features haar --learner forest",
    "evergrow fit photos/ -o model.evergrow --learner auto",
    "evergrow fit photos/ -o model.evergrow --network dinov2-small/",
    "evergrow fit scraped/ -o model.evergrow --on-error skip",
    "evergrow fit labels.csv -o model.evergrow --images photos/",
    "evergrow fit 'shards/train-{000..009}.tar' -o model.evergrow",
    "evergrow fit photos/ -o model.evergrow --unknown --false-alarms 0.05",
)
@SOURCE
@click.option("-o", "--output", type=click.Path(), required=True, help="Model file to write.")
@click.option(
    "--features",
    type=click.Choice(["auto", "embed", "sift", "hsl", "haar"]),
    default="auto",
    help="A network trained on photographs, with or without its earlier stages (auto, embed), or "
    "visual words of SIFT, colour or wavelets.",
)
@click.option(
    "--network",
    metavar="NAME|FILE|FOLDER",
    help="Another network for --features embed: a known name, an ONNX file, or a folder of Hugging "
    "Face transformers or timm.",
)
@click.option(
    "--learner",
    type=click.Choice(["rls", "rls-random", "means", "lda", "forest", "auto"]),
    default="rls",
    help="rls: least squares; rls-random: the same on random features, for hundreds of images per "
    "class; means: class means; lda: streaming LDA; forest: a forest of class means; auto: the "
    "most accurate of them on SOURCE.",
)
@click.option("--unknown", is_flag=True, help='Answer "unknown" for images that fit no class.')
@click.option(
    "--false-alarms",
    type=click.FloatRange(0, 1),
    help='Share of images of known classes that may be answered "unknown"; 0.1 by default.',
)
@reads_labelled
@ON_ERROR
@YES
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, help="Random seed.")
@JOBS
@FORCE
@QUIET
def fit(
    source: str,
    output: str,
    features: str,
    network: str | None,
    learner: str,
    unknown: bool,
    false_alarms: float | None,
    on_error: str,
    reading: dict[str, Any],
    yes: bool,
    seed: int,
    jobs: int,
    force: bool,
    quiet: bool,
) -> None:
    """Train a model on the labelled images of SOURCE.

    SOURCE is a folder with one folder of images per class, a zip file of such folders, a CSV or TSV
    table of paths and labels, COCO annotations (.json) or WebDataset tar files. The name of a
    folder is its class.

    If SOURCE has the splits train, val and test, the model learns train, and the accuracy on val is
    reported. Splits are folders that contain the class folders, or values in a column of a table.
    The command asks first if there is only one class, or if the class folders contain no images but
    further folders.
    """
    if false_alarms is not None and not unknown:
        raise click.UsageError("--false-alarms needs --unknown")
    if network is not None and features not in ("auto", "embed"):
        raise click.UsageError(f"--network goes with --features embed, not {features}")
    check_output(output, force=force)
    found = find_to_learn(source, reading, yes=yes, quiet=quiet)
    extractor = features if network is None else make_embedder(network)
    if learner == "auto":
        learner = _choose_learner(found, extractor, on_error, seed=seed, jobs=jobs, quiet=quiet)
    from evergrow.vision.classifier import ImageClassifier

    model = ImageClassifier(
        extractor,
        _rejecting(learner, seed, false_alarms) if unknown else learner,
        on_error=on_error,  # type: ignore[arg-type]
        n_jobs=jobs,
        random_state=seed,
        verbose=verbosity(quiet),
    )
    # Parameters of this command are not saved.
    model.fit(found).set_params(n_jobs=None, on_error="raise", verbose=0).save(output)
    report_training(model, output, quiet=quiet)
    if not quiet:
        _report_validation(model.set_params(n_jobs=jobs, verbose=verbosity(quiet)), found, reading)


def _choose_learner(
    found: LabelledImages, features: Any, on_error: str, *, seed: int, jobs: int, quiet: bool
) -> str:
    """Choose the most accurate learner, and say why."""
    from evergrow.vision.classifier.choice import choose_learner

    verbose = verbosity(quiet)
    chosen = choose_learner(
        found, features, on_error=on_error, n_jobs=jobs, seed=seed, verbose=verbose
    )
    report(chosen.reason, quiet=quiet)
    return chosen.name


def _report_validation(
    model: ImageClassifier, found: LabelledImages, reading: dict[str, Any]
) -> None:
    """Report the accuracy on the split val, if train was learnt and there is val."""
    from evergrow.vision.images import find_labelled
    from evergrow.vision.images.labelled.labelled_images import split_kind

    if found.split is None or split_kind(found.split.name) != "train" or "val" not in found.splits:
        return
    try:
        held_out = find_labelled(found.split.parent, **{**reading, "split": "val"})
    except InvalidInputError as error:
        # The model is written, and not worse for it.
        report(f"Warning: the split val cannot be used: {error}")
        return
    known = set(model.classes_.tolist())
    asked = [i for i, label in enumerate(held_out.labels.tolist()) if label in known]
    answers = predict_images(model, [held_out.sources[i] for i in asked]) if asked else None
    n_answered = 0 if answers is None else len(answers.kept)
    left_out = len(held_out.sources) - n_answered + len(held_out.unreadable)
    more = f", {format_count(left_out, 'image')} left out" if left_out else ""
    if answers is None or not n_answered:
        report(f"No image of the split {str(held_out.split)!r} could be used{more}.")
        return
    truth = held_out.labels[asked][answers.kept]
    n_right = int((answers.labels == truth).sum())
    report(
        f"Accuracy on the split {click.format_filename(str(held_out.split))!r}: "
        f"{format_percent(n_right / n_answered)}, {n_right} of {n_answered} right{more}."
    )


def _rejecting(learner: str, seed: int, false_alarms: float | None) -> Any:
    """Return the learner with the answer "unknown"."""
    from evergrow.estimators.novelty import RejectingClassifier
    from evergrow.vision.classifier.components import LEARNERS, ComponentOptions

    # Its parameters are saved, so they must not depend on this machine.
    inside = LEARNERS[learner](ComponentOptions(n_jobs=None, seed=seed, verbose=0))
    model = RejectingClassifier(inside, random_state=seed)
    return model if false_alarms is None else model.set_params(false_alarms=false_alarms)
