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
        # First the wheel of the folder, whatever an index may have.
        _run(
            [
                *install,
                "--no-index",
                "--no-deps",
                "--prerelease",
                "allow",
                "--find-links",
                str(folder),
                "evergrow",
            ]
        )
        _run([*install, "--constraint", str(versions), f"evergrow[{extras}]"])
        sources.mkdir()
        for name in settings["test-sources"]:
            copy = shutil.copytree if (TOP / name).is_dir() else shutil.copy2
            (sources / name).parent.mkdir(parents=True, exist_ok=True)
            copy(TOP / name, sources / name)
        done = subprocess.run(
            [str(binary), "-m", "pytest", "-n", WORKERS, "-m", select],
            check=False,
            cwd=sources,
            env={**os.environ, "EVERGROW_TESTS": "quick"},
        )
    return done.returncode


def _run(command: list[str]) -> None:
    sys.stderr.write(f"$ {' '.join(command)}\n")
    subprocess.run(command, check=True)
