"""Checks archives before they are published: by the usual tools, and for what Evergrow promises."""

from __future__ import annotations

import hashlib
import json
import os
import re
import runpy
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

from release import sbom

# Paths of licence files below `licenses` in a wheel; `license-files` in pyproject.toml adds them.
LICENCES = (
    "LICENSE",
    "cpp/bind/nanobind.licence.txt",
    "cpp/bind/robin_map.licence.txt",
    "src/evergrow/export/html/onnxruntime-web.licence.txt",
    "src/evergrow/export/html/onnxruntime-web.notices.txt",
)
# What git has and a source archive has not.
LEFT_OUT = re.compile(r"\.(ci|github)/|\.(gitignore|pre-commit-config\.yaml)$")
NEEDED = ("CITATION.cff", "LICENSE", "PKG-INFO", "README.md", "SECURITY.md", "conftest.py")


def audit(folder: Path) -> list[str]:
    """Return what is wrong with the archives in a folder; an empty list if nothing is."""
    wheels, sdists = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    problems = [] if wheels or sdists else [f"{folder} has no archives"]
    problems += _run_tools(wheels, sdists)
    for sdist in sdists:
        files = read_sdist(sdist)
        problems += (f"{sdist.name}: {one}" for one in check_sdist(files))
        for wheel in wheels:
            problems += (f"{wheel.name}: {one}" for one in compare_sources(read_zip(wheel), files))
    for wheel in wheels:
        problems += (f"{wheel.name}: {one}" for one in check_wheel(read_zip(wheel)))
    problems += (f"recipe: {one}" for one in check_recipe())
    for path in sorted(folder.glob("*.cdx.json")):
        problems += (f"{path.name}: {one}" for one in check_sbom(path.read_text("utf-8")))
    return problems


def check_wheel(files: dict[str, bytes]) -> Iterator[str]:
    """Yield what a wheel lacks: licences, the bill of materials, the runtime of pages, the core."""
    (info,) = {name.split("/")[0] for name in files if ".dist-info/" in name}
    for name in LICENCES:
        if f"{info}/licenses/{name}" not in files:
            yield f"the licence {name} is missing"
    bill = files.get(f"{info}/sboms/evergrow.cdx.json")
    yield from ["the bill of materials is missing"] if bill is None else check_sbom(bill.decode())
    facts = runpy.run_path(str(sbom.RUNTIME))
    for name, sha256 in facts["_FILES"].values():
        content = files.get(f"evergrow/export/html/{facts['PACKAGE']}/{name}", b"")
        if hashlib.sha256(content).hexdigest() != sha256:
            yield f"{name} of the runtime of pages is missing or another one"
    if not any(re.fullmatch(r"evergrow/_core\..*(so|pyd)", name) for name in files):
        yield "the compiled core is missing"


def check_sdist(files: dict[str, bytes]) -> Iterator[str]:
    """Yield what a source archive lacks or has too much, compared with the commit."""
    for name in NEEDED:
        if name not in files:
            yield f"{name} is missing"
    tracked = _tracked()
    if tracked is None:
        return
    runtime = {name for name in files if "/onnxruntime-web/" in name}
    expected = {name for name in tracked if not LEFT_OUT.search(name)}
    for name in sorted(expected - files.keys()):
        yield f"{name} is missing"
    for name in sorted(files.keys() - expected - runtime - {"PKG-INFO"}):
        yield f"{name} is not a file of the commit"


def compare_sources(wheel: dict[str, bytes], sdist: dict[str, bytes]) -> Iterator[str]:
    """Yield files of the package that differ between a wheel and its source archive."""
    start = "src/"
    sources = {
        name.removeprefix(start): one for name, one in sdist.items() if name.startswith(start)
    }
    packed = {name: one for name, one in wheel.items() if ".dist-info/" not in name}
    for name in sorted(sources.keys() | packed.keys()):
        compiled = name.startswith("evergrow/_core.") and not name.endswith(".pyi")
        licence = f"{start}{name}" in LICENCES
        if not compiled and not licence and sources.get(name) != packed.get(name):
            yield f"{name} is not the one of the source archive"


