"""Installs a wheel into a new environment and runs the tests outside of the checkout."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from release.sbom import TOP

# The default build of torch comes with gigabytes of CUDA: versions are chosen, and not installed.
ONLY_RESOLVED = {"gpu"}
# What lies in folders of the checkout and is not part of it.
BUILT = ("_build", "__pycache__", "node_modules")
# Two cores, as most machines that run this have at least.
WORKERS = "2"


def try_wheel(folder: Path, python: str, select: str) -> int:
    """Install the wheel of a folder for a Python, run its tests, and return pytest's exit status.

    Extras, files and versions are those that cibuildwheel and CI use. ``select`` is an expression
    over markers, as pytest's ``-m`` takes it.
    """
    settings = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))["tool"]["cibuildwheel"]
    uv = [sys.executable, "-m", "uv"]
    with tempfile.TemporaryDirectory(prefix="evergrow-trial-") as place:
        environment, sources = Path(place) / "venv", Path(place) / "sources"
        _run([*uv, "venv", "--quiet", "--python", python, str(environment)])
        binary = environment / ("Scripts" if os.name == "nt" else "bin") / "python"
        versions = Path(place) / "versions.txt"
        lock = (TOP / "requirements" / "ci.txt").read_text("utf-8")
        versions.write_text(re.sub(r" \\\n +--hash=\S+", "", lock), encoding="utf-8")
        extras = ",".join(settings["test-extras"])
        install = [*uv, "pip", "install", "--quiet", "--python", str(binary)]
        _run([*install, *_only_from(folder), "--no-deps", "evergrow"])
        _run([*install, "--constraint", str(versions), f"evergrow[{extras}]"])
        sources.mkdir()
        for name in settings["test-sources"]:
            if (TOP / name).is_dir():
                shutil.copytree(TOP / name, sources / name, ignore=shutil.ignore_patterns(*BUILT))
            else:
                shutil.copy2(TOP / name, sources / name)
        done = subprocess.run(
            [str(binary), "-m", "pytest", "-n", WORKERS, "-m", select],
            check=False,
            cwd=sources,
            env={**os.environ, "EVERGROW_TESTS": "quick"},
        )
    return done.returncode


def try_extras(folder: Path, python: str) -> list[str]:
    """Install the wheel with the extras of each ``pip install`` in the docs; return what failed.

    Each gets a new environment with the newest versions that the index has, and must be consistent
    there and start.
    """
    uv = [sys.executable, "-m", "uv"]
    failed = []
    for extras in sorted(read_extras()):
        with tempfile.TemporaryDirectory(prefix="evergrow-trial-") as place:
            binary = Path(place) / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
            _run([*uv, "venv", "--quiet", "--python", python, str(binary.parents[1])])
            install = [*uv, "pip", "install", "--quiet", "--python", str(binary)]
            _run([*install, *_only_from(folder), "--no-deps", "evergrow"])
            wanted = f"evergrow[{extras}]" if extras else "evergrow"
            resolve = ["--dry-run"] if extras in ONLY_RESOLVED else []
            steps = (
                [*install, *resolve, wanted],
                [*uv, "pip", "check", "--quiet", "--python", str(binary)],
                [str(binary), "-m", "evergrow", "--help"],
            )[: 1 if resolve else None]
            if any(_fails(step) for step in steps):
                failed.append(f"pip install {wanted} failed with Python {python}")
    return failed


def read_extras() -> set[str]:
    """Return the extras of every ``pip install`` in the README and the docs."""
    pages = [TOP / "README.md", TOP / "CONTRIBUTING.md", *sorted((TOP / "docs").glob("*.md"))]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    return set(re.findall(r'pip install "?\.(?:\[([\w,]+)\])?', text))


def _only_from(folder: Path) -> list[str]:
    # Whatever an index may have under this name.
    return ["--no-index", "--prerelease", "allow", "--find-links", str(folder)]


def _fails(command: list[str]) -> bool:
    sys.stderr.write(f"$ {' '.join(command)}\n")
    return subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode != 0


def _run(command: list[str]) -> None:
    sys.stderr.write(f"$ {' '.join(command)}\n")
    subprocess.run(command, check=True)
