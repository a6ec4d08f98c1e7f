"""Labelling 200 pictures of nine classes in a real Label Studio, by a script.

It needs the program itself: ``make build/label-studio``, or LABEL_STUDIO=path.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from benchmarks.measure import Figure, report
from evergrow.service import Settings
from tests.harness.label_studio import (
    Pair,
    Photograph,
    connected_pair,
    find_program,
    label_while_killed,
    photographs,
    wait_until_equal,
    webhook_seconds,
)

N_PICTURES = 200
N_KILLS = 20
# Pictures that are labelled one by one before all right predictions are accepted at once.
N_FIRST = 40
# How often the service looks for lost webhooks.
DEFAULT_SECONDS = Settings().label_studio_seconds
# By hand: choose a class, submit.
CLICKS_BY_HAND = 2


@contextmanager
def _labelling(n: int, seconds: float) -> Iterator[tuple[Pair, list[Photograph]]]:
    program = find_program()
    if program is None:
        raise click.UsageError(
            "Label Studio is not installed: run 'make build/label-studio', or set LABEL_STUDIO"
        )
    with tempfile.TemporaryDirectory(prefix="label-studio-") as folder:
        pictures = photographs(Path(folder) / "pictures", n)
        with connected_pair(Path(folder), program, pictures, seconds=seconds) as pair:
            yield pair, pictures


def clicks(quick: bool) -> None:
    """Clicks against labelling by hand, and whether the next prediction has a correction."""
    n = 50 if quick else N_PICTURES
    by_hand = CLICKS_BY_HAND * n
    with _labelling(n, DEFAULT_SECONDS) as (pair, pictures):
        person = pair.person
        while person.label_next():
            pass
        one_by_one = person.done
        webhooks = webhook_seconds(pair)
        same = wait_until_equal(pair, pictures)
    with _labelling(n, DEFAULT_SECONDS) as (pair, pictures):
        person = pair.person
        for _ in range(min(N_FIRST, n // 2)):
            person.label_next()
        person.accept_many()
        while person.label_next():
            pass
        at_once = person.done
    seconds = sorted(one_by_one.correction_seconds + at_once.correction_seconds)
    n_followed = one_by_one.n_corrections_followed + at_once.n_corrections_followed
    n_in_next = one_by_one.n_corrections_in_next + at_once.n_corrections_in_next
    report(
        "label-studio",
        f"{n} pictures",
        [
            Figure("clicks one by one / by hand", one_by_one.n_clicks / by_hand),
            Figure("right predictions one by one", one_by_one.n_right / n),
            Figure(
                "clicks, accepting many at once / by hand",
                at_once.n_clicks / by_hand,
                1 / 3,
                "at most",
            ),
            Figure("corrections", float(len(seconds))),
            Figure("corrections in the next prediction", n_in_next / max(1, n_followed), 1.0),
            Figure("seconds to learn an annotation, median", statistics.median(webhooks)),
            Figure("seconds to learn an annotation, longest", webhooks[-1], 1.0, "at most"),
            Figure("seconds of a correction with Label Studio, median", statistics.median(seconds)),
            Figure("seconds of a correction with Label Studio, longest", seconds[-1]),
            Figure(
                "labels that differ afterwards", float((same[0] - same[1]).total()), 0, "at most"
            ),
        ],
        bars=not quick,
    )


def kills(quick: bool) -> None:
    """Kill both servers in turns while a person labels, corrects and deletes."""
    with _labelling(50 if quick else N_PICTURES, 2.0) as (pair, pictures):
        found = label_while_killed(pair, pictures, 4 if quick else N_KILLS)
    report(
        "label-studio",
        f"{found.n_kills} kills, {found.n_actions} actions, {found.n_labels} labels",
        [
            Figure("labels lost", float(found.n_lost), 0, "at most"),
            Figure("labels twice or wrong", float(found.n_twice), 0, "at most"),
            Figure("seconds until both agree", found.seconds),
        ],
        bars=not quick,
    )
