"""Questions back to people who mistyped a path, an argument or the name of a class."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice

from evergrow.cli.output import report
from evergrow.foundation.formatting import fold_name, list_names, suggest

# New classes are often a little like known ones: "house" and "horse" have 0.8.
_LEAST_SIMILARITY = 0.82
# With more pairs of names than this, only case and spaces are looked at.
_MOST_PAIRS = 100_000
_MOST_WARNINGS = 3


@contextmanager
def suggest_paths(*paths: str) -> Iterator[None]:
    """Add similar names to an error about one of these paths that does not exist."""
    try:
        yield
    except FileNotFoundError as error:
        for path in paths:
            if not os.path.lexists(path) and (hint := _suggest_path(path)):
                error.add_note(hint)
        raise


def _suggest_path(path: str) -> str:
    folder, name = os.path.split(os.path.normpath(path))
    try:
        beside = os.listdir(folder or ".")
    except OSError:
        return ""
    return suggest(name, sorted(each for each in beside if not each.startswith(".")))


def report_new_classes(
    before: Iterable[object],
    after: Iterable[object],
    advice: str,
    *,
    confirmed: Collection[str] = (),
    quiet: bool,
) -> None:
    """Name the classes that are new, and ask about those that may be misspelt known ones.

    ``advice`` says what to do then. Names in ``confirmed`` are not asked about.
    """
    known = {str(name) for name in before}
    new = [name for name in map(str, after) if name not in known]
    if new:
        which = "New class" if len(new) == 1 else "New classes"
        report(f"{which}: {list_names(new)}.", quiet=quiet)
    unsure = [name for name in new if name not in confirmed]
    hints = _similar_names(unsure, known)
    for name, hint in islice(hints, _MOST_WARNINGS):
        report(f"Warning: {name!r} is new; {hint} If so, {advice}")
    if next(hints, None) is not None:
        report("Warning: more new classes have names that are nearly those of known ones")


def _similar_names(new: Collection[str], known: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield each new name that is nearly a known one, and the question which was meant."""
    by_text: dict[str, list[str]] = {}
    for each in sorted(known):
        by_text.setdefault(fold_name(each), []).append(each)
    stems = {each: _without_digits(each) for each in known}
    compares = len(new) * len(known) <= _MOST_PAIRS
    for name in new:
        others: Iterable[str] = by_text.get(fold_name(name), [])
        if compares:
            # Names such as 'part 1' and 'part 2' are not typing errors.
            stem = _without_digits(name)
            others = [each for each in stems if stems[each] != stem]
        if hint := suggest(name, others, least=_LEAST_SIMILARITY, what="the known class"):
            yield name, hint


def _without_digits(name: str) -> str:
    return re.sub(r"\d+", "", name)