def check_sbom(text: str) -> Iterator[str]:
    """Yield what is wrong with a bill of materials."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if error is not None:
        yield f"the bill of materials is not valid: {error}"
    names = {one["name"] for one in json.loads(text)["components"]}
    for name in sorted({"nanobind", "robin-map", "onnxruntime-web"} - names):
        yield f"the bill of materials lacks {name}"


def check_recipe() -> Iterator[str]:
    """Yield where the conda recipe differs from ``pyproject.toml``, as rattler-build renders it."""
    from rattler_build import JinjaConfig, Stage0Recipe, VariantConfig

    folder = sbom.TOP / "recipe"
    variants = VariantConfig.from_file_with_context(folder / "variants.yaml", JinjaConfig())
    rendered = Stage0Recipe.from_file(folder / "recipe.yaml").render(variants)
    project, system = sbom.read_table("project"), sbom.read_table("build-system")
    wanted = {
        "run": [f"python {project['requires-python']}", *map(_spaced, project["dependencies"])],
        "host": ["python", "pip", *map(_spaced, system["requires"])],
    }
    for one in rendered:
        recipe = one.recipe.to_dict()
        if recipe["package"]["version"] != project["version"]:
            yield f"the version is not {project['version']}"
        for kind, expected in wanted.items():
            if recipe["requirements"][kind] != expected:
                yield f"requirements of {kind} are not {expected}"
        if recipe["about"]["license_file"] != [*LICENCES]:
            yield f"licence files are not {[*LICENCES]}"


def _spaced(requirement: str) -> str:
    """Write a requirement of pip in the way of conda."""
    return re.sub(r"^([\w.-]+)(?=[<>=])", r"\1 ", requirement)


def compare(first: Path, second: Path) -> list[str]:
    """Return the archives of two builds that differ, with the files in them that do."""
    names = {path.name for folder in (first, second) for path in _archives(folder)}
    problems = [] if names else [f"{first} has no archives"]
    for name in sorted(names):
        contents = [
            (folder / name).read_bytes() for folder in (first, second) if (folder / name).is_file()
        ]
        if len(contents) < 2:
            problems.append(f"{name} is in one build only")
        elif contents[0] != contents[1]:
            read = read_zip if name.endswith(".whl") else read_sdist
            one, two = read(first / name), read(second / name)
            differing = sorted(key for key in one | two if one.get(key) != two.get(key))
            what = ", ".join(differing) or "only their order, times or modes"
            problems.append(f"{name} differs: {what}")
    return problems


def read_zip(path: Path) -> dict[str, bytes]:
    """Read all files of a wheel."""
    with ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name[-1] != "/"}


def read_sdist(path: Path) -> dict[str, bytes]:
    """Read all files of a source archive, without the name of its folder."""
    found = {}
    with tarfile.open(path) as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is not None:
                found[member.name.split("/", maxsplit=1)[1]] = content.read()
    return found


def _archives(folder: Path) -> list[Path]:
    return [*folder.glob("*.whl"), *folder.glob("*.tar.gz")]


def _run_tools(wheels: list[Path], sdists: list[Path]) -> list[str]:
    stable = [path for path in wheels if "-abi3-" in path.name]
    repaired = [path for path in wheels if "linux" in path.name]
    commands = [["twine", "check", "--strict", *map(str, (*wheels, *sdists))]]
    commands += [["check_wheel_contents", *map(str, wheels)]] if wheels else []
    commands += [["abi3audit", "--strict", "--report", str(path)] for path in stable]
    commands += [["auditwheel", "show", str(path)] for path in repaired]
    problems = [f"{path.name} is not repaired" for path in repaired if "-linux_" in path.name]
    for command in commands:
        sys.stderr.write(f"$ {' '.join(command)}\n")
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        done = subprocess.run(
            [sys.executable, "-m", *command], check=False, env={**os.environ, "PATH": path}
        )
        if done.returncode:
            problems.append(f"{command[0]} failed")
    return problems


def _tracked() -> set[str] | None:
    """Return the files of the commit; None outside of a git checkout."""
    if not (sbom.TOP / ".git").exists():
        return None
    listed = subprocess.run(
        ["git", "ls-tree", "-r", "-z", "--name-only", "HEAD"],
        check=True,
        cwd=sbom.TOP,
        stdout=subprocess.PIPE,
    )
    return {*listed.stdout.decode().split("\0")} - {""}
