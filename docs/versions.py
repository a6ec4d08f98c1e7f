"""Lists the versions of the documentation in a folder, for the switcher on its pages.

Every version is a folder that ``make docs`` built. This writes ``switcher.json``, which pages of
all versions read, and ``index.html``, which leads to the version to read first: the newest release,
or before the first release the newest development version.

    python docs/versions.py FOLDER [BASE]

BASE is the address of the folder on its server, ``/`` by default.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path


def list_versions(folder: Path, base: str = "/") -> None:
    """Write ``switcher.json`` and ``index.html`` for the versions in a folder."""
    found = {path.parent.name for path in folder.glob("*/index.html")}
    versions = sorted(filter(_order, found), key=_order, reverse=True)
    if not versions:
        raise SystemExit(f"Error: {folder} has no version of the documentation")
    preferred = next((one for one in versions if "dev" not in one), versions[0])
    entries = [
        {
            "name": version if "dev" in version or version != preferred else f"{version} (stable)",
            "version": version,
            "url": f"{base.rstrip('/')}/{version}/",
            "preferred": version == preferred,
        }
        for version in versions
    ]
    (folder / "switcher.json").write_text(json.dumps(entries, indent=2) + "\n", encoding="utf-8")
    (folder / "index.html").write_text(
        "<!doctype html>\n"
        f'<meta charset="utf-8"><title>Evergrow {preferred}</title>\n'
        f'<meta http-equiv="refresh" content="0; url={preferred}/index.html">\n'
        f'<a href="{preferred}/index.html">Evergrow {preferred}</a>\n',
        encoding="utf-8",
    )


def _order(version: str) -> tuple[int, ...]:
    """Return a key by which versions are sorted, empty for what is not a version of ours."""
    match = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)(?:(rc|\.dev)(\d+))?", version)
    if match is None:
        return ()
    kind = {".dev": 0, "rc": 1, None: 2}[match[4]]
    return (*map(int, match.group(1, 2, 3)), kind, int(match[5] or 0))


if __name__ == "__main__":
    list_versions(Path(sys.argv[1]), *sys.argv[2:3])
