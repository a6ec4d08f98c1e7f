"""``python -m benchmarks.subcategory NAME ... [--data NAME] [--results FOLDER] [--quick]``."""

from __future__ import annotations

from pathlib import Path

import click

from benchmarks.subcategory.bench import Bench, Results
from benchmarks.subcategory.data import DATA_SETS, data_sets
from benchmarks.subcategory.measures import MEASURES


@click.command()
@click.argument("names", nargs=-1, type=click.Choice([*MEASURES]))
@click.option(
    "--data",
    "chosen",
    multiple=True,
    type=click.Choice([*DATA_SETS]),
    help="Only these data sets; may be given several times.",
)
@click.option(
    "--results",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep each run in this folder, and do not repeat those that are there.",
)
@click.option("--seeds", default=3, show_default=True, help="Runs of everything.")
@click.option("--trees", default=50, show_default=True, help="Trees of every forest.")
@click.option("--quick", is_flag=True, help="A small generated data set, to try the code.")
def main(
    names: tuple[str, ...],
    chosen: tuple[str, ...],
    results: Path | None,
    seeds: int,
    trees: int,
    quick: bool,
) -> None:
    """Measure all or some parts and print their tables; every run is printed as it ends."""
    bench = Bench(Results(results), range(seeds), trees, quick=quick)
    for name in names or MEASURES:
        measure = MEASURES[name]
        wanted = tuple(key for key in measure.data if not chosen or key in chosen)
        for data in data_sets(wanted, quick=quick) if wanted else ():
            measure.run(bench, data)


if __name__ == "__main__":
    main()
