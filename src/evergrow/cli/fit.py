"""``evergrow fit``: train a new model file."""

from __future__ import annotations

import click

from evergrow.cli.models import check_output
from evergrow.cli.options import FOLDER, FORCE, JOBS, ON_ERROR, QUIET, examples, verbosity
from evergrow.cli.summaries import report_training


@click.command(
    epilog=examples(
        "evergrow fit photos/ -o model.evergrow",
        "evergrow fit textures/ -o textures.evergrow --features haar --learner forest",
        "evergrow fit scraped/ -o model.evergrow --on-error skip",
    )
)
@FOLDER
@click.option("-o", "--output", type=click.Path(), required=True, help="Model file to write.")
@click.option(
    "--features",
    type=click.Choice(["embed", "sift", "hsl", "haar"]),
    default="embed",
    show_default=True,
    help="A network trained on photographs, or visual words of SIFT, colour or wavelets.",
)
@click.option(
    "--learner",
    type=click.Choice(["rls", "forest"]),
    default="rls",
    show_default=True,
    help="Regularised least squares, or a nearest class mean forest.",
)
@ON_ERROR
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Random seed."
)
@JOBS
@FORCE
@QUIET
def fit(
    folder: str,
    output: str,
    features: str,
    learner: str,
    on_error: str,
    seed: int,
    jobs: int,
    force: bool,
    quiet: bool,
) -> None:
    """Train a model on FOLDER.

    FOLDER contains one folder of images per class; the folder is named after the class.
    """
    check_output(output, force=force)
    from evergrow.vision.classifier import ImageClassifier

    model = ImageClassifier(
        features,
        learner,
        on_error=on_error,  # type: ignore[arg-type]
        n_jobs=jobs,
        random_state=seed,
        verbose=verbosity(quiet),
    )
    # Parameters of this command are not saved.
    model.fit(folder).set_params(n_jobs=None, on_error="raise", verbose=0).save(output)
    if not quiet:
        report_training(model, output)
