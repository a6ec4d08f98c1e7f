"""ONNX Runtime for web pages: a pinned release of the npm package, checked by its hashes.

Wheels contain it. In a checkout ``make`` fetches it, and so does ``python -m
evergrow.export.html.runtime``, with the program npm. This file runs without anything installed, so
that a build can fetch before it compiles.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from base64 import b64decode
from dataclasses import dataclass
from pathlib import Path

# Its licence and notices lie next to this file. The npm package lacks the notices: they are those
# of the package onnxruntime of the same version on PyPI. A new version needs new ones.
PACKAGE = "onnxruntime-web"
VERSION = "1.22.0"
# The hash that the package index states for this release.
_SHA512 = "Ud/+EBo6mhuaQWt/OjaOk0iNWjXqJoeeMFr6xQEERZdIZH2OWpGzuujz7lfuOBjUa6TEE/sc4nb7Da5dNL34fg=="
# By purpose: the file in the package, and its SHA-256. One thread, with vector instructions.
_FILES = {
    "script": (
        "ort.wasm.min.js",
        "65e09376df69107e881b5c34d2d37aed333a366b6d941073ec518168e269b87d",
    ),
    "glue": (
        "ort-wasm-simd-threaded.mjs",
        "30dd851d9c00622940500f71ddd2ff8820c5cb65270816080175b958705385a8",
    ),
    "wasm": (
        "ort-wasm-simd-threaded.wasm",
        "71aef04959c5c1b6de461b6538e2058e306610034a85aad2742d0c7fd4533fe4",
    ),
}
_FETCH_SECONDS = 600
# Where wheels have it, and where a checkout gets it.
INCLUDED = Path(__file__).parent / PACKAGE


class RuntimeMissingError(RuntimeError):
    """The runtime for web pages is not installed; the message says how to get it."""


@dataclass(frozen=True)
class WebRuntime:
    """The files of the runtime."""

    script: bytes
    glue: bytes
    wasm: bytes

    title = f"ONNX Runtime Web {VERSION}"


def load_runtime() -> WebRuntime:
    """Load the runtime from the package or the user's cache folder.

    Raises
    ------
    RuntimeMissingError
        If it is in neither, or a file has another hash.
    """
    for folder in (INCLUDED, _cached()):
        found = {purpose: _read(folder / name, sha) for purpose, (name, sha) in _FILES.items()}
        contents = {purpose: content for purpose, content in found.items() if content is not None}
        if len(contents) == len(_FILES):
            return WebRuntime(**contents)
    raise RuntimeMissingError(
        f"an HTML page needs {PACKAGE} {VERSION}, which this installation lacks: install Node.js "
        f"with npm and run 'python -m evergrow.export.html.runtime', or use a wheel of Evergrow"
    )


def can_fetch() -> bool:
    """Whether npm is installed."""
    return shutil.which("npm") is not None


def fetch_runtime(folder: Path | None = None) -> Path:
    """Fetch the runtime with npm into a folder, by default the user's cache folder.

    Raises
    ------
    RuntimeMissingError
        If npm is missing or fails, or if the package has another hash. Nothing is then written.
    """
    target = _cached() if folder is None else folder
    npm = shutil.which("npm")
    if npm is None:
        raise RuntimeMissingError("npm is not installed: install Node.js, which includes it")
    with tempfile.TemporaryDirectory() as place:
        command = [
            npm,
            "pack",
            f"{PACKAGE}@{VERSION}",
            "--silent",
            "--ignore-scripts",
            "--fetch-retries=1",
        ]
        try:
            subprocess.run(  # noqa: S603
                command, cwd=place, check=True, capture_output=True, timeout=_FETCH_SECONDS
            )
            content = (Path(place) / f"{PACKAGE}-{VERSION}.tgz").read_bytes()
        except (OSError, subprocess.SubprocessError) as error:
            said = getattr(error, "stderr", None) or b""
            reason = said.decode(errors="replace").strip() or str(error)
            raise RuntimeMissingError(f"npm cannot fetch {PACKAGE} {VERSION}: {reason}") from error
    for name, part in unpack(content).items():
        target.mkdir(parents=True, exist_ok=True)
        # Complete or not there: another process may read it.
        partial = target / f"{name}.{os.getpid()}"
        partial.write_bytes(part)
        partial.replace(target / name)
    return target


def unpack(package: bytes) -> dict[str, bytes]:
    """Take the files of the runtime out of the npm package, after checking every hash."""
    if hashlib.sha512(package).digest() != b64decode(_SHA512):
        raise RuntimeMissingError(f"the package {PACKAGE} {VERSION} has another hash than expected")
    found = {}
    with tarfile.open(fileobj=io.BytesIO(package), mode="r:gz") as archive:
        for name, sha256 in _FILES.values():
            member = archive.extractfile(f"package/dist/{name}")
            content = b"" if member is None else member.read()
            if hashlib.sha256(content).hexdigest() != sha256:
                raise RuntimeMissingError(f"{name} of {PACKAGE} has another hash than expected")
            found[name] = content
    return found


def _cached() -> Path:
    from evergrow.storage.cache_folder import cache_folder

    return cache_folder() / f"{PACKAGE}-{VERSION}"


def _read(path: Path, sha256: str) -> bytes | None:
    """Read a file; None if it is not there or not the expected one."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    return content if hashlib.sha256(content).hexdigest() == sha256 else None


if __name__ == "__main__":
    try:
        where = fetch_runtime(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
    except RuntimeMissingError as failed:
        sys.exit(f"Error: {failed}")
    sys.stderr.write(f"{PACKAGE} {VERSION} is in {where}.\n")
