"""``evergrow re-embed``: embed the pictures of a workspace again."""

from __future__ import annotations

import click

from evergrow.cli.options import JOBS, QUIET, command, verbosity
from evergrow.cli.output import report
from evergrow.cli.workspace.access import DIR, delay_interrupt, open_workspace, report_workspace
from evergrow.cli.workspace.init import FEATURES, STAGES, chosen_features
from evergrow.foundation.formatting import format_count


@command(
    "evergrow re-embed things",
    "evergrow re-embed things --features efficientnet-lite2 --stages 6,7",
    "evergrow re-embed things --features network.onnx --erase-lost",
)
@DIR
@FEATURES
@STAGES
@click.option(
    "--erase-lost",
    is_flag=True,
    help="Erase examples that cannot be embedded again: those taught as embeddings, and those "
    "whose picture is missing or damaged. No earlier change can be undone afterwards.",
)
@JOBS
@QUIET
def re_embed(
    folder: str,
    features: str | None,
    stages: tuple[int, ...] | None,
    erase_lost: bool,
    jobs: int,
    quiet: bool,
) -> None:
    """Embed the pictures of the workspace DIR again.

    Use it to change to another network or other stages. Examples, classes and earlier changes stay
    and can be undone as before. The model is trained on the new features. If the command is
    interrupted, the workspace is either unchanged or complete. Stop its service first.
    """
    if features is None:
        raise click.UsageError("--features none is for init: pictures need a network")
    from evergrow.workspace import re_embed_workspace

    network = chosen_features(features, stages)
    made = re_embed_workspace(
        folder, network, erase_lost=erase_lost, n_jobs=jobs, verbose=verbosity(quiet)
    )
    with open_workspace(folder) as workspace, delay_interrupt():
        workspace.maintain()
        workspace.save_snapshot()
        report(f"Embedded {format_count(made.n_examples, 'example')} again.", quiet=quiet)
        if made.n_erased:
            report(f"Erased {format_count(made.n_erased, 'example')}.", quiet=quiet)
        blocks = ", ".join(f"{name} {width}" for name, width in made.blocks.items())
        report(f"Features of {made.features}: {blocks}.", quiet=quiet)
        report_workspace(workspace, folder, quiet=quiet)
