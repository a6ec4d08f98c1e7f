"""Writes the software bill of materials: what a wheel contains that is not Evergrow's own.

The build of a wheel runs this file, so it needs nothing but Python. It writes CycloneDX 1.6, and
nothing of the machine or the time: the same content gives the same bytes.
"""

from __future__ import annotations

import json
import re
import runpy
import sys
import tomllib
from base64 import b64decode
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

TOP = Path(__file__).resolve().parents[1]
RUNTIME = TOP / "src" / "evergrow" / "export" / "html" / "runtime.py"


def describe(version: str, nanobind: str) -> dict[str, Any]:
    """Return the bill of materials of a wheel.

    Parameters
    ----------
    version : str
        The version of Evergrow.
    nanobind : str
        The version of nanobind that is compiled in.
    """
    evergrow = {**_component("evergrow", version, "BSD-3-Clause"), "purl": _purl(version)}
    components = [
        {
            **_component("nanobind", nanobind, "BSD-3-Clause"),
            "purl": f"pkg:pypi/nanobind@{nanobind}",
        },
        # Part of nanobind, which does not say its version.
        {
            **_component("robin-map", None, "MIT"),
            "purl": "pkg:github/Tessil/robin-map",
            "description": f"As included in nanobind {nanobind}",
        },
        *_page_runtime(),
    ]
    needs = {"ref": evergrow["bom-ref"], "dependsOn": [one["bom-ref"] for one in components]}
    return _document(evergrow, components, [needs])


def add_requirements(wheel: dict[str, Any], project: dict[str, Any]) -> dict[str, Any]:
    """Return a bill of materials with what pip installs next to the wheel, too.

    Parameters
    ----------
    wheel : dict
        The bill of materials of the wheel.
    project : dict
        The table ``project`` of ``pyproject.toml``. Versions are ranges there, so none is named;
        the property ``requirement`` has the range.
    """
    extras: dict[str, list[str]] = {}
    for extra, requirements in project["optional-dependencies"].items():
        for requirement in requirements:
            if not requirement.startswith("evergrow["):
                extras.setdefault(requirement, []).append(extra)
    added = [
        *(_requirement(one, ()) for one in project["dependencies"]),
        *(_requirement(one, names) for one, names in sorted(extras.items())),
    ]
    components = [*wheel["components"], *added]
    needs = {
        "ref": wheel["metadata"]["component"]["bom-ref"],
        "dependsOn": [one["bom-ref"] for one in components],
    }
    return _document(wheel["metadata"]["component"], components, [needs])


def _page_runtime() -> list[dict[str, Any]]:
    """Describe the runtime of exported pages, if this source tree has it."""
    facts = runpy.run_path(str(RUNTIME))
    name, version = facts["PACKAGE"], facts["VERSION"]
    if not (facts["INCLUDED"] / "ort.wasm.min.js").is_file():
        return []
    package = {"alg": "SHA-512", "content": b64decode(facts["_SHA512"]).hex()}
    purl = f"pkg:npm/{name}@{version}"
    return [{**_component(name, version, "MIT"), "purl": purl, "hashes": [package]}]


def _requirement(requirement: str, extras: tuple[str, ...] | list[str]) -> dict[str, Any]:
    name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
    facts = [{"name": "evergrow:requirement", "value": requirement}]
    facts += [{"name": "evergrow:extra", "value": extra} for extra in extras]
    return {
        "type": "library",
        "bom-ref": f"requirement:{requirement}",
        "name": name,
        "scope": "optional" if extras else "required",
        "purl": f"pkg:pypi/{name}",
        "properties": facts,
    }


def _component(name: str, version: str | None, licence: str) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": f"{name}@{version}" if version else name,
        "name": name,
        **({"version": version} if version else {}),
        "licenses": [{"license": {"id": licence}}],
    }


def _purl(version: str) -> str:
    return f"pkg:pypi/evergrow@{version}"


def _document(
    subject: dict[str, Any], components: list[dict[str, Any]], needs: list[dict[str, Any]]
) -> dict[str, Any]:
    content = {"metadata": {"component": subject}, "components": components, "dependencies": needs}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        # From the content: another content has another number.
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, json.dumps(content, sort_keys=True))}",
        "version": 1,
        **content,
    }


def write(content: dict[str, Any], path: Path) -> None:
    """Write a bill of materials as JSON."""
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8", newline="\n")


def read_table(name: str) -> dict[str, Any]:
    """Read a table of ``pyproject.toml``."""
    content = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))
    table: dict[str, Any] = content[name]
    return table


if __name__ == "__main__":
    write(describe(read_table("project")["version"], sys.argv[1]), Path(sys.argv[2]))
