"""The directive ``guides``: which pages use a name or a command.

The pages of the API and of the commands begin with it, so they link to the guides and examples
that mention them, without a table that someone must keep.
"""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

# Pages that name nearly everything: indexes, what is generated, and those for other readers.
_LEFT_OUT = re.compile(
    r"(.*/)?index$|(tutorials|how_to|reference|explanation|api|commands|http|changelog|glossary"
    r"|faq|architecture|benchmarks|limits|not_reproduced|papers|results)(/.*)?$"
)
_GALLERY = "gallery/"
_N_PAGES = 3


def _pattern(name: str) -> re.Pattern[str]:
    """Return what finds a name in a page; a word such as "Example" or "plan" must be code."""
    if re.fullmatch("[A-Z]?[a-z]+", name):
        code = rf"`[\w.~]*\b{name}(?:\(\))?`|(?<![\w.]){name}\(|evergrow(?:\.\w+)*\.{name}\b"
        return re.compile(code)
    return re.compile(rf"(?<![\w.]){re.escape(name)}(?![\w-])")


class Guides(SphinxDirective):
    """Links to the guides, and to the examples of the gallery, that mention the argument most."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = False

    def run(self) -> list[nodes.Node]:
        """Find the pages; without any, nothing is shown."""
        name = _pattern(self.arguments[0])
        counts = {}
        for page in sorted(self.env.found_docs):
            if not _LEFT_OUT.match(page):
                text = Path(self.env.doc2path(page)).read_text(encoding="utf-8")
                counts[page] = len(name.findall(text))
        pages = sorted(filter(counts.get, counts), key=lambda page: -counts[page])
        examples = [page for page in pages if page.startswith(_GALLERY)]
        guides = [page for page in pages if page not in examples]
        parts = {"Guides": guides, "Examples": examples}
        return [self._line(title, found) for title, found in parts.items() if found]

    def _line(self, title: str, pages: list[str]) -> nodes.paragraph:
        line = nodes.paragraph("", f"{title}: ", classes=["guides"])
        for i, page in enumerate(pages[:_N_PAGES]):
            if i:
                line += nodes.Text(" · ")
            line += pending_xref(
                "",
                nodes.inline(),
                refdomain="std",
                reftype="doc",
                reftarget=f"/{page}",
                refdoc=self.env.docname,
                refexplicit=False,
                refwarn=True,
            )
        return line


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("guides", Guides)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
