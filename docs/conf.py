"""Sphinx configuration."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "Evergrow"
author = "The Evergrow developers"
copyright = "2026, The Evergrow developers"  # noqa: A001
version = release = installed_version("evergrow")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    # Our own, in _extensions.
    "generated_pages",
    "guides",
    "links",
    "members",
]
exclude_patterns = ["_build", "_extensions", "_templates"]
templates_path = ["_templates"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

autodoc_typehints = "none"
# Where upper and lower case are the same, plan and Plan would be one file.
autosummary_filename_map = {"evergrow.plan": "evergrow.plan-function"}
napoleon_google_docstring = False

# Entries of the page's table of contents are "fit()", not "NCMForestClassifier.fit()".
toc_object_entries_show_parents = "hide"

# That of the page.
ICON = "../src/evergrow/page/icon.svg"

html_theme = "pydata_sphinx_theme"
html_title = f"Evergrow {release}"
html_favicon = ICON
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
# The landing page has no pages next to it.
html_sidebars = {"index": []}
html_theme_options = {
    "header_links_before_dropdown": 6,
    "logo": {"text": "Evergrow", "image_light": ICON, "image_dark": ICON},
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "show_nav_level": 1,
    "show_prev_next": True,
    "show_toc_level": 2,
}
