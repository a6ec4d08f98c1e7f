"""``evergrow learn``: teach a workspace the images of a folder, or the lessons of a page."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from evergrow.cli.models import find_to_learn, is_zip_file
from evergrow.cli.options import (
    DEFAULT_READING,
    JOBS,
    ON_ERROR,
    QUIET,
    YES,
    command,
    reads_labelled,
    verbosity,
)
from evergrow.cli.output import report
from evergrow.cli.suggestions import report_new_classes
from evergrow.cli.workspace.access import (
    all_classes,
    delay_interrupt,
    open_workspace,
    report_workspace,
)
from evergrow.foundation.formatting import format_count, printable

if TYPE_CHECKING:
    from evergrow.workspace import TaughtImages, Workspace


@dataclass
class _Tally:
    """Counts of the images so far."""

    taught: int = 0
    known: int = 0
    # Of the known images: those that got a fine class now, and those that keep another.
    finer: int = 0
    kept: int = 0
    # Images that other classes have already, by class.
    elsewhere: Counter[str] = field(default_factory=Counter)
    moved: int = 0
    skipped: int = 0

    def add(self, batch: TaughtImages) -> None:
        """Count a batch, and list the images that were skipped."""
        self.known += sum(one.duplicate and one.known_as is None for one in batch.results)
        self.moved += sum(one.moved_from is not None for one in batch.results)
        self.taught += sum(not one.duplicate and one.moved_from is None for one in batch.results)
        self.elsewhere.update(one.known_as for one in batch.results if one.known_as is not None)
        self.finer += sum(one.known_fine == "taken" for one in batch.results)
        self.kept += sum(one.known_fine == "kept" for one in batch.results)
        self.skipped += len(batch.problems)
        for problem in batch.problems:
            report(f"Warning: skipped {problem}")


@command(
    "evergrow learn things photos/",
    "evergrow learn things photos/ --fine",
    "evergrow learn things scraped/ --on-error skip",
    "evergrow learn things labels.csv",
    "evergrow learn things annotations.json --crop",
    "evergrow learn things things-lessons.json",
)
@click.argument("workspace", metavar="DIR", type=click.Path())
@click.argument("source", metavar="SOURCE|LESSONS", type=click.Path())
@click.option(
    "--fine",
    is_flag=True,
    help="Folders within a class folder are fine classes: dog/beagle/1.jpg is a beagle.",
)
@click.option(
    "--move",
    is_flag=True,
    help="Move images that another class has already to their new class; otherwise they stay.",
)
@reads_labelled
@ON_ERROR
@YES
@JOBS
@QUIET
def learn(
    workspace: str,
    source: str,
    fine: bool,
    move: bool,
    on_error: str,
    reading: dict[str, Any],
    yes: bool,
    jobs: int,
    quiet: bool,
) -> None:
    """Teach the workspace DIR the images of SOURCE, or the file LESSONS.

    SOURCE is a folder with one folder of images per class, a zip file of such folders, a CSV or TSV
    table of paths and labels, COCO annotations (.json) or WebDataset tar files. Classes may be new
    or known.

    New classes are named, with a warning if such a name is nearly that of a known class.

    Images that a class already has are not taught again, so you can run the command again after an
    interruption or with more images. With --fine, known images get the fine class that they lack.
    Images that another class already has stay there unless you use --move. If the command is
    interrupted, the images taught so far stay taught. 'evergrow undo' takes back all images of one
    run.

    LESSONS is a file that a page of 'evergrow export' saved with its button Save: what the page was
    taught. All lessons are learnt, or none if the file is not valid. A lesson that is already known
    is not learnt again, so you can teach a later file with more lessons. With --on-error skip,
    pictures that cannot be read are skipped.
    """
    began = time.monotonic()
    tally = _Tally()
    with open_workspace(workspace) as opened:
        before = [one.name for one in all_classes(opened)]
        if _is_lessons(source):
            if fine or reading != DEFAULT_READING:
                raise click.UsageError("a file of lessons takes no options for folders")
            _learn_lessons(opened, source, tally, move=move, on_error=on_error, jobs=jobs)
            _finish(opened, workspace, tally, time.monotonic() - began, quiet=quiet)
            _report_new(opened, before, (), quiet=quiet)
            return
        found = find_to_learn(
            source,
            reading,
            yes=yes,
            quiet=quiet,
            may_be_one_class=True,
            nested=fine,
        )
        alike = _similar_names(sorted(set(found.labels.tolist())), before)
        if not yes:
            _confirm_names(alike)
        try:
            opened.teach_images(
                found,
                fine_folders=fine,
                move=move,
                on_error=on_error,
                n_jobs=jobs,
                verbose=verbosity(quiet),
                on_batch=tally.add,
                guard=delay_interrupt,
            )
        except BaseException:
            _report_tally(tally, workspace, time.monotonic() - began, quiet=quiet)
            raise
        _finish(opened, workspace, tally, time.monotonic() - began, quiet=quiet)
        _report_new(opened, before, alike, quiet=quiet)


def _is_lessons(source: str) -> bool:
    """Whether a file is one of lessons, and not one of labelled images."""
    from evergrow.vision.images.labelled.coco import is_coco
    from evergrow.vision.images.labelled.finder import source_kind

    if not os.path.isfile(source) or is_zip_file(source):
        return False
    kind = source_kind(source)
    return kind is None or (kind == "coco" and not is_coco(source))


def _learn_lessons(
    opened: Workspace, source: str, tally: _Tally, *, move: bool, on_error: str, jobs: int
) -> None:
    """Teach the lessons of a page, all or none."""
    from evergrow.workspace import TaughtImages

    with delay_interrupt():
        taught = opened.teach_lessons(source, move=move, on_error=on_error, n_jobs=jobs)
    new = [one for one in taught.results if not one.replayed]
    tally.add(TaughtImages(new, taught.problems))
    tally.known += len(taught.results) - len(new)


def _finish(opened: Workspace, path: str, tally: _Tally, seconds: float, *, quiet: bool) -> None:
    """Report what was taught, and bring the model up to date."""
    _report_tally(tally, path, seconds, quiet=quiet)
    with delay_interrupt():
        opened.maintain()
        opened.save_snapshot()
    report_workspace(opened, path, quiet=quiet)


def _report_tally(tally: _Tally, path: str, seconds: float, *, quiet: bool) -> None:
    # After an error nothing may have been counted.
    if quiet or tally == _Tally():
        return
    _report(tally, seconds)
    if tally.taught or tally.finer or tally.moved:
        _report_undo(path)


def _report(tally: _Tally, seconds: float) -> None:
    parts = [f"Taught {format_count(tally.taught, 'image')} in {seconds:.1f} s"]
    if tally.known:
        parts.append(f"{tally.known} already known")
    if tally.finer:
        parts.append(f"{tally.finer} of them with a new fine class")
    if tally.moved:
        parts.append(f"{tally.moved} moved from other classes")
    if tally.skipped:
        parts.append(f"{tally.skipped} skipped")
    report(", ".join(parts) + ".")
    if tally.elsewhere:
        images = format_count(tally.elsewhere.total(), "image")
        classes = ", ".join(f"{name!r} ({n})" for name, n in tally.elsewhere.most_common(3))
        more = ", ..." if len(tally.elsewhere) > 3 else ""
        report(
            f"Warning: {images} already in other classes stayed there: {printable(classes)}{more}; "
            "use --move to move them"
        )
    if tally.kept:
        images = format_count(tally.kept, "image")
        report(
            f"Warning: {images} already had another fine class and kept it: correct examples on "
            "the page"
        )


def _report_undo(path: str) -> None:
    import shlex

    report(f"To undo all of it: evergrow undo {shlex.quote(printable(path))}")


def _similar_names(labels: list[str], known: list[str]) -> dict[str, str]:
    """New classes whose names differ from others only by case or spaces."""
    from evergrow.workspace.names import normalise_name, similar_names

    return similar_names(map(normalise_name, labels), known)


def _report_new(
    opened: Workspace, before: list[str], asked: Collection[str], *, quiet: bool
) -> None:
    after = [one.name for one in all_classes(opened)]
    advice = "'evergrow merge' joins both"
    report_new_classes(before, after, advice, confirmed=asked, quiet=quiet)


def _confirm_names(alike: Mapping[str, str]) -> None:
    """Ask about new classes whose names differ from others only by case or spaces."""
    for new, other in alike.items():
        doubt = f"the class {new!r} would be new: {other!r} differs only by case or spaces"
        if not sys.stdin.isatty():
            raise click.ClickException(
                f"{printable(doubt)}; rename the folder, or use --yes to have both classes"
            )
        report(f"Warning: {doubt}.")
        click.confirm("Have both classes?", abort=True, err=True)
