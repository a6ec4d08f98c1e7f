"""Links in docstrings lead to what they mean.

Sphinx takes an unknown name in a type for a type alias, and looks for an attribute of that name in
any class: the ``n_samples`` of "array of shape (n_samples,)" would link to whichever class has an
attribute ``n_samples``. Types link to classes only.

A docstring names an object as its own room does, ``evergrow.vision.Embedder`` or ``Embedder``; its
page has the shortest public name, ``evergrow.Embedder``. Such names are found by their end.

Links to files of the repository outside this folder, such as stored results, are downloads.

Tags of papers such as ``[Ristin2014 Eq. 6]`` link to the page of equations.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

_TAG = re.compile(r"(?<!\w)\[([A-Z][a-z]+20\d\d[^\[\]`]*)\]")
_OUTSIDE = re.compile(r"(?<!!)\[([^\]]+)\]\((\.\./papers/[\w/.-]+)(?:#[\w-]+)?\)")
_MODULES = re.compile(r"^([a-z_]+\.)+(?=[A-Z]|[a-z_]+$)")


class TypeLinks(SphinxPostTransform):
    """Turns words of types that are not classes into text."""

    # Sphinx resolves references at 10.
    default_priority = 5

    def run(self, **_: Any) -> None:
        """Replace the references of one page."""
        domain = self.env.domains.python_domain
        for node in list(self.document.findall(pending_xref)):
            # Roles that were written ask for an exact name.
            if node["reftype"] != "class" or not node.hasattr("refspecific"):
                continue
            module, inside = node.get("py:module"), node.get("py:class")
            if not domain.find_obj(self.env, module, inside, node["reftarget"], "class", 1):
                node.replace_self(node.children)


def find_alias(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.reference | None:
    """Resolve a name of an object that has its page under another public name."""
    if node.get("refdomain") != "py":
        return None
    end = _MODULES.sub("", node["reftarget"])
    found = env.domains.python_domain.find_obj(env, None, None, end, node["reftype"], 1)
    # Sphinx also knows the module that defines an object.
    public = [match for match in found if not match[1].aliased]
    if len(public) != 1:
        return None
    ((name, entry),) = public
    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, content, name)


def link_tags(_: Sphinx, __: str, ___: str, ____: object, _____: object, lines: list[str]) -> None:
    """Turn tags of papers in a docstring into links; a tag may be split by the end of a line."""
    text = _TAG.sub(lambda tag: f":doc:`[{tag[1]}] </equations>`", "\n".join(lines))
    lines[:] = text.split("\n")


def link_outside(_: Sphinx, __: str, source: list[str]) -> None:
    """Turn links of a page to files outside this folder into downloads."""
    # A role cannot have code in its text.
    source[0] = _OUTSIDE.sub(
        lambda link: f"{{download}}`{link[1].replace('`', '')} <{link[2]}>`", source[0]
    )


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the transform and the resolver."""
    app.add_post_transform(TypeLinks)
    app.connect("source-read", link_outside)
    app.connect("autodoc-process-docstring", link_tags)
    app.connect("missing-reference", find_alias)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
