"""Builds the source archive of a commit, and wheels from that archive.

Everything in an archive follows from the commit and from the versions in
``requirements/release.txt``, so a build that is repeated gives the same bytes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

from release import sbom

TOP = sbom.TOP
LOCK = TOP / "requirements" / "release.txt"
PAGE_RUNTIME = sbom.RUNTIME.parent / "onnxruntime-web"


def build_sdist(out: Path) -> Path:
    """Build the source archive of the last commit, with the runtime of exported pages."""
    date = int(_git("log", "-1", "--format=%ct"))
    if changed := _git("status", "--porcelain").splitlines():
        _say(f"the archive is that of the last commit; {len(changed)} changed files are not in it")
    with tempfile.TemporaryDirectory() as place:
        # Files that git does not know, and changes, stay out.
        with tarfile.open(fileobj=BytesIO(_git_bytes("archive", "HEAD"))) as archive:
            archive.extractall(place, filter="data")
        runtime = Path(place) / PAGE_RUNTIME.relative_to(TOP)
        _run([sys.executable, str(sbom.RUNTIME), str(runtime)])
        _run([*_uv_build("--sdist", out), place], date=date)
    (sdist,) = out.glob("*.tar.gz")
    return sdist


def build_wheels(sdist: Path, out: Path, pythons: list[str]) -> None:
    """Build a wheel for each Python from a source archive; on Linux make it fit older systems."""
    date = source_date(sdist)
    for python in pythons:
        with tempfile.TemporaryDirectory() as place:
            built = Path(place)
            command = [*_uv_build("--wheel", built), "--python", python, str(sdist.resolve())]
            _run(command, date=date, PATH=_path_without_git(built / "programs"))
            (wheel,) = built.glob("*.whl")
            if sys.platform == "linux":
                tools = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
                repair = (sys.executable, "-m", "auditwheel", "repair", "--wheel-dir")
                _run([*repair, str(out.resolve()), str(wheel)], date=date, PATH=tools)
            else:
                wheel.replace(out / wheel.name)


def write_sbom(out: Path) -> Path:
    """Write the bill of materials of a release, requirements included, next to its archives."""
    (name,) = {path.name.split("-")[1] for path in out.glob("*.whl")}
    wheel = next(iter(sorted(out.glob("*.whl"))))
    path = out / f"evergrow-{name}.cdx.json"
    sbom.write(sbom.add_requirements(read_sbom(wheel), sbom.read_table("project")), path)
    return path


def read_sbom(wheel: Path) -> dict[str, object]:
    """Read the bill of materials inside a wheel."""
    from zipfile import ZipFile

    with ZipFile(wheel) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith("/sboms/evergrow.cdx.json"))
        content: dict[str, object] = json.loads(archive.read(name))
    return content


def source_date(sdist: Path) -> int:
    """Return the time of the commit, which the files of its source archive have."""
    with tarfile.open(sdist) as archive:
        return int(max(member.mtime for member in archive))


def _path_without_git(folder: Path) -> str:
    """Return a search path on which git fails: an archive must build where there is none."""
    folder.mkdir()
    (folder / "git").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    (folder / "git").chmod(0o755)
    return os.pathsep.join((str(folder), os.environ["PATH"]))


def _uv_build(kind: str, out: Path) -> list[str]:
    # The tools of a build end up in the binary: their versions are locked.
    return [
        *(sys.executable, "-m", "uv", "build", "--quiet", kind, "--out-dir", str(out.resolve())),
        *("--build-constraints", str(LOCK), "--require-hashes", "--no-create-gitignore"),
    ]


def _run(command: list[str], *, date: int | None = None, **environment: str) -> None:
    if date is not None:
        environment["SOURCE_DATE_EPOCH"] = str(date)
    # Of the machine, never one that uv fetches.
    environment["UV_PYTHON_DOWNLOADS"] = "never"
    _say(f"$ {' '.join(command)}")
    subprocess.run(command, check=True, env={**os.environ, **environment}, cwd=TOP)


def _git(*arguments: str) -> str:
    return _git_bytes(*arguments).decode()


def _git_bytes(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], check=True, cwd=TOP, stdout=subprocess.PIPE).stdout


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
