"""Types in signatures and docstrings link to classes, and to nothing else.

Sphinx takes an unknown name in a type for a type alias, and looks for an attribute of that name in
any class: the ``n_samples`` of "array of shape (n_samples,)" would link to whichever class has an
attribute ``n_samples``.
"""

from __future__ import annotations

from typing import Any

from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform


class TypeLinks(SphinxPostTransform):
    """Turns references to classes that are not classes into text."""

    # Sphinx resolves references at 10.
    default_priority = 5

    def run(self, **_: Any) -> None:
        """Replace the references of one page."""
        domain = self.env.domains.python_domain
        for node in list(self.document.findall(pending_xref)):
            if (node["refdomain"], node["reftype"]) != ("py", "class"):
                continue
            found = domain.find_obj(
                self.env,
                node.get("py:module"),
                node.get("py:class"),
                node["reftarget"],
                "class",
                int(node.hasattr("refspecific")),
            )
            if not found:
                node.replace_self(node.children)


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the transform."""
    app.add_post_transform(TypeLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
