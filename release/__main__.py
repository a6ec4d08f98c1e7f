"""``python -m release``: the steps of a release, in their order."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from release.audit import audit, compare
from release.build import build_sdist, build_wheels, source_date, write_sbom
from release.trial import try_extras, try_wheel


def main() -> int:
    """Run one step; problems go to standard error and make the exit status 1."""
    chosen = _parser().parse_args()
    # The modes of files get into archives, whatever the user's umask is.
    os.umask(0o022)
    problems: list[str] = []
    match chosen.step:
        case "sdist":
            chosen.folder.mkdir(parents=True, exist_ok=True)
            build_sdist(chosen.folder)
        case "date":
            (sdist,) = chosen.folder.glob("*.tar.gz")
            sys.stdout.write(f"{source_date(sdist)}\n")
        case "wheels":
            (sdist,) = chosen.folder.glob("*.tar.gz")
            build_wheels(sdist, chosen.folder, chosen.python)
        case "sbom":
            write_sbom(chosen.folder)
        case "audit":
            problems = audit(chosen.folder)
        case "compare":
            problems = compare(chosen.folder, chosen.other)
        case "test":
            failed = [one for one in chosen.python if try_wheel(chosen.folder, one, chosen.select)]
            problems = [f"tests failed with Python {one}" for one in failed]
        case "extras":
            problems = [
                one for python in chosen.python for one in try_extras(chosen.folder, python)
            ]
    for problem in problems:
        sys.stderr.write(f"Error: {problem}\n")
    return 1 if problems else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    steps = parser.add_subparsers(dest="step", required=True)
    texts = {
        "sdist": "build the source archive of the last commit into FOLDER",
        "date": "print the time of the commit of the source archive in FOLDER",
        "wheels": "build wheels from the source archive in FOLDER",
        "sbom": "write the bill of materials of the wheels in FOLDER",
        "audit": "check the archives in FOLDER",
        "compare": "compare the archives of two builds, byte by byte",
        "test": "install a wheel of FOLDER and run the tests outside of the checkout",
        "extras": "install a wheel of FOLDER with the extras that the docs name",
    }
    found = {name: steps.add_parser(name, help=text) for name, text in texts.items()}
    for step in found.values():
        step.add_argument("folder", type=Path)
    found["compare"].add_argument("other", type=Path)
    for name in ("wheels", "test", "extras"):
        found[name].add_argument("--python", action="append", required=True)
    found["test"].add_argument("--select", default="", help="markers of the tests to run")
    return parser


if __name__ == "__main__":
    sys.exit(main())
