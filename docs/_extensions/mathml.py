"""Equations as MathML, written when the docs are built.

Browsers draw MathML themselves, so pages need neither a script nor a network. Docutils translates
the LaTeX of an equation; what it does not know is an error of the build.
"""

from __future__ import annotations

import re
from html import escape

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)

# Bars around a set or a norm; browsers would stretch them and put space around them.
_BARS = re.compile("<mo[^>]*>(?=[|\N{DOUBLE VERTICAL LINE}]<)")


def visit_inline(translator: HTML5Translator, node: nodes.math) -> None:
    """Write an equation within a line."""
    translator.body.append(translate(node, as_block=False))
    raise nodes.SkipNode


def visit_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    """Write an equation on a line of its own; site.css lets a wide one scroll."""
    translator.body.append(f'<div class="equation">{translate(node, as_block=True)}</div>\n')
    raise nodes.SkipNode


def translate(node: nodes.math | nodes.math_block, *, as_block: bool) -> str:
    """Return the MathML of an equation, or its LaTeX with a warning."""
    latex = node.astext().strip()
    try:
        # Docutils takes an apostrophe for an operator.
        mathml = tex2mathml(latex.replace("'", r"^\prime "), as_block=as_block)
        return _BARS.sub('<mo stretchy="false" lspace="0" rspace="0">', mathml)
    except MathError as error:
        logger.warning("%s in the equation %s", error, latex, location=node)
        return escape(latex)


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the renderer; ``html_math_renderer`` chooses it."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
