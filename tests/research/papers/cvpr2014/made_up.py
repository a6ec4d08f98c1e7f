"""Tables with given numbers, and a context with tiny data sets."""

from evergrow.research import ExperimentContext, Source, Table, mixture

SEEDS = (0, 1, 2)
ORDER = {"uls": 0.2, "igt": 0.5, "rust": 0.6, "rtst": 0.65, "retrained": 0.7}


def tiny():
    return mixture(24, 8, n_train=12, n_test=5, distance=1.0)


def tiny_context(experiment, **options):
    sources = {name: Source(None, tiny) for name in experiment.sources}
    return ExperimentContext(sources, quick=True, n_jobs=1, **options)


def seeded(rows, noise=0.001):
    """Every row for three seeds, a little apart."""
    shifts = (-noise, 0.0, noise)
    return Table(
        {**row, "seed": seed, "accuracy": row["accuracy"] + shift}
        for row in rows
        for seed, shift in zip(SEEDS, shifts, strict=True)
    )
