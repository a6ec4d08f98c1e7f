"""The installed version, and the command that installs packages of optional extras."""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version

__version__ = version("evergrow")

_NAME = re.compile(r"[\w.-]+")
_EXTRA = re.compile(r"""\bextra\s*==\s*['"]([\w-]+)['"]""")
_OWN = re.compile(r"evergrow\[([\w,-]+)\]")


def install_command(extra: str, package: str | None = None) -> str:
    """The command that installs what is missing of an extra, or one package of it.

    It names packages, not the extra, so that it works however Evergrow itself was installed.

    >>> install_command("plot")
    'pip install "matplotlib>=3.8"'
    >>> install_command("integrations", "pyarrow")
    'pip install "pyarrow>=16"'
    """
    try:
        wanted = _requirements(extra)
    except PackageNotFoundError:
        # A source tree that was not installed has no metadata.
        return f'pip install "evergrow[{extra}]"'
    if package is not None:
        wanted = tuple(one for one in wanted if _name(one) == package)
    if not wanted:
        raise KeyError(f"no package {package or ''} in the extra {extra}")
    # If all are installed, one of them is damaged.
    missing = [one for one in wanted if not _is_installed(_name(one))] or wanted
    return f"pip install {' '.join(_quoted(one) for one in missing)}"


@cache
def _requirements(extra: str) -> tuple[str, ...]:
    """The packages of an extra, those of extras in it included."""
    found: list[str] = []
    for line in requires("evergrow") or ():
        requirement, _, marker = line.partition(";")
        if extra not in _EXTRA.findall(marker):
            continue
        own = _OWN.match(requirement)
        if own is None:
            found.append(requirement.strip())
        else:
            found += [one for inside in own.group(1).split(",") for one in _requirements(inside)]
    return tuple(dict.fromkeys(found))


def _name(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0]


def _is_installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def _quoted(requirement: str) -> str:
    """For a shell, to which comparisons and brackets have a meaning."""
    return requirement if _NAME.fullmatch(requirement) else f'"{requirement}"'
