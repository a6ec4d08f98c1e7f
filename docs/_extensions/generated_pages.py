"""Pages that are written from the code when the docs are built."""

from __future__ import annotations

from pathlib import Path

from commands import command_page, commands_page
from routes import routes_page
from sphinx.application import Sphinx

from evergrow.cli import main


def write_pages(app: Sphinx) -> None:
    """Write the pages that changed, and remove those of commands and names that are gone."""
    root = Path(app.srcdir)
    pages = {root / "commands" / f"{name}.rst": command_page(name) for name in main.commands}
    pages[root / "commands" / "index.rst"] = commands_page()
    pages[root / "http.rst"] = routes_page()
    for path in (root / "commands").glob("*.rst"):
        if path not in pages:
            path.unlink()
    for path, text in pages.items():
        path.parent.mkdir(exist_ok=True)
        # Sphinx reads what is new again.
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    _remove_unlisted_names(root / "api")


def _remove_unlisted_names(folder: Path) -> None:
    """Remove pages of names that the API lists no more; autosummary writes those it lists."""
    listed = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.md"))
    for page in folder.glob("*.rst"):
        if f"~{page.stem.removesuffix('-function')}\n" not in listed:
            page.unlink()


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before Sphinx looks for sources."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
