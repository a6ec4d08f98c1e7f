"""Joins JavaScript modules into one script: a page that is opened from disk loads no modules.

Every module becomes a function that returns what it exports; they run in the order in which they
are imported. It understands the forms of ``import`` and ``export`` that the modules of Evergrow
use, and refuses others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources.abc import Traversable

_IMPORT = re.compile(
    r'^import (?:(?:\{(?P<names>[^}]*)\}|\* as (?P<whole>\w+)) from )?"\./(?P<file>[\w.]+)";\n',
    re.MULTILINE,
)
_PASSED_ON = re.compile(r'^export \{(?P<names>[^}]*)\} from "\./(?P<file>[\w.]+)";\n', re.MULTILINE)
_DECLARED = re.compile(
    r"^export (?P<kind>(?:async )?function\*?|class|const) (?P<name>\w+)", re.MULTILINE
)
_LEFT_OVER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)
# What would end the element that contains a script.
_ENDS_SCRIPT = re.compile(r"</script|<!--", re.IGNORECASE)


def bundle(entry: str, folders: Sequence[Traversable]) -> str:
    """Join a module and all that it imports into one script.

    Parameters
    ----------
    entry : str
        Name of the module to start with.
    folders : sequence of folders
        Where modules lie; of several with the same name the first counts.
    """
    joined = _Bundle(folders)
    joined.add(entry, ())
    script = "\n".join(['"use strict";', *joined.parts])
    if _ENDS_SCRIPT.search(script):
        raise ValueError(f"{entry} contains text that would end the script")
    return script


class _Bundle:
    def __init__(self, folders: Sequence[Traversable]) -> None:
        self._folders = folders
        self._done: set[str] = set()
        self.parts: list[str] = []

    def add(self, name: str, importers: tuple[str, ...]) -> None:
        """Add a module after those that it imports."""
        if name in importers:
            raise ValueError(f"modules import each other: {' -> '.join((*importers, name))}")
        if name in self._done:
            return
        source = self._read(name)
        found = [*_IMPORT.finditer(source), *_PASSED_ON.finditer(source)]
        for match in sorted(found, key=lambda one: one.start()):
            self.add(match["file"], (*importers, name))
        self._done.add(name)
        self.parts.append(_as_function(name, source))

    def _read(self, name: str) -> str:
        for folder in self._folders:
            if (folder / name).is_file():
                return (folder / name).read_text(encoding="utf-8")
        raise ValueError(f"there is no module {name}")


def _as_function(name: str, source: str) -> str:
    exported = {match["name"]: match["name"] for match in _DECLARED.finditer(source)}
    for match in _PASSED_ON.finditer(source):
        whole = _variable(match["file"])
        exported |= {one: f"{whole}.{one}" for one in _names(match["names"])}
    body = _IMPORT.sub(_destructure, _PASSED_ON.sub("", source))
    body = _DECLARED.sub(r"\g<kind> \g<name>", body)
    left = _LEFT_OVER.search(body)
    if left is not None:
        raise ValueError(f"{name} has a form that cannot be joined: {left[0]}")
    returned = ", ".join(
        one if one == value else f"{one}: {value}" for one, value in exported.items()
    )
    return f"const {_variable(name)} = (() => {{\n{body}return {{ {returned} }};\n}})();"


def _destructure(match: re.Match[str]) -> str:
    whole = _variable(match["file"])
    if match["whole"] is not None:
        return f"const {match['whole']} = {whole};\n"
    if match["names"] is None:
        return ""
    return f"const {{ {', '.join(_names(match['names']))} }} = {whole};\n"


def _names(listed: str) -> list[str]:
    return [one.strip().replace(" as ", ": ") for one in listed.split(",") if one.strip()]


def _variable(file: str) -> str:
    return f"module_{file.removesuffix('.js').replace('.', '_')}"
