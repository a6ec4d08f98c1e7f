"""Questions back to people who mistyped a path, an argument or the name of a class."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

from evergrow.cli.output import report
from evergrow.foundation.formatting import list_names, suggest

# New classes are often a little like known ones: "house" and "horse" have 0.8.
_LEAST_SIMILARITY = 0.82


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
    known = [str(name) for name in before]
    new = [name for name in map(str, after) if name not in set(known)]
    if new:
        which = "New class" if len(new) == 1 else "New classes"
        report(f"{which}: {list_names(new)}.", quiet=quiet)
    for name in new:
        hint = "" if name in confirmed else _suggest_known(name, known)
        if hint:
            report(f"Warning: {name!r} is new; {hint} If so, {advice}")


def _suggest_known(name: str, known: list[str]) -> str:
    # Names such as 'part 1' and 'part 2' are no typing errors.
    others = [each for each in known if _without_digits(each) != _without_digits(name)]
    return suggest(name, others, least=_LEAST_SIMILARITY, what="the known class")


def _without_digits(name: str) -> str:
    return re.sub(r"\d+", "", name)
